//! The options that every service has: each one a flag and an environment variable.

mod bind_address;
mod key;
mod pages;
mod web_address;

use std::{ffi::OsString, fmt, ops::RangeInclusive, path::PathBuf, str::FromStr, time::Duration};

use chrono_tz::Tz;
use clap::{Arg, Args, Command, Parser, builder::BoolishValueParser};
use club_directory::Source;
use common::address::{is_loopback, is_safe};
use url::Url;

use self::web_address::is_web_address;
pub use self::{
    bind_address::BindAddress,
    key::KeyOptions,
    pages::{Color, Logo, PageOptions},
    web_address::absolute_url,
};
pub use crate::secret::{Secret, SecretOption};
use crate::{
    database::{self, Limits},
    http::{cidr::Cidr, static_files::StaticFiles},
    logging::{self, Format},
};

/// Reads a command line and the environment. An empty environment variable counts as not set, because that is what
/// compose files and CI systems make of a variable without a value.
pub fn parse<C: Parser>(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<C, clap::Error> {
    // clap has read the environment by now, so the variable itself must be removed from the option. The help text still
    // names it.
    let mut command = C::command().mut_args(|option| match option.get_env() {
        Some(name) if std::env::var_os(name).is_some_and(|value| value.is_empty()) => {
            let help = format!("{} [env: {}=]", option.get_help().cloned().unwrap_or_default(), name.to_string_lossy());
            option.env(None).help(help)
        }
        _ => option,
    });
    // Copies the global options to the subcommands.
    command.build();
    let more =
        format!("All options of `{} --help`, such as --database-url, may be given here too.", command.get_name());
    let command = command.mut_subcommands(|subcommand| show_own_options_only(subcommand, &more));
    C::from_arg_matches(&command.try_get_matches_from(arguments)?)
}

/// The help of a subcommand would repeat every global option.
fn show_own_options_only(command: Command, more: &str) -> Command {
    let is_help = command.get_name() == "help";
    let command = command.mut_args(|option| if option.is_global_set() { option.hide(true) } else { option });
    let command = if is_help { command } else { command.after_help(more.to_owned()) };
    command.mut_subcommands(|subcommand| show_own_options_only(subcommand, more))
}

/// A parser of whole numbers within a range.
pub fn whole_number<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + fmt::Display + Clone,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("not a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Reads the name of a time zone.
pub fn time_zone(name: &str) -> Result<Tz, &'static str> {
    name.parse().map_err(|_| "it is no IANA name such as Asia/Tokyo")
}

/// Adds a default that clap does not know to the help of an option.
pub fn with_default(option: Arg, default: &str) -> Arg {
    let help = format!("{} [default: `{default}`]", option.get_help().cloned().unwrap_or_default());
    option.help(help)
}

/// Where and how a service listens, logs and ends.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerOptions {
    /// Address or host name, and port, to listen on. Port 0 takes any free port.
    #[arg(global = true, long, env = "BIND", default_value = "127.0.0.1:3000", value_name = "ADDRESS:PORT")]
    pub bind: BindAddress,

    /// URL that browsers use: scheme and host, without a path [default: http://ADDRESS:PORT].
    #[arg(global = true, long, env = "PUBLIC_URL", value_name = "URL", value_parser = absolute_url)]
    pub public_url: Option<Url>,

    /// Folder of a front end to serve: each file at its path, and `index.html` at every other path that is not the
    /// service's own.
    #[arg(global = true, long = "static", env = "STATIC", value_name = "FOLDER")]
    pub static_folder: Option<PathBuf>,

    /// Other origins whose pages may call this service with credentials (CORS), comma-separated.
    #[arg(global = true, long, env = "ALLOWED_ORIGINS", value_name = "ORIGIN", value_delimiter = ',')]
    pub allowed_origins: Vec<String>,

    /// CIDR blocks of the reverse proxies in front, comma-separated. Only they may send `X-Forwarded-For` and, to the
    /// portfolio-service, the sign-in name. Behind any other proxy, all clients have the proxy's address. Public blocks
    /// larger than /8 (IPv4) or /16 (IPv6) are refused.
    #[arg(global = true, long, env = "TRUSTED_PROXIES", value_name = "CIDR", value_delimiter = ',')]
    pub trusted_proxies: Vec<Cidr>,

    /// Requests a minute that each replica accepts from a user, or without sign-in from an address. 0 means no limit.
    #[arg(global = true, long, env = "RATE_LIMIT", value_name = "N", default_value_t = 1200,
          value_parser = whole_number(0..=u32::MAX))]
    pub rate_limit: u32,

    /// Objects that a user without special rights may create and change in 24 hours, over all replicas. 0 means no limit.
    #[arg(global = true, long, env = "DAILY_LIMIT", value_name = "N", default_value_t = 2000,
          value_parser = whole_number(0..=u32::MAX))]
    pub daily_limit: u32,

    /// Days for which the history of changes is kept.
    #[arg(global = true, long, env = "HISTORY_DAYS", value_name = "DAYS", default_value_t = 730,
          value_parser = whole_number(30..=36500_u32))]
    pub history_days: u32,

    /// Number of worker threads [default: one per processor].
    #[arg(global = true, long, env = "WORKERS", value_name = "N",
          value_parser = whole_number::<u16>(1..=512))]
    pub workers: Option<u16>,

    /// Seconds until a request is answered 503, unless its answer has begun.
    #[arg(global = true, long, env = "REQUEST_TIMEOUT", value_name = "SECONDS", default_value_t = 30,
          value_parser = whole_number::<u64>(1..=600))]
    pub request_timeout: u64,

    /// Seconds between SIGTERM or SIGINT and the closing of the port. Meanwhile `/readyz` answers 503, so that a load
    /// balancer stops sending requests.
    #[arg(global = true, long, env = "DRAIN_DELAY", value_name = "SECONDS", default_value_t = 0,
          value_parser = whole_number::<u64>(0..=600))]
    pub drain_delay: u64,

    /// Seconds that running requests have to finish after the port has closed.
    #[arg(global = true, long, env = "SHUTDOWN_TIMEOUT", value_name = "SECONDS", default_value_t = 25,
          value_parser = whole_number::<u64>(0..=600))]
    pub shutdown_timeout: u64,

    /// Log level (error, warn, info, debug, trace or off), or filters by target such as `info,access=warn`.
    #[arg(global = true, long, env = "LOG", value_name = "FILTER", default_value = "info",
          value_parser = logging::parse_filter)]
    pub log: String,

    /// Format of a log record: a line of text or a JSON object.
    #[arg(global = true, long, env = "LOG_FORMAT", value_enum, default_value_t = Format::Plain)]
    pub log_format: Format,

    /// What the pages show.
    #[command(flatten)]
    pub pages: PageOptions,
}

/// How long a request waits for a database connection and then for a lock.
pub const CHECKOUT: Duration = Duration::from_millis(2500);

/// Where the database is and how it is used.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Database")]
pub struct DatabaseOptions {
    /// URL of the database: `sqlite://FILE`, or `postgres://…` as libpq reads it.
    #[arg(
        id = "database_url",
        global = true,
        long = "database-url",
        env = "DATABASE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub url: Option<Secret>,

    /// File that contains the URL of the database.
    #[arg(
        id = "database_url_file",
        global = true,
        long = "database-url-file",
        env = "DATABASE_URL_FILE",
        value_name = "FILE"
    )]
    pub url_file: Option<PathBuf>,

    /// Maximum number of connections; on SQLite, of readers beside the one writer [default: 8, on SQLite 4].
    #[arg(global = true, long, env = "DATABASE_CONNECTIONS", value_name = "N",
          value_parser = whole_number::<u32>(1..=1000))]
    pub database_connections: Option<u32>,

    /// Seconds that the database statements of one request may take; then it is answered 503.
    #[arg(global = true, long, env = "DATABASE_TIMEOUT", value_name = "SECONDS", default_value_t = 10,
          value_parser = whole_number::<u64>(1..=300))]
    pub database_timeout: u64,

    /// [`CHECKOUT`]. Not an option: only tests, which may run on a slow machine, wait longer.
    #[arg(skip = CHECKOUT)]
    pub checkout: Duration,
}

impl DatabaseOptions {
    /// The address as it was given.
    pub fn given_url(&self) -> SecretOption<'_> {
        SecretOption("database-url", self.url.as_ref(), self.url_file.as_deref())
    }

    /// The address, or `default`.
    ///
    /// # Errors
    /// One line about the wrong option. A known password is a fault unless only this machine can reach the service
    /// (`is_loopback`).
    pub fn resolved_url(&self, default: &str, is_loopback: bool) -> Result<database::Url, String> {
        let given = self.given_url().resolve()?;
        let url = given.as_ref().map_or(default, Secret::reveal);
        let url: database::Url = url.parse().map_err(|error| format!("--database-url {error}"))?;
        if url.has_known_password() && !is_loopback {
            return Err(
                "--database-url has a password that is empty, the user's name or one that everybody knows".to_owned()
            );
        }
        Ok(url)
    }

    /// The limits of the connection pool.
    pub fn limits(&self) -> Limits {
        Limits {
            connections: self.database_connections,
            checkout: self.checkout,
            work: Duration::from_secs(self.database_timeout),
        }
    }
}

impl ServerOptions {
    /// Scheme and authority that browsers use, without a slash at the end.
    pub fn public_origin(&self) -> String {
        match &self.public_url {
            Some(url) => url.origin().ascii_serialization(),
            None => format!("http://{}", self.bind),
        }
    }

    /// Whether browsers use https, so that cookies must be `Secure`.
    pub fn is_https(&self) -> bool {
        self.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }

    /// Whether only this machine can reach the service.
    pub fn is_loopback(&self) -> bool {
        self.bind.is_loopback()
    }

    /// A warning if a proxy is in front, and the default public address can hardly be the one that browsers use.
    pub fn missing_public_url(&self) -> Option<String> {
        let is_missing = self.public_url.is_none() && !self.trusted_proxies.is_empty();
        is_missing.then(|| format!("--public-url is not set, behind a proxy: it is {}", self.public_origin()))
    }

    /// Why the development mode is not allowed with these options, one line each (contract, "Development mode"). In
    /// that mode every client may act as every user, so only this machine may reach the service. `missing` names the
    /// options that end the mode.
    pub fn development_faults(&self, missing: &str) -> Vec<String> {
        let why = format!("without {missing} anybody could act as anyone");
        let mut faults = Vec::new();
        if !self.is_loopback() {
            faults.push(format!("--bind {}: not a loopback address, and {why}", self.bind));
        }
        if self.public_url.as_ref().is_some_and(|url| is_web_address(url) && !is_loopback(url)) {
            faults.push(format!("--public-url {}: not a loopback address, and {why}", self.public_origin()));
        }
        if !self.trusted_proxies.is_empty() {
            faults.push(format!("--trusted-proxies: others reach the service by the proxy, and {why}"));
        }
        faults
    }

    /// The faults of these options, one line each.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if let Some(url) = &self.public_url {
            if !is_web_address(url) {
                faults.push("--public-url must be an http or https address".to_owned());
            } else if url.as_str() != format!("{}/", self.public_origin()) {
                faults.push("--public-url must have no path, query, fragment, user name or password".to_owned());
            }
        }
        faults.extend(self.static_folder.as_deref().and_then(StaticFiles::fault));
        faults.extend(self.pages.fault());
        for block in self.trusted_proxies.iter().filter(|block| block.is_too_large()) {
            faults.push(format!("--trusted-proxies: {block} is larger than /8 (IPv4) or /16 (IPv6), and not private"));
        }
        for origin in &self.allowed_origins {
            if Url::parse(origin).ok().is_none_or(|url| url.origin().ascii_serialization() != *origin) {
                faults.push(format!(
                    "--allowed-origins: {origin:?} is no origin such as https://club.example, without a slash at the end"
                ));
            }
        }
        faults
    }
}

/// Where users and groups come from (contract, "The club directory"). Without any of these there is no directory.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Directory")]
pub struct DirectoryOptions {
    /// TOML or JSON file with the club's users and groups.
    #[arg(global = true, long, env = "DIRECTORY_FILE", value_name = "FILE")]
    pub directory_file: Option<PathBuf>,

    /// URL of the API of a traQ server with the club's users and groups, such as `https://traq.example/api/v3`.
    #[arg(global = true, long, env = "TRAQ_URL", value_name = "URL", value_parser = absolute_url)]
    pub traq_url: Option<Url>,

    /// Token for the traQ server.
    #[arg(global = true, long, env = "TRAQ_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    #[arg(allow_hyphen_values = true)]
    pub traq_token: Option<Secret>,

    /// File that contains the token for the traQ server.
    #[arg(global = true, long, env = "TRAQ_TOKEN_FILE", value_name = "FILE")]
    pub traq_token_file: Option<PathBuf>,

    /// Allow plain http to other machines in `--traq-url` and the addresses of other services, for example in a network of containers.
    /// Tokens are then sent unencrypted.
    #[arg(global = true, long, env = "ALLOW_INSECURE_UPSTREAM", value_parser = BoolishValueParser::new())]
    pub allow_insecure_upstream: bool,
}

impl DirectoryOptions {
    /// The token for the traQ server, as it was given.
    pub fn token(&self) -> SecretOption<'_> {
        SecretOption("traq-token", self.traq_token.as_ref(), self.traq_token_file.as_deref())
    }

    /// Refuses an address to which a token would go unencrypted.
    pub fn check_upstream(&self, option: &str, url: &Url) -> Result<(), String> {
        if self.allow_insecure_upstream || is_safe(url).is_ok() {
            return Ok(());
        }
        Err(format!(
            "{option}: plain http would show the token to others: use https, a loopback address, or \
             --allow-insecure-upstream"
        ))
    }

    /// The configured source, if any.
    pub fn source(&self) -> Result<Option<Source>, String> {
        let token = self.token().resolve()?;
        if self.traq_url.as_ref().is_some_and(|url| !url.username().is_empty() || url.password().is_some()) {
            return Err("--traq-url must have no user name and no password: --traq-token is for that".to_owned());
        }
        match (&self.directory_file, &self.traq_url, token) {
            (Some(_), Some(_), _) => Err("--directory-file and --traq-url are both given".to_owned()),
            (Some(file), None, _) => Ok(Some(Source::File(file.clone()))),
            (None, Some(base), Some(token)) => {
                self.check_upstream("--traq-url", base)?;
                Ok(Some(Source::Traq { base: base.clone(), token: token.reveal().to_owned() }))
            }
            (None, Some(_), None) => Err("--traq-url needs --traq-token or --traq-token-file".to_owned()),
            (None, None, _) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows_and_comes_from_one_place() {
        let secret: Secret = "hunter2".parse().unwrap();
        assert_eq!(format!("{secret:?}"), "[hidden]");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        std::fs::write(&file, "from file\n").unwrap();
        let read = SecretOption("key", None, Some(&file)).resolve().unwrap().unwrap();
        assert_eq!(read.reveal(), "from file");
        std::fs::write(&file, "\u{feff}from \u{feff}editor\r\n").unwrap();
        let read = SecretOption("key", None, Some(&file)).resolve().unwrap().unwrap();
        assert_eq!(read.reveal(), "from \u{feff}editor");
        std::fs::write(&file, "\u{feff}\n").unwrap();
        assert!(SecretOption("key", None, Some(&file)).resolve().unwrap_err().contains("is empty"));
        std::fs::write(&file, "one\ntwo\n").unwrap();
        let lines = SecretOption("key", None, Some(&file));
        assert_eq!(lines.resolve().unwrap_err(), "--key-file: a secret has one line");
        assert_eq!(lines.resolve_lines().unwrap().unwrap().reveal(), "one\ntwo");
        for path in ["/dev/zero", folder.path().to_str().unwrap()] {
            let refusal = SecretOption("key", None, Some(path.as_ref())).resolve().unwrap_err();
            assert!(
                refusal.starts_with("--key-file: cannot read") && refusal.contains("not a regular file"),
                "{refusal}"
            );
        }
        assert!(SecretOption("key", Some(&secret), Some(&file)).resolve().is_err());
        assert!(SecretOption("key", None, Some(&folder.path().join("none"))).resolve().is_err());
        assert_eq!(SecretOption("key", None, None).resolve().unwrap(), None);
    }
}
