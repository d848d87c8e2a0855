//! Connections: how each is set up, how many statements they send.

use std::{
    fs::OpenOptions,
    io,
    ops::{Deref, DerefMut},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use diesel::{
    Connection, ConnectionError, ConnectionResult, PgConnection, SqliteConnection,
    connection::{InstrumentationEvent, SimpleConnection},
    r2d2::{ManageConnection, R2D2Connection},
};

use super::{
    Limits,
    patience::while_locked,
    url::{Kind, Url, with_defaults},
};

pub use self::any::{AnyConnection, MultiBackend};

mod any {
    #![expect(missing_docs, reason = "the derive macro makes undocumented public items")]

    use diesel::{PgConnection, SqliteConnection};

    /// A connection to either database. Queries are written once, against this type.
    #[derive(diesel::MultiConnection)]
    pub enum AnyConnection {
        /// PostgreSQL 13 or newer.
        Postgresql(PgConnection),
        /// The bundled SQLite.
        Sqlite(SqliteConnection),
    }
}

impl Url {
    /// Opens one connection outside the pools, for migrations and tests.
    ///
    /// # Errors
    /// When the database cannot be reached or the file not opened.
    pub fn connect(&self) -> ConnectionResult<AnyConnection> {
        self.connect_with(Duration::from_secs(30))
    }

    fn connect_with(&self, statement_timeout: Duration) -> ConnectionResult<AnyConnection> {
        match self.kind() {
            Kind::Postgres(url) => {
                let mut conn = PgConnection::establish(&with_defaults(url))?;
                let limit = statement_timeout.as_millis();
                // For reads, migrations and tests; a write has its own limit for locks.
                // Compiling a statement pays for reports over millions of rows; a long filter took five seconds of it.
                // So do processes that help; and a page that is read out of order costs little on storage without heads,
                // which the server's default takes for four times as dear: then it reads whole tables for a week.
                let setup = format!(
                    "SET statement_timeout = {limit}; SET lock_timeout = 2000; \
                     SET idle_in_transaction_session_timeout = {limit}; SET timezone = 'UTC'; SET jit = off; \
                     SET random_page_cost = 1.1; SET max_parallel_workers_per_gather = 0"
                );
                conn.batch_execute(&setup).map_err(ConnectionError::CouldntSetupConfiguration)?;
                Ok(AnyConnection::Postgresql(conn))
            }
            Kind::Sqlite(file) => {
                make_folder_of(file).map_err(|error| ConnectionError::BadConnection(error.to_string()))?;
                // SQLite would make it readable for everybody. If it is there already, or cannot be made, SQLite sees.
                drop(OpenOptions::new().write(true).create_new(true).mode(0o600).open(file));
                let mut conn = SqliteConnection::establish(&file.to_string_lossy())?;
                // The wait for a lock comes first, because switching to WAL already needs one; where several switch a
                // new file at once, SQLite gives up without it. FULL makes an acknowledged commit survive a power cut.
                let setup = "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                             PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; \
                             PRAGMA journal_size_limit = 67108864;";
                while_locked(Duration::from_secs(10), || conn.batch_execute(setup))
                    .map_err(ConnectionError::CouldntSetupConfiguration)?;
                Ok(AnyConnection::Sqlite(conn))
            }
        }
    }
}

/// Makes the folder that a database file goes to.
pub(crate) fn make_folder_of(file: &Path) -> io::Result<()> {
    let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    std::fs::create_dir_all(folder)
        .map_err(|error| io::Error::other(format!("cannot make the folder {}: {error}", folder.display())))
}

/// Statements sent by all connections of a door.
#[derive(Clone, Default)]
pub(crate) struct StatementCount(Arc<AtomicU64>);

impl StatementCount {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Makes and checks the connections of a pool. The derived way to connect would try each database in turn and hide
/// why the right one failed.
pub(crate) struct Manager {
    url: Url,
    statement_timeout: Duration,
    statements: StatementCount,
}

impl Manager {
    pub(crate) fn new(url: Url, limits: &Limits, statements: StatementCount) -> Self {
        Self { url, statement_timeout: limits.work, statements }
    }
}

/// A connection of a pool.
pub(crate) struct Pooled {
    conn: AnyConnection,
    is_broken: bool,
}

impl Pooled {
    /// Says that the pool is not to take it back.
    pub(crate) fn give_up(&mut self) {
        self.is_broken = true;
    }
}

impl Deref for Pooled {
    type Target = AnyConnection;
    fn deref(&self) -> &AnyConnection {
        &self.conn
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        &mut self.conn
    }
}

impl ManageConnection for Manager {
    type Connection = Pooled;
    type Error = diesel::r2d2::Error;

    fn connect(&self) -> Result<Pooled, Self::Error> {
        let mut conn = self.url.connect_with(self.statement_timeout).map_err(diesel::r2d2::Error::ConnectionError)?;
        let statements = self.statements.clone();
        conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
            if matches!(event, InstrumentationEvent::StartQuery { .. }) {
                statements.0.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Pooled { conn, is_broken: false })
    }

    /// Not asked: the beginning of a transaction shows it.
    fn is_valid(&self, _: &mut Pooled) -> Result<(), Self::Error> {
        Ok(())
    }

    fn has_broken(&self, pooled: &mut Pooled) -> bool {
        pooled.is_broken || std::thread::panicking() || R2D2Connection::is_broken(&mut pooled.conn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_may_open_a_new_file_at_once() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..50 {
            let url = Url::of_file(&folder.path().join(round.to_string()));
            let together = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        together.wait();
                        url.connect().unwrap();
                    });
                }
            });
        }
    }

    #[test]
    fn a_new_file_is_for_its_owner_alone_and_an_old_one_stays_as_it_is() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("club.sqlite3");
        let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        let mut conn = Url::of_file(&file).connect().unwrap();
        conn.batch_execute("CREATE TABLE t (a INTEGER)").unwrap();
        assert_eq!((mode("club.sqlite3"), mode("club.sqlite3-wal")), (0o600, 0o600));
        drop(conn);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        Url::of_file(&file).connect().unwrap();
        assert_eq!(mode("club.sqlite3"), 0o640);
    }
}
