//! The one door to the database.
//!
//! [`Db::read`] gives a closure one snapshot; [`Db::write`] gives it a transaction and runs it again when the database
//! says that another one was in the way. Nothing else opens a connection, so nothing else can block a worker, skip a
//! time-out or write outside a transaction.
//!
//! * PostgreSQL: one pool; reads are `REPEATABLE READ READ ONLY`, writes `READ COMMITTED` with row locks.
//! * SQLite: a pool of readers, and one writer behind a fair queue with `BEGIN IMMEDIATE`.

mod backup;
mod check;
pub mod commands;
mod connection;
mod copy_to;
mod in_use;
pub mod migrate;
mod restore;
pub mod schema;
mod slice;
pub mod sql;
mod state;
pub mod tables;
mod waits;
mod within;

use std::{io, sync::Arc, time::Duration};

use diesel::{
    Connection,
    connection::{AnsiTransactionManager, TransactionManager},
    r2d2::Pool,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::{Instant, timeout, timeout_at},
};

pub use self::connection::{AnyConnection, MultiBackend, Url};
use self::{
    connection::{Manager, StatementCount, make_folder_of},
    in_use::InUse,
    migrate::Migrations,
    tables::TableInfo,
};
pub use self::{
    slice::Slice,
    state::State,
    waits::Waits,
    within::{UnionAll, Within, within},
};
use crate::error::Error;

/// Runs one expression on whichever connection is inside, for the few things the common type cannot do.
#[macro_export]
macro_rules! on_each {
    ($conn:expr, $inner:ident => $body:expr) => {
        match $conn {
            $crate::db::AnyConnection::Postgresql($inner) => $body,
            $crate::db::AnyConnection::Sqlite($inner) => $body,
        }
    };
}

/// How often a write runs at most before the caller is told 503.
const TRIES: usize = 6;

/// Sizes and limits of the door.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at most: all of them on PostgreSQL, the readers on SQLite (which has one writer more).
    pub connections: u32,
    /// How long a request waits for a usable connection and then for a lock, both together, before it is answered 503.
    pub checkout: Duration,
    /// How long the statements of one request may take before it is answered 503.
    pub work: Duration,
}

/// What a service keeps in its database.
#[derive(Clone, Copy)]
pub struct Contents {
    /// What makes the tables.
    pub migrations: &'static Migrations,
    /// The tables, each after those that it refers to.
    pub tables: &'static [TableInfo],
}

/// The door. Cheap to clone.
#[derive(Clone)]
pub struct Db {
    // Given up last.
    _in_use: Option<Arc<InUse>>,
    readers: Lane,
    writer: Lane,
    limits: Limits,
    statements: StatementCount,
    waits: Waits,
}

/// A pool and as many permits as it has connections. Waiting happens on the permit: fair, and never on a thread.
#[derive(Clone)]
struct Lane {
    pool: Pool<Manager>,
    permits: Arc<Semaphore>,
}

impl Lane {
    fn new(url: &Url, connections: u32, limits: &Limits, statements: &StatementCount) -> Self {
        let manager = Manager::new(url.clone(), limits, statements.clone());
        let pool = Pool::builder()
            .max_size(connections)
            .min_idle(Some(connections))
            .test_on_check_out(url.is_postgres())
            .connection_timeout(limits.checkout)
            .idle_timeout(None)
            .max_lifetime(None)
            .build_unchecked(manager);
        Self { pool, permits: Arc::new(Semaphore::new(connections as usize)) }
    }
}

#[derive(Clone, Copy)]
enum Access {
    Read,
    /// The time left to wait for a lock.
    Write(Duration),
}

/// A write that got its connection at the last moment still may wait this long for a lock, so that a busy service
/// does not refuse what it could do at once.
const LEAST_WAIT: Duration = Duration::from_millis(100);

impl Db {
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
            io::Result::Ok((in_use, migrate::run(&target, migrations).map_err(io::Error::other)?))
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
        let readers = Lane::new(url, limits.connections, &limits, &statements);
        let writer = if url.is_postgres() { readers.clone() } else { Lane::new(url, 1, &limits, &statements) };
        Self { _in_use: None, readers, writer, limits, statements, waits: Waits::default() }
    }

    /// Runs `work` on one snapshot of the database.
    ///
    /// # Errors
    /// What `work` fails with, or [`Error::Unavailable`] when no connection can be had in time.
    pub async fn read<T, F>(&self, mut work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, Error> + Send + 'static,
    {
        self.run(&self.readers, move |conn, _| transaction(conn, Access::Read, &mut work)).await
    }

    /// Runs `work` in a transaction, which is committed when it succeeds and rolled back when it fails. `work` runs
    /// again when the database reports a serialization failure or a deadlock, or when it returns [`Error::Stale`], so
    /// it must have no effect but through the connection.
    ///
    /// # Errors
    /// What `work` fails with, or [`Error::Unavailable`] when no connection can be had in time. When the limit for the
    /// work itself is passed, the transaction may still commit.
    pub async fn write<T, F>(&self, mut work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, Error> + Send + 'static,
    {
        self.run(&self.writer, move |conn, deadline| {
            let mut tries = 1;
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                match transaction(conn, Access::Write(left.max(LEAST_WAIT)), &mut work) {
                    Err(error) if error.is_worth_another_try() && tries < TRIES && !left.is_zero() => tries += 1,
                    done => return done,
                }
            }
        })
        .await
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
        let mut lanes = vec![&self.readers];
        if !Arc::ptr_eq(&self.readers.permits, &self.writer.permits) {
            lanes.push(&self.writer);
        }
        let all: u32 = lanes.iter().map(|lane| lane.pool.max_size()).sum();
        let free: usize = lanes.iter().map(|lane| lane.permits.available_permits()).sum();
        (all.saturating_sub(u32::try_from(free).unwrap_or(all)), all)
    }

    /// How long work has waited for a connection.
    #[must_use]
    pub fn waits(&self) -> &Waits {
        &self.waits
    }

    async fn run<T, F>(&self, lane: &Lane, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut AnyConnection, Instant) -> Result<T, Error> + Send + 'static,
    {
        let waiting = self.waits.begin();
        let deadline = waiting.begun() + self.limits.checkout;
        let permit = timeout_at(deadline, lane.permits.clone().acquire_owned())
            .await
            .map_err(|_| Error::Unavailable("every database connection was busy".to_owned()))?
            .map_err(|error| Error::Unavailable(error.to_string()))?;
        let (started, wait_for_start) = oneshot::channel();
        let pool = lane.pool.clone();
        let task = tokio::task::spawn_blocking(move || on_blocking_thread(&pool, permit, deadline, started, work));
        // A server that accepts connections but never answers keeps the thread; the caller is not kept.
        match timeout_at(deadline, wait_for_start).await {
            Ok(Ok(())) => waiting.succeed(),
            // The task itself says why.
            Ok(Err(_)) => drop(waiting),
            Err(_) => return Err(Error::Unavailable("no database connection in time".to_owned())),
        }
        match timeout(self.limits.work, task).await {
            Ok(Ok(result)) => result,
            Ok(Err(panicked)) => Err(common::problem::Problem::internal(panicked).into()),
            Err(_) => Err(Error::Unavailable("the database took too long".to_owned())),
        }
    }
}

fn on_blocking_thread<T>(
    pool: &Pool<Manager>,
    // Lives as long as the connection is out, also when the caller has given up.
    _permit: OwnedSemaphorePermit,
    deadline: Instant,
    started: oneshot::Sender<()>,
    work: impl FnOnce(&mut AnyConnection, Instant) -> Result<T, Error>,
) -> Result<T, Error> {
    let left = deadline.saturating_duration_since(Instant::now());
    let mut conn = pool.get_timeout(left).map_err(|error| Error::Unavailable(error.to_string()))?;
    if started.send(()).is_err() {
        return Err(Error::Unavailable("the caller has given up".to_owned()));
    }
    work(&mut conn, deadline)
}

fn transaction<T>(
    conn: &mut AnyConnection,
    access: Access,
    work: &mut impl FnMut(&mut AnyConnection) -> Result<T, Error>,
) -> Result<T, Error> {
    type Manager = <AnyConnection as Connection>::TransactionManager;
    match (&mut *conn, access) {
        (AnyConnection::Postgresql(pg), Access::Read) => {
            AnsiTransactionManager::begin_transaction_sql(pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        }
        (AnyConnection::Postgresql(pg), Access::Write(wait)) => {
            let begin = format!("BEGIN; SET LOCAL lock_timeout = {}", wait.as_millis());
            AnsiTransactionManager::begin_transaction_sql(pg, &begin)?;
        }
        (AnyConnection::Sqlite(sqlite), Access::Read) => {
            AnsiTransactionManager::begin_transaction_sql(sqlite, "BEGIN DEFERRED")?;
        }
        (AnyConnection::Sqlite(sqlite), Access::Write(wait)) => {
            let begin = format!("PRAGMA busy_timeout = {}; BEGIN IMMEDIATE", wait.as_millis());
            AnsiTransactionManager::begin_transaction_sql(sqlite, &begin)?;
        }
    }
    match work(conn) {
        Ok(done) => {
            Manager::commit_transaction(conn)?;
            Ok(done)
        }
        Err(error) => {
            // What made the work fail says more than a failed rollback, after which the pool drops the connection.
            if let Err(rollback) = Manager::rollback_transaction(conn) {
                log::debug!("rollback failed: {rollback}");
            }
            Err(error)
        }
    }
}
