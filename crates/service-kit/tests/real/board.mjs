// The board in a real browser: how it looks, by keyboard alone, on a small screen, on a screen that nobody operates,
// what axe finds, and whether its text can be read. ORIGIN is where the service is, DAY a day with events, BUSY a place
// with many lanes, COOKIE a session, KIOSK a token. Screenshots go to FOLDER. Prints what was seen, as JSON.

import { mkdirSync } from 'node:fs';
const { ORIGIN, DAY, BUSY, COOKIE, KIOSK, FOLDER } = process.env;
mkdirSync(FOLDER, { recursive: true });

// The least contrast of the texts on patterns, which axe cannot judge (WCAG 2.2, relative luminance).
function leastContrast() {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  // What these colours look like one over the other.
  const seen = (...colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  return Math.min(...[...document.querySelectorAll('.lane .bar')].flatMap((bar) => {
    const { color, backgroundColor, backgroundImage } = getComputedStyle(bar);
    const stripes = backgroundImage.match(/rgba?\([^)]*\)/g) ?? [];
    const grounds = [seen(backgroundColor), ...stripes.map((stripe) => seen(backgroundColor, stripe))];
    return grounds.map((ground) => contrast(seen(color), ground));
  }));
}

// The texts of bars that are not shown in full.
const cut = () => [...document.querySelectorAll('.lane :is(.bar, .beside), .label')]
  .filter((box) => box.textContent && (box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1))
  .map((box) => box.textContent);

const browser = await launch();
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const [name, value] = COOKIE.split('=');
  await context.addCookies([{ name, value, url: ORIGIN }]);
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  const [errors, statuses] = [[], []];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('response', (response) => statuses.push(response.status()));
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  const shot = async (name) => (await page.screenshot({ path: `${FOLDER}/${name}.png`, fullPage: true })).length;

  const seen = { axe: {}, contrast: {}, shots: {}, overflow: {} };
  const board = `${ORIGIN}/board?day=${DAY}`;
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const view of ['day', 'week']) {
      await page.goto(`${board}&view=${view}`);
      seen.axe[`${colorScheme} ${view}`] = await axe(page, colorScheme === 'dark' ? COLOURS : {});
      seen.contrast[`${colorScheme} ${view}`] = await page.evaluate(leastContrast);
      seen.shots[`${colorScheme} ${view}`] = await shot(`board-${view}-${colorScheme}`);
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  seen.style = await page.evaluate(() => getComputedStyle(document.querySelector('.timetable')).overflowX);

  // What reaches over the edge of the day has no end there, and a name that does not fit ends in an ellipsis.
  await page.goto(board);
  const track = await page.locator('.row:not(.hours) .track').first().boundingBox();
  const over = await page.locator('.bar.is-begun.goes-on').first().boundingBox();
  seen.edges = [over.x - track.x, over.x + over.width - track.x - track.width].map(Math.round);
  seen.ellipsis = await page.locator('.lane a.bar b').evaluateAll((all) =>
    all.filter((name) => name.scrollWidth > name.clientWidth).map((name) => getComputedStyle(name).textOverflow));
  // The lines at hours and at the present reach through each row.
  const row = page.locator('.row', { has: page.getByRole('link', { name: BUSY }) });
  seen.tall = await row.evaluate((row) => ['.track', '.now'].map((part) =>
    (row.querySelector(part) ?? row).getBoundingClientRect().height - row.getBoundingClientRect().height));

  // By keyboard: every stop of the Tab key has a name and a visible outline, and one of them is an event.
  await page.goto(board);
  seen.stops = [];
  for (let n = 0; n < 80; n++) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate(() => {
      const at = document.activeElement;
      if (at === document.body) return null;
      const label = at.getAttribute('aria-label') ?? at.textContent.trim();
      const outline = getComputedStyle(at).outlineStyle !== 'none';
      return { label: label || at.labels?.[0]?.textContent, href: at.getAttribute('href'), title: at.title, outline };
    });
    if (stop === null) break;
    seen.stops.push(stop);
  }
  await page.goto(`${board}&view=week`);
  await follow(page, () => page.getByRole('link', { name: 'Next →' }).click());
  await follow(page, () => page.getByRole('link', { name: '← Previous' }).click());
  await page.goto(`${board}&view=week&place=${encodeURIComponent(BUSY)}`);
  seen.shots.place = await shot('board-place');
  await page.goto(board);
  await page.emulateMedia({ media: 'print' });
  await page.setViewportSize({ width: 1047, height: 720 });
  seen.shots.print = await shot('board-print');
  seen.overflow.print = await overflow();
  await page.emulateMedia({ media: 'screen' });

  await page.setViewportSize({ width: 320, height: 640 });
  for (const path of ['/', '/callback', `/board?day=${DAY}`, `/board?day=${DAY}&view=week`]) {
    await page.goto(ORIGIN + path);
    seen.overflow[path.replace(DAY, '')] = await overflow();
  }
  seen.shots.narrow = await shot('board-narrow');

  // A screen of its own: no cookie, and a page that stays as it is when it is loaded again unchanged.
  const screen = await browser.newContext({ viewport: { width: 1920, height: 1080 } });
  const kiosk = await screen.newPage();
  kiosk.on('console', (message) => ['error', 'warning'].includes(message.type()) && errors.push(message.text()));
  const loads = [];
  kiosk.on('response', (response) => loads.push(response.status()));
  await kiosk.goto(`${ORIGIN}/board?kiosk=${KIOSK}&day=${DAY}`);
  await kiosk.reload();
  seen.kiosk = {
    loads,
    // Nobody operates it, so it may load itself again.
    axe: (await axe(kiosk)).filter((found) => !found.startsWith('meta-refresh')),
    cut: await kiosk.evaluate(cut),
    links: await kiosk.getByRole('link').count(),
    refresh: await kiosk.locator('meta[http-equiv=refresh]').getAttribute('content'),
    // The style is allowed after a 304 as well.
    overflow: await kiosk.evaluate(() => getComputedStyle(document.querySelector('.timetable')).overflowX),
    below: await kiosk.evaluate(() => [document.documentElement.scrollHeight,
      document.querySelector('footer').getBoundingClientRect().bottom].map((bottom) => Math.round(bottom) - innerHeight)),
  };
  seen.shots.kiosk = (await kiosk.screenshot({ path: `${FOLDER}/board-kiosk.png` })).length;
  await kiosk.goto(`${ORIGIN}/board?kiosk=${KIOSK}&day=${DAY}&place=S516`);
  seen.kiosk.place = await kiosk.locator('.row:not(.hours)').innerText();
  await kiosk.screenshot({ path: `${FOLDER}/board-kiosk-place.png` });
  const refused = await screen.newPage();
  await refused.goto(`${ORIGIN}/board?kiosk=${KIOSK}x`);
  seen.kiosk.refused = await refused.locator('main').innerText();
  await refused.screenshot({ path: `${FOLDER}/board-kiosk-refused.png` });
  console.log(JSON.stringify({ ...seen, errors, statuses }));
} finally {
  await browser.close();
}
