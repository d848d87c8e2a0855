//! A bounded, fair queue, and the threads that run its jobs, each on a database connection of its own.
//!
//! * The queue serves owners round-robin. One owner runs at most half of the threads; writers run at most three quarters
//!   of all threads and of their owner's; of the writers with one [`QueueKey`], one runs at a time.
//! * A job whose caller gives up leaves the queue at once, so that the queue is no longer than the requests under way.
//! * A call of libpq cannot be cancelled. So a thread whose job is overdue is *abandoned*: another thread with another
//!   connection takes its place, and it ends, with its connection, when the call returns. At most as many threads are
//!   abandoned at a time as the executor has; beyond that, jobs are refused at once.
//!
//! Each thread has a connection of its own from the r2d2 manager. An r2d2 pool would count the connection of an
//! abandoned thread until it comes back, and would have no other one to give.
#![expect(
    clippy::disallowed_types,
    reason = "the lock is held for a few instructions, and never during a database call"
)]

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::{
    any_connection::AnyConnection,
    job::{JobOwner, QueueKey, Ticket},
};
use crate::error::Error;

/// Jobs that may wait. Each is a request under way, of which a server has fewer.
const QUEUE_LENGTH: usize = 4096;

/// How long after its limit a job is overdue. The statement time-out of a server that works comes before that.
const GRACE: Duration = Duration::from_millis(500);

/// Runs on a database thread, with the thread's connection if it has one; returns what tells the caller.
pub(super) type Run = Box<dyn FnOnce(&mut Option<AnyConnection>) -> Box<dyn FnOnce() + Send> + Send>;

struct Job {
    ticket: Arc<Ticket>,
    run: Run,
}

struct Running {
    ticket: Arc<Ticket>,
    since: Instant,
}

impl Running {
    fn is_overdue(&self, now: Instant) -> bool {
        now > self.ticket.latest_end(self.since) + GRACE
    }
}

/// The threads that writers may use, of so many.
fn writers_of(threads: usize) -> usize {
    (threads * 3 / 4).max(1)
}

/// The handle. The threads end with it, after the jobs that are queued.
pub(super) struct Executor(Arc<Shared>);

struct Shared {
    name: &'static str,
    size: usize,
    state: Mutex<State>,
    available: Condvar,
}

#[derive(Default)]
struct State {
    /// The jobs that may run as far as their keys are concerned, by owner.
    queues: HashMap<JobOwner, VecDeque<Job>>,
    /// The owners of such jobs, the next one first.
    order: VecDeque<JobOwner>,
    /// For each key with a job in `queues` or `running`, the jobs that wait for it to end.
    keys: HashMap<QueueKey, VecDeque<Job>>,
    /// Jobs in `queues` and `keys`.
    queued: usize,
    running: Vec<Running>,
    threads: usize,
    idle: usize,
    /// An idle thread has been woken and has not looked for a job yet. It wakes the next one.
    is_waking: bool,
    abandoned: usize,
    is_closed: bool,
}

impl State {
    fn add(&mut self, job: Job) {
        self.queued += 1;
        if let Some(key) = job.ticket.key {
            match self.keys.entry(key) {
                Entry::Occupied(mut waiting) => return waiting.get_mut().push_back(job),
                Entry::Vacant(free) => _ = free.insert(VecDeque::new()),
            }
        }
        self.enqueue(job);
    }

    fn enqueue(&mut self, job: Job) {
        let owner = job.ticket.owner;
        let queue = self.queues.entry(owner).or_default();
        if queue.is_empty() {
            self.order.push_back(owner);
        }
        queue.push_back(job);
    }

    /// The next job that may run on one of `size` threads: the positions of its owner and of itself in their queues.
    fn find(&self, size: usize) -> Option<(usize, usize)> {
        let now = Instant::now();
        let may_write = self.running.iter().filter(|job| job.ticket.is_write).count() < writers_of(size);
        let share = (size / 2).max(1);
        self.order.iter().enumerate().find_map(|(index, owner)| {
            // A commit that hangs must not keep the reads of its owner waiting as well.
            let running = || self.running.iter().filter(|job| job.ticket.owner == *owner && !job.is_overdue(now));
            let queue = self.queues.get(owner).filter(|_| running().count() < share)?;
            let may_write = may_write && running().filter(|job| job.ticket.is_write).count() < writers_of(share);
            queue.iter().position(|job| may_write || !job.ticket.is_write).map(|position| (index, position))
        })
    }

    fn next(&mut self, size: usize) -> Option<Job> {
        let (index, position) = self.find(size)?;
        let owner = self.order.remove(index)?;
        let queue = self.queues.get_mut(&owner)?;
        let job = queue.remove(position)?;
        if queue.is_empty() {
            self.queues.remove(&owner);
        } else {
            self.order.push_back(owner);
        }
        self.queued -= 1;
        self.running.push(Running { ticket: job.ticket.clone(), since: Instant::now() });
        Some(job)
    }

    /// Removes a job from the running ones; `false` when it is not one of them.
    fn end(&mut self, ticket: &Arc<Ticket>) -> bool {
        let position = self.running.iter().position(|job| Arc::ptr_eq(&job.ticket, ticket));
        let Some(position) = position else { return false };
        self.running.swap_remove(position);
        self.release_key(ticket);
        true
    }

    /// Lets the next job run that waits for the key of a job.
    fn release_key(&mut self, ticket: &Ticket) {
        if let Some(key) = ticket.key
            && let Entry::Occupied(mut waiting) = self.keys.entry(key)
        {
            match waiting.get_mut().pop_front() {
                Some(job) => self.enqueue(job),
                None => _ = waiting.remove(),
            }
        }
    }

    /// Takes a job out of the queue, if it is still there.
    fn remove(&mut self, ticket: &Arc<Ticket>) -> Option<Job> {
        let position = |jobs: &VecDeque<Job>| jobs.iter().position(|job| Arc::ptr_eq(&job.ticket, ticket));
        let waiting = ticket.key.and_then(|key| self.keys.get_mut(&key));
        if let Some(waiting) = waiting
            && let Some(position) = position(waiting)
        {
            self.queued -= 1;
            return waiting.remove(position);
        }
        let queue = self.queues.get_mut(&ticket.owner)?;
        let job = queue.remove(position(queue)?)?;
        if queue.is_empty() {
            self.queues.remove(&ticket.owner);
            self.order.retain(|owner| *owner != ticket.owner);
        }
        self.queued -= 1;
        self.release_key(ticket);
        Some(job)
    }

    fn overdue(&self) -> impl Iterator<Item = &Arc<Ticket>> {
        let now = Instant::now();
        self.running.iter().filter(move |job| job.is_overdue(now)).map(|job| &job.ticket)
    }
}

impl Executor {
    /// An executor with `size` threads, which start when they are needed.
    pub fn new(name: &'static str, size: u32) -> Self {
        let size = usize::try_from(size).unwrap_or(usize::MAX).max(1);
        Self(Arc::new(Shared { name, size, state: Mutex::default(), available: Condvar::new() }))
    }

    /// Queues a job.
    pub fn submit(&self, ticket: Arc<Ticket>, run: Run) -> Result<(), Error> {
        let mut state = self.0.lock();
        self.0.abandon_overdue(&mut state);
        if state.overdue().count() >= self.0.size {
            return Err(Error::Unavailable("no database connection answers".to_owned()));
        }
        if state.queued >= QUEUE_LENGTH {
            return Err(Error::Unavailable("the queue for the database is full".to_owned()));
        }
        state.add(Job { ticket, run });
        self.0.wake(state);
        Ok(())
    }

    /// Removes a job whose caller has given up. One that runs already goes on.
    pub fn withdraw(&self, ticket: &Arc<Ticket>) {
        let mut state = self.0.lock();
        let job = state.remove(ticket);
        // If it had a key, another job may run now.
        self.0.wake(state);
        // After the lock is released, because it drops what the caller gave it.
        drop(job);
    }

    /// Abandons the threads whose jobs are overdue, and starts others in their place.
    pub fn replace_overdue(&self) {
        let mut state = self.0.lock();
        self.0.abandon_overdue(&mut state);
        self.0.wake(state);
    }

    /// Ends the threads after the jobs that are queued, and waits until their connections are closed.
    pub fn close(&self, timeout: Duration) {
        let mut state = self.0.lock();
        state.is_closed = true;
        self.0.available.notify_all();
        // Whether the threads have ended in time makes no difference to the caller.
        drop(self.0.available.wait_timeout_while(state, timeout, |state| state.threads > 0));
    }

    /// The number of threads that run a job, and the most that may.
    pub fn threads(&self) -> (usize, usize) {
        (self.0.lock().running.len(), self.0.size)
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.available.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn abandon_overdue(&self, state: &mut State) {
        let overdue: Vec<_> = state.overdue().take(self.size - state.abandoned).cloned().collect();
        for ticket in overdue {
            log::debug!("a database connection that does not answer is given up");
            state.end(&ticket);
            state.threads -= 1;
            state.abandoned += 1;
        }
    }

    /// Sets a thread to work if there is a job for it. That thread does the same for the next job.
    fn wake(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.is_waking || state.find(self.size).is_none() {
            return;
        }
        if state.idle > 0 {
            state.is_waking = true;
            // The thread needs the lock first.
            drop(state);
            self.available.notify_one();
        } else if state.threads < self.size {
            let shared = self.clone();
            match thread::Builder::new().name(self.name.to_owned()).spawn(move || shared.work()) {
                Ok(_) => state.threads += 1,
                Err(error) => log::warn!("cannot start a database thread: {error}"),
            }
        }
    }

    /// What a thread does: it runs jobs until it is abandoned or the executor is closed.
    fn work(self: &Arc<Self>) {
        let mut conn = None;
        while let Some(Job { ticket, run }) = self.next() {
            let answer = run(&mut conn);
            // Before the caller gets its answer, so that its next job finds the place free.
            let mut state = self.lock();
            let is_abandoned = !state.end(&ticket);
            state.abandoned -= usize::from(is_abandoned);
            drop(state);
            answer();
            if is_abandoned {
                return;
            }
        }
        drop(conn);
        self.lock().threads -= 1;
        self.available.notify_all();
    }

    fn next(self: &Arc<Self>) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.next(self.size) {
                self.wake(state);
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            state.idle += 1;
            state = self.available.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            state.is_waking = false;
        }
    }
}
