// A page on Vite's development server signs in, by its proxy and without it. BOOKING is a booking-service in development
// and PORTFOLIO a portfolio-service; CORS_ORIGIN is the one that its `--allowed-origins` names.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { createServer } from 'vite';

const { BOOKING, CORS_ORIGIN, USER_NAME = 'alice' } = process.env;
assert(BOOKING && CORS_ORIGIN, 'BOOKING and CORS_ORIGIN are missing');

/** What a browser does for a page of `origin` that uses the service at `base`. */
async function signIn(base: string, origin: string) {
  const begun = await fetch(`${base}/api/authParams`, { method: 'POST', headers: { Origin: origin } });
  assert.equal(begun.status, 201, await begun.clone().text());
  const { url } = (await begun.json()) as { url: string };
  assert(url.startsWith(`${base}/dev/sign-in?`), url);
  const cookie = begun.headers.get('Set-Cookie')?.split(';')[0] ?? '';
  const choices = await (await fetch(url, { headers: { Cookie: cookie } })).text();
  const link = choices.split('<a href="').find((part) => part.includes(`@${USER_NAME}<`));
  assert(link, choices);
  const callback = link.slice(0, link.indexOf('"')).replaceAll('&amp;', '&');
  const finished = await fetch(base + callback, { headers: { Cookie: cookie }, redirect: 'manual' });
  assert.equal(finished.status, 302);
  const session = finished.headers.get('Set-Cookie')?.split(';')[0] ?? '';
  const me = await fetch(`${base}/api/users/me`, { headers: { Cookie: session, Origin: origin } });
  assert.equal(((await me.json()) as { name: string }).name, USER_NAME);
  return { back: finished.headers.get('Location'), headers: me.headers };
}

/** Vite's server with the configuration beside this file. */
async function vite(t: TestContext): Promise<string> {
  const server = await createServer({ configFile: './vite.config.ts', logLevel: 'silent', server: { port: 0, strictPort: false } });
  t.after(() => server.close());
  await server.listen();
  const address = server.httpServer?.address();
  assert(address && typeof address === 'object');
  return `http://localhost:${address.port}`;
}

test('through the proxy', async (t) => {
  const origin = await vite(t);
  // The browser stays on Vite's origin, where `/callback` is a page of the front end.
  const { back } = await signIn(origin, origin);
  assert(back);
  assert.equal(new URL(back, origin).href, `${origin}/callback`);
});

test('the portfolio-service through the same proxy', async (t) => {
  const projects = await fetch(`${await vite(t)}/api/v1/projects`);
  assert.equal(projects.status, 200);
});

test('from the board through the proxy', async (t) => {
  const origin = await vite(t);
  const refused = await fetch(`${origin}/board`, { headers: { Accept: 'text/html' } });
  assert.equal(refused.status, 401);
  const link = (await refused.text()).match(/"(\/sign-in\?to=[^"]*)"/)?.[1];
  assert(link);
  const begun = await fetch(origin + link, { redirect: 'manual' });
  assert.equal(begun.status, 302);
  assert(begun.headers.get('Location')?.startsWith(`${origin}/dev/sign-in?`));
  assert.equal((await fetch(`${origin}/board?view=week`)).status, 401);
  // A page of the front end, not of the service.
  const own = await fetch(`${origin}/boards`);
  assert.notEqual(own.headers.get('Content-Type'), 'application/problem+json');
});

test('without the proxy, from an allowed origin', async () => {
  const { back, headers } = await signIn(BOOKING, CORS_ORIGIN);
  assert.equal(back, `${CORS_ORIGIN}/callback`);
  assert.equal(headers.get('Access-Control-Allow-Origin'), CORS_ORIGIN);
  assert.equal(headers.get('Access-Control-Allow-Credentials'), 'true');
});

test('not from any other', async () => {
  const begun = await fetch(`${BOOKING}/api/authParams`, { method: 'POST', headers: { Origin: 'http://localhost:9' } });
  assert.equal(begun.status, 403);
});
