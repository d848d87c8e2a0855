// The beginning of each program that drives Chromium: `launch` starts a browser, with more arguments if there are any.
// `axe` returns what axe-core finds on a page, a line for each element. A page that differs from one before in its
// colours alone needs only the rules of COLOURS.
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const launch = (...more) => chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: [
    '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--no-first-run', ...more,
  ],
});

const COLOURS = { runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } };

async function axe(page, options = {}) {
  // By the debugger, because the pages' own policy allows no script.
  if (!await page.evaluate(() => 'axe' in window)) {
    await page.evaluate(readFileSync('node_modules/axe-core/axe.min.js', 'utf8'));
  }
  // A change of colours begins with the next picture, and may take a moment.
  await page.evaluate(async () => {
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    await Promise.allSettled(document.getAnimations().map(({ finished }) => finished));
  });
  const { violations } = await page.evaluate((options) => window.axe.run(options), options);
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) =>
    `${id}: ${target.join(' ')}: ${failureSummary.replaceAll(/\s+/g, ' ')}`));
}

// Does what leads to another page, and waits until that page has loaded. A click alone only begins to load it.
async function follow(page, action) {
  const loaded = page.waitForEvent('load');
  await action();
  await loaded;
}

// What pages look like: `look` makes a picture of one, with this beginning of its path, and notes in `seen` what axe finds
// in both themes, and how much is wider than the window.
function looker(pictures) {
  const seen = { axe: {}, overflow: [] };
  const look = async (page, name) => {
    for (const colorScheme of ['dark', 'light']) {
      await page.emulateMedia({ colorScheme });
      const found = await axe(page, colorScheme === 'light' ? COLOURS : {});
      if (found.length > 0) seen.axe[`${name} ${colorScheme}`] = found;
    }
    const width = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    if (width > 0) seen.overflow.push(`${name}: ${width}`);
    await page.screenshot({ path: `${pictures}${name}.png`, fullPage: true });
  };
  return { look, seen };
}
