// The pictures of README.md (scripts/screenshots). ORIGIN is a booking-service with demonstration data. The pictures go
// to FOLDER.

const { ORIGIN, FOLDER } = process.env;

const browser = await launch();
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 640 }, locale: 'en-GB' });
  await page.goto(`${ORIGIN}/dev/sign-in`);
  await page.getByText('@alice', { exact: true }).click();
  await page.waitForURL('**/callback');
  // The demonstration has events of every kind on a Tuesday.
  const day = new Date();
  day.setUTCDate(day.getUTCDate() + (9 - day.getUTCDay()) % 7);
  await page.goto(`${ORIGIN}/board?day=${day.toISOString().slice(0, 10)}`);
  await page.screenshot({ path: `${FOLDER}/board.png` });
  await page.setViewportSize({ width: 1280, height: 440 });
  await page.goto(`${ORIGIN}/`);
  await page.screenshot({ path: `${FOLDER}/start.png` });
} finally {
  await browser.close();
}
