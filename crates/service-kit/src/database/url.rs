//! Addresses of databases: which kind, where, and whether they contain a secret.
//!
//! libpq parses a PostgreSQL URL when it connects. This module parses it only to add missing time-outs, to recognize
//! known passwords, and to refuse what libpq would quote in a message.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use percent_encoding::percent_decode_str;

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
    /// Whether the URL contains a password that is no secret: an empty one, the user's name, or one of the common ones.
    /// A URL without a password signs in otherwise: by a certificate, a password file, or the name of the system's
    /// user.
    pub fn has_known_password(&self) -> bool {
        let Kind::Postgres(url) = &self.0 else { return false };
        let parts = Parts::parse(url);
        let (user, password) = match parts.user_info.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (parts.user_info, None),
        };
        let passwords = parts.parameters().filter(|(name, _)| *name == "password").map(|(_, password)| password);
        password.into_iter().chain(passwords).any(|password| {
            let password = percent_decode_str(password).decode_utf8_lossy().to_lowercase();
            KNOWN_PASSWORDS.contains(&&*password)
                || password == percent_decode_str(user).decode_utf8_lossy().to_lowercase()
        })
    }

    /// Whether this is PostgreSQL.
    pub fn is_postgres(&self) -> bool {
        matches!(self.0, Kind::Postgres(_))
    }

    /// The TLS files that a PostgreSQL URL names.
    pub fn tls_files(&self) -> Vec<String> {
        let Kind::Postgres(url) = &self.0 else { return Vec::new() };
        let parts = Parts::parse(url);
        let files =
            parts.parameters().filter(|(name, _)| ["sslrootcert", "sslcert", "sslkey", "sslcrl"].contains(name));
        let files = files.map(|(_, file)| percent_decode_str(file).decode_utf8_lossy().into_owned());
        // `system` stands for the certificate authorities of the system.
        files.filter(|file| file != "system").collect()
    }

    /// The database file, for SQLite.
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

/// The parts of a PostgreSQL URL, as libpq separates them: user and password end at an `@` before the first slash,
/// whatever else they contain.
struct Parts<'a> {
    user_info: &'a str,
    servers: &'a str,
    database: &'a str,
    query: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn parse(url: &'a str) -> Self {
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        let (user_info, rest) = authority.find('@').map_or(("", rest), |at| (&rest[..at], &rest[at + 1..]));
        let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
        let (servers, database) = place.split_once('/').unwrap_or((place, ""));
        Self { user_info, servers, database, query }
    }

    /// The names and values after the question mark.
    fn parameters(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='))
    }

    /// Whether libpq separates the same parts. Otherwise its message may quote a piece of the password: an `@`, `/` or
    /// `%` in it is enough.
    fn are_unambiguous(&self) -> bool {
        let query = self.query.unwrap_or_default();
        let has_port = |server: &str| {
            let after_host = server.rsplit_once(']').map_or(server, |(_, rest)| rest);
            let port = after_host.split_once(':').map_or("", |(_, port)| port);
            port.bytes().all(|byte| byte.is_ascii_digit())
        };
        [self.user_info, self.servers, self.database, query].into_iter().all(is_percent_encoded)
            && ![self.servers, self.database, query].concat().contains('@')
            && self.servers.split(',').all(has_port)
            && (query.is_empty() || query.split('&').all(|pair| pair.matches('=').count() == 1))
    }
}

fn is_percent_encoded(text: &str) -> bool {
    let is_byte = |after: &str| {
        after.get(..2).is_some_and(|digits| digits != "00" && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    text.split('%').skip(1).all(is_byte) && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Time-outs that libpq does not have by itself: a server that vanishes before it answers is given up after 20 seconds,
/// not after the eleven minutes of the system's defaults.
const TIMEOUTS: [(&str, &str); 5] = [
    ("connect_timeout", "2"),
    ("tcp_user_timeout", "10000"),
    ("keepalives_idle", "10"),
    ("keepalives_interval", "5"),
    ("keepalives_count", "2"),
];

/// The URL with the time-outs that it does not set itself.
pub(super) fn with_timeouts(url: &str) -> String {
    let parts = Parts::parse(url);
    let names: Vec<_> = parts.parameters().map(|(name, _)| name).collect();
    let mut separator = match parts.query {
        None => "?",
        Some("") => "",
        Some(_) => "&",
    };
    let mut complete = url.to_owned();
    for (name, value) in TIMEOUTS.into_iter().filter(|(name, _)| !names.contains(name)) {
        complete.extend([separator, name, "=", value]);
        separator = "&";
    }
    complete
}

/// The parameters of a URL that libpq knows (PostgreSQL 18, section 32.1.2; the last one is in section 32.1.1.2).
const PARAMETERS: &str = "host hostaddr port dbname user password passfile require_auth channel_binding \
    connect_timeout client_encoding options application_name fallback_application_name keepalives keepalives_idle \
    keepalives_interval keepalives_count tcp_user_timeout replication gssencmode sslmode requiressl sslnegotiation \
    sslcompression sslcert sslkey sslkeylogfile sslpassword sslcertmode sslrootcert sslcrl sslcrldir sslsni \
    requirepeer ssl_min_protocol_version ssl_max_protocol_version min_protocol_version max_protocol_version \
    krbsrvname gsslib gssdelegation scram_client_key scram_server_key service servicefile target_session_attrs \
    load_balance_hosts oauth_issuer oauth_client_id oauth_client_secret oauth_scope ssl";

/// Characters that have a meaning in the URLs of other programs or in a shell. Taken literally, they would make a new
/// file whose name nobody meant.
const EXPANDED_ELSEWHERE: &str = "?#%~$*'\"`\\";

/// Passwords that everybody tries first, in lower case.
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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let parts = Parts::parse(text);
            if !parts.are_unambiguous() {
                return Err("is not understood: characters that have a meaning in an address must be percent-encoded \
                            in user name, password and parameters"
                    .to_owned());
            }
            return match parts.parameters().find(|(name, _)| !PARAMETERS.split(' ').any(|known| known == *name)) {
                // Without an `@`, what looks like a parameter may be a piece of a password.
                Some(_) if parts.user_info.is_empty() => {
                    Err("has a parameter that PostgreSQL does not know".to_owned())
                }
                Some((name, _)) => Err(format!("has the parameter {name:?}, which PostgreSQL does not know")),
                None => Ok(Self(Kind::Postgres(text.to_owned()))),
            };
        }
        match text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")) {
            Some("") | None => Err("must be sqlite://FILE or postgres://…".to_owned()),
            Some(file) if file.contains(":memory:") || file.contains("mode=memory") => {
                Err("an in-memory database would be another one for every connection; give a file".to_owned())
            }
            Some(file) => match file.chars().find(|c| EXPANDED_ELSEWHERE.contains(*c) || c.is_control()) {
                Some(c) => Err(format!(
                    "has {c:?} in the name of the SQLite file, which is taken as it is: there are no parameters, and \
                     neither `~` nor variables nor percent-encoding is replaced; write the file's own path, without \
                     such a character"
                )),
                None if file.starts_with("file:") => Err("must be sqlite://FILE, without file:".to_owned()),
                None if file.trim() != file => Err("has a space at its beginning or end".to_owned()),
                None => Ok(Self(Kind::Sqlite(PathBuf::from(file)))),
            },
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
        let unclear = [
            "u:p@q@db/c",
            "u:p/q@db/c",
            "u:p%q@db/c",
            "u:pq/c",
            "u:p q@db/c",
            "db/c?password=a&b",
            "db/c?user=a@b",
            "u:%00@db",
        ];
        for bad in unclear {
            let refused = format!("postgres://{bad}").parse::<Url>().unwrap_err();
            assert!(refused.contains("percent-encoded"), "{bad}");
        }
        let refused = "postgres://u:hunter2@db/c?sslmod=require".parse::<Url>().unwrap_err();
        assert!(refused.contains("sslmod") && !refused.contains("hunter2"), "{refused}");
        let refused = "postgres://u:12?hunter=2".parse::<Url>().unwrap_err();
        assert!(refused.contains("parameter") && !refused.contains("hunter"), "{refused}");
        for good in
            ["", "/c?host=/run/x&options=-ca%3Db", "u:p%2Fq?#:@db:5432/c", "a,[::1]:1,b:2/c", "%2Frun%2Fx/c", "db?"]
        {
            assert!(format!("postgres://{good}").parse::<Url>().is_ok(), "{good}");
        }
        for (url, is_known) in [
            ("u:@db/c", true),
            ("u:u@db/c", true),
            ("u:ChangeMe@db/c", true),
            ("u:post%67res@db/c", true),
            ("u@db/c?sslmode=require&password=postgres", true),
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
    fn the_name_of_a_sqlite_file_is_taken_as_it_is_or_refused() {
        for (file, character) in [
            ("q.db?mode=rwc", "'?'"),
            ("q.db#x", "'#'"),
            ("~/q.db", "'~'"),
            ("~club/q.db", "'~'"),
            ("my%20club.db", "'%'"),
            ("$HOME/q.db", "'$'"),
            ("*.db", "'*'"),
            ("'q.db'", r"'\''"),
            ("q.db\n", r"'\n'"),
            ("C:\\q.db", r"'\\'"),
        ] {
            for scheme in ["sqlite://", "sqlite:"] {
                let refused = format!("{scheme}{file}").parse::<Url>().unwrap_err();
                assert!(refused.contains(character) && refused.contains("taken as it is"), "{refused}");
            }
        }
        for bad in ["file:q.db", "file:///q.db", " q.db", "q.db "] {
            assert!(format!("sqlite://{bad}").parse::<Url>().is_err(), "{bad}");
        }
        for good in ["q.db", "/var/lib/club/q.db", "../my club/部室@1+2=3&x,(y)!.db", ":x:"] {
            let url: Url = format!("sqlite://{good}").parse().unwrap();
            assert_eq!(url.file(), Some(Path::new(good)));
        }
    }

    #[test]
    fn the_url_may_override_the_time_outs() {
        assert!(
            with_timeouts("postgres://a,b/c?connect_timeout=9")
                .starts_with("postgres://a,b/c?connect_timeout=9&tcp_user_timeout=10000&keepalives_idle=10&")
        );
        assert!(with_timeouts("postgres:///c").starts_with("postgres:///c?connect_timeout=2&"));
        assert!(with_timeouts("postgres:///c?").starts_with("postgres:///c?connect_timeout=2&"));
        // What stands in user name and password is no option.
        let user = "postgres://u:connect_timeout?x@db/c";
        assert!(with_timeouts(user).starts_with(&format!("{user}?connect_timeout=2&")));
    }
}
