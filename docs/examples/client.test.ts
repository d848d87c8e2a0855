// What happens when the network does what networks do.

import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { ok, Refused, remembering, retrying } from './client.ts';

/** A server that answers one request after another as told, and what it was sent. */
async function server(test: TestContext, answers: ((response: ServerResponse) => void)[]) {
  const seen: IncomingMessage[] = [];
  const made = createServer((request, response) => {
    seen.push(request);
    request.resume().on('end', () => answers.shift()?.(response));
  });
  await new Promise<void>((done) => made.listen(0, '127.0.0.1', done));
  test.after(() => made.close().closeAllConnections());
  return { url: `http://127.0.0.1:${(made.address() as AddressInfo).port}/`, seen };
}

const says = (status: number, headers = {}) => (response: ServerResponse) =>
  void response.writeHead(status, headers).end(status === 304 ? undefined : `${status}`);
const send = (request: Request) => fetch(request);

test('a POST is sent again with its key, when it got no answer or is to come later', async (t) => {
  const later = says(503, { 'Retry-After': '1' });
  const { url, seen } = await server(t, [(response) => response.destroy(), later, says(429), says(201)]);
  const begun = performance.now();
  const answer = await retrying(send)(new Request(url, { method: 'POST', body: '{}' }));
  assert.equal(answer.status, 201);
  assert(performance.now() - begun > 1000, 'it comes when it was told to');
  const keys = seen.map((request) => request.headers['idempotency-key']);
  assert.equal(keys.length, 4);
  assert(keys[0] && keys.every((key) => key === keys[0]), keys.join());
});

test('an empty key is left out', async (t) => {
  const { url, seen } = await server(t, [says(201)]);
  await retrying(send)(new Request(url, { method: 'POST', headers: { 'Idempotency-Key': '' } }));
  assert.deepEqual(seen.map((request) => request.headers['idempotency-key']), [undefined]);
});

test('an answer that is to come in hours is not waited for', async (t) => {
  const { url, seen } = await server(t, [says(429, { 'Retry-After': '86400' })]);
  assert.equal((await retrying(send)(new Request(url))).status, 429);
  assert.equal(seen.length, 1);
});

test('a refusal is an answer, nobody tries for ever, and who leaves does not wait', async (t) => {
  const { url, seen } = await server(t, [says(409), says(503), says(503), says(503, { 'Retry-After': '60' })]);
  assert.equal((await retrying(send)(new Request(url))).status, 409);
  assert.equal((await retrying(send, 2)(new Request(url))).status, 503);
  assert.equal(seen.length, 3);
  const signal = AbortSignal.timeout(100);
  await assert.rejects(retrying(send)(new Request(url, { signal })), { name: 'TimeoutError' });
});

test('only the last answers are kept', async (t) => {
  const tagged = [1, 2, 3, 4, 5].map((n) => says(200, { ETag: `"${n}"` }));
  const { url, seen } = await server(t, tagged);
  const ask = remembering(send, 2);
  for (const path of ['a', 'b', 'c', 'b', 'a']) await (await ask(new Request(url + path))).text();
  const sent = seen.map((request) => request.headers['if-none-match']);
  assert.deepEqual(sent, [undefined, undefined, undefined, '"2"', undefined]);
});

test('what still holds is not sent again', async (t) => {
  const { url, seen } = await server(t, [says(200, { ETag: '"a"' }), says(304, { ETag: '"a"' }), says(404)]);
  const ask = remembering(send);
  assert.equal(await (await ask(new Request(url))).text(), '200');
  assert.equal(await (await ask(new Request(url))).text(), '200');
  assert.equal((await ask(new Request(url))).status, 404);
  assert.deepEqual(seen.map((request) => request.headers['if-none-match']), [undefined, '"a"', '"a"']);
});

test('whoever catches a refusal knows the type of its problem', () => {
  const code = 'room-conflict' as const;
  const texts = { detail: '', errors: { message: '' }, instance: '', title: '', type: '' };
  const error = { code, conflicts: [], status: 409, ...texts };
  try {
    ok({ error, response: new Response(null, { status: 409 }) });
    assert.fail();
  } catch (caught) {
    assert(caught instanceof Refused);
    // @ts-expect-error no service has this code
    assert(caught.problem.code !== 'no-such-code');
    assert(caught.problem.code === code);
    assert.deepEqual(caught.problem.conflicts?.map((conflict) => conflict.eventId), []);
  }
});
