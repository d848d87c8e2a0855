// What a front end needs besides the types: clients for both services, retries, entity tags, pages and problems. It runs
// in browsers and in Node, and is meant to be copied. docs/front-ends.md explains it.

import createClient from 'openapi-fetch';
import type { components as Booking, paths as BookingPaths } from './generated/booking.d.ts';
import type { components as Portfolio, paths as PortfolioPaths } from './generated/portfolio.d.ts';

export type BookingTypes = Booking['schemas'];
export type PortfolioTypes = Portfolio['schemas'];

/**
 * What `POST /api/events` and `PUT /api/events/{eventID}` take, one of two:
 * - `RequestEventStock` has `roomId`: a room that is there. The event lies within the time for which the club has it.
 * - `RequestEventInstant` has `place`: any place, for which the service makes a room for the time of the event.
 */
export type RequestEvent = BookingTypes['RequestEvent'];

/** Where a service is and what each request carries. A page of the same origin needs none of these. */
export interface Options {
  origin?: string;
  headers?: Record<string, string>;
  /** `include` sends the session cookie to a service of another origin, whose `--allowed-origins` names the page's. */
  credentials?: RequestCredentials;
}

type Fetch = (request: Request) => Promise<Response>;

export function booking({ origin, ...init }: Options = {}) {
  return createClient<BookingPaths>({ ...init, baseUrl: origin ?? location.origin, fetch: send() });
}

export function portfolio({ origin, ...init }: Options = {}) {
  return createClient<PortfolioPaths>({ ...init, baseUrl: origin ?? location.origin, fetch: send() });
}

/** Browsers remember answers by themselves. */
function send(): Fetch {
  const plain = (request: Request) => fetch(request);
  return retrying(typeof document === 'undefined' ? remembering(plain) : plain);
}

type Problem = BookingTypes['Problem'] | PortfolioTypes['Problem'];

/** An error answer. Decide by `problem.code`, which is stable; the texts may change. */
export class Refused extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(`${problem.code}: ${problem.detail} (request ${problem.instance})`);
    this.problem = problem;
  }
}

/** Returns the data of an answer, or throws, so that a page can show errors in one place. */
export function ok<D>(answer: { data?: D; error?: Problem; response: Response }): D {
  if (answer.response.ok) return answer.data as D;
  // The answer may be that of a proxy in front.
  if (typeof answer.error?.code !== 'string') throw new Error(`${answer.response.status} from ${answer.response.url}`);
  throw new Refused(answer.error);
}

const LATER = [429, 502, 503, 504];

/** The longest `Retry-After` that is waited for, in seconds. That of `too-many-keys` may be hours. */
const LONGEST_WAIT = 60;

/**
 * Repeats requests that got no answer or may be retried. A POST gets a key, so that nothing is done twice, unless its
 * key is `''`: then it is sent without one.
 */
export function retrying(send: Fetch, tries = 5): Fetch {
  return async (request) => {
    const key = request.headers.get('Idempotency-Key');
    if (key === '') request.headers.delete('Idempotency-Key');
    else if (request.method === 'POST' && !key) request.headers.set('Idempotency-Key', crypto.randomUUID());
    for (let n = 1; ; n++) {
      try {
        // A body can be sent only once, so send a clone.
        const answer = await send(request.clone());
        const seconds = Number(answer.headers.get('Retry-After')) || 0;
        if (!LATER.includes(answer.status) || n === tries || seconds > LONGEST_WAIT) return answer;
        await wait(Math.max(delay(n), 1000 * seconds), request.signal);
      } catch (error) {
        if (n === tries || request.signal.aborted) throw error;
        await wait(delay(n), request.signal);
      }
    }
  };
}

/** Doubles with each attempt, with random jitter, so that clients do not all return at once. */
const delay = (n: number) => 100 * 2 ** n * (0.5 + Math.random());

function wait(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((done, fail) => {
    signal.throwIfAborted();
    const timer = setTimeout(done, milliseconds);
    const leave = () => (clearTimeout(timer), fail(signal.reason));
    signal.addEventListener('abort', leave, { once: true });
  });
}

/** Sends the entity tag of an earlier answer and reuses that answer on 304. Keeps the answers of `size` addresses. */
export function remembering(send: Fetch, size = 100): Fetch {
  const known = new Map<string, Response>();
  return async (request) => {
    if (request.method !== 'GET') return send(request);
    const before = known.get(request.url);
    const tag = before?.headers.get('ETag');
    if (tag) request.headers.set('If-None-Match', tag);
    const answer = await send(request);
    if (answer.status === 304 && before) return before.clone();
    if (answer.ok && answer.headers.has('ETag')) {
      // The oldest is the first.
      known.delete(request.url);
      known.set(request.url, answer.clone());
      for (const url of known.keys()) {
        if (known.size <= size) break;
        known.delete(url);
      }
    }
    return answer;
  };
}

/** Every row of a list, page by page. `page` requests one page at a cursor, always with the same other parameters. */
export async function* all<T>(
  page: (cursor?: string) => Promise<{ data?: T[]; error?: Problem; response: Response }>,
): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const answer = await page(cursor);
    yield* ok(answer);
    const next = /^<([^>]*)>; rel="next"$/.exec(answer.response.headers.get('Link') ?? '')?.[1];
    cursor = next && (new URL(next, answer.response.url).searchParams.get('cursor') ?? undefined);
  } while (cursor);
}
