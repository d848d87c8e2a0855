// The board in a real browser: how it looks, by keyboard alone, on a small screen, on a screen that nobody operates, and
// whether its text can be read. ORIGIN is where the service is, DAY a day with events, COOKIE a session, KIOSK a token.
// Screenshots go to FOLDER. Prints what was seen, as JSON.

import { mkdirSync } from 'node:fs';
const { ORIGIN, DAY, COOKIE, KIOSK, FOLDER } = process.env;
mkdirSync(FOLDER, { recursive: true });

// The least contrast of the visible text with what is behind it (WCAG 2.2, relative luminance).
function leastContrast() {
  const rgb = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (a, b) => {
    const [dark, light] = [luminance(rgb(a)), luminance(rgb(b))].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const style = getComputedStyle(document.documentElement);
  const variable = (name) => {
    const probe = document.createElement('span');
    probe.style.color = style.getPropertyValue(name);
    document.body.append(probe);
    const color = getComputedStyle(probe).color;
    probe.remove();
    return color;
  };
  // What is behind a text of the drawing: the fill of its bar, both tones of it, or the stretch below.
  const behind = (text) => {
    const kind = text.classList;
    if (kind.contains('instant')) return ['--instant', '--instant-line'].map(variable);
    if (kind.contains('shared')) return ['--shared', '--shared-line'].map(variable);
    if (kind.contains('on-bar')) return [variable('--event')];
    if (kind.contains('free-text')) return [variable('--free')];
    return [variable('--back')];
  };
  const drawn = [...document.querySelectorAll('svg text')].flatMap((text) =>
    behind(text).map((color) => [contrast(getComputedStyle(text).fill, color), text.getAttribute('class')]));
  const written = [...document.querySelectorAll('h1,h2,p,a,th,td,li,label,button')].filter((it) => !it.closest('svg'))
    .map((it) => [contrast(getComputedStyle(it).color, variable('--back')), it.tagName]);
  return [...drawn, ...written].reduce((least, one) => (one[0] < least[0] ? one : least));
}

const browser = await launch();
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const [name, value] = COOKIE.split('=');
  await context.addCookies([{ name, value, url: ORIGIN }]);
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const [errors, statuses] = [[], []];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('response', (response) => statuses.push(response.status()));
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  const shot = async (name) => (await page.screenshot({ path: `${FOLDER}/${name}.png` })).length;

  const seen = { contrast: {}, shots: {}, overflow: {} };
  const board = `${ORIGIN}/board?day=${DAY}`;
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.goto(board);
    seen.contrast[colorScheme] = await page.evaluate(leastContrast);
    seen.shots[colorScheme] = await shot(`board-${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  seen.style = await page.evaluate(() => getComputedStyle(document.querySelector('.timetable')).overflowX);

  // By keyboard: every stop of the Tab key has a name and a visible outline, and one of them is an event.
  seen.stops = [];
  for (let n = 0; n < 60; n++) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate(() => {
      const at = document.activeElement;
      if (at === document.body) return null;
      const label = at.getAttribute('aria-label') ?? at.textContent.trim();
      const outline = getComputedStyle(at).outlineStyle !== 'none' || at.closest('svg') !== null;
      return { tag: at.tagName, label: label || at.labels?.[0]?.textContent, href: at.getAttribute('href'), outline };
    });
    if (stop === null) break;
    seen.stops.push(stop);
    if (stop.href?.startsWith('#e-')) {
      await page.keyboard.press('Enter');
      seen.target = await page.evaluate(() => document.querySelector(':target th')?.textContent);
      break;
    }
  }
  await page.goto(`${board}&view=week`);
  seen.shots.week = await shot('board-week');
  await page.getByRole('link', { name: 'Next →' }).click();
  await page.getByRole('link', { name: '← Previous' }).click();
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
    links: await kiosk.getByRole('link').count(),
    refresh: await kiosk.locator('meta[http-equiv=refresh]').getAttribute('content'),
    // The style is allowed after a 304 as well.
    overflow: await kiosk.evaluate(() => getComputedStyle(document.querySelector('.timetable')).overflowX),
  };
  seen.shots.kiosk = (await kiosk.screenshot({ path: `${FOLDER}/board-kiosk.png` })).length;
  console.log(JSON.stringify({ ...seen, errors, statuses }));
} finally {
  await browser.close();
}
