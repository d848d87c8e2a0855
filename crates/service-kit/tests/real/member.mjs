// Whole stories on the pages of the booking-service, at a telephone's width: a member books a room, answers, fills in a
// poll and subscribes to the calendar feed; a privileged user uploads rooms. ORIGIN is a service with demonstration
// data, FOLDER is where the pictures go. Prints what axe finds on each page in both themes, the pages that are wider
// than the screen, and how each story ended, as JSON.
import { mkdirSync } from 'node:fs';

const { ORIGIN, FOLDER } = process.env;
mkdirSync(FOLDER, { recursive: true });

const browser = await launch();
const { look, seen } = looker(`${FOLDER}/`);
const ended = {};
try {
  const signIn = async (name, locale) => {
    const context = await browser.newContext({ viewport: { width: 360, height: 740 }, locale });
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    await page.goto(`${ORIGIN}/`);
    await follow(page, () => page.getByRole('main').getByRole('link', { name: /Sign in|ログイン/ }).click());
    await follow(page, () => page.getByText(`@${name}`, { exact: true }).click());
    await page.waitForURL(`${ORIGIN}/`);
    return page;
  };
  const heading = (page) => page.getByRole('heading', { level: 1 }).textContent();

  const bob = await signIn('bob', 'en-GB');
  await look(bob, 'start');

  await follow(bob, () => bob.getByRole('link', { name: 'Book a room' }).click());
  await bob.getByRole('textbox', { name: 'Name required' }).fill('Tea & cake');
  await bob.getByRole('combobox', { name: 'Group required' }).selectOption({ index: 1 });
  await bob.getByRole('radio', { name: 'Another place' }).check();
  await bob.getByRole('textbox', { name: 'Name of the place' }).fill('Roof garden');
  await look(bob, 'book');
  await follow(bob, () => bob.getByRole('button', { name: 'Book', exact: true }).click());
  await bob.waitForURL(/\/events\/[0-9a-f-]+\?notice=booked$/);
  ended.booked = await heading(bob);
  await follow(bob, () => bob.getByRole('button', { name: 'Going', exact: true }).click());
  ended.answered = await bob.locator('button[aria-pressed=true]').textContent();
  await look(bob, 'event');
  await follow(bob, () => bob.getByRole('link', { name: 'Edit' }).click());
  await look(bob, 'edit');
  await bob.getByRole('textbox', { name: 'Name of the place' }).fill('Tea house');
  await follow(bob, () => bob.getByRole('button', { name: 'Save' }).click());
  ended.history = await bob.getByRole('main').getByRole('listitem').filter({ hasText: 'moved it' }).textContent();
  await follow(bob, () => bob.getByRole('link', { name: 'Delete' }).click());
  await follow(bob, () => bob.getByRole('button', { name: 'Delete' }).click());
  await bob.goto(`${ORIGIN}/deleted`);
  await look(bob, 'deleted');
  await follow(bob, () => bob.getByRole('link', { name: 'Tea & cake' }).click());
  await look(bob, 'deleted-event');
  await follow(bob, () => bob.getByRole('button', { name: 'Restore' }).click());
  await follow(bob, () => bob.getByRole('button', { name: 'Back to this' }).last().click());
  ended.reverted = await bob.getByRole('main').textContent();
  await look(bob, 'history');
  await bob.goto(`${ORIGIN}/events`);
  await look(bob, 'events');

  await bob.goto(`${ORIGIN}/polls/new`);
  await bob.getByRole('textbox', { name: 'Name required' }).fill('Summer trip');
  await bob.getByLabel('Group', { exact: true }).selectOption({ index: 1 });
  await look(bob, 'new-poll');
  await follow(bob, () => bob.getByRole('button', { name: 'Create poll', exact: true }).click());
  await bob.waitForURL(/\/polls\/[0-9a-f-]+$/);
  await bob.getByRole('radio', { name: 'Yes' }).first().check();
  await bob.getByRole('radio', { name: 'Maybe' }).nth(1).check();
  await follow(bob, () => bob.getByRole('button', { name: 'Answer' }).click());
  await bob.getByRole('button', { name: 'Change my answer' }).waitFor();
  ended.poll = await bob.getByRole('listitem').filter({ hasText: 'Best' }).first().textContent();
  await look(bob, 'poll');
  await follow(bob, () => bob.getByRole('link', { name: 'Choose a time' }).click());
  await look(bob, 'confirm');
  await bob.getByRole('radio', { name: 'Another place' }).check();
  await bob.getByRole('textbox', { name: 'Name of the place' }).fill('Beach');
  await follow(bob, () => bob.getByRole('button', { name: 'Choose this time' }).click());
  await bob.waitForURL(/\/events\/[0-9a-f-]+\?notice=booked$/);
  ended.confirmed = await heading(bob);
  await bob.goto(`${ORIGIN}/polls`);
  await look(bob, 'polls');
  await bob.goto(`${ORIGIN}/groups`);
  await look(bob, 'groups');
  await follow(bob, () => bob.getByRole('main').getByRole('listitem').getByRole('link').first().click());
  await look(bob, 'group');

  await follow(bob, () => bob.getByRole('link', { name: 'My settings' }).click());
  await follow(bob, () => bob.getByRole('button', { name: 'Make an address' }).click());
  ended.feed = await bob.getByRole('link', { name: 'Subscribe' }).getAttribute('href');
  await look(bob, 'me');

  const alice = await signIn('alice', 'ja-JP');
  await look(alice, 'start-japanese');
  await follow(alice, () => alice.getByRole('link', { name: '部屋', exact: true }).click());
  await look(alice, 'rooms-japanese');
  await follow(alice, () => alice.getByRole('main').getByRole('listitem').getByRole('link').first().click());
  await look(alice, 'room-japanese');
  await alice.goBack();
  await follow(alice, () => alice.getByRole('link', { name: '部屋の一括登録' }).click());
  const table = 'Subject,Start date,End date,Start time,End time,Location\nterm,2099/04/04,2099/04/04,18:00,21:00,S516\n';
  await alice.getByLabel('CSVファイル').setInputFiles({ name: 'rooms.csv', mimeType: 'text/csv', buffer: Buffer.from(table) });
  await look(alice, 'import-japanese');
  await follow(alice, () => alice.getByRole('button', { name: '内容の確認' }).click());
  await look(alice, 'preview-japanese');
  await follow(alice, () => alice.getByRole('button', { name: '登録する' }).click());
  await alice.waitForURL(`${ORIGIN}/rooms`);
  ended.uploaded = await heading(alice);
  await alice.goto(`${ORIGIN}/nowhere`);
  await look(alice, 'nowhere-japanese');
  await follow(alice, () => alice.getByRole('banner').getByRole('link', { name: 'English' }).click());
  ended.language = await heading(alice);
  console.log(JSON.stringify({ ...seen, ended }));
} finally {
  await browser.close();
}
