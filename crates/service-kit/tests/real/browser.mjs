// A real browser that signs in: a front end's page, its button, the provider, the callback, and back at the front end.
// ORIGIN is where the front end is (`front.html`), HINT goes to the provider. Prints what the page and the browser know
// at the end, as JSON.

const { ORIGIN, HINT } = process.env;

const browser = await launch();
try {
  const context = await browser.newContext();
  const page = await context.newPage();
  const visited = [];
  page.on('request', (request) => {
    const { origin, pathname } = new URL(request.url());
    if (request.isNavigationRequest()) visited.push(origin + pathname);
  });
  await page.goto(`${ORIGIN}/#${HINT}`);
  await page.getByText('nobody').waitFor();
  await page.getByRole('button', { name: 'サインイン' }).click();
  await page.waitForURL(HINT === 'deny' ? /\/api\/callback\?/ : ORIGIN + '/callback');
  await page.locator('p:not(:empty)').first().waitFor();
  const links = page.getByRole('link');
  console.log(JSON.stringify({
    visited,
    title: await page.title(),
    says: await page.locator('p').first().textContent(),
    links: await links.evaluateAll((found) => found.map((link) => [link.textContent, link.href])),
    script: await page.evaluate(() => document.cookie),
    cookies: await context.cookies(ORIGIN),
  }));
} finally {
  await browser.close();
}
