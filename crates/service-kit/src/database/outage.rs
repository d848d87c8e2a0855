//! An outage of the database in the log: one record at its start, one a minute while it lasts, one at its end.
//!
//! An outage begins when no connection can be made, and ends when one is. The records of requests have the causes of
//! their own failures, so nothing else reports it.
#![expect(clippy::disallowed_types, reason = "the lock is held for a few instructions")]

use std::{
    fmt::Display,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use log::Level;

/// The least time between two records of an outage that lasts. The outage is also over when no attempt has failed for
/// as long and existing connections work.
const INTERVAL: Duration = Duration::from_mins(1);

/// The state of all attempts of a [`Database`](super::Database) to connect.
#[derive(Default)]
pub(super) struct Outage(Mutex<State>);

#[derive(Default)]
struct State {
    ongoing: Option<Ongoing>,
    last_success: Option<Instant>,
}

struct Ongoing {
    since: Instant,
    last_failure: Instant,
    last_record: Instant,
}

type Record = Option<(Level, String)>;

impl Outage {
    pub fn is_ongoing(&self) -> bool {
        self.lock().ongoing.is_some()
    }

    /// Records the result of an attempt to connect that began at `began`.
    pub fn note<T, E: Display>(&self, began: Instant, attempt: &Result<T, E>) {
        let now = Instant::now();
        write(match attempt {
            Ok(_) => self.lock().connected(now),
            Err(cause) => self.lock().failed(began, now, cause),
        });
    }

    /// Records that a connection works.
    pub fn note_work(&self) {
        write(self.lock().worked(Instant::now()));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(record: Record) {
    if let Some((level, message)) = record {
        log::log!(target: "database", level, "{message}");
    }
}

impl State {
    fn failed(&mut self, began: Instant, now: Instant, cause: &dyn Display) -> Record {
        // Another attempt, which began later, may have ended sooner.
        if self.last_success.is_some_and(|success| began < success) {
            return None;
        }
        let Some(ongoing) = &mut self.ongoing else {
            self.ongoing = Some(Ongoing { since: now, last_failure: now, last_record: now });
            return Some((Level::Error, format!("the database cannot be reached: {cause}")));
        };
        ongoing.last_failure = now;
        if now < ongoing.last_record + INTERVAL {
            return None;
        }
        ongoing.last_record = now;
        let seconds = (now - ongoing.since).as_secs();
        Some((Level::Error, format!("the database has been out of reach for {seconds} s: {cause}")))
    }

    fn connected(&mut self, now: Instant) -> Record {
        self.last_success = Some(now);
        let seconds = (now - self.ongoing.take()?.since).as_secs();
        Some((Level::Warn, format!("the database is back after {seconds} s")))
    }

    fn worked(&mut self, now: Instant) -> Record {
        let ongoing = self.ongoing.as_ref()?;
        if now < ongoing.last_failure + INTERVAL { None } else { self.connected(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_one_record_at_its_start_one_a_minute_and_one_at_its_end() {
        let (start, mut state) = (Instant::now(), State::default());
        let at = |second| start + Duration::from_secs(second);
        assert_eq!(state.connected(at(0)), None);
        let mut records: Vec<_> = (10..160)
            .filter_map(|second| Some((second, state.failed(at(second), at(second), &"refused")?.1)))
            .collect();
        records.extend((160..170).filter_map(|second| Some((second, state.connected(at(second))?.1))));
        let expected = [
            (10, "the database cannot be reached: refused"),
            (70, "the database has been out of reach for 60 s: refused"),
            (130, "the database has been out of reach for 120 s: refused"),
            (160, "the database is back after 150 s"),
        ];
        assert_eq!(records, expected.map(|(second, text)| (second, text.to_owned())));
    }

    #[test]
    fn an_attempt_that_began_before_the_end_of_an_outage_begins_no_other() {
        let (start, mut state) = (Instant::now(), State::default());
        let at = |second| start + Duration::from_secs(second);
        assert!(state.failed(at(0), at(1), &"timeout").is_some());
        assert!(state.connected(at(2)).is_some());
        assert_eq!(state.failed(at(1), at(3), &"timeout"), None);
        assert!(state.failed(at(3), at(5), &"timeout").is_some());
    }

    #[test]
    fn connections_that_work_end_it_when_no_attempt_has_failed_for_a_minute() {
        let (start, mut state) = (Instant::now(), State::default());
        let at = |second| start + Duration::from_secs(second);
        // Such as while the server has too many clients.
        assert!(state.failed(at(0), at(0), &"too many clients").is_some());
        assert_eq!(state.worked(at(59)), None);
        assert!(state.worked(at(60)).is_some());
        assert_eq!(state.worked(at(61)), None);
    }
}
