// The first evening of a club, after deploy/setup: the first privileged member follows the link, another member books a
// room and fills in her page in the portfolio, and a stranger gets into neither. ROOMS and PORTFOLIO are the two addresses,
// LINK is what deploy/setup has printed, WHO is the file that says to the provider who signs in. Prints what was seen, as
// JSON.
import { writeFileSync } from 'node:fs';

const { ROOMS, PORTFOLIO, LINK, WHO, MEMBER, STRANGER } = process.env;

const browser = await launch('--host-resolver-rules=MAP *.club.example 127.0.0.1');
const seen = {};
try {
  const visitor = async (name) => {
    writeFileSync(WHO, name);
    // The certificates are of an authority that no browser knows.
    const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: 'en-GB' });
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    return page;
  };
  const heading = (page) => page.getByRole('heading', { level: 1 }).textContent();
  const click = (page, role, name) => follow(page, () => page.getByRole(role, { name, exact: true }).first().click());
  const signIn = async (page, address) => {
    await page.goto(`${address}/`);
    await click(page, 'link', 'Sign in');
    return heading(page);
  };

  const first = await visitor('alice');
  await first.goto(LINK);
  await click(first, 'link', 'Join');
  // Not by the pages, whose policy allows no script to ask.
  const ask = (page, url) => page.context().request.get(url);
  seen.first = (await (await ask(first, `${ROOMS}/api/users/me`)).json()).privileged;
  seen.firstInPortfolio = await signIn(first, PORTFOLIO);
  // That she is an admin comes from the booking-service a moment later.
  do seen.audit = (await ask(first, `${PORTFOLIO}/api/v1/audit`)).status(); while (seen.audit === 403);

  const member = await visitor(MEMBER);
  seen.member = await signIn(member, ROOMS);
  await click(member, 'link', 'Book a room');
  await member.getByRole('textbox', { name: 'Name required' }).fill('Tea & cake');
  await member.getByRole('textbox', { name: 'Name of the place' }).fill('Roof garden');
  await member.getByRole('combobox', { name: 'Group required' }).selectOption({ index: 1 });
  await click(member, 'button', 'Book');
  seen.booked = await heading(member);
  seen.memberInPortfolio = await signIn(member, PORTFOLIO);
  await click(member, 'link', 'My page');
  await member.getByLabel('About me').fill('I draw cats.');
  await click(member, 'button', 'Save');
  const visiting = await visitor('nobody');
  await visiting.goto(`${PORTFOLIO}/people/${MEMBER}`);
  seen.profile = await visiting.getByText('I draw cats.').textContent();

  for (const address of [ROOMS, PORTFOLIO]) {
    const stranger = await visitor(STRANGER);
    (seen.strangers ??= []).push(await signIn(stranger, address));
    const path = address === ROOMS ? '/api/users/me' : '/api/v1/users/me';
    seen.strangers.push((await ask(stranger, address + path)).status());
  }
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
}
