//! What another server says, kept for a while: fetched when it is first needed, again when it is old or lacks what is
//! looked for, and by one caller at a time.

use std::{fmt, sync::Arc, time::Duration};

use common::problem::{Problem, code};
use tokio::{
    sync::{Mutex, OwnedMutexGuard, RwLock},
    time::Instant,
};

/// How often to fetch.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The least time between two fetches, however often something is looked for that is not there.
    pub between: Duration,
    /// How old the answer gets before it is fetched anew, so that what is taken back goes out of use.
    pub age: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { between: Duration::from_secs(30), age: Duration::from_secs(3600) }
    }
}

/// The least time between two fetches while there is nothing to go on with.
const AT_FIRST: Duration = Duration::from_secs(1);

struct Held<T> {
    value: Arc<T>,
    at: Instant,
}

// Not derived: that would want `T: Clone`.
impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), at: self.at }
    }
}

type Fetch<T> = dyn Fn() -> Result<T, String> + Send + Sync;

/// The last answer of another server.
pub struct Kept<T> {
    what: &'static str,
    fetch: Arc<Fetch<T>>,
    pace: Pace,
    held: Arc<RwLock<Option<Held<T>>>>,
    /// When the last fetch ended. Held while fetching, so that there is one at a time, for all who wait meanwhile.
    tried: Arc<Mutex<Option<Instant>>>,
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("what", &self.what).field("pace", &self.pace).finish_non_exhaustive()
    }
}

impl<T: Send + Sync + 'static> Kept<T> {
    /// What `fetch` will answer, on a blocking thread; `what` says in the log what that is, such as "the keys of the
    /// issuer". Nothing is fetched before it is needed.
    #[must_use]
    pub fn new(what: &'static str, pace: Pace, fetch: impl Fn() -> Result<T, String> + Send + Sync + 'static) -> Self {
        Self { what, fetch: Arc::new(fetch), pace, held: Arc::default(), tried: Arc::default() }
    }

    /// What `look` finds in the answer. When it finds nothing, or the answer is old, another is fetched first, unless
    /// that was tried a moment ago. An old one does while somebody else fetches, or when none can be had.
    ///
    /// # Errors
    /// 503 when there has never been an answer.
    pub async fn find<R>(&self, look: impl Fn(&T) -> Option<R>) -> Result<Option<R>, Problem> {
        let held = self.held.read().await.clone();
        let found = held.as_ref().and_then(|held| look(&held.value));
        let fresh = held.as_ref().is_some_and(|held| held.at.elapsed() < self.pace.age);
        if found.is_some() && fresh {
            return Ok(found);
        }
        let tried = match (self.tried.clone().try_lock_owned(), &found) {
            (Ok(tried), _) => tried,
            (Err(_), Some(_)) => return Ok(found),
            (Err(_), None) => self.tried.clone().lock_owned().await,
        };
        let pause = if held.is_some() { self.pace.between } else { self.pace.between.min(AT_FIRST) };
        if tried.is_none_or(|tried| tried.elapsed() >= pause) {
            self.fetch(tried).await?;
        } else {
            drop(tried);
        }
        match &*self.held.read().await {
            Some(held) => Ok(look(&held.value)),
            None => Err(Problem::new(code::UNAVAILABLE).because(format!("{} have never been had", self.what))),
        }
    }

    /// A task of its own: what is fetched is for everybody, also when this caller gives up.
    async fn fetch(&self, mut tried: OwnedMutexGuard<Option<Instant>>) -> Result<(), Problem> {
        let (fetch, held, what) = (self.fetch.clone(), self.held.clone(), self.what);
        let done = tokio::spawn(async move {
            let fetched = tokio::task::spawn_blocking(move || fetch()).await;
            match fetched.map_err(|error| error.to_string()).flatten() {
                Ok(value) => *held.write().await = Some(Held { value: Arc::new(value), at: Instant::now() }),
                Err(error) => log::warn!("{what} cannot be fetched: {error}"),
            }
            *tried = Some(Instant::now());
        });
        done.await.map_err(Problem::internal)
    }
}
