//! How many bytes of request bodies are in memory, for each caller and in all.
#![expect(clippy::disallowed_types, reason = "the lock is held for one access to the map, never while waiting")]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use common::problem::{Problem, code};
use prometheus_client::metrics::{counter::Counter, gauge::Gauge};

use super::rate_limit::RateLimitKey;

/// The most bytes of one caller: two imports of rooms, or four other bodies of the largest size.
const OF_CALLER: usize = 4 << 20;

/// The most bytes of all callers.
const OF_ALL: usize = 16 << 20;

/// The bytes of all bodies of requests in progress.
#[derive(Debug, Default)]
pub struct BodyBudget {
    callers: Mutex<HashMap<Option<RateLimitKey>, usize>>,
    /// The bytes in memory.
    pub bytes: Gauge,
    /// Requests that were refused because there were too many.
    pub refused: Counter,
}

/// The bytes of one body. They count until this is dropped.
pub struct BodyBytes {
    budget: Arc<BodyBudget>,
    caller: Option<RateLimitKey>,
    count: usize,
}

impl BodyBytes {
    /// Counts the first bytes of a body, for its caller if one is given.
    ///
    /// # Errors
    /// Those of [`add`](Self::add).
    pub fn new(budget: &Arc<BodyBudget>, caller: Option<RateLimitKey>, count: usize) -> Result<Self, Problem> {
        let mut bytes = Self { budget: budget.clone(), caller, count: 0 };
        bytes.add(count)?;
        Ok(bytes)
    }

    /// Counts further bytes.
    ///
    /// # Errors
    /// 429 if the caller has too many bytes under way, 503 if all together have.
    pub fn add(&mut self, count: usize) -> Result<(), Problem> {
        let mut callers = self.budget.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let of_caller = callers.get(&self.caller).copied().unwrap_or_default() + count;
        let all = usize::try_from(self.budget.bytes.get()).unwrap_or_default() + count;
        let problem = match () {
            () if self.caller.is_some() && of_caller > OF_CALLER => {
                Problem::new(code::RATE_LIMITED).detail("Too many of your requests are being sent at once.")
            }
            () if all > OF_ALL => Problem::new(code::UNAVAILABLE).because("too many request bodies at once"),
            () => {
                callers.insert(self.caller, of_caller);
                self.budget.bytes.set(i64::try_from(all).unwrap_or(i64::MAX));
                self.count += count;
                return Ok(());
            }
        };
        self.budget.refused.inc();
        Err(problem.retry_after(1))
    }
}

impl Drop for BodyBytes {
    fn drop(&mut self) {
        let mut callers = self.budget.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = callers.get_mut(&self.caller) {
            *bytes -= self.count;
            if *bytes == 0 {
                callers.remove(&self.caller);
            }
        }
        self.budget.bytes.dec_by(i64::try_from(self.count).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn bytes_count_for_their_caller_and_for_all_until_they_are_dropped() {
        let budget = Arc::new(BodyBudget::default());
        let caller = |number| Some(RateLimitKey::User(Uuid::from_u128(number)));
        let status = |result: Result<BodyBytes, Problem>| result.err().map(|problem| problem.status());
        let mut first = BodyBytes::new(&budget, caller(1), OF_CALLER - 1).unwrap();
        first.add(1).unwrap();
        assert_eq!(first.add(1).unwrap_err().status(), 429);
        assert_eq!(status(BodyBytes::new(&budget, caller(1), 1)), Some(429));
        let others: Vec<_> =
            (2..=4).map(|number| BodyBytes::new(&budget, caller(number), OF_CALLER).unwrap()).collect();
        assert_eq!(status(BodyBytes::new(&budget, caller(5), 1)), Some(503));
        assert_eq!(status(BodyBytes::new(&budget, None, 1)), Some(503));
        assert_eq!((budget.bytes.get(), budget.refused.get()), (16 << 20, 4));
        drop(first);
        let without_caller = BodyBytes::new(&budget, None, OF_CALLER).unwrap();
        drop((others, without_caller));
        assert_eq!(budget.bytes.get(), 0);
        assert!(budget.callers.lock().unwrap().is_empty());
    }
}
