//! The command line: every option is a flag and an environment variable.

mod sign_in;

use std::{collections::HashSet, path::PathBuf};

use chrono::NaiveDate;
use chrono_tz::Tz;
use clap::{Args, Parser, Subcommand, ValueEnum, builder::BoolishValueParser};
use service_kit::{
    config::{DatabaseOptions, DirectoryOptions, Given, Secret, ServerOptions},
    credentials::Keys,
    database,
    directory::{Source, seed::Size},
    maintenance::cli::DatabaseCommand,
};

pub use self::sign_in::{Addresses, ProviderKind, ProviderSettings, SignInOptions};
use crate::limits::LimitOptions;

/// Lecture rooms, their use, groups, attendance, tags, calendar feeds and sign-in of a student club.
#[derive(Debug, Parser)]
#[command(name = "booking-service", version, max_term_width = 120)]
pub struct Cli {
    /// What to do; without one, `serve`.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// The options, the same for every command.
    #[command(flatten)]
    pub config: Config,
}

/// The commands.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Bring the database schema up to date and serve requests (the default)
    Serve,
    /// Bring the database schema up to date and end
    Migrate,
    /// Print the OpenAPI document
    Openapi,
    /// Ask the running service whether it is ready, and exit with 1 if it is not
    Health,
    /// Print what is wrong with the options, one line a fault, and exit with 78 if anything is
    CheckConfig,
    /// Bring users and groups in from the club's directory
    Sync,
    /// Back up, restore or move the database.
    #[command(flatten)]
    Database(DatabaseCommand),
    /// Fill an empty database with a made-up club of a given size, for measuring; a line on each step
    Seed {
        /// How much of everything.
        #[arg(long, value_enum)]
        size: Size,
        /// The day that everything is arranged around; it begins at midnight UTC [default: today]
        #[arg(long, value_name = "YYYY-MM-DD")]
        day: Option<NaiveDate>,
    },
    /// Make, list and revoke API tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Change users
    #[command(subcommand)]
    User(UserCommand),
}

/// `token …`
#[derive(Debug, Clone, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it; it is not shown again
    Create {
        /// Sign-in name of the owner.
        #[arg(long, value_name = "NAME")]
        user: String,
        /// What the token is for.
        #[arg(long, value_name = "TEXT")]
        name: String,
        /// What it allows.
        #[arg(long, value_enum, default_value_t = ScopeArg::Read)]
        scope: ScopeArg,
        /// Days until it expires; without this it does not.
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u16).range(1..=3650))]
        expires_in: Option<u16>,
    },
    /// List tokens: id, owner, scope, made, expires, last used, name
    List {
        /// Only those of this user.
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
    },
    /// Revoke a token
    Revoke {
        /// Its id, as `token list` shows it.
        id: uuid::Uuid,
    },
}

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScopeArg {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// `user …`
#[derive(Debug, Clone, Subcommand)]
pub enum UserCommand {
    /// Make a user privileged
    GrantPrivilege {
        /// Sign-in name.
        name: String,
    },
}

/// The options.
#[derive(Debug, Clone, Args)]
pub struct Config {
    /// Time zone of the club, as an IANA name: how times are shown and how an import reads them.
    #[arg(long, env = "TIME_ZONE", value_name = "ZONE", default_value = "UTC", global = true)]
    pub time_zone: Tz,

    /// Name of the group that every active member belongs to.
    #[arg(long, env = "EVERYONE_GROUP", value_name = "NAME", default_value = "traP", global = true)]
    pub everyone_group: String,

    /// Fill an empty database with a made-up club.
    #[arg(long, env = "DEMO", global = true, value_parser = BoolishValueParser::new())]
    pub demo: bool,

    /// Key of this installation, 32 characters or more: seals cookies and makes feed addresses. More lines are former
    /// keys, whose cookies and addresses are still good. On loopback there is a well-known one for development.
    #[arg(long, env = "SECRET_KEY", value_name = "TEXT", hide_env_values = true, global = true)]
    pub secret_key: Option<Secret>,

    /// File that holds the key, and former ones below it.
    #[arg(long, env = "SECRET_KEY_FILE", value_name = "FILE", global = true)]
    pub secret_key_file: Option<PathBuf>,

    /// Where the database is: `sqlite://FILE`, or `postgres://…` as libpq reads it
    /// [default: `sqlite://data/booking.sqlite3`].
    #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true, global = true)]
    pub database_url: Option<Secret>,

    /// File that holds the address of the database.
    #[arg(long, env = "DATABASE_URL_FILE", value_name = "FILE", global = true)]
    pub database_url_file: Option<PathBuf>,

    /// How the service listens, logs and ends.
    #[command(flatten)]
    pub server: ServerOptions,

    /// How often a caller may do something.
    #[command(flatten)]
    pub limits: LimitOptions,

    /// How the database is used.
    #[command(flatten)]
    pub database: DatabaseOptions,

    /// Where users and groups come from.
    #[command(flatten)]
    pub directory: DirectoryOptions,

    /// Who says who somebody is.
    #[command(flatten)]
    pub sign_in: SignInOptions,
}

/// Where the database is when nothing is said.
const DEFAULT_DATABASE: &str = "sqlite://data/booking.sqlite3";

/// The key on loopback when none is given. It is public, so nothing but development may rest on it.
const DEVELOPMENT_KEY: &str = "development only: anybody can read this key";

impl Config {
    /// What is wrong with the options, one line a fault.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.server.faults();
        faults.extend(self.database_url().err());
        faults.extend(self.keys().err());
        faults.extend(self.directory().err());
        if !self.server.is_loopback() {
            faults.extend(
                [self.directory.token(), self.sign_in.client_secret()].into_iter().filter_map(Given::too_short),
            );
        }
        if self.everyone_group.trim().is_empty() || self.everyone_group.chars().count() > 32 {
            faults.push("--everyone-group must have 1 to 32 characters".to_owned());
        }
        match self.sign_in.provider(&self.server) {
            Err(found) => faults.extend(found),
            Ok(None) if !self.server.is_loopback() => faults.push(format!(
                "--bind {}: without a sign-in provider only loopback addresses are allowed, because the development \
                 sign-in lets anybody be anyone",
                self.server.bind
            )),
            Ok(_) => {}
        }
        faults
    }

    /// What a start allows but an installation should not have, one line each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let key = Given("secret-key", self.secret_key.as_ref(), self.secret_key_file.as_deref());
        let url = Given("database-url", self.database_url.as_ref(), self.database_url_file.as_deref());
        let secrets = [key, url, self.directory.token(), self.sign_in.client_secret()];
        let exposed = secrets.into_iter().filter_map(Given::exposed);
        // The existing front end compares the dates of answers with those of the browser's zone.
        let hides_rooms = self.server.static_folder.is_some() && self.time_zone == Tz::UTC;
        let zone = "--time-zone is UTC: a front end elsewhere shows some rooms on another day, or not at all";
        exposed.chain(hides_rooms.then(|| zone.to_owned())).collect()
    }

    /// Whether anybody may choose who they are: there is no sign-in provider, and only this machine can reach the
    /// service.
    #[must_use]
    pub fn is_development(&self) -> bool {
        self.server.is_loopback() && matches!(self.sign_in.provider(&self.server), Ok(None))
    }

    /// Where the database is.
    ///
    /// # Errors
    /// One line saying what is wrong with the options.
    pub fn database_url(&self) -> Result<database::Url, String> {
        let given = Secret::resolve("database-url", self.database_url.as_ref(), self.database_url_file.as_deref())?;
        let url = given.as_ref().map_or(DEFAULT_DATABASE, Secret::reveal);
        let url: database::Url = url.parse().map_err(|error| format!("--database-url {error}"))?;
        if url.has_known_password() && !self.server.is_loopback() {
            return Err(
                "--database-url has a password that is empty, the user's name or one that everybody knows".to_owned()
            );
        }
        Ok(url)
    }

    /// The keys of this installation.
    ///
    /// # Errors
    /// One line saying what is wrong with the options.
    pub fn keys(&self) -> Result<Keys, String> {
        let given = Secret::resolve("secret-key", self.secret_key.as_ref(), self.secret_key_file.as_deref())?;
        let key = match given {
            Some(key) => key,
            None if self.server.is_loopback() => {
                DEVELOPMENT_KEY.parse().map_err(|never: std::convert::Infallible| never.to_string())?
            }
            None => return Err("--secret-key is needed on any address but loopback".to_owned()),
        };
        for (index, line) in Keys::lines(&key).enumerate() {
            let which = if index == 0 { String::new() } else { format!(", former key {index},") };
            if line.chars().count() < Keys::SHORTEST {
                return Err(format!("--secret-key{which} must have {} characters or more", Keys::SHORTEST));
            }
            if line.chars().collect::<HashSet<_>>().len() < Keys::LEAST_VARIETY {
                return Err(format!(
                    "--secret-key{which} must have {} different characters or more",
                    Keys::LEAST_VARIETY
                ));
            }
            if line == DEVELOPMENT_KEY && !self.server.is_loopback() {
                return Err(format!("--secret-key{which} is the well-known key for development"));
            }
        }
        Ok(Keys::new(&key))
    }

    /// Where users and groups come from, if from anywhere; the demo without a directory has one of its own.
    ///
    /// # Errors
    /// One line saying what is wrong with the options.
    pub fn directory(&self) -> Result<Option<Source>, String> {
        Ok(self.directory.source()?.or(self.demo.then_some(Source::Demo)))
    }
}
