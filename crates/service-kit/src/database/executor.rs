//! The threads that talk to the database, and the queue before them.
#![expect(
    clippy::disallowed_types,
    reason = "a worker holds it for a few instructions, as it does that of any channel"
)]

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use super::session::Session;

/// While no job has begun for this long, those that work are at something long.
pub(super) const LONG: Duration = Duration::from_millis(20);

/// Is given what its thread has kept, and whether others wait.
type Run = Box<dyn FnOnce(&mut Session, bool) + Send>;

struct Job {
    run: Run,
    /// Whether it rather waits, for locks and for the disk of a server.
    waits: bool,
}

/// Threads that take jobs from one queue, the longest waiting first. A thread that ends a job takes the next one, and
/// one that has nothing to do sleeps until it is needed; none is started before that. Of those that sleep, the last to
/// have worked is woken, as the processor still has most of what it needs.
///
/// Where the work is done on this machine, as by SQLite, more threads than processors make nothing faster: they only
/// take turns, each with memory of its own. So no more are woken than are to work `at_once`, unless those are at
/// something [`LONG`] when somebody who has waited asks for one more ([`Lane::hurry`]). It rests again as soon as the
/// others get on. A thread at a job that waits does not count.
pub(super) struct Lane(Arc<Shared>);

struct Shared {
    name: &'static str,
    most: usize,
    at_once: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    /// Threads at a job that does not wait, or about to look for one.
    working: usize,
    /// Threads that sleep, the last to have worked last. Who wakes one takes it out.
    idle: Vec<Thread>,
    /// When the last job began; none has before the first.
    last_begun: Option<Instant>,
    has_ended: bool,
}

impl State {
    fn gets_on(&self) -> bool {
        self.last_begun.is_some_and(|at| at.elapsed() < LONG)
    }
}

impl Lane {
    /// A lane with `most` threads, of which `at_once` work unless those are held up.
    pub fn new(name: &'static str, most: usize, at_once: usize) -> Self {
        let state = Mutex::new(State::default());
        Self(Arc::new(Shared { name, most, at_once: at_once.clamp(1, most.max(1)), state }))
    }

    /// Puts a job at the end of the queue, and says whether it rather waits than works.
    ///
    /// # Errors
    /// When there is no thread, and none can be started.
    pub fn submit(&self, waits: bool, run: impl FnOnce(&mut Session, bool) + Send + 'static) -> io::Result<()> {
        let mut state = self.0.lock();
        state.jobs.push_back(Job { run: Box::new(run), waits });
        if state.working < self.0.at_once { self.0.one_more(state) } else { Ok(()) }
    }

    /// Sets one more thread to work if there is a job for it, and those that work do not get on.
    pub fn hurry(&self) {
        let state = self.0.lock();
        if !state.jobs.is_empty()
            && !state.gets_on()
            && let Err(error) = self.0.one_more(state)
        {
            no_more(&error);
        }
    }

    /// Jobs that no thread has begun.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.0.lock().jobs.len()
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_ended = true;
        state.idle.iter().for_each(Thread::unpark);
    }
}

fn no_more(error: &io::Error) {
    log::warn!("no thread more for the database: {error}");
}

impl Shared {
    /// Nothing that can panic is done under this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn one_more(self: &Arc<Self>, mut state: MutexGuard<'_, State>) -> io::Result<()> {
        if let Some(thread) = state.idle.pop() {
            state.working += 1;
            drop(state);
            thread.unpark();
        } else if state.threads < self.most {
            let shared = self.clone();
            if let Err(error) = thread::Builder::new().name(self.name.to_owned()).spawn(move || shared.work()) {
                // Those that are there will come to the job.
                return if state.threads > 0 { Ok(()) } else { Err(error) };
            }
            state.threads += 1;
            state.working += 1;
        }
        Ok(())
    }

    /// The life of a thread.
    fn work(self: &Arc<Self>) {
        let (me, mut session) = (thread::current(), Session::default());
        let mut state = self.lock();
        loop {
            let is_one_too_many = state.working > self.at_once && state.gets_on();
            if !is_one_too_many && let Some(job) = state.jobs.pop_front() {
                state.last_begun = Some(Instant::now());
                let others_wait = !state.jobs.is_empty();
                state.working -= usize::from(job.waits);
                if job.waits && others_wait {
                    // Somebody goes on in its place.
                    self.one_more(state).unwrap_or_else(|error| no_more(&error));
                } else {
                    drop(state);
                }
                (job.run)(&mut session, others_wait);
                state = self.lock();
                state.working += usize::from(job.waits);
                continue;
            }
            if session.is_open() {
                drop(state);
                session.end();
                state = self.lock();
                continue;
            }
            state.working -= 1;
            state.idle.push(me.clone());
            while state.idle.iter().any(|thread| thread.id() == me.id()) {
                if state.has_ended {
                    return;
                }
                drop(state);
                thread::park();
                state = self.lock();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Receiver, Sender, channel},
        time::Duration,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// A job that says that it has begun, and ends when it is told to.
    fn held(lane: &Lane, begun: &Sender<u32>, number: u32) -> Sender<()> {
        held_up(lane, false, begun, number)
    }

    fn held_up(lane: &Lane, waits: bool, begun: &Sender<u32>, number: u32) -> Sender<()> {
        let (end, ended) = channel();
        let begun = begun.clone();
        lane.submit(waits, move |_, _| {
            begun.send(number).unwrap();
            ended.recv_timeout(PATIENCE).unwrap();
        })
        .unwrap();
        end
    }

    fn next(begun: &Receiver<u32>) -> u32 {
        begun.recv_timeout(PATIENCE).unwrap()
    }

    /// Asks for one more thread until one comes.
    fn hurried(lane: &Lane, begun: &Receiver<u32>) -> u32 {
        let since = Instant::now();
        loop {
            lane.hurry();
            match begun.recv_timeout(Duration::from_millis(1)) {
                Ok(number) => return number,
                Err(_) => assert!(since.elapsed() < PATIENCE),
            }
        }
    }

    #[test]
    fn only_so_many_work_at_once_unless_those_are_at_something_long() {
        let lane = Lane::new("test", 3, 1);
        let (begun, seen) = channel();
        let since = Instant::now();
        let first = held(&lane, &begun, 1);
        assert_eq!(next(&seen), 1);
        let mut ends: VecDeque<_> = (2..=5).map(|number| held(&lane, &begun, number)).collect();
        assert_eq!(lane.waiting(), 4);
        assert_eq!(hurried(&lane, &seen), 2);
        assert_eq!(hurried(&lane, &seen), 3);
        assert!(since.elapsed() > LONG * 2);
        // There are no more threads than that.
        lane.hurry();
        assert_eq!(lane.waiting(), 2);
        first.send(()).unwrap();
        assert_eq!(hurried(&lane, &seen), 4);
        // Who waits is not forgotten when a thread goes to rest.
        for end in ends.drain(..3) {
            end.send(()).unwrap();
        }
        assert_eq!(next(&seen), 5);
        ends[0].send(()).unwrap();
    }

    #[test]
    fn who_waits_leaves_the_place_to_others() {
        let lane = Lane::new("test", 4, 1);
        let (begun, seen) = channel();
        let first = held(&lane, &begun, 1);
        assert_eq!(next(&seen), 1);
        let waits = [held_up(&lane, true, &begun, 2), held_up(&lane, true, &begun, 3)];
        let works = [held(&lane, &begun, 4), held(&lane, &begun, 5)];
        assert_eq!(lane.waiting(), 4);
        first.send(()).unwrap();
        let mut working = [next(&seen), next(&seen), next(&seen)];
        working.sort_unstable();
        assert_eq!((working, lane.waiting()), ([2, 3, 4], 1));
        works[0].send(()).unwrap();
        assert_eq!(next(&seen), 5);
        // Nobody waits that one of those comes back.
        let last = held(&lane, &begun, 6);
        works[1].send(()).unwrap();
        assert_eq!(next(&seen), 6);
        for end in waits.into_iter().chain([last]) {
            end.send(()).unwrap();
        }
    }

    #[test]
    fn every_job_is_done_however_many_threads_come_and_go() {
        let lane = Lane::new("test", 4, 2);
        let (done, seen) = channel();
        for number in 0..2000 {
            let done = done.clone();
            lane.submit(false, move |_, _| done.send(number).unwrap()).unwrap();
            lane.hurry();
        }
        drop(done);
        assert_eq!(seen.iter().count(), 2000);
        assert_eq!(lane.waiting(), 0);
    }

    #[test]
    fn a_thread_that_slept_is_woken_again() {
        let lane = Lane::new("test", 2, 2);
        let (begun, seen) = channel();
        for number in 0..1000 {
            let begun = begun.clone();
            lane.submit(false, move |_, _| begun.send(number).unwrap()).unwrap();
            assert_eq!(next(&seen), number);
        }
        assert_eq!(lane.waiting(), 0);
    }

    #[test]
    fn the_threads_end_with_the_lane() {
        let lane = Lane::new("test", 2, 2);
        let (begun, seen) = channel();
        let ends = [held(&lane, &begun, 1), held(&lane, &begun, 2)];
        assert_eq!(next(&seen) + next(&seen), 3);
        let shared = Arc::downgrade(&lane.0);
        drop(lane);
        for end in ends {
            end.send(()).unwrap();
        }
        let begun = std::time::Instant::now();
        while shared.strong_count() > 0 {
            assert!(begun.elapsed() < PATIENCE);
            thread::yield_now();
        }
    }
}
