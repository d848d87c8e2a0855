//! One job of the executor: its connection, its transaction and its further attempts.

use std::time::{Duration, Instant};

use diesel::{
    Connection, QueryResult,
    connection::{AnsiTransactionManager, TransactionManager},
    r2d2::ManageConnection,
};

use super::{any_connection::AnyConnection, connection::Manager, job::Ticket, metrics::QueueTimer, retry::retry_until};
use crate::error::Error;

/// The most attempts of a write before the answer is 503.
const ATTEMPTS: usize = 6;

/// A write that got its connection just before its deadline still may wait this long for a lock, so that a busy service
/// does not refuse what it could do at once.
const MIN_LOCK_WAIT: Duration = Duration::from_millis(100);

type Transactions = <AnyConnection as Connection>::TransactionManager;

/// The work of a transaction. Boxed, because it would otherwise be part of every future that waits for it.
pub(super) type Work<T> = Box<dyn FnMut(&mut AnyConnection) -> Result<T, Error> + Send>;

/// What may make the transaction of this work unnecessary. `None` when it does not, or failed.
pub(super) type Shortcut<T> = Box<dyn FnOnce(&mut AnyConnection, &mut Work<T>) -> Option<Result<T, Error>> + Send>;

/// Runs `work` in a transaction on the connection of a thread, which is opened if there is none or it does not work. A
/// write runs again when that may help. A `shortcut` runs before the transaction.
pub(super) fn run<T>(
    thread_conn: &mut Option<AnyConnection>,
    manager: &Manager,
    ticket: &Ticket,
    timer: QueueTimer,
    shortcut: Option<Shortcut<T>>,
    work: &mut Work<T>,
) -> Result<T, Error> {
    manager.check_files()?;
    // Taken from the thread, so that a panic drops it.
    let mut conn = match thread_conn.take() {
        Some(conn) => conn,
        None => connect(manager, ticket)?,
    };
    if let Some(shortcut) = shortcut
        && ticket.begin()
        && let Some(result) = shortcut(&mut conn, work)
    {
        timer.succeed();
        manager.outage.note_work();
        *thread_conn = Some(conn);
        return result;
    }
    let mut conn = begin_on_working_connection(conn, manager, ticket)?;
    let result = if ticket.begin() {
        timer.succeed();
        attempt(&mut conn, manager, ticket, work)
    } else {
        roll_back(&mut conn);
        Err(Error::Unavailable("the caller has given up".to_owned()))
    };
    if !manager.has_broken(&mut conn) {
        *thread_conn = Some(conn);
    }
    result
}

fn attempt<T>(conn: &mut AnyConnection, manager: &Manager, ticket: &Ticket, work: &mut Work<T>) -> Result<T, Error> {
    let mut attempts = 1;
    loop {
        let result = match work(conn) {
            Ok(value) => Transactions::commit_transaction(conn).map(|()| value).map_err(Error::from),
            Err(error) => {
                roll_back(conn);
                Err(error)
            }
        };
        match result {
            Err(error)
                if ticket.is_write
                    && error.is_retryable()
                    && attempts < ATTEMPTS
                    && Instant::now() < ticket.checkout_deadline =>
            {
                begin(conn, ticket)?;
                attempts += 1;
            }
            // What was written to a file that is gone must not be acknowledged.
            Ok(value) if ticket.is_write => return manager.check_files().map(|()| value),
            result => return result,
        }
    }
}

fn connect(manager: &Manager, ticket: &Ticket) -> Result<AnyConnection, Error> {
    let time = ticket.checkout_deadline.saturating_duration_since(Instant::now());
    let is_over = |conn: &Result<_, _>| conn.is_ok() || ticket.is_cancelled();
    let conn = retry_until(time, || manager.connect(), is_over);
    conn.map_err(|error| Error::Unavailable(error.to_string()))
}

/// A connection on which a transaction has begun. Beginning it shows whether the connection works, without another
/// statement.
fn begin_on_working_connection(
    mut conn: AnyConnection,
    manager: &Manager,
    ticket: &Ticket,
) -> Result<AnyConnection, Error> {
    loop {
        match begin(&mut conn, ticket) {
            Ok(()) => {
                manager.outage.note_work();
                return Ok(conn);
            }
            Err(error) if matches!(conn, AnyConnection::Postgresql(_)) && Instant::now() < ticket.checkout_deadline => {
                log::debug!("a database connection does not work any more: {error}");
                drop(conn);
                conn = connect(manager, ticket)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn begin(conn: &mut AnyConnection, ticket: &Ticket) -> QueryResult<()> {
    let wait = ticket.checkout_deadline.saturating_duration_since(Instant::now()).max(MIN_LOCK_WAIT).as_millis();
    match (conn, ticket.is_write) {
        (AnyConnection::Postgresql(pg), false) => {
            AnsiTransactionManager::begin_transaction_sql(pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        }
        (AnyConnection::Postgresql(pg), true) => {
            AnsiTransactionManager::begin_transaction_sql(pg, &format!("BEGIN; SET LOCAL lock_timeout = {wait}"))
        }
        (AnyConnection::Sqlite(sqlite), false) => {
            AnsiTransactionManager::begin_transaction_sql(sqlite, "BEGIN DEFERRED")
        }
        (AnyConnection::Sqlite(sqlite), true) => {
            let begin = format!("PRAGMA busy_timeout = {wait}; BEGIN IMMEDIATE");
            AnsiTransactionManager::begin_transaction_sql(sqlite, &begin)
        }
    }
}

fn roll_back(conn: &mut AnyConnection) {
    // The failure of the work says more than that of the rollback, after which the connection is dropped.
    if let Err(error) = Transactions::rollback_transaction(conn) {
        log::debug!("rollback failed: {error}");
    }
}
