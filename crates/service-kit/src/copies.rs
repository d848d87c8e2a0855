//! The age of the copies of other services' data, for `/metrics` and `/readyz?verbose`. A service with an old copy is
//! ready: it serves the copy.

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

/// The time of a copy that was never made.
const NEVER: i64 = i64::MIN;

/// The last time at which a copy was equal to its source.
#[derive(Debug)]
pub struct CopyStatus {
    what: &'static str,
    micros: AtomicI64,
    failures: AtomicU64,
}

/// The metrics of a copy.
#[derive(Debug, PartialEq)]
pub struct CopyNumbers {
    /// The name of its source.
    pub what: &'static str,
    /// Its age in seconds; `None` if it was never made.
    pub age: Option<f64>,
    /// The number of failed updates.
    pub failures: u64,
}

impl CopyStatus {
    /// Records a successful update.
    pub fn record_success(&self, at: Timestamp) {
        self.micros.store(at.micros(), Ordering::Relaxed);
    }

    /// Records a failed update.
    pub fn record_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the result of an update that began at this time.
    pub fn record<T, E>(&self, at: Timestamp, done: &Result<T, E>) {
        match done {
            Ok(_) => self.record_success(at),
            Err(_) => self.record_failure(),
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
    /// The status of this copy. From the first call on, it is part of `/readyz?verbose`.
    pub fn status(&self, what: &'static str) -> Arc<CopyStatus> {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(existing) = all.iter().find(|copied| copied.what == what) {
            return existing.clone();
        }
        let copied = Arc::new(CopyStatus { what, micros: AtomicI64::new(NEVER), failures: AtomicU64::default() });
        all.push(copied.clone());
        copied
    }

    /// The metrics of each.
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

    /// The part of `/readyz?verbose`: `copiedAt` and `ageSeconds` of each, or neither if it was never made.
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

/// Seconds, rounded to milliseconds; 0 if the clock of another machine is ahead.
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
        let events = copies.status("events");
        let numbers = |second| copies.numbers(at(second)).into_iter().map(|it| (it.what, it.age, it.failures));
        events.record_failure();
        assert_eq!(copies.report(at(9)), json!({ "events": {} }));
        assert!(numbers(9).eq([("events", None, 1)]));
        copies.status("events").record_success(at(10));
        assert!(numbers(75).eq([("events", Some(65.0), 1)]));
        assert!(numbers(9).eq([("events", Some(0.0), 1)]));
        let report = json!({ "events": { "copiedAt": "1970-01-01T00:00:10Z", "ageSeconds": 65.0 } });
        assert_eq!(copies.report(at(75)), report);
    }
}
