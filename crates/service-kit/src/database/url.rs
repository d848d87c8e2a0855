//! Addresses of databases: which kind, where, and whether they keep a secret.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

/// Where the database is: `sqlite://FILE` or `postgres://…` as libpq reads it. `Debug` and `Display` never show more
/// than the scheme and, for SQLite, the file.
#[derive(Clone, PartialEq, Eq)]
pub struct Url(Kind);

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Kind {
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

    pub(crate) fn of_file(file: &Path) -> Self {
        Self(Kind::Sqlite(file.to_owned()))
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.0
    }
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

/// The address with what it does not say itself.
pub(super) fn with_defaults(url: &str) -> String {
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
}
