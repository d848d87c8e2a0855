// The beginning of each program that drives Chromium: `launch` starts a browser, with more arguments if there are any.
// `axe` returns what axe-core finds on a page, a line for each element.
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const launch = (...more) => chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: [
    '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--no-first-run', ...more,
  ],
});

async function axe(page) {
  // By the debugger, because the pages' own policy allows no script.
  await page.evaluate(readFileSync('node_modules/axe-core/axe.min.js', 'utf8'));
  // A change of colours may take a moment.
  await page.evaluate(() => Promise.allSettled(document.getAnimations().map(({ finished }) => finished)));
  const { violations } = await page.evaluate(() => window.axe.run());
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) =>
    `${id}: ${target.join(' ')}: ${failureSummary.replaceAll(/\s+/g, ' ')}`));
}

// Does what leads to another page, and waits until that page has loaded. A click alone only begins to load it.
async function follow(page, action) {
  const loaded = page.waitForEvent('load');
  await action();
  await loaded;
}
