// A page of another site whose name leads to this machine by now (DNS rebinding), and which calls the service there as its
// own. PORT is the service's, REQUESTS are the arguments of its calls of `fetch`. Prints, as JSON, how the page is
// answered, and how one is that was opened by a name of this machine.

const { PORT, REQUESTS } = process.env;

const browser = await launch('--host-resolver-rules=MAP evil.example 127.0.0.1');
try {
  // The page is whatever the service sends; its policy would not let it fetch anything.
  const context = await browser.newContext({ bypassCSP: true });
  const answers = async (host) => {
    const page = await context.newPage();
    const opened = await page.goto(`http://${host}:${PORT}/api/`);
    const fetched = await page.evaluate(
      (requests) => Promise.all(requests.map(async (request) => (await fetch(...request)).status)),
      JSON.parse(REQUESTS),
    );
    return { opened: opened.status(), fetched, cookies: await context.cookies(page.url()) };
  };
  console.log(JSON.stringify({ other: await answers('evil.example'), own: await answers('localhost') }));
} finally {
  await browser.close();
}
