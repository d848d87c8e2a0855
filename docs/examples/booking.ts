// A tour of the booking-service: `npm run booking`. ORIGIN says where it is, TOKEN holds an API token that may write.

import assert from 'node:assert/strict';
import { all, booking, ok, Refused, type BookingTypes, type RequestEvent } from './client.ts';

const { ORIGIN = 'http://127.0.0.1:3000', TOKEN } = process.env;
assert(TOKEN, 'TOKEN is missing; scripts/run leaves one in data/tour.token');

const api = booking({ origin: ORIGIN, headers: { Authorization: `Bearer ${TOKEN}` } });
const me = ok(await api.GET('/api/users/me'));
console.log(`I am ${me.name}`);

const hour = 3_600_000;
const tomorrow = Math.ceil(Date.now() / (24 * hour)) * 24 * hour;
const at = (hours: number) => new Date(tomorrow + hours * hour).toISOString();

const room = ok(
  await api.POST('/api/rooms', {
    body: { place: 'Example', timeStart: at(9), timeEnd: at(18), admins: [me.userId] },
  }),
);
const request: BookingTypes['RequestEventStock'] = {
  name: 'Example', description: '', roomId: room.roomId, timeStart: at(10), timeEnd: at(12),
  sharedRoom: false, open: true, groupId: '11111111-1111-1111-1111-111111111111', admins: [me.userId],
  tags: [{ name: 'example', locked: true }],
};

// One key for each thing that the user asks for, however often it is sent.
const header = { 'Idempotency-Key': crypto.randomUUID() };
const event = ok(await api.POST('/api/events', { params: { header }, body: request }));
const again = await api.POST('/api/events', { params: { header }, body: request });
assert.equal(ok(again).eventId, event.eventId);
assert.equal(again.response.headers.get('Idempotency-Replayed'), 'true');
console.log(`made ${event.name}, once`);

async function book(body: RequestEvent) {
  const { data, error } = await api.POST('/api/events', { body });
  if (error?.code === 'room-conflict') {
    // Somebody booked it first; these are the times when the room is still free.
    return { taken: error.conflicts ?? [], free: error.freeTimes ?? [] };
  }
  if (error) throw new Refused(error);
  return { event: data };
}
const second = await book(request);
assert.deepEqual(second.taken?.map((taken) => taken.eventId), [event.eventId]);
assert.deepEqual(second.free?.map((free) => Date.parse(free.timeStart)), [at(9), at(12)].map(Date.parse));
console.log('the room is taken then');

async function rename(eventID: string, name: string): Promise<BookingTypes['ResponseEventDetail']> {
  const path = { eventID };
  const read = await api.GET('/api/events/{eventID}', { params: { path } });
  const { description, timeStart, timeEnd, sharedRoom, open, group, room, admins, tags } = ok(read);
  // A PUT replaces the whole event: without `tags` it would have none.
  const body = {
    name, description, timeStart, timeEnd, sharedRoom, open, admins, groupId: group.groupId, roomId: room.roomId,
    tags: tags.map(({ name, locked }) => ({ name, locked })),
  };
  const header = { 'If-Match': read.response.headers.get('ETag') ?? '*' };
  const answer = await api.PUT('/api/events/{eventID}', { params: { path, header }, body });
  // Somebody changed it first. A form would show their version and ask.
  return answer.error?.code === 'precondition-failed' ? rename(eventID, name) : ok(answer);
}
const path = { eventID: event.eventId };
assert.deepEqual(
  (await Promise.all([rename(event.eventId, 'One'), rename(event.eventId, 'Other')])).map((done) => done.name),
  ['One', 'Other'],
);
const { tags } = ok(await api.GET('/api/events/{eventID}', { params: { path } }));
assert.deepEqual(tags.map(({ name }) => name), ['example']);
const stale = await api.PUT('/api/events/{eventID}', { params: { path, header: { 'If-Match': '"stale"' } }, body: request });
assert.equal(stale.error?.code, 'precondition-failed');
console.log('changed what was seen');

const names: string[] = [];
for await (const event of all((cursor) =>
  api.GET('/api/events', { params: { query: { dateBegin: at(0), limit: 1, cursor } } }),
)) {
  names.push(event.name);
}
assert(names.includes('One') || names.includes('Other'), names.join());

const poll = ok(
  await api.POST('/api/draft-events', {
    body: {
      name: 'Example', deadline: at(1), admins: [me.userId],
      candidateSlots: [{ timeStart: at(14), timeEnd: at(16) }, { timeStart: at(22), timeEnd: at(26) }],
    },
  }),
);
const pollPath = { draftEventID: poll.draftEventId };
const { candidateSlots } = ok(await api.GET('/api/draft-events/{draftEventID}', { params: { path: pollPath } }));
const slotIds = candidateSlots.slice(0, 1).map(({ slotId }) => slotId);
ok(await api.POST('/api/draft-events/{draftEventID}/availability', { params: { path: pollPath }, body: { slotIds } }));
const { results } = ok(await api.GET('/api/draft-events/{draftEventID}/results', { params: { path: pollPath } }));
const best = results.find(({ isTopChoice }) => isTopChoice);
assert.deepEqual(best?.availableUsers, [me.userId]);
const confirm = (query: { dryRun?: boolean }, roomId: string) =>
  api.POST('/api/draft-events/{draftEventID}/confirm', {
    params: { path: pollPath, query }, body: { slotId: slotIds[0]!, roomId, groupId: request.groupId },
  });
const free = ok(
  await api.GET('/api/availability', {
    params: { query: { dateBegin: at(12), dateEnd: at(18), minutes: 120, onlyVerified: false } },
  }),
);
assert(free.some(({ roomId }) => roomId === room.roomId));
assert.equal(ok(await confirm({ dryRun: true }, room.roomId)).name, 'Example');
const confirmed = ok(await confirm({}, room.roomId));
const twice = await confirm({}, room.roomId);
assert.deepEqual([twice.error?.code, twice.error?.eventId], ['poll-confirmed', confirmed.eventId]);
ok(await api.DELETE('/api/events/{eventID}', { params: { path: { eventID: confirmed.eventId } } }));
ok(await api.DELETE('/api/draft-events/{draftEventID}', { params: { path: pollPath } }));
console.log('a poll became an event');

const { roomId: _, ...elsewhere } = request;
const series = ok(
  await api.POST('/api/event-series', {
    body: { event: { ...elsewhere, place: 'Elsewhere', name: 'Series' }, rrule: 'FREQ=WEEKLY;COUNT=2', onConflict: 'skip' },
  }),
);
assert.equal(series.events.length + series.skipped.length, 2);
const seriesPath = { seriesID: series.seriesId };
ok(await api.PATCH('/api/event-series/{seriesID}', { params: { path: seriesPath }, body: { name: 'All' } }));
assert(ok(await api.GET('/api/event-series/{seriesID}', { params: { path: seriesPath } })).events.every(({ name }) => name === 'All'));
ok(await api.DELETE('/api/event-series/{seriesID}', { params: { path: seriesPath } }));
console.log('a series was made, changed and deleted');

const day = at(0).slice(0, 10).replaceAll('-', '/');
const table = [
  'Subject,Start date,Start time,End date,End time,Location',
  `Example,${day},09:00,${day},18:00,S999`,
].join('\n');
const checked = await api.POST('/api/rooms/all', {
  params: { query: { dryRun: true } }, body: table,
  headers: { 'Content-Type': 'text/csv' }, bodySerializer: (table) => table,
});
assert.deepEqual(ok(checked).map(({ place }) => place), ['S999']);
console.log('a table of rooms can be imported');

const since = new Date(Date.now() - 60_000).toISOString();
ok(await api.DELETE('/api/events/{eventID}', { params: { path } }));
const changed = ok(await api.GET('/api/events', { params: { query: { updatedSince: since } } }));
assert(changed.some((one) => one.eventId === event.eventId && one.deletedAt));
ok(await api.DELETE('/api/rooms/{roomID}', { params: { path: { roomID: room.roomId } } }));

const broken = await api.POST('/api/rooms', { body: { ...room, place: '' } });
assert.deepEqual(broken.error?.violations?.map(({ pointer }) => pointer), ['/place']);
console.log('and gave it all back');
