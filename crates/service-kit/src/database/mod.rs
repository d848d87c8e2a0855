//! The one door to the database.
//!
//! [`Database::read`] gives a closure one snapshot; [`Database::write`] gives it a transaction and runs it again when the database
//! says that another one was in the way. Nothing else opens a connection, so nothing else can block a worker, skip a
//! time-out or write outside a transaction.
//!
//! * PostgreSQL: one pool; reads are `REPEATABLE READ READ ONLY`, writes `READ COMMITTED` with row locks.
//! * SQLite: a pool of readers, and one writer behind a fair queue with `BEGIN IMMEDIATE`.

pub(crate) mod connection;
mod executor;
mod id_in;
mod in_subquery;
pub(crate) mod lock_file;
mod metrics;
pub mod migrate;
mod page_bounds;
pub(crate) mod patience;
pub mod schema;
mod session;
mod sifted;
mod state;
mod turns;
pub mod types;
mod url;

use std::{
    hash::Hash,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use common::problem::Problem;
use diesel::r2d2::Pool;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

pub use self::connection::{AnyConnection, MultiBackend};
use self::{
    connection::{Manager, StatementCount, make_folder_of},
    executor::Lane,
    lock_file::InUse,
    metrics::Waiting,
    migrate::{MigrationError, Migrations},
    session::Session,
    turns::Turns,
};
pub use self::{
    id_in::{IdIn, id_in},
    in_subquery::{InSubquery, UnionAll, in_subquery},
    metrics::QueueMetrics,
    page_bounds::PageBounds,
    sifted::{Sifted, sifted},
    state::DataVersion,
    turns::QueueKey,
    url::Url,
};
use crate::{error::Error, process::wait_for_processors};

/// Runs one expression on whichever connection is inside: for the few things the common type cannot do, and for what most
/// requests ask, as the common type makes the text of a statement anew each time.
#[macro_export]
macro_rules! with_connection {
    ($conn:expr, $inner:ident => $body:expr) => {
        match $conn {
            $crate::database::AnyConnection::Postgresql($inner) => $body,
            $crate::database::AnyConnection::Sqlite($inner) => $body,
        }
    };
}

/// The most rows of one statement, well below the bind limits of both databases.
pub const ROWS_PER_STATEMENT: usize = 1000;

/// How often a write runs at most before the caller is told 503.
const TRIES: usize = 6;

/// How many times as long as others an answer may wait that has begun: it cannot be refused any more, only broken off.
const LONGER: u32 = 10;

/// Sizes and limits of the door.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at most: all of them on PostgreSQL, the readers on SQLite (which has one writer more). Each reader has
    /// memory of its own, so that without a number SQLite has 4 and PostgreSQL 8.
    pub connections: Option<u32>,
    /// How long a request waits for a usable connection and then for a lock, both together, before it is answered 503. The
    /// rest of an answer that has begun waits ten times as long.
    pub checkout: Duration,
    /// How long the statements of one request may take before it is answered 503.
    pub work: Duration,
}

/// The door. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    readers: Arc<Line>,
    writer: Arc<Line>,
    turns: Turns,
    limits: Limits,
    statements: StatementCount,
    waits: Arc<QueueMetrics>,
    // Given up last, as fields are in this order.
    _in_use: Option<Arc<InUse>>,
}

/// Connections of one kind, and as many threads to use them on: who is on a thread need not wait for a connection.
struct Line {
    pool: Pool<Manager>,
    lane: Lane,
}

impl Line {
    fn new(name: &'static str, url: &Url, connections: u32, limits: &Limits, statements: &StatementCount) -> Self {
        let manager = Manager::new(url.clone(), limits, statements.clone());
        let pool = Pool::builder()
            .max_size(connections)
            .min_idle(Some(connections))
            .test_on_check_out(false)
            .connection_timeout(limits.checkout)
            .idle_timeout(None)
            .max_lifetime(None)
            .build_unchecked(manager);
        let most = connections as usize;
        // Who waits for another machine leaves the processors to others.
        let at_once = if url.is_here() { std::thread::available_parallelism().map_or(most, usize::from) } else { most };
        Self { pool, lane: Lane::new(name, most, at_once) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

thread_local! {
    /// Once on each thread that waits for database threads: an answer would interrupt the very thread that is at the next
    /// one, for each request.
    static GIVES_WAY: () = wait_for_processors();
}

/// What is done on a database thread. In a box, as it would be part of every future on the way to there.
type Work<T> = Box<dyn FnMut(&mut AnyConnection) -> Result<T, Error> + Send>;

impl Database {
    /// Brings the schema up to date and opens the pools. Nothing replaces a SQLite database as long as this or a clone of
    /// it lives.
    ///
    /// # Errors
    /// When the database cannot be reached or is newer, or another command has it for itself.
    pub async fn start(url: &Url, migrations: &'static Migrations, limits: Limits) -> io::Result<Self> {
        let target = url.clone();
        let done = tokio::task::spawn_blocking(move || {
            let in_use = match target.file() {
                Some(file) => {
                    make_folder_of(file)?;
                    Some(Arc::new(InUse::shared(file)?))
                }
                None => None,
            };
            // A PostgreSQL server names itself in its messages; SQLite does not say which file it means.
            let name = |error: MigrationError| match target.file() {
                Some(_) => io::Error::other(format!("{target}: {error}")),
                None => io::Error::other(error),
            };
            io::Result::Ok((in_use, migrate::run(&target, migrations).map_err(name)?))
        });
        let (in_use, applied) = done.await.map_err(io::Error::other)??;
        for version in applied {
            log::info!("applied the schema version {version} to {url}");
        }
        Ok(Self { _in_use: in_use, ..Self::open(url, limits) })
    }

    /// Opens the pools. Connections are made in the background; an unreachable database shows at the first use.
    #[must_use]
    pub fn open(url: &Url, limits: Limits) -> Self {
        let statements = StatementCount::default();
        let connections = limits.connections.unwrap_or(if url.is_postgres() { 8 } else { 4 });
        let readers = Arc::new(Line::new("database", url, connections, &limits, &statements));
        let writer = if url.is_postgres() {
            readers.clone()
        } else {
            Arc::new(Line::new("database-writer", url, 1, &limits, &statements))
        };
        let (turns, waits) = (Turns::new(), Arc::default());
        Self { readers, writer, turns, limits, statements, waits, _in_use: None }
    }

    /// Runs `work` on one snapshot of the database, which is not older than the call. Others that waited with it may be
    /// given the same.
    ///
    /// # Errors
    /// What `work` fails with, or [`Error::Unavailable`] when no connection can be had in time.
    pub fn read<T, F>(&self, work: F) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, Error> + Send + 'static,
    {
        self.run((None, self.limits.checkout), &self.readers, Access::Read, Box::new(work))
    }

    /// Like [`read`](Self::read), for the rest of an answer of which the client has the beginning. It has its place in the
    /// queue like any other, but waits ten times as long.
    ///
    /// # Errors
    /// As there.
    pub fn read_on<T, F>(&self, work: F) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, Error> + Send + 'static,
    {
        self.run((None, self.limits.checkout * LONGER), &self.readers, Access::Read, Box::new(work))
    }

    /// Runs `work` in a transaction, which is committed when it succeeds and rolled back when it fails. `work` runs
    /// again when the database reports a serialization failure or a deadlock, or when it returns [`Error::Stale`], so
    /// it must have no effect but through the connection.
    ///
    /// # Errors
    /// What `work` fails with, or [`Error::Unavailable`] when no connection can be had in time. When the limit for the
    /// work itself is passed, the transaction may still commit.
    pub fn write<T, F>(&self, work: F) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, Error> + Send + 'static,
    {
        self.write_in_turn(None, work)
    }

    /// The queue of those who want to change this thing.
    #[must_use]
    pub fn turn(&self, thing: &impl Hash) -> QueueKey {
        self.turns.of(thing)
    }

    /// Like [`write`](Self::write), but first waits until nobody else with the same turn is at it.
    ///
    /// # Errors
    /// As there.
    pub fn write_in_turn<T, F>(&self, turn: Option<QueueKey>, work: F) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, Error> + Send + 'static,
    {
        self.run((turn, self.limits.checkout), &self.writer, Access::Write, Box::new(work))
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> bool {
        self.read(|conn| Ok(diesel::RunQueryDsl::execute(diesel::sql_query("SELECT 1"), conn).map(|_| ())?))
            .await
            .is_ok()
    }

    /// SQL statements sent since the start, transaction control included.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.statements.get()
    }

    /// Connections in use and in all, readers and writer together.
    #[must_use]
    pub fn connections(&self) -> (u32, u32) {
        self.lines().fold((0, 0), |(in_use, all), line| {
            let state = line.pool.state();
            (in_use + state.connections - state.idle_connections, all + line.pool.max_size())
        })
    }

    /// How long work has waited for a connection.
    #[must_use]
    pub fn waits(&self) -> &QueueMetrics {
        &self.waits
    }

    fn lines(&self) -> impl Iterator<Item = &Line> {
        let writer = (!Arc::ptr_eq(&self.readers, &self.writer)).then_some(&*self.writer);
        std::iter::once(&*self.readers).chain(writer)
    }

    async fn run<T: Send + 'static>(
        &self,
        (turn, patience): (Option<QueueKey>, Duration),
        line: &Line,
        access: Access,
        mut work: Work<T>,
    ) -> Result<T, Error> {
        GIVES_WAY.with(|()| ());
        let waiting = self.waits.begin();
        let begun = waiting.begun();
        let deadline = begun + patience;
        let mut until = deadline.min(begun + executor::LONG);
        let turn = match turn {
            Some(turn) => Some(turn.come(deadline).await?),
            None => None,
        };
        let (started, mut start) = oneshot::channel();
        let (answer, mut answered) = oneshot::channel();
        let pool = line.pool.clone();
        let job = move |session: &mut Session, others_wait: bool| {
            let done = catch_unwind(AssertUnwindSafe(|| {
                run((session, others_wait), &pool, access, deadline, (waiting, started), &mut work)
            }));
            // Until the connection is back, also when the caller has given up. Unless others wait, nothing here holds the
            // database any more when the caller knows.
            drop((turn, pool));
            let done = done.unwrap_or_else(|_| Err(Problem::internal("the work panicked").into()));
            // The work goes back to the thread that made it: where one thread gives memory back that another one took,
            // they wait for each other. A caller who has given up needs no answer.
            let _ = answer.send((done, work));
        };
        line.lane
            .submit(access == Access::Write, job)
            .map_err(|error| Error::Unavailable(format!("no thread for the database: {error}")))?;
        // A server that accepts connections but never answers keeps the thread; the caller is not kept. It looks for
        // the start only when it has waited, so that a request wakes its worker once and not twice.
        let mut has_started = false;
        loop {
            if let Ok(answer) = timeout_at(until, &mut answered).await {
                let ended = |_| Error::Unavailable("the database threads have ended".to_owned());
                return answer.map_err(ended)?.0;
            }
            if has_started {
                return Err(Error::Unavailable("the database took too long".to_owned()));
            }
            if until == deadline {
                // From here on the work cannot start any more.
                start.close();
            }
            until = match start.try_recv() {
                Ok(at) => {
                    has_started = true;
                    at + self.limits.work
                }
                Err(_) if until == deadline => {
                    return Err(Error::Unavailable("no database connection in time".to_owned()));
                }
                // In the queue, or about to say why not. Who waits long asks ever more seldom.
                Err(_) => {
                    line.lane.hurry();
                    deadline.min(until + (until - begun))
                }
            };
        }
    }
}

/// Runs `work` on a database thread, in a transaction on a connection that works. Says when it starts, unless it is too
/// late for that. When others wait, what was only read remains open for them.
fn run<T>(
    (session, others_wait): (&mut Session, bool),
    pool: &Pool<Manager>,
    access: Access,
    deadline: Instant,
    (waiting, started): (Waiting, oneshot::Sender<Instant>),
    work: &mut Work<T>,
) -> Result<T, Error> {
    let gone = || Error::Unavailable("the caller has given up".to_owned());
    if started.is_closed() {
        return Err(gone());
    }
    let (mut conn, since) = session.begin(pool, access, waiting.begun(), deadline)?;
    if started.send(Instant::now()).is_err() {
        session::roll_back(&mut conn);
        return Err(gone());
    }
    waiting.succeed();
    let mut tries = 1;
    loop {
        let done = match work(&mut conn) {
            Ok(done) if others_wait && access == Access::Read => {
                session.keep(conn, since);
                return Ok(done);
            }
            Ok(done) => session::commit(&mut conn).map(|()| done).map_err(Error::from),
            Err(error) => {
                session::roll_back(&mut conn);
                Err(error)
            }
        };
        match done {
            Err(error)
                if access == Access::Write
                    && error.is_worth_another_try()
                    && tries < TRIES
                    && Instant::now() < deadline =>
            {
                session::begin(&mut conn, access, deadline)?;
                tries += 1;
            }
            done => return done,
        }
    }
}
