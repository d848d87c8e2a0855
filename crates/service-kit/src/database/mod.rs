//! The database of a service: SQLite or PostgreSQL, by the scheme of its [`Url`].
//!
//! [`Database::read`] runs a closure on one snapshot, [`Database::write`] runs it in a transaction and again when
//! another transaction was in the way. Both run on the threads of an [`executor`], each with a connection of its own,
//! so that no worker blocks.
//!
//! * PostgreSQL: one executor; reads are `REPEATABLE READ READ ONLY`, writes `READ COMMITTED` with row locks.
//! * SQLite: one executor for reads, and one with a single connection for writes, with `BEGIN IMMEDIATE`.
//!
//! Migrations and the maintenance commands open connections of their own by [`Url::connect`].

mod any_connection;
pub(crate) mod connection;
mod credential_owners;
mod data_version;
pub(crate) mod error_class;
mod executor;
mod home;
mod job;
pub(crate) mod lock_file;
mod metrics;
pub mod migrate;
mod open_files;
mod outage;
mod page_bounds;
pub(crate) mod retry;
pub mod schema;
mod transaction;
pub mod types;
mod url;

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use common::problem::Problem;
use log::Level;
use prometheus_client::metrics::counter::Counter;
use tokio::{sync::oneshot, time::timeout_at};

pub use self::home::require_home;
pub use self::{
    any_connection::{AnyConnection, MultiBackend},
    credential_owners::CredentialOwners,
    data_version::DataVersion,
    job::{JobOwner, Limits, QueueKey},
    metrics::QueueMetrics,
    page_bounds::PageBounds,
    url::Url,
};
use self::{
    connection::{Manager, make_folder_of},
    executor::Executor,
    job::Ticket,
    lock_file::DatabaseLock,
    migrate::{MigrationError, Migrations},
    open_files::OpenFiles,
    outage::Outage,
    transaction::{Shortcut, Work},
};
use crate::error::Error;

/// Runs an expression on the connection inside an [`AnyConnection`]: for what the common type cannot do, and for the
/// statements of most requests, as the common type renders their text anew each time.
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

/// Once a streamed response has started, later pages may wait this many times the usual checkout time-out: they cannot
/// be refused any more, only broken off.
const STREAMED_CHECKOUT_FACTOR: u32 = 10;

/// How long the work of a start may wait for a connection or a lock, and how long it may take.
const START_CHECKOUT: Duration = Duration::from_mins(1);
const START_WORK: Duration = Duration::from_hours(1);

/// How long [`Database::close`] waits for the threads of an executor.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a caller that waits looks for overdue threads.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A handle to the database. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    reader: Arc<Pool>,
    writer: Arc<Pool>,
    limits: Limits,
    statements: Counter,
    queue_metrics: Arc<QueueMetrics>,
    // Dropped last, as fields are dropped in this order.
    lock: Option<Arc<DatabaseLock>>,
}

/// An executor and what makes its connections.
struct Pool {
    executor: Executor,
    manager: Arc<Manager>,
}

impl Database {
    /// Brings the schema up to date and prepares the executors. Nothing replaces the file of a SQLite database as long
    /// as this or a clone of it lives.
    ///
    /// # Errors
    /// When the database cannot be reached or is newer, or a maintenance command has exclusive use of it.
    pub async fn start(url: &Url, migrations: &'static Migrations, limits: Limits) -> io::Result<Self> {
        let target = url.clone();
        let started = tokio::task::spawn_blocking(move || {
            let lock = match target.file() {
                Some(file) => {
                    make_folder_of(file)?;
                    Some(Arc::new(DatabaseLock::shared(file)?))
                }
                None => None,
            };
            // A PostgreSQL server names itself in its messages; SQLite does not say which file it means.
            let name = |error: MigrationError| match target.file() {
                Some(_) => io::Error::other(format!("{target}: {error}")),
                None => io::Error::other(error),
            };
            io::Result::Ok((lock, migrate::run(&target, migrations).map_err(name)?))
        });
        let (lock, applied) = started.await.map_err(io::Error::other)??;
        if let Some(last) = applied.last() {
            log::info!("applied {} migrations to {url}, up to schema version {last}", applied.len());
        }
        Ok(Self { lock, ..Self::open(url, limits) })
    }

    /// Prepares the executors. A connection is made for the first job of its thread, so an unreachable database shows
    /// at the first use.
    pub fn open(url: &Url, limits: Limits) -> Self {
        let statements = Counter::default();
        let outage = Arc::<Outage>::default();
        let files = Arc::<OnceLock<OpenFiles>>::default();
        let pool = |name, size| {
            let manager = Manager {
                url: url.clone(),
                statement_timeout: limits.work,
                statements: statements.clone(),
                outage: outage.clone(),
                files: files.clone(),
            };
            Arc::new(Pool { executor: Executor::new(name, size), manager: Arc::new(manager) })
        };
        let default_size = if url.is_postgres() { 8 } else { 4 };
        let reader = pool("database", limits.connections.unwrap_or(default_size));
        let writer = if url.is_postgres() { reader.clone() } else { pool("database-writer", 1) };
        Self { reader, writer, limits, statements, queue_metrics: Arc::default(), lock: None }
    }

    /// Another handle to the database, with one connection, for the work of a start. No request waits for that work, so it
    /// does not have the time limits of a request.
    pub fn for_start(&self) -> Self {
        let limits = Limits { connections: Some(1), checkout: START_CHECKOUT, work: START_WORK };
        Self { lock: self.lock.clone(), ..Self::open(&self.reader.manager.url, limits) }
    }

    /// Runs `work` on one snapshot of the database, which is not older than the call.
    pub fn read<T, F>(&self, owner: JobOwner, work: F) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, Error> + Send + 'static,
    {
        let ticket = Ticket::new(owner, None, false, self.limits.checkout, &self.limits);
        self.run(&self.reader, ticket, None, Box::new(work))
    }

    /// Like [`read`](Self::read), but runs `shortcut` first, outside of the transaction. Each of its statements has a
    /// snapshot of its own. `work` runs only when it returns `None`.
    pub fn read_with_shortcut<T, S, F>(
        &self,
        owner: JobOwner,
        shortcut: S,
        work: F,
    ) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        S: FnOnce(&mut AnyConnection) -> Option<Result<T, Error>> + Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, Error> + Send + 'static,
    {
        let ticket = Ticket::new(owner, None, false, self.limits.checkout, &self.limits);
        self.run(&self.reader, ticket, Some(Box::new(|conn, _| shortcut(conn))), Box::new(work))
    }

    /// Like [`read`](Self::read), but without a transaction, for work that needs no common snapshot of its statements.
    /// After a failure of the database, `work` runs again in a transaction, on a connection that works.
    pub fn read_without_transaction<T, F>(&self, owner: JobOwner, work: F) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, Error> + Send + 'static,
    {
        let ticket = Ticket::new(owner, None, false, self.limits.checkout, &self.limits);
        self.run(&self.reader, ticket, Some(Box::new(without_transaction)), Box::new(work))
    }

    /// Like [`read`](Self::read), for a later page of a streamed response. It waits up to ten times as long in the
    /// queue. A page that takes one statement needs no transaction.
    pub fn read_next_page<T, F>(
        &self,
        owner: JobOwner,
        is_one_statement: bool,
        work: F,
    ) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, Error> + Send + 'static,
    {
        let checkout = self.limits.checkout * STREAMED_CHECKOUT_FACTOR;
        let ticket = Ticket::new(owner, None, false, checkout, &self.limits);
        let shortcut = is_one_statement.then(|| Box::new(without_transaction) as Shortcut<T>);
        self.run(&self.reader, ticket, shortcut, Box::new(work))
    }

    /// Runs `work` in a transaction, which is committed when it succeeds and rolled back when it fails. `work` runs
    /// again when the database reports a serialization failure or a deadlock, or when it returns [`Error::Stale`], so
    /// it must have no effect but through the connection.
    ///
    /// # Errors
    /// What `work` fails with, or [`Error::Unavailable`] when there is no connection in time. When the time limit of
    /// the transaction is over, it may still commit.
    pub fn write<T, F>(&self, owner: JobOwner, work: F) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, Error> + Send + 'static,
    {
        self.write_keyed(owner, None, work)
    }

    /// Like [`write`](Self::write), but waits in the queue until no other writer with the same key runs.
    pub fn write_keyed<T, F>(
        &self,
        owner: JobOwner,
        key: Option<QueueKey>,
        work: F,
    ) -> impl Future<Output = Result<T, Error>>
    where
        T: Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, Error> + Send + 'static,
    {
        let ticket = Ticket::new(owner, key, true, self.limits.checkout, &self.limits);
        self.run(&self.writer, ticket, None, Box::new(work))
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> bool {
        self.read(JobOwner::Internal, |conn| Ok(diesel::RunQueryDsl::execute(diesel::sql_query("SELECT 1"), conn)?))
            .await
            .is_ok()
    }

    /// Whether no connection can be made. The log then has records of the outage itself.
    pub fn is_out_of_reach(&self) -> bool {
        self.reader.manager.outage.is_ongoing()
    }

    /// Logs that background work failed, unless that is part of an outage, which has records of its own.
    pub fn log_failure(&self, what: &str, error: Error) {
        let level = if self.is_out_of_reach() { Level::Debug } else { Level::Warn };
        log::log!(level, "{what}: {}", error.describe());
    }

    /// Ends the database threads after the jobs that are queued, and waits until their connections are closed, at most a
    /// second for each executor. Closing the last one completes the file of a SQLite database and deletes the
    /// write-ahead log beside it.
    pub async fn close(&self) {
        let (reader, writer) = (self.reader.clone(), self.writer.clone());
        let close = move || {
            reader.executor.close(CLOSE_TIMEOUT);
            writer.executor.close(CLOSE_TIMEOUT);
            writer.manager.close_files();
        };
        if let Err(error) = tokio::task::spawn_blocking(close).await {
            log::warn!("cannot close the database: {error}");
        }
    }

    /// SQL statements sent since the start, transaction control included.
    pub fn statements(&self) -> &Counter {
        &self.statements
    }

    /// The number of connections in use and the most there may be, of readers and writer together, without abandoned
    /// ones.
    pub fn connections(&self) -> (u32, u32) {
        let (mut in_use, mut size) = self.reader.executor.threads();
        if !Arc::ptr_eq(&self.reader, &self.writer) {
            let writer = self.writer.executor.threads();
            (in_use, size) = (in_use + writer.0, size + writer.1);
        }
        let number = |threads| u32::try_from(threads).unwrap_or(u32::MAX);
        (number(in_use), number(size))
    }

    /// How long jobs have waited for a connection.
    pub fn queue_metrics(&self) -> &QueueMetrics {
        &self.queue_metrics
    }

    async fn run<T: Send + 'static>(
        &self,
        pool: &Pool,
        ticket: Ticket,
        shortcut: Option<Shortcut<T>>,
        mut work: Work<T>,
    ) -> Result<T, Error> {
        let (ticket, timer, manager) = (Arc::new(ticket), self.queue_metrics.begin(), pool.manager.clone());
        let (sender, mut answer) = oneshot::channel();
        let job_ticket = ticket.clone();
        let job = move |thread_conn: &mut Option<AnyConnection>| {
            let result = if sender.is_closed() || job_ticket.is_cancelled() {
                Err(Error::Unavailable("the caller has given up".to_owned()))
            } else {
                let run = || transaction::run(thread_conn, &manager, &job_ticket, timer, shortcut, &mut work);
                catch_unwind(AssertUnwindSafe(run))
                    .unwrap_or_else(|_| Err(Problem::internal("the work panicked").into()))
            };
            // A caller that has given up needs no answer.
            Box::new(move || drop(sender.send(result))) as Box<dyn FnOnce() + Send>
        };
        pool.executor.submit(ticket.clone(), Box::new(job))?;
        let _queued = Queued { executor: &pool.executor, ticket: &ticket };
        loop {
            let check = Instant::now() + CHECK_INTERVAL;
            if let Ok(answer) = timeout_at(ticket.deadline().min(check).into(), &mut answer).await {
                return answer.map_err(|_| Error::Unavailable("the database threads have ended".to_owned()))?;
            }
            pool.executor.replace_overdue();
            if Instant::now() >= ticket.deadline() {
                match ticket.cancel() {
                    None => return Err(Error::Unavailable("no database connection in time".to_owned())),
                    Some(began_at) if began_at.elapsed() >= self.limits.work => {
                        return Err(Error::Unavailable("the database took too long".to_owned()));
                    }
                    // It began just before the deadline.
                    Some(_) => {}
                }
            }
        }
    }
}

/// Runs work once, and not in a transaction. `None` after a failure of the database.
fn without_transaction<T>(conn: &mut AnyConnection, work: &mut Work<T>) -> Option<Result<T, Error>> {
    match work(conn) {
        Err(Error::Database(_)) => None,
        result => Some(result),
    }
}

/// The caller of a job. When it has its answer, or is dropped without one, the job leaves the queue.
struct Queued<'a> {
    executor: &'a Executor,
    ticket: &'a Arc<Ticket>,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if !self.ticket.has_begun() {
            self.executor.withdraw(self.ticket);
        }
    }
}
