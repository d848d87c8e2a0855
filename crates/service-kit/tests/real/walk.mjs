// A walk by links through the pages of a service: STEPS are names of links, one after another, from the first page.
// Each page is seen in both themes and at 320 px. Screenshots go to FOLDER. Prints what was seen, as JSON.

import { mkdirSync } from 'node:fs';
const { ORIGIN, FOLDER } = process.env;
const steps = JSON.parse(process.env.STEPS);
mkdirSync(FOLDER, { recursive: true });

const browser = await launch();
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB' });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  const errors = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(String(error)));
  const pages = [];
  const look = async () => {
    const { pathname } = new URL(page.url());
    const name = pathname.split('/')[1] || 'start';
    const found = [];
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      found.push(...await axe(page, colorScheme === 'dark' ? COLOURS : {}));
      await page.screenshot({ path: `${FOLDER}/walk-${pages.length}-${name}-${colorScheme}.png`, fullPage: true });
    }
    await page.setViewportSize({ width: 320, height: 640 });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await page.setViewportSize({ width: 1280, height: 800 });
    pages.push({ pathname, title: await page.title(), found, overflow });
  };
  await page.goto(ORIGIN);
  await look();
  for (const [action, text] of steps) {
    if (action === 'search') {
      await page.getByRole('searchbox').fill(text);
      await follow(page, () => page.keyboard.press('Enter'));
    } else {
      await follow(page, () => page.getByRole('link', { name: text }).first().click());
    }
    await look();
  }
  console.log(JSON.stringify({ pages, errors }));
} finally {
  await browser.close();
}
