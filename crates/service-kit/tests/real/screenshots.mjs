// The pictures of README.md (scripts/screenshots). ORIGIN is a booking-service with demonstration data, PORTFOLIO a
// portfolio-service. The pictures go to FOLDER.

const { ORIGIN, PORTFOLIO, FOLDER } = process.env;

const browser = await launch();
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 640 }, locale: 'en-GB' });
  await page.goto(`${ORIGIN}/`);
  await page.getByRole('main').getByRole('link', { name: 'Sign in' }).click();
  await page.getByText('@alice', { exact: true }).click();
  await page.waitForURL(`${ORIGIN}/`);
  // The day with the most kinds of events, and of those the one with the most events.
  let best = { score: 0 };
  for (let days = -14; days <= 14; days++) {
    const day = new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
    await page.goto(`${ORIGIN}/board?day=${day}`);
    const score = await page.$$eval('.bar', (bars) =>
      100 * new Set(bars.map((bar) => bar.getAttribute('class'))).size + bars.length);
    if (score > best.score) best = { score, day };
  }
  await page.goto(`${ORIGIN}/board?day=${best.day}`);
  await page.screenshot({ path: `${FOLDER}/board.png` });
  await page.setViewportSize({ width: 1280, height: 640 });
  await page.goto(`${ORIGIN}/`);
  await page.screenshot({ path: `${FOLDER}/start.png` });
  await page.goto(`${PORTFOLIO}/`);
  await page.screenshot({ path: `${FOLDER}/portfolio.png` });
} finally {
  await browser.close();
}
