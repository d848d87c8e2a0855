//! Connections: which database by URL scheme, how each is set up, how many statements they send.

use std::{
    fmt,
    fs::OpenOptions,
    io,
    ops::{Deref, DerefMut},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    str::FromStr,
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

use super::{Limits, commands::Refused, patience::while_locked};

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

/// Where the database is: `sqlite://FILE` or `postgres://…` as libpq reads it. `Debug` and `Display` never show more
/// than the scheme and, for SQLite, the file.
#[derive(Clone, PartialEq, Eq)]
pub struct Url(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Url {
    /// Whether it holds a password that is no secret: an empty one, the user's name, or one that everybody tries first.
    /// One that holds none is signed in otherwise: by a certificate, a password file, or the name of the system's user.
    #[must_use]
    pub fn has_known_password(&self) -> bool {
        let Kind::Postgres(url) = &self.0 else { return false };
        let (user_info, rest) = user_info(url.split_once("://").map_or("", |(_, rest)| rest));
        let (user, first) = user_info.split_once(':').map_or((user_info, None), |(user, word)| (user, Some(word)));
        let query = rest.split_once('?').map_or("", |(_, query)| query).split('&');
        let given = |password: &str| {
            let is = |known: &str| password.eq_ignore_ascii_case(known);
            KNOWN_PASSWORDS.into_iter().any(is) || is(user)
        };
        first.into_iter().chain(query.filter_map(|pair| pair.strip_prefix("password="))).any(given)
    }

    /// Whether this is PostgreSQL.
    #[must_use]
    pub fn is_postgres(&self) -> bool {
        matches!(self.0, Kind::Postgres(_))
    }

    /// Whether the database does its work on this machine: SQLite does, and a server behind a socket file or at an
    /// address that leads back.
    #[must_use]
    pub fn is_here(&self) -> bool {
        let Kind::Postgres(url) = &self.0 else { return true };
        let (_, rest) = user_info(url.split_once("://").map_or("", |(_, rest)| rest));
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let given =
            query.split('&').filter_map(|pair| pair.split_once('=')).filter(|(name, _)| name.starts_with("host"));
        let mut named = given.flat_map(|(_, hosts)| hosts.split(',')).peekable();
        // What the query says goes before what stands before it.
        let place = if named.peek().is_some() { "" } else { place.split('/').next().unwrap_or_default() };
        named.chain(place.split(',')).all(|host| {
            let host = host.rsplit_once(':').filter(|(host, _)| !host.contains(':')).map_or(host, |(host, _)| host);
            let is_file =
                host.is_empty() || host.starts_with('/') || host.starts_with("%2F") || host.starts_with("%2f");
            is_file || host == "localhost" || host.starts_with("127.") || host.starts_with("[::1]") || host == "::1"
        })
    }

    /// The database file, for SQLite.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.0 {
            Kind::Sqlite(file) => Some(file),
            Kind::Postgres(_) => None,
        }
    }

    /// The database file. Commands that need one say what to do instead where there is none.
    pub(super) fn database_file(&self, instead: &str) -> Result<&Path, Refused> {
        self.file().ok_or_else(|| Refused::Options(instead.to_owned()))
    }

    /// The database file, which must be there: connecting would make an empty one.
    pub(super) fn sqlite_file(&self, instead: &str) -> Result<&Path, Refused> {
        let file = self.database_file(instead)?;
        let is_there = file.is_file();
        is_there.then_some(file).ok_or_else(|| Refused::Failed(format!("there is no database at {self}")))
    }

    pub(super) fn of_file(file: &Path) -> Self {
        Self(Kind::Sqlite(file.to_owned()))
    }

    /// Opens one connection outside the pools, for migrations and tests.
    ///
    /// # Errors
    /// When the database cannot be reached or the file not opened.
    pub fn connect(&self) -> ConnectionResult<AnyConnection> {
        self.connect_with(Duration::from_secs(30))
    }

    fn connect_with(&self, statement_timeout: Duration) -> ConnectionResult<AnyConnection> {
        match &self.0 {
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
pub(super) fn make_folder_of(file: &Path) -> io::Result<()> {
    let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    std::fs::create_dir_all(folder)
        .map_err(|error| io::Error::other(format!("cannot make the folder {}: {error}", folder.display())))
}

/// Time-outs that libpq does not have by itself, unless the URL sets its own: a server that has vanished while it owed
/// an answer is given up after 20 seconds, not after the eleven minutes of the system's defaults.
const DEFAULTS: [(&str, &str); 5] = [
    ("connect_timeout", "2"),
    ("tcp_user_timeout", "10000"),
    ("keepalives_idle", "10"),
    ("keepalives_interval", "5"),
    ("keepalives_count", "2"),
];

fn with_defaults(url: &str) -> String {
    let (_, rest) = user_info(url.split_once("://").map_or("", |(_, rest)| rest));
    let query = rest.split_once('?').map(|(_, query)| query);
    let given: Vec<_> = query.unwrap_or_default().split('&').filter_map(|pair| pair.split('=').next()).collect();
    let mut separator = match query {
        None => "?",
        Some("") => "",
        Some(_) => "&",
    };
    let mut all = url.to_owned();
    for (name, value) in DEFAULTS.into_iter().filter(|(name, _)| !given.contains(name)) {
        all.extend([separator, name, "=", value]);
        separator = "&";
    }
    all
}

/// Whether libpq can take an address apart (`postgres://` cut off). When it cannot, its message quotes the piece that it
/// did not understand, which may be one of the password: an `@`, `/` or `%` in it is enough.
fn is_understood(rest: &str) -> bool {
    let (user_info, rest) = user_info(rest);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let servers = place.split('/').next().unwrap_or_default();
    let has_port = |server: &str| {
        let after_host = server.rsplit_once(']').map_or(server, |(_, rest)| rest);
        let port = after_host.split_once(':').map_or("", |(_, port)| port);
        port.bytes().all(|byte| byte.is_ascii_digit())
    };
    [user_info, place, query].into_iter().all(is_percent_encoded)
        && !place.contains('@')
        && servers.split(',').all(has_port)
        && (query.is_empty() || query.split('&').all(|pair| pair.matches('=').count() == 1))
}

/// Where libpq sees user name and password: up to the first `@` that stands before any slash.
fn user_info(rest: &str) -> (&str, &str) {
    let until = rest.find('/').unwrap_or(rest.len());
    rest[..until].find('@').map_or(("", rest), |at| (&rest[..at], &rest[at + 1..]))
}

fn is_percent_encoded(text: &str) -> bool {
    let is_byte = |after: &str| {
        after.get(..2).is_some_and(|digits| digits != "00" && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    text.split('%').skip(1).all(is_byte) && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Passwords that everybody tries first.
const KNOWN_PASSWORDS: [&str; 12] = [
    "",
    "postgres",
    "postgresql",
    "password",
    "passwd",
    "changeme",
    "change-me",
    "secret",
    "admin",
    "root",
    "test",
    "123456",
];

impl FromStr for Url {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(rest) = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://")) {
            return if is_understood(rest) {
                Ok(Self(Kind::Postgres(text.to_owned())))
            } else {
                Err("is not understood: in user name and password, characters that have a meaning in an address must \
                     be percent-encoded")
            };
        }
        match text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")) {
            Some("") | None => Err("must be sqlite://FILE or postgres://…"),
            Some(file) if file.contains(":memory:") || file.contains("mode=memory") => {
                Err("an in-memory database would be another one for every connection; give a file")
            }
            Some(file) => Ok(Self(Kind::Sqlite(PathBuf::from(file)))),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Sqlite(file) => write!(f, "sqlite://{}", file.display()),
            Kind::Postgres(_) => f.write_str("postgres://…"),
        }
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Statements sent by all connections of a door.
#[derive(Clone, Default)]
pub(super) struct StatementCount(Arc<AtomicU64>);

impl StatementCount {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Makes and checks the connections of a pool. The derived way to connect would try each database in turn and hide
/// why the right one failed.
pub(super) struct Manager {
    url: Url,
    statement_timeout: Duration,
    statements: StatementCount,
}

impl Manager {
    pub(super) fn new(url: Url, limits: &Limits, statements: StatementCount) -> Self {
        Self { url, statement_timeout: limits.work, statements }
    }
}

/// A connection of a pool.
pub(super) struct Pooled {
    conn: AnyConnection,
    is_broken: bool,
}

impl Pooled {
    /// Says that the pool is not to take it back.
    pub(super) fn give_up(&mut self) {
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
    fn the_scheme_chooses_and_secrets_stay_hidden() {
        let url: Url = "postgres://user:hunter2@db/club".parse().unwrap();
        assert!(url.is_postgres());
        assert!(!format!("{url} {url:?}").contains("hunter2"));
        let url: Url = "sqlite://data/club.sqlite3".parse().unwrap();
        assert_eq!(url.file().unwrap(), Path::new("data/club.sqlite3"));
        let unclear =
            ["u:p@q@db/c", "u:p/q@db/c", "u:p%q@db/c", "u:pq/c", "u:p q@db/c", "db/c?password=a&b", "u:%00@db"];
        for bad in unclear {
            let refused = format!("postgres://{bad}").parse::<Url>().unwrap_err();
            assert!(refused.contains("percent-encoded"), "{bad}");
        }
        for good in
            ["", "/c?host=/run/x&options=-ca%3Db", "u:p%2Fq?#:@db:5432/c", "a,[::1]:1,b:2/c", "%2Frun%2Fx/c", "db?"]
        {
            assert!(format!("postgres://{good}").parse::<Url>().is_ok(), "{good}");
        }
        for (url, is_known) in [
            ("u:@db/c", true),
            ("u:u@db/c", true),
            ("u:ChangeMe@db/c", true),
            ("u@db/c?x=1&password=postgres", true),
            ("u@db/c", false),
            ("/c", false),
            ("u:hunter2@db/c", false),
        ] {
            assert_eq!(format!("postgres://{url}").parse::<Url>().unwrap().has_known_password(), is_known, "{url}");
        }
        for bad in ["", "mysql://db", "sqlite://", "sqlite::memory:", "sqlite://x?mode=memory", "club.sqlite3"] {
            assert!(bad.parse::<Url>().is_err(), "{bad}");
        }
    }

    #[test]
    fn it_knows_what_is_on_this_machine() {
        for (url, is_here) in [
            ("sqlite://club.sqlite3", true),
            ("postgres:///club", true),
            ("postgres://u:p@/club?host=/run/postgresql", true),
            ("postgres://u:p@%2Frun%2Fpostgresql/club", true),
            ("postgres://u:p@localhost:5432/club?connect_timeout=3", true),
            ("postgres://u:p@127.0.0.1,[::1]:5433/club", true),
            ("postgres://ignored/club?hostaddr=::1", true),
            ("postgres://u:localhost@db/localhost", false),
            ("postgres://localhost,db.example.org/club", false),
            ("postgres://localhost/club?host=10.0.0.3", false),
            ("postgres://localhost.example.org/club", false),
        ] {
            assert_eq!(url.parse::<Url>().unwrap().is_here(), is_here, "{url}");
        }
    }

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
    fn the_url_may_override_the_time_outs() {
        assert!(
            with_defaults("postgres://a,b/c?connect_timeout=9")
                .starts_with("postgres://a,b/c?connect_timeout=9&tcp_user_timeout=10000&keepalives_idle=10&")
        );
        assert!(with_defaults("postgres:///c").starts_with("postgres:///c?connect_timeout=2&"));
        assert!(with_defaults("postgres:///c?").starts_with("postgres:///c?connect_timeout=2&"));
        // What stands in user name and password is no option.
        let user = "postgres://u:connect_timeout?x@db/c";
        assert!(with_defaults(user).starts_with(&format!("{user}?connect_timeout=2&")));
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
