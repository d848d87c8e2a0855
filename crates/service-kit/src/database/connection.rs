//! Connections: how each is set up, and how many statements they send.

use std::{
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use diesel::{
    Connection, ConnectionError, ConnectionResult, PgConnection, SqliteConnection,
    connection::{InstrumentationEvent, SimpleConnection},
    r2d2::{ManageConnection, R2D2Connection},
};
use prometheus_client::metrics::counter::Counter;

use super::{
    any_connection::AnyConnection,
    lock_file::with_suffix,
    open_files::OpenFiles,
    outage::Outage,
    retry::retry_while_locked,
    types::words,
    url::{Kind, Url, with_timeouts},
};
use crate::error::{Error, on_one_line};

impl Url {
    /// Opens a connection outside the executor, for migrations, maintenance and tests.
    pub fn connect(&self) -> ConnectionResult<AnyConnection> {
        self.connect_with(Duration::from_secs(30))
    }

    fn connect_with(&self, statement_timeout: Duration) -> ConnectionResult<AnyConnection> {
        match self.kind() {
            Kind::Postgres(url) => {
                let mut conn = PgConnection::establish(&with_timeouts(url)).map_err(shortened)?;
                let limit = statement_timeout.as_millis();
                use_english_messages(&mut conn)?;
                // lock_timeout: for reads, migrations and tests; a write sets its own.
                // jit, parallel workers: they pay for reports over millions of rows; compiling a long filter takes
                // seconds.
                // random_page_cost: the default of 4 is that of rotating disks. On SSDs it makes PostgreSQL read whole
                // tables for one week of events.
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
                // SQLite would make the file readable for everybody. A failure here shows again when SQLite opens it.
                drop(OpenOptions::new().write(true).create_new(true).mode(0o600).open(file));
                let mut conn =
                    SqliteConnection::establish(&file.to_string_lossy()).map_err(|error| with_cause(error, file))?;
                // busy_timeout comes first, because switching to WAL needs a lock already. Several connections that
                // switch a new file at once make SQLite give up without waiting. FULL lets an acknowledged commit
                // survive a power cut. There is no memory map, because its pages count as resident memory once for
                // each connection.
                let setup = "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                             PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; \
                             PRAGMA journal_size_limit = 67108864;";
                retry_while_locked(Duration::from_secs(10), || conn.batch_execute(setup))
                    .map_err(|error| with_cause(ConnectionError::CouldntSetupConfiguration(error), file))?;
                Ok(AnyConnection::Sqlite(conn))
            }
        }
    }
}

/// Adds to an error of SQLite why the operating system does not open the file.
fn with_cause(error: ConnectionError, file: &Path) -> ConnectionError {
    if with_suffix(file, "-wal").exists() {
        // This process may have the file open. Closing it would release all locks that SQLite has on it.
        return error;
    }
    match OpenOptions::new().write(true).open(file) {
        Err(cause) => ConnectionError::BadConnection(format!("{error}: cannot write {}: {cause}", file.display())),
        Ok(_) => error,
    }
}

/// The error with its message on one line.
fn shortened(error: ConnectionError) -> ConnectionError {
    match error {
        ConnectionError::BadConnection(message) => ConnectionError::BadConnection(on_one_line(&message)),
        other => other,
    }
}

/// Failures are recognised by their messages ([`super::error_class`]), so the server must write them in English.
fn use_english_messages(conn: &mut PgConnection) -> ConnectionResult<()> {
    let setting = |query, conn: &mut PgConnection| {
        let values = words(conn, query).map_err(ConnectionError::CouldntSetupConfiguration)?;
        ConnectionResult::Ok(values.into_iter().next().unwrap_or_default())
    };
    let language = setting("SELECT current_setting('lc_messages') AS value", conn)?;
    let is_english = language.starts_with("en") || ["C", "POSIX"].contains(&language.split('.').next().unwrap_or(""));
    if is_english || conn.batch_execute("SET lc_messages = 'C'").is_ok() {
        return Ok(());
    }
    let role = setting("SELECT quote_ident(current_user) AS value", conn)?;
    Err(ConnectionError::BadConnection(format!(
        "the PostgreSQL server writes its messages in {language:?} and does not let {role} change that; an \
         administrator must run: ALTER ROLE {role} SET lc_messages = 'C'"
    )))
}

/// Makes the folder that a database file goes to.
pub(crate) fn make_folder_of(file: &Path) -> io::Result<()> {
    let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    std::fs::create_dir_all(folder)
        .map_err(|error| io::Error::other(format!("cannot create the folder {}: {error}", folder.display())))
}

/// The r2d2 manager of the connections of the database threads. The `establish` that Diesel derives for
/// [`AnyConnection`] would try one database after the other and hide why the right one failed.
pub(super) struct Manager {
    pub url: Url,
    pub statement_timeout: Duration,
    /// The SQL statements sent by all connections.
    pub statements: Counter,
    pub outage: Arc<Outage>,
    /// The files of a SQLite database, from the first connection on.
    pub files: Arc<OnceLock<OpenFiles>>,
}

impl Manager {
    /// Whether a SQLite database still has the files that were opened.
    pub fn check_files(&self) -> Result<(), Error> {
        let Some(files) = self.files.get() else { return Ok(()) };
        files.check().map_err(|cause| {
            self.outage.note(Instant::now(), &Err::<(), _>(&cause));
            Error::Unavailable(cause)
        })
    }

    /// Closes what is open apart from the connections of the threads.
    pub fn close_files(&self) {
        if let Some(files) = self.files.get() {
            files.close();
        }
    }
}

impl ManageConnection for Manager {
    type Connection = AnyConnection;
    type Error = ConnectionError;

    fn connect(&self) -> ConnectionResult<AnyConnection> {
        let began = Instant::now();
        let connected = self.url.connect_with(self.statement_timeout);
        self.outage.note(began, &connected);
        let mut conn = connected?;
        if let Some(file) = self.url.file()
            && self.files.get().is_none()
        {
            // Another thread may have done the same meanwhile.
            let _same = self.files.set(OpenFiles::open(&self.url, file)?);
        }
        let statements = self.statements.clone();
        conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
            if matches!(event, InstrumentationEvent::StartQuery { .. }) {
                statements.inc();
            }
        });
        Ok(conn)
    }

    /// Sends nothing: beginning a transaction shows whether the connection works.
    fn is_valid(&self, _: &mut AnyConnection) -> ConnectionResult<()> {
        Ok(())
    }

    fn has_broken(&self, conn: &mut AnyConnection) -> bool {
        R2D2Connection::is_broken(conn)
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

        use crate::database::lock_file::DatabaseLock;

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("club.sqlite3");
        let lock = || drop(DatabaseLock::shared(&file).unwrap());
        lock();
        let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        let mut conn = Url::of_file(&file).connect().unwrap();
        conn.batch_execute("CREATE TABLE t (a INTEGER)").unwrap();
        assert_eq!((mode("club.sqlite3"), mode("club.sqlite3-wal")), (0o600, 0o600));
        assert_eq!(mode("club.sqlite3.lock"), 0o600);
        drop(conn);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        Url::of_file(&file).connect().unwrap();
        lock();
        assert_eq!((mode("club.sqlite3"), mode("club.sqlite3.lock")), (0o640, 0o640));
    }
}
