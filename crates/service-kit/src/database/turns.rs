//! Queues before the door, so that those who all want the same do not take the door from everybody else.

use std::{
    hash::{BuildHasher, Hash, RandomState},
    sync::Arc,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use crate::error::Error;

/// So many things can be wanted without one's queue being another's as well. One that is shared costs time and no more:
/// what must not happen at once is for the database's locks to prevent.
const QUEUES: usize = 1024;

/// One queue for each thing that many may want to change at once: only who is first in it goes to the door. Whoever
/// wants something else then waits there for one of them and not for all.
#[derive(Clone)]
pub(super) struct Turns {
    queues: Arc<[Arc<Semaphore>]>,
    hasher: RandomState,
}

impl Turns {
    pub fn new() -> Self {
        Self { queues: (0..QUEUES).map(|_| Arc::new(Semaphore::new(1))).collect(), hasher: RandomState::new() }
    }

    /// The queue of a thing.
    pub fn of(&self, thing: &impl Hash) -> QueueKey {
        let hash = usize::try_from(self.hasher.hash_one(thing) % QUEUES as u64).unwrap_or_default();
        QueueKey(self.queues[hash].clone())
    }
}

/// A queue to wait in before the door.
#[derive(Clone)]
pub struct QueueKey(Arc<Semaphore>);

impl QueueKey {
    /// Waits for it; others wait as long as the permit lives.
    pub(super) async fn come(self, deadline: Instant) -> Result<OwnedSemaphorePermit, Error> {
        timeout_at(deadline, self.0.acquire_owned())
            .await
            .map_err(|_| Error::Unavailable("too many want to change the same".to_owned()))?
            .map_err(|error| Error::Unavailable(error.to_string()))
    }
}
