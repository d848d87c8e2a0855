// Tabs of a real browser in each of which a front end begins some sign-ins at once, as one does that learns from several
// requests that its session has ended. ORIGIN is where the front end is (`front.html`), HINT goes to the provider, TABS and
// EACH are the numbers. Prints who the tabs say is signed in at the end, and the cookies, as JSON.

const { ORIGIN, HINT, TABS, EACH } = process.env;

const browser = await launch();
try {
  const context = await browser.newContext();
  // The provider knows the browser from the session that has ended.
  const first = await context.newPage();
  await first.goto(`${ORIGIN}/#${HINT}`);
  await first.getByRole('button').click();
  await first.waitForURL(`${ORIGIN}/callback`);
  await first.close();
  await context.clearCookies({ name: 'session' });
  const open = async () => {
    const page = await context.newPage();
    await page.goto(`${ORIGIN}/`);
    await page.getByText('nobody').waitFor();
    return page;
  };
  const tabs = await Promise.all(Array.from({ length: Number(TABS) }, open));
  await Promise.all(tabs.map((page) => page.evaluate(({ hint, each }) => {
    for (let n = 0; n < each; n++) {
      fetch('/api/authParams', { method: 'POST' })
        .then((answer) => answer.json())
        .then(({ url }) => { location.href = `${url}&login_hint=${hint}`; });
    }
  }, { hint: HINT, each: Number(EACH) })));
  const says = await Promise.all(tabs.map(async (page) => {
    // Not waitForURL: it fails when the navigation of one sign-in aborts that of another.
    await page.waitForFunction(() => location.pathname === '/callback');
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
