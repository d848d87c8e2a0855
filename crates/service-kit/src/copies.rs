//! How old the copies of what other services have are, for `/metrics` and `/readyz?verbose`. An old copy makes no
//! service unready: it is served all the same.

use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use common::time::Timestamp;
use serde_json::{Map, Value, json};

/// Whether a source is suspicious that lacks `missing` of the `present` entries of its copy: it lacks more than half of
/// them, as a truncated file or an empty answer does (contract, booking "The club directory").
#[must_use]
pub fn is_suspicious(present: usize, missing: usize) -> bool {
    missing > present / 2
}

/// Stands for "never".
const NEVER: i64 = i64::MIN;

/// When one copy was last known to be what its source had.
#[derive(Debug)]
pub struct CopyStatus {
    what: &'static str,
    micros: AtomicI64,
    failures: AtomicU64,
}

/// What the metrics say of a copy.
#[derive(Debug, PartialEq)]
pub struct CopyNumbers {
    /// What it is of.
    pub what: &'static str,
    /// Its age in seconds, if it was made at all.
    pub age: Option<f64>,
    /// How often it could not be brought up to date.
    pub failures: u64,
}

impl CopyStatus {
    /// Tells when it was.
    pub fn tell(&self, at: Timestamp) {
        self.micros.store(at.micros(), Ordering::Relaxed);
    }

    /// Tells that it could not be brought up to date.
    pub fn fail(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Tells how bringing it up to date ended, which began at this time.
    pub fn note<T, E>(&self, at: Timestamp, done: &Result<T, E>) {
        match done {
            Ok(_) => self.tell(at),
            Err(_) => self.fail(),
        }
    }

    fn at(&self) -> Option<Timestamp> {
        Some(self.micros.load(Ordering::Relaxed)).filter(|micros| *micros != NEVER).and_then(Timestamp::from_micros)
    }
}

/// All copies of a service.
#[derive(Debug, Default)]
pub struct CopyStatuses(RwLock<Vec<Arc<CopyStatus>>>);

impl CopyStatuses {
    /// The copy of this, shown from the first time on that it is asked for.
    pub fn of(&self, what: &'static str) -> Arc<CopyStatus> {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|copied| copied.what == what) {
            return known.clone();
        }
        let copied = Arc::new(CopyStatus { what, micros: AtomicI64::new(NEVER), failures: AtomicU64::default() });
        all.push(copied.clone());
        copied
    }

    /// The numbers of each.
    #[must_use]
    pub fn numbers(&self, now: Timestamp) -> Vec<CopyNumbers> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let numbers = |copied: &Arc<CopyStatus>| CopyNumbers {
            what: copied.what,
            age: copied.at().map(|at| age(at, now)),
            failures: copied.failures.load(Ordering::Relaxed),
        };
        all.iter().map(numbers).collect()
    }

    /// What `/readyz?verbose` says of each: `copiedAt` and `ageSeconds`, or neither when it was never made.
    #[must_use]
    pub fn report(&self, now: Timestamp) -> Value {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let report = |copied: &Arc<CopyStatus>| match copied.at() {
            Some(at) => json!({ "copiedAt": at.to_string(), "ageSeconds": age(at, now) }),
            None => json!({}),
        };
        all.iter().map(|copied| (copied.what.to_owned(), report(copied))).collect::<Map<_, _>>().into()
    }
}

/// Seconds; to the millisecond, and never negative when another machine's clock is ahead.
fn age(at: Timestamp, now: Timestamp) -> f64 {
    let elapsed = (now.utc() - at.utc()).to_std().unwrap_or_default();
    (elapsed.as_secs_f64() * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_may_lack_half_of_its_copy() {
        for (present, missing) in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (100, 50)] {
            assert!(!is_suspicious(present, missing), "{missing} of {present}");
            assert!(is_suspicious(present, present / 2 + 1), "{present}");
        }
    }

    #[test]
    fn a_copy_has_an_age_once_it_was_made() {
        let at = |second: i64| Timestamp::from_micros(second * 1_000_000).unwrap();
        let copies = CopyStatuses::default();
        let events = copies.of("events");
        let numbers = |second| copies.numbers(at(second)).into_iter().map(|it| (it.what, it.age, it.failures));
        events.fail();
        assert_eq!(copies.report(at(9)), json!({ "events": {} }));
        assert!(numbers(9).eq([("events", None, 1)]));
        copies.of("events").tell(at(10));
        assert!(numbers(75).eq([("events", Some(65.0), 1)]));
        assert!(numbers(9).eq([("events", Some(0.0), 1)]));
        let report = json!({ "events": { "copiedAt": "1970-01-01T00:00:10Z", "ageSeconds": 65.0 } });
        assert_eq!(copies.report(at(75)), report);
    }
}
