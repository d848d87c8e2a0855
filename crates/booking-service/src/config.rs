//! The command line: every option is a flag and an environment variable.

mod sign_in;

use std::{collections::HashSet, path::PathBuf, sync::LazyLock};

use chrono_tz::Tz;
use clap::{Args, Parser, Subcommand, ValueEnum, builder::BoolishValueParser};
use service_kit::{
    cli::CommonCommand,
    config::{DatabaseOptions, DirectoryOptions, Secret, SecretOption, ServerOptions, with_default},
    credentials::{Keys, random_secret},
    database,
    directory::Source,
    error::Error,
    import::ImportOptions,
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
    /// What every service can do.
    #[command(flatten)]
    Common(CommonCommand),
    /// Bring users and groups in from the club's directory
    Sync,
    /// Bring in the database of the system that this service replaces, whose local times are those of --time-zone
    Import(ImportOptions),
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
    /// The board at `/board?kiosk=TOKEN`, and nothing else: for a screen beside a room.
    Board,
}

/// `user …`
#[derive(Debug, Clone, Subcommand)]
pub enum UserCommand {
    /// List users: sign-in name, state, whether privileged, shown name
    List,
    /// Make a user privileged
    GrantPrivilege {
        /// Sign-in name.
        name: String,
    },
}

/// The options.
#[derive(Debug, Clone, Args)]
#[command(
    next_help_heading = "Club",
    mut_args(|option| if option.get_id() == "database_url" { with_default(option, DEFAULT_DATABASE) } else { option })
)]
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
    /// keys, whose cookies and addresses are still good. In development mode it is random at each start unless given.
    #[arg(long, env = "SECRET_KEY", value_name = "TEXT", hide_env_values = true, global = true)]
    pub secret_key: Option<Secret>,

    /// File that holds the key, and former ones below it.
    #[arg(long, env = "SECRET_KEY_FILE", value_name = "FILE", global = true)]
    pub secret_key_file: Option<PathBuf>,

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

/// What ends the development mode.
const WITHOUT_PROVIDER: &str = "a sign-in provider (--oidc-issuer or --oauth-…)";

/// The default address of the database.
const DEFAULT_DATABASE: &str = "sqlite://data/booking.sqlite3";

/// A key that former versions used in development mode. It is public.
const PUBLIC_KEY: &str = "development only: anybody can read this key";

/// The key of this process in development mode.
static RANDOM_KEY: LazyLock<Result<Secret, String>> =
    LazyLock::new(|| random_secret().map(Secret::from).map_err(Error::describe));

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
                [self.directory.token(), self.sign_in.client_secret()].into_iter().filter_map(SecretOption::too_short),
            );
        }
        if self.everyone_group.trim().is_empty() || self.everyone_group.chars().count() > 32 {
            faults.push("--everyone-group must have 1 to 32 characters".to_owned());
        }
        match self.sign_in.provider(&self.server) {
            Err(found) => faults.extend(found),
            Ok(None) => faults.extend(self.server.development_faults(WITHOUT_PROVIDER)),
            Ok(Some(_)) => {}
        }
        faults
    }

    /// What a start allows but an installation should not have, one line each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let key = SecretOption("secret-key", self.secret_key.as_ref(), self.secret_key_file.as_deref());
        let secrets = [key, self.database.given_url(), self.directory.token(), self.sign_in.client_secret()];
        let exposed = secrets.into_iter().filter_map(SecretOption::exposed);
        // The existing front end compares the dates of answers with those of the browser's zone.
        let hides_rooms = self.server.static_folder.is_some() && self.time_zone == Tz::UTC;
        let zone = "--time-zone is UTC: a front end elsewhere shows some rooms on another day, or not at all";
        exposed.chain(hides_rooms.then(|| zone.to_owned())).collect()
    }

    /// Whether anybody may choose who they are (contract, "Development mode"): there is no sign-in provider, and only this
    /// machine can reach the service.
    #[must_use]
    pub fn is_development(&self) -> bool {
        let has_no_provider = matches!(self.sign_in.provider(&self.server), Ok(None));
        has_no_provider && self.server.development_faults(WITHOUT_PROVIDER).is_empty()
    }

    /// Where the database is.
    ///
    /// # Errors
    /// One line saying what is wrong with the options.
    pub fn database_url(&self) -> Result<database::Url, String> {
        self.database.resolved_url(DEFAULT_DATABASE, self.server.is_loopback())
    }

    /// The keys of this installation.
    ///
    /// # Errors
    /// One line saying what is wrong with the options.
    pub fn keys(&self) -> Result<Keys, String> {
        let given = Secret::resolve("secret-key", self.secret_key.as_ref(), self.secret_key_file.as_deref())?;
        let key = match given {
            Some(key) => key,
            // Without a provider nothing but the development mode starts.
            None if self.server.is_loopback() && matches!(self.sign_in.provider(&self.server), Ok(None)) => {
                RANDOM_KEY.clone()?
            }
            None => {
                return Err("--secret-key is needed with a sign-in provider and on any address but loopback".to_owned());
            }
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
            if line == PUBLIC_KEY {
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
