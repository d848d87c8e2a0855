//! Repeated attempts, where SQLite or a database that is starting does not wait by itself.

use std::{
    thread,
    time::{Duration, Instant},
};

use diesel::QueryResult;

use super::error_class::is_locked;

/// The pause after the first attempt. Each further one is twice as long, up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_millis(160);

/// Repeats `attempt` while another connection has locked the SQLite database, for about `timeout`.
pub(crate) fn retry_while_locked<T>(timeout: Duration, attempt: impl FnMut() -> QueryResult<T>) -> QueryResult<T> {
    retry_until(timeout, attempt, |outcome| !outcome.as_ref().is_err_and(is_locked))
}

/// Repeats `attempt` until its outcome is final, for about `timeout`; returns the last outcome.
#[expect(clippy::disallowed_methods, reason = "at start, in commands and on database threads, never on a worker")]
pub(crate) fn retry_until<T>(timeout: Duration, mut attempt: impl FnMut() -> T, is_final: impl Fn(&T) -> bool) -> T {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let outcome = attempt();
        let left = timeout.saturating_sub(started.elapsed());
        if is_final(&outcome) || left.is_zero() {
            return outcome;
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(MAX_PAUSE);
    }
}
