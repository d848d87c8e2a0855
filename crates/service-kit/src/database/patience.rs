//! Waiting for others to let a SQLite database go, where SQLite does not wait by itself.

use std::{
    thread,
    time::{Duration, Instant},
};

use diesel::QueryResult;

/// Tries again as long as the database is locked, but not much longer than `patience`.
pub(crate) fn while_locked<T>(patience: Duration, attempt: impl FnMut() -> QueryResult<T>) -> QueryResult<T> {
    until(patience, attempt, |done| !done.as_ref().is_err_and(is_locked))
}

/// Whether another connection to the same file is in the way.
pub(crate) fn is_locked(error: &diesel::result::Error) -> bool {
    error.to_string().contains("locked")
}

/// Tries again until the outcome is good, but not much longer than `patience`; then it is what it is.
#[expect(clippy::disallowed_methods, reason = "at start, in commands and on database threads, never on a worker")]
pub(crate) fn until<T>(patience: Duration, mut attempt: impl FnMut() -> T, is_good: impl Fn(&T) -> bool) -> T {
    let begun = Instant::now();
    loop {
        let outcome = attempt();
        if is_good(&outcome) || begun.elapsed() >= patience {
            return outcome;
        }
        thread::sleep(Duration::from_millis(10));
    }
}
