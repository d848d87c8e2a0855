// Two tabs of a real browser in which a front end begins six sign-ins each at once, as one does that learns from six
// requests that its session has ended. ORIGIN is where the front end is (`front.html`), HINT goes to the provider. Prints
// who the tabs say is signed in at the end, and the cookies, as JSON.

import { chromium } from 'playwright-core';

const { ORIGIN, HINT } = process.env;

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: [
    '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--no-first-run',
  ],
});
try {
  const context = await browser.newContext();
  const open = async () => {
    const page = await context.newPage();
    await page.goto(`${ORIGIN}/`);
    await page.getByText('nobody').waitFor();
    return page;
  };
  const tabs = [await open(), await open()];
  await Promise.all(tabs.map((page) => page.evaluate((hint) => {
    for (let n = 0; n < 6; n++) {
      fetch('/api/authParams', { method: 'POST' })
        .then((answer) => answer.json())
        .then(({ url }) => { location.href = `${url}&login_hint=${hint}`; });
    }
  }, HINT)));
  const says = await Promise.all(tabs.map(async (page) => {
    await page.waitForURL(`${ORIGIN}/callback`);
    await page.locator('p:not(:empty)').first().waitFor();
    return page.locator('p').first().textContent();
  }));
  // And still, once all answers have arrived.
  await Promise.all(tabs.map((page) => page.reload()));
  const later = await Promise.all(tabs.map(async (page) => {
    await page.locator('p:not(:empty)').first().waitFor();
    return page.locator('p').first().textContent();
  }));
  console.log(JSON.stringify({ says, later, cookies: await context.cookies(ORIGIN) }));
} finally {
  await browser.close();
}
