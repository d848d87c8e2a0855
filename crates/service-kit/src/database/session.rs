//! What a database thread keeps from one job to the next while others wait: a connection, and what it sees.

use std::time::Duration;

use diesel::{
    Connection, QueryResult,
    connection::{AnsiTransactionManager, SimpleConnection, TransactionManager},
    r2d2::{Pool, PooledConnection},
};
use tokio::time::Instant;

use super::{
    Access,
    connection::{AnyConnection, Manager},
};
use crate::error::Error;

/// A write that got its connection at the last moment still may wait this long for a lock, so that a busy service
/// does not refuse what it could do at once.
const LEAST_WAIT: Duration = Duration::from_millis(100);

type Transactions = <AnyConnection as Connection>::TransactionManager;

/// A connection of the pool.
pub(super) type Pooled = PooledConnection<Manager>;

/// A reading transaction, or none.
#[derive(Default)]
pub(super) struct Session(Option<Reading>);

struct Reading {
    conn: Pooled,
    /// When it began, so that what it sees is not older.
    since: Instant,
}

impl Session {
    /// A connection on which a transaction has begun, for somebody who `came` then; and when it began. One for reading that
    /// began later than they came is as good as one of their own: it sees all that anybody was told before.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when no connection can be had until `deadline`; what the database says.
    pub fn begin(
        &mut self,
        pool: &Pool<Manager>,
        access: Access,
        came: Instant,
        deadline: Instant,
    ) -> Result<(Pooled, Instant), Error> {
        let now = Instant::now();
        if let Some(mut reading) = self.0.take() {
            if access == Access::Read {
                if reading.since >= came {
                    return Ok((reading.conn, reading.since));
                }
                if begin_another(&mut reading.conn).is_ok() {
                    return Ok((reading.conn, now));
                }
            }
            reading.end();
        }
        Ok((begun(pool, access, deadline)?, now))
    }

    /// Keeps a reading transaction for those who wait.
    pub fn keep(&mut self, conn: Pooled, since: Instant) {
        self.0 = Some(Reading { conn, since });
    }

    /// Whether there is one.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Nobody waits any more.
    pub fn end(&mut self) {
        self.0.take().into_iter().for_each(Reading::end);
    }
}

impl Reading {
    fn end(mut self) {
        if let Err(error) = commit(&mut self.conn) {
            log::debug!("the end of a reading transaction failed: {error}");
            self.conn.give_up();
        }
    }
}

/// A connection on which a transaction has begun.
fn begun(pool: &Pool<Manager>, access: Access, deadline: Instant) -> Result<Pooled, Error> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut conn = pool.get_timeout(left).map_err(|error| Error::Unavailable(error.to_string()))?;
        match begin(&mut conn, access, deadline) {
            Ok(()) => return Ok(conn),
            // Nothing has been asked for yet, so it is the connection that does not work any more. To find that out
            // here takes no statement of its own, and another connection may do.
            Err(error) if matches!(&**conn, AnyConnection::Postgresql(_)) && Instant::now() < deadline => {
                log::debug!("a database connection is given up: {error}");
                conn.give_up();
            }
            Err(error) => return Err(error.into()),
        }
    }
}

pub(super) fn begin(conn: &mut AnyConnection, access: Access, deadline: Instant) -> QueryResult<()> {
    let wait = deadline.saturating_duration_since(Instant::now()).max(LEAST_WAIT).as_millis();
    match (conn, access) {
        (AnyConnection::Postgresql(pg), Access::Read) => {
            AnsiTransactionManager::begin_transaction_sql(pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        }
        (AnyConnection::Postgresql(pg), Access::Write) => {
            AnsiTransactionManager::begin_transaction_sql(pg, &format!("BEGIN; SET LOCAL lock_timeout = {wait}"))
        }
        (AnyConnection::Sqlite(sqlite), Access::Read) => {
            AnsiTransactionManager::begin_transaction_sql(sqlite, "BEGIN DEFERRED")
        }
        (AnyConnection::Sqlite(sqlite), Access::Write) => {
            let begin = format!("PRAGMA busy_timeout = {wait}; BEGIN IMMEDIATE");
            AnsiTransactionManager::begin_transaction_sql(sqlite, &begin)
        }
    }
}

/// Ends a reading transaction and begins another one, in one statement.
fn begin_another(conn: &mut AnyConnection) -> QueryResult<()> {
    match conn {
        AnyConnection::Postgresql(pg) => pg.batch_execute("COMMIT AND CHAIN"),
        AnyConnection::Sqlite(sqlite) => sqlite.batch_execute("COMMIT; BEGIN DEFERRED"),
    }
}

pub(super) fn commit(conn: &mut AnyConnection) -> QueryResult<()> {
    Transactions::commit_transaction(conn)
}

pub(super) fn roll_back(conn: &mut AnyConnection) {
    // What made the work fail says more than a failed rollback, after which the pool drops the connection.
    if let Err(error) = Transactions::rollback_transaction(conn) {
        log::debug!("rollback failed: {error}");
    }
}
