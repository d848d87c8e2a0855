// The documentation page of a service, as somebody uses it: all operations are there, sign-in, requests from the page,
// how it looks, and signing out. ORIGIN is where the service is. USER signs in: at PAGE, or without one by the dialog
// of the page. The first of OPERATIONS tells who one is, the others make something of their examples. Screenshots go
// to FOLDER. Prints what was seen, as JSON.

import { mkdirSync } from 'node:fs';

const { ORIGIN, USER, PAGE, FOLDER } = process.env;
const OPERATIONS = process.env.OPERATIONS.split(',');
mkdirSync(FOLDER, { recursive: true });

const browser = await launch();
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  const [elsewhere, errors] = [[], []];
  await context.route((url) => url.origin !== ORIGIN && url.protocol !== 'data:', (route) => {
    elsewhere.push(route.request().url());
    return route.abort();
  });
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(String(error)));

  if (PAGE) {
    await page.goto(ORIGIN + PAGE);
    await page.getByText(`@${USER}`, { exact: true }).click();
    await page.getByText(/^You are signed in as/).waitFor();
  }
  await page.goto(`${ORIGIN}/docs`);
  await page.locator('.opblock').first().waitFor();
  const paths = await page.evaluate(async () => (await (await fetch('/openapi.json')).json()).paths);
  const operations = Object.values(paths).flatMap((item) => Object.values(item).map((operation) => operation.operationId));
  const blocks = await page.locator('.opblock').evaluateAll((all) => all.map((block) => block.id.split('-').pop()));
  if (PAGE) await page.getByText(/^Signed in as/).waitFor();
  const nav = await page.locator('nav').innerText();
  const locked = await page.locator('.opblock:has(.authorization__btn)')
    .evaluateAll((all) => all.map((block) => block.id.split('-').pop()));
  const links = await page.locator('nav a').evaluateAll((all) => all.map((link) => link.getAttribute('href')));

  // In both themes, with one operation of each method open and one closed. The others look the same, and axe would
  // take a minute for them.
  for (const method of ['get', 'post', 'put', 'patch', 'delete']) {
    const blocks = page.locator(`.opblock-${method}`);
    if (await blocks.count() > 0) await blocks.first().locator('.opblock-summary-control').click();
    await blocks.evaluateAll((all) => all.slice(2).forEach((block) => block.remove()));
  }
  const found = {};
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    found[colorScheme] = await axe(page, colorScheme === 'dark' ? COLOURS : {});
    await page.screenshot({ path: `${FOLDER}/docs-${colorScheme}.png` });
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.reload();
  await page.locator('.opblock').first().waitFor();

  const filter = page.getByPlaceholder('Filter by path, name or tag');
  await filter.fill(OPERATIONS[1].toUpperCase());
  await page.waitForFunction(() => document.querySelectorAll('.opblock').length === 1);
  const filtered = await page.locator('.opblock').getAttribute('id');
  const added = Object.values(paths).flatMap((item) => Object.values(item))
    .filter(({ tags }) => tags.includes('additions')).length;
  await filter.fill('additions');
  await page.waitForFunction((count) => document.querySelectorAll('.opblock').length === count, added);
  await filter.fill('no operation has this');
  await page.getByText('No operation fits the filter.').waitFor();
  await filter.fill('');
  await page.waitForFunction((count) => document.querySelectorAll('.opblock').length === count, blocks.length);
  await page.screenshot({ path: `${FOLDER}/wide.png` });

  await page.locator('.auth-wrapper .authorize').click();
  const schemes = await page.locator('.auth-container h4').allInnerTexts();
  if (PAGE) {
    await page.locator('.modal-ux .close-modal').click();
  } else {
    const scheme = page.locator('.auth-container').filter({ hasText: 'X-Forwarded-User' });
    await scheme.getByRole('textbox').fill(USER);
    await scheme.getByRole('button', { name: 'Apply credentials' }).click();
    await page.screenshot({ path: `${FOLDER}/authorize.png` });
    await scheme.getByRole('button', { name: 'Close' }).click();
    // Kept over this.
    await page.reload();
    await page.locator('.opblock').first().waitFor();
  }

  const answers = {};
  for (const operation of OPERATIONS) {
    // A page with few operations is drawn much faster.
    await filter.fill(operation);
    const block = page.locator(`.opblock[id$="-${operation}"]`).first();
    await block.locator('.opblock-summary-control').click();
    await block.getByRole('button', { name: 'Execute' }).click();
    const answer = block.locator('.live-responses-table');
    await answer.waitFor();
    answers[operation] = {
      status: await answer.locator('tbody .response-col_status').first().innerText(),
      body: JSON.parse(await answer.locator('.highlight-code code').first().innerText()),
    };
    await block.scrollIntoViewIfNeeded();
    await block.screenshot({ path: `${FOLDER}/${operation}.png` });
  }

  await filter.fill('');
  await page.setViewportSize({ width: 320, height: 640 });
  const filterWidth = await filter.evaluate((input) => input.clientWidth);
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: `${FOLDER}/narrow.png` });
  const [overflow, title] = await page.evaluate(() => [document.documentElement.scrollWidth - innerWidth, document.title]);
  let returned = '';
  if (PAGE) {
    await page.goto(ORIGIN);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('link', { name: 'Sign in' }).first().waitFor();
    await page.goto(`${ORIGIN}/docs/#/rooms/addRooms`);
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.getByText(`@${USER}`, { exact: true }).click();
    await page.locator('.opblock.is-open').waitFor();
    returned = await page.evaluate(() => location.hash);
  }
  console.log(JSON.stringify({
    found, elsewhere, errors, operations, blocks, nav, locked, links, filtered, filterWidth, schemes, answers, overflow, title,
    returned,
  }));
} finally {
  await browser.close();
}
