//! A cached answer of another server.
//!
//! A general cache such as `moka` does not fit: while one caller refreshes an old value, the others must go on with it;
//! a failed fetch must keep it; and a key that is not in the answer must cause a fetch, but not one for each request.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use common::problem::{Problem, code};
use tokio::{
    sync::{Mutex, OwnedMutexGuard, RwLock},
    time::Instant,
};

/// When to fetch again.
#[derive(Debug, Clone, Copy)]
pub struct RefreshPolicy {
    /// The time in which a value is fetched [`MAX_FETCHES`] times at most, however often a lookup finds nothing.
    pub interval: Duration,
    /// The age at which a value is fetched again, so that a revoked key is no longer accepted.
    pub max_age: Duration,
}

impl Default for RefreshPolicy {
    fn default() -> Self {
        Self { interval: Duration::from_secs(30), max_age: Duration::from_hours(1) }
    }
}

/// The most fetches in the interval of the policy. More than one, because what the first lacks may exist a moment later:
/// an issuer that rotates its keys uses the new one at once.
const MAX_FETCHES: usize = 3;

/// The least time between two fetches as long as none has succeeded.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The value of the last successful fetch and its time.
type Entry<T> = Option<(Arc<T>, Instant)>;

/// A value that is fetched from another server when it is needed, and then cached.
pub struct CachedFetch<T> {
    name: &'static str,
    fetch: Arc<dyn Fn() -> Result<T, String> + Send + Sync>,
    policy: RefreshPolicy,
    entry: Arc<RwLock<Entry<T>>>,
    /// When the last fetches ended. The lock is held during a fetch, so that there is one at a time.
    attempts: Arc<Mutex<Attempts>>,
}

/// The ends of the last [`MAX_FETCHES`] fetches, the oldest first.
#[derive(Default)]
struct Attempts(VecDeque<Instant>);

impl Attempts {
    /// Whether another fetch may begin; `has_value` is whether one has succeeded.
    fn allow(&self, policy: RefreshPolicy, has_value: bool) -> bool {
        if has_value {
            self.0.len() < MAX_FETCHES || self.0.front().is_none_or(|oldest| oldest.elapsed() >= policy.interval)
        } else {
            self.0.back().is_none_or(|last| last.elapsed() >= policy.interval.min(FIRST_RETRY))
        }
    }

    fn add(&mut self, end: Instant) {
        self.0.push_back(end);
        if self.0.len() > MAX_FETCHES {
            self.0.pop_front();
        }
    }
}

impl<T> fmt::Debug for CachedFetch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedFetch").field("name", &self.name).field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl<T: Send + Sync + 'static> CachedFetch<T> {
    /// A value that `fetch` returns; it runs on a blocking thread. The log calls the value `name`, a plural such as
    /// "the keys of the issuer".
    pub fn new(
        name: &'static str,
        policy: RefreshPolicy,
        fetch: impl Fn() -> Result<T, String> + Send + Sync + 'static,
    ) -> Self {
        Self { name, fetch: Arc::new(fetch), policy, entry: Arc::default(), attempts: Arc::default() }
    }

    /// What `lookup` finds in the value. When it finds nothing, or the value is too old, the value is fetched first,
    /// unless the policy forbids it. An old value serves while another caller fetches and after a failure.
    pub async fn find<R>(&self, lookup: impl Fn(&T) -> Option<R>) -> Result<Option<R>, Problem> {
        let entry = self.entry.read().await.clone();
        let cached = entry.as_ref().and_then(|(value, _)| lookup(value));
        let is_fresh = entry.as_ref().is_some_and(|(_, fetched_at)| fetched_at.elapsed() < self.policy.max_age);
        if cached.is_some() && is_fresh {
            return Ok(cached);
        }
        let attempts = match (self.attempts.clone().try_lock_owned(), &cached) {
            (Ok(attempts), _) => attempts,
            (Err(_), Some(_)) => return Ok(cached),
            (Err(_), None) => {
                let attempts = self.attempts.clone().lock_owned().await;
                // Another caller has fetched meanwhile.
                if let Some((value, _)) = &*self.entry.read().await
                    && let Some(found) = lookup(value)
                {
                    return Ok(Some(found));
                }
                attempts
            }
        };
        if attempts.allow(self.policy, entry.is_some()) {
            self.refresh(attempts).await?;
        }
        match &*self.entry.read().await {
            Some((value, _)) => Ok(lookup(value)),
            None => Err(Problem::new(code::UNAVAILABLE).because(format!("{} have never been fetched", self.name))),
        }
    }

    /// Fetches in a task of its own, so that a caller who disconnects does not cancel it for the others.
    async fn refresh(&self, mut attempts: OwnedMutexGuard<Attempts>) -> Result<(), Problem> {
        let (fetch, entry, name) = (self.fetch.clone(), self.entry.clone(), self.name);
        let task = tokio::spawn(async move {
            let fetched = tokio::task::spawn_blocking(move || fetch()).await;
            match fetched.map_err(|error| error.to_string()).flatten() {
                Ok(value) => *entry.write().await = Some((Arc::new(value), Instant::now())),
                Err(error) => log::warn!("{name} cannot be fetched: {error}"),
            }
            attempts.add(Instant::now());
        });
        task.await.map_err(Problem::internal)
    }
}
