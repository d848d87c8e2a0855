// A tour of the portfolio-service: `npm run portfolio`. ORIGIN says where it is; TOKEN, of its issuer, who is asking. In
// a development installation the header that a proxy would set does.

import assert from 'node:assert/strict';
import { all, ok, portfolio } from './client.ts';

const { ORIGIN = 'http://127.0.0.1:3001', TOKEN, USER_NAME = 'alice' } = process.env;
const headers: Record<string, string> = TOKEN ? { Authorization: `Bearer ${TOKEN}` } : { 'X-Forwarded-User': USER_NAME };

const visitor = portfolio({ origin: ORIGIN });
const api = portfolio({ origin: ORIGIN, headers });
const me = ok(await api.GET('/api/v1/users/me'));
console.log(`I am ${me.name}`);
assert.equal((await visitor.GET('/api/v1/users/me')).error?.code, 'not-signed-in');

const made = await api.POST('/api/v1/projects', {
  body: { name: `Example ${Date.now() % 1e9}`, description: 'A client', duration: { since: { year: 2026, semester: 0 } } },
});
const project = ok(made);
assert.equal(made.response.headers.get('Location'), `/api/v1/projects/${project.id}`);
const taken = await api.POST('/api/v1/projects', { body: { ...project, link: undefined } });
assert.equal(taken.error?.code, 'duplicate-name');

const path = { projectId: project.id };
const show = () => visitor.GET('/api/v1/projects/{projectId}', { params: { path } });
const shown = await show();
// The second time it is not sent again, as nothing has changed.
assert.deepEqual(ok(await show()), ok(shown));
const tag = shown.response.headers.get('ETag') ?? '*';

const change = (ifMatch: string, description: string) =>
  api.PATCH('/api/v1/projects/{projectId}', { params: { path, header: { 'If-Match': ifMatch } }, body: { description } });
ok(await change(tag, 'A typed client'));
assert.equal((await change(tag, 'Of somebody who has not seen it')).error?.code, 'precondition-failed');
assert.equal(ok(await show()).description, 'A typed client');

const names: string[] = [];
for await (const one of all((cursor) => visitor.GET('/api/v1/projects', { params: { query: { limit: 2, cursor } } }))) {
  names.push(one.name);
}
assert(names.includes(project.name), names.join());
ok(await api.DELETE('/api/v1/projects/{projectId}', { params: { path } }));
console.log(`made, changed, found among ${names.length} and deleted a project`);
