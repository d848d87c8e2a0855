//! The age of the copies of other services' data, for `/metrics` and `/readyz?verbose`. A service with an old copy is
//! ready: it serves the copy.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock},
};

use chrono::TimeDelta;
use common::time::Timestamp;
use serde_json::{Map, Value, json};

/// Whether a source that lacks `missing` of the `present` entries of its copy is suspicious: it lacks more than half of
/// them, like a truncated file or an empty answer (contract, booking "The club directory").
pub fn is_suspicious(present: usize, missing: usize) -> bool {
    missing > present / 2
}

/// The metrics of a copy.
#[derive(Debug, PartialEq)]
pub struct CopyNumbers {
    /// The name of its source.
    pub what: &'static str,
    /// Its age in seconds; `None` if there is no copy yet, or if its time is wrong.
    pub age: Option<f64>,
    /// The number of failed updates.
    pub failures: u64,
}

#[derive(Debug, Default)]
struct CopyStatus {
    /// The last time at which the copy was equal to its source.
    at: Option<Timestamp>,
    failures: u64,
}

/// All copies of a service, by the names of their sources.
#[derive(Debug, Default)]
pub struct CopyStatuses(RwLock<BTreeMap<&'static str, CopyStatus>>);

impl CopyStatuses {
    /// Adds a copy that has not been made yet.
    pub fn add(&self, what: &'static str) {
        self.change(what, |_| ());
    }

    /// Records the result of an update that began at this time.
    pub fn record<T, E>(&self, what: &'static str, at: Timestamp, result: &Result<T, E>) {
        self.change(what, |copy| match result {
            Ok(_) => copy.at = Some(at),
            Err(_) => copy.failures += 1,
        });
    }

    /// Records a successful update.
    pub fn record_success(&self, what: &'static str, at: Timestamp) {
        self.change(what, |copy| copy.at = Some(at));
    }

    /// Records a failed update.
    pub fn record_failure(&self, what: &'static str) {
        self.change(what, |copy| copy.failures += 1);
    }

    fn change(&self, what: &'static str, change: impl FnOnce(&mut CopyStatus)) {
        change(self.0.write().unwrap_or_else(PoisonError::into_inner).entry(what).or_default());
    }

    /// The metrics of each.
    pub fn numbers(&self, now: Timestamp) -> Vec<CopyNumbers> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let numbers = |(what, copy): (&&'static str, &CopyStatus)| CopyNumbers {
            what,
            age: copy.at.and_then(|at| age(at, now)),
            failures: copy.failures,
        };
        all.iter().map(numbers).collect()
    }

    /// The part of `/readyz?verbose`: `copiedAt` and `ageSeconds` of each, if they are known.
    pub fn report(&self, now: Timestamp) -> Value {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let report = |copy: &CopyStatus| match copy.at {
            Some(at) => match age(at, now) {
                Some(age) => json!({ "copiedAt": at.to_string(), "ageSeconds": age }),
                None => json!({ "copiedAt": at.to_string() }),
            },
            None => json!({}),
        };
        all.iter().map(|(what, copy)| ((*what).to_owned(), report(copy))).collect::<Map<_, _>>().into()
    }
}

/// By how much the clocks of two machines may differ.
const CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(5);

/// Seconds, rounded to milliseconds; 0 if the clock of another machine is a little ahead. `None` for a time that a wrong
/// clock has recorded.
fn age(at: Timestamp, now: Timestamp) -> Option<f64> {
    let elapsed = (now - at).to_std().unwrap_or_default();
    (at <= now.plus(CLOCK_DIFFERENCE)).then(|| (elapsed.as_secs_f64() * 1000.0).round() / 1000.0)
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
    fn a_copy_has_an_age_after_its_first_success() {
        let at = |second: i64| Timestamp::from_micros(second * 1_000_000).unwrap();
        let copies = CopyStatuses::default();
        let numbers = |second| copies.numbers(at(second)).into_iter().map(|copy| (copy.what, copy.age, copy.failures));
        copies.record_failure("events");
        assert_eq!(copies.report(at(9)), json!({ "events": {} }));
        assert!(numbers(9).eq([("events", None, 1)]));
        copies.record_success("events", at(10));
        assert!(numbers(75).eq([("events", Some(65.0), 1)]));
        assert!(numbers(9).eq([("events", Some(0.0), 1)]));
        let report = json!({ "events": { "copiedAt": "1970-01-01T00:00:10Z", "ageSeconds": 65.0 } });
        assert_eq!(copies.report(at(75)), report);
        // After the clock was a day ahead, nobody knows how old the copy is.
        copies.record_success("events", at(86_400));
        assert!(numbers(80).eq([("events", None, 1)]));
        assert_eq!(copies.report(at(80)), json!({ "events": { "copiedAt": "1970-01-02T00:00:00Z" } }));
    }
}
