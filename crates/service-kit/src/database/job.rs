//! The properties of a job: its owner, its queue key and its time limits.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    net::IpAddr,
    sync::OnceLock,
    time::{Duration, Instant},
};

use uuid::Uuid;

/// The party that a job is done for. No owner holds more than half of the database threads, and the queue serves owners
/// round-robin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobOwner {
    /// The service itself: probes, background work and commands.
    Internal,
    /// A client without a credential.
    Address(IpAddr),
    /// A credential whose user is not known, by [its hash](Self::of_credential).
    Credential(u64),
    /// A signed-in user, or the owner of a calendar feed.
    User(Uuid),
}

impl JobOwner {
    /// The owner of the jobs of a credential whose user is not known.
    pub fn of_credential(credential: &str) -> Self {
        Self::Credential(hash(credential))
    }
}

fn hash(thing: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}

/// A thing that several owners may want to change at once. Writers with the same key run one after another, so that
/// they do not hold several connections while they wait for the same database lock. The key only orders writers: the
/// locks of the database keep the data correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueueKey(u64);

impl QueueKey {
    /// The key of `thing`. Two things with the same hash share a key, which costs time only.
    pub fn new(thing: &impl Hash) -> Self {
        Self(hash(thing))
    }
}

/// Sizes and time limits.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections and threads: all of them on PostgreSQL (8 without a number), the readers on SQLite, which has one
    /// writer more (4, because each reader has a page cache of its own).
    pub connections: Option<u32>,
    /// How long a request waits for a connection and then for a lock, both together, before it is answered 503.
    pub checkout: Duration,
    /// How long the transaction of one request may take before it is answered 503.
    pub work: Duration,
}

/// What has become of a job in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Its transaction began then.
    Began(Instant),
    /// Its caller gave up before.
    Cancelled,
}

/// The properties of a job in the queue.
pub(super) struct Ticket {
    pub owner: JobOwner,
    pub key: Option<QueueKey>,
    pub is_write: bool,
    /// When the caller gives up unless the transaction has begun.
    pub checkout_deadline: Instant,
    limits: Limits,
    /// Set once: the first of thread and caller decides.
    outcome: OnceLock<Outcome>,
}

impl Ticket {
    /// A job that waits at most for `checkout` until its transaction begins.
    pub fn new(owner: JobOwner, key: Option<QueueKey>, is_write: bool, checkout: Duration, limits: &Limits) -> Self {
        let checkout_deadline = Instant::now() + checkout;
        Self { owner, key, is_write, checkout_deadline, limits: limits.clone(), outcome: OnceLock::new() }
    }

    /// Records that the work has begun, at the first call. `false` when the caller has given up before.
    pub fn begin(&self) -> bool {
        *self.outcome.get_or_init(|| Outcome::Began(Instant::now())) != Outcome::Cancelled
    }

    /// Prevents the transaction from beginning. If it has begun already, returns when.
    pub fn cancel(&self) -> Option<Instant> {
        self.outcome.get_or_init(|| Outcome::Cancelled);
        self.began_at()
    }

    pub fn is_cancelled(&self) -> bool {
        self.outcome.get() == Some(&Outcome::Cancelled)
    }

    fn began_at(&self) -> Option<Instant> {
        match self.outcome.get()? {
            Outcome::Began(at) => Some(*at),
            Outcome::Cancelled => None,
        }
    }

    pub fn has_begun(&self) -> bool {
        self.began_at().is_some()
    }

    /// When the caller gives up, as of now.
    pub fn deadline(&self) -> Instant {
        self.began_at().map_or(self.checkout_deadline, |began_at| began_at + self.limits.work)
    }

    /// When a job that a thread started at `started` must have ended. Until its transaction has begun, that is the
    /// usual checkout time-out, even for a job that may wait longer in the queue.
    pub fn latest_end(&self, started: Instant) -> Instant {
        let deadline = self.deadline();
        if self.has_begun() { deadline } else { deadline.min(started + self.limits.checkout) }
    }
}
