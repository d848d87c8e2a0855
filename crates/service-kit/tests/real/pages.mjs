// Every page of a service, in each language and theme, on a small and on a large screen. ORIGIN is where the service is,
// COOKIE says who is signed in, PAGES are paths with the status that each has, as JSON. Pictures of small screens go to
// FOLDER. Prints what is wrong, a line for each thing, as JSON.
import { mkdirSync } from 'node:fs';

const { ORIGIN, COOKIE, PAGES, FOLDER } = process.env;
mkdirSync(FOLDER, { recursive: true });

const browser = await launch();
const wrong = [];
try {
  for (const locale of ['en-GB', 'ja-JP']) {
    const context = await browser.newContext({ viewport: { width: 320, height: 640 }, locale });
    const [name, value] = COOKIE.split('=');
    await context.addCookies([{ name, value, url: ORIGIN }]);
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    let at = '';
    const report = (what) => wrong.push(`${locale} ${at}: ${what}`);
    // The status of a refusal is no fault of its page.
    const isFault = (message) =>
      ['error', 'warning'].includes(message.type()) && !message.text().startsWith('Failed to load');
    page.on('console', (message) => isFault(message) && report(message.text()));
    for (const [path, status] of JSON.parse(PAGES)) {
      at = path;
      const answer = await page.goto(ORIGIN + path);
      if (answer.status() !== status) report(`status ${answer.status()}`);
      const language = await page.evaluate(() => document.documentElement.lang);
      if (!locale.startsWith(language)) report(`language ${language}`);
      const size = (await answer.body()).length;
      if (size > 60_000 && !path.startsWith('/board')) report(`${size} bytes`);
      const lines = (await page.locator('body').innerText()).split('\n');
      for (const key of lines.filter((line) => /^[a-z]+(-[a-z]+)+$|\{ ?\$/.test(line.trim()))) report(`text ${key}`);
      const file = `${FOLDER}/${locale.slice(0, 2)}${path.replaceAll(/[^a-z]+/g, '-')}.png`;
      await page.screenshot({ path: file, fullPage: true });
      for (const width of [320, 1280]) {
        await page.setViewportSize({ width, height: 640 });
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (overflow > 0) report(`${overflow} px too wide at ${width} px`);
        // Each theme on each screen, but not in each language.
        const colorScheme = (width === 320) === (language === 'en') ? 'dark' : 'light';
        await page.emulateMedia({ colorScheme });
        const rules = width === 1280 && language !== 'en' ? COLOURS : {};
        for (const found of await axe(page, rules)) report(`${colorScheme}, ${width} px: ${found}`);
      }
      await page.setViewportSize({ width: 320, height: 640 });
    }
    await context.close();
  }
  console.log(JSON.stringify(wrong));
} finally {
  await browser.close();
}
