// Signing in from a page of the booking-service's front end.

import { booking, ok, Refused } from './client.ts';

// From another origin: booking({ origin: 'http://localhost:3000', credentials: 'include' })
const api = booking();

/** Sends the browser to the sign-in. It comes back to `/callback`, signed in. */
export async function signIn() {
  // The page remembers where to continue.
  sessionStorage.setItem('after sign-in', location.pathname + location.search);
  const { url } = ok(await api.POST('/api/authParams'));
  location.assign(url);
}

/** What the page at `/callback` does. A second call, as by React's StrictMode, does the same. */
export function comeBack() {
  location.replace(sessionStorage.getItem('after sign-in') ?? '/');
}

/** Who is signed in, if anybody is. */
export async function whoAmI() {
  try {
    return ok(await api.GET('/api/users/me'));
  } catch (error) {
    if (error instanceof Refused && error.problem.status === 401) return undefined;
    throw error;
  }
}
