//! How old the copies of what other services have are, for `/metrics` and `/readyz?verbose`. An old copy makes no
//! service unready: it is served all the same.

use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicI64, Ordering},
};

use common::time::Timestamp;
use serde_json::{Map, Value, json};

/// Stands for "never".
const NEVER: i64 = i64::MIN;

/// When one copy was last known to be what its source had.
#[derive(Debug)]
pub struct Copied {
    what: &'static str,
    micros: AtomicI64,
}

impl Copied {
    /// Tells when it was.
    pub fn tell(&self, at: Timestamp) {
        self.micros.store(at.micros(), Ordering::Relaxed);
    }

    fn at(&self) -> Option<Timestamp> {
        Some(self.micros.load(Ordering::Relaxed)).filter(|micros| *micros != NEVER).and_then(Timestamp::from_micros)
    }
}

/// All copies of a service.
#[derive(Debug, Default)]
pub struct Copies(RwLock<Vec<Arc<Copied>>>);

impl Copies {
    /// A new copy, shown from now on, and never made so far.
    pub fn of(&self, what: &'static str) -> Arc<Copied> {
        let copied = Arc::new(Copied { what, micros: AtomicI64::new(NEVER) });
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(copied.clone());
        copied
    }

    /// The age of each in seconds, for those that were made at all.
    #[must_use]
    pub fn ages(&self, now: Timestamp) -> Vec<(&'static str, f64)> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(|copied| Some((copied.what, age(copied.at()?, now)))).collect()
    }

    /// What `/readyz?verbose` says of each: `copiedAt` and `ageSeconds`, or neither when it was never made.
    #[must_use]
    pub fn report(&self, now: Timestamp) -> Value {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let report = |copied: &Arc<Copied>| match copied.at() {
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
    fn a_copy_has_an_age_once_it_was_made() {
        let at = |second: i64| Timestamp::from_micros(second * 1_000_000).unwrap();
        let copies = Copies::default();
        let events = copies.of("events");
        assert_eq!((copies.ages(at(9)), copies.report(at(9))), (vec![], json!({ "events": {} })));
        events.tell(at(10));
        assert_eq!(copies.ages(at(75)), [("events", 65.0)]);
        assert_eq!(copies.ages(at(9)), [("events", 0.0)]);
        let report = json!({ "events": { "copiedAt": "1970-01-01T00:00:10Z", "ageSeconds": 65.0 } });
        assert_eq!(copies.report(at(75)), report);
    }
}
