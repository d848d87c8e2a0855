// A member's story on the pages of the portfolio-service, at a telephone's width: profile, an account, a project with its
// members, a contest with a team; what is deleted comes back. ORIGIN is a service in development mode with demonstration
// data, FOLDER is where the pictures go. Prints what axe finds on each page in both themes, the pages that are wider than
// 320 px, and how the story ended, as JSON.
import { mkdirSync } from 'node:fs';

const { ORIGIN, FOLDER } = process.env;
mkdirSync(FOLDER, { recursive: true });

const browser = await launch();
const { look, seen } = looker(`${FOLDER}/member-`);
const ended = {};
try {
  const signIn = async (name, locale) => {
    const context = await browser.newContext({
      viewport: { width: 320, height: 740 }, locale, extraHTTPHeaders: { 'X-Forwarded-User': name },
    });
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    await page.goto(`${ORIGIN}/`);
    return page;
  };
  const heading = (page) => page.getByRole('heading', { level: 1 }).textContent();
  const click = (page, role, name) => follow(page, () => page.getByRole(role, { name, exact: true }).first().click());

  const bob = await signIn('bob', 'en-GB');
  await look(bob, 'start');
  await click(bob, 'link', 'My page');
  await look(bob, 'me');
  await bob.getByLabel('About me').fill('I draw <cats>.');
  await bob.getByLabel('Publish my real name').check();
  await click(bob, 'button', 'Save');
  ended.bio = await bob.getByLabel('About me').inputValue();
  await click(bob, 'link', 'Bluesky');
  await look(bob, 'new-account');
  await bob.getByLabel('Address').fill('https://bsky.app/bob');
  await bob.getByLabel('Name there').fill('Bob');
  await click(bob, 'button', 'Save');
  ended.refused = await bob.locator('.error').textContent();
  await look(bob, 'refused-account');
  await bob.getByLabel('Address').fill('https://bsky.app/profile/bob.bsky.social');
  await click(bob, 'button', 'Save');
  await click(bob, 'link', 'Edit Bluesky');
  await look(bob, 'account');

  await bob.goto(`${ORIGIN}/me`);
  await click(bob, 'link', 'New project');
  await bob.getByLabel('Name').fill('Cat café');
  await bob.getByLabel('Description').fill('A game about cats.');
  await look(bob, 'new-project');
  await click(bob, 'button', 'Save');
  await look(bob, 'add-members');
  await click(bob, 'button', 'Add');
  await bob.getByLabel('Sign-in names').fill('alice');
  await click(bob, 'button', 'Add');
  await click(bob, 'link', 'Edit alice');
  await look(bob, 'member');
  await click(bob, 'button', 'Save');
  await click(bob, 'link', 'Cat café');
  const project = bob.url();
  await look(bob, 'project');
  await click(bob, 'link', 'Edit');
  await bob.getByLabel('Name').fill('Cat cafe');
  await look(bob, 'edit-project');
  await click(bob, 'button', 'Save');
  await click(bob, 'link', 'History');
  ended.history = await bob.getByRole('main').getByRole('listitem').allTextContents();
  await look(bob, 'history');
  await bob.goto(`${project}/delete`);
  await look(bob, 'delete-project');
  await click(bob, 'button', 'Delete');
  await bob.goto(`${ORIGIN}/me`);
  await click(bob, 'link', 'Recently deleted');
  await look(bob, 'deleted');
  await click(bob, 'button', 'Restore');
  ended.restored = await heading(bob);

  await bob.goto(`${ORIGIN}/contests/new`);
  await bob.getByLabel('Name').fill('Cat cup');
  await bob.getByLabel('Description').fill('Every spring.');
  await bob.getByLabel('Begins').fill('2026-04-04T09:00');
  await look(bob, 'new-contest');
  await click(bob, 'button', 'Save');
  await click(bob, 'link', 'New team');
  await bob.getByLabel('Name').fill('Cats');
  await bob.getByLabel('Description').fill('We came.');
  await bob.getByLabel('Result').fill('1st');
  await look(bob, 'new-team');
  await click(bob, 'button', 'Save');
  await look(bob, 'contest');
  ended.contest = await bob.getByRole('main').getByRole('listitem').allTextContents();
  await click(bob, 'link', 'Edit');
  await look(bob, 'edit-contest');

  const alice = await signIn('alice', 'ja-JP');
  await click(alice, 'link', 'マイページ');
  await look(alice, 'me-japanese');
  await alice.goto(`${project}/history`);
  ended.japanese = await alice.getByRole('main').getByRole('listitem').allTextContents();
  await look(alice, 'history-japanese');
  await follow(alice, () => alice.getByRole('banner').getByRole('link', { name: 'English' }).click());
  ended.language = await heading(alice);

  const nobody = await browser.newPage({ viewport: { width: 320, height: 740 }, locale: 'en-GB' });
  await nobody.goto(`${ORIGIN}/me`);
  await look(nobody, 'nobody');
  ended.nobody = await heading(nobody);
  console.log(JSON.stringify({ ...seen, ended }));
} finally {
  await browser.close();
}
