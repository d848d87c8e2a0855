//! The command line: every option is a flag and an environment variable.

use std::path::PathBuf;

use chrono_tz::Tz;
use clap::{Args, Parser, Subcommand, builder::BoolishValueParser};
use service_kit::{
    config::{DatabaseOptions, DirectoryOptions, Secret, ServerOptions},
    db,
    directory::Source,
};

/// Projects, contests, groups, events and accounts of a student club's members.
#[derive(Debug, Parser)]
#[command(name = "portfolio-service", version, max_term_width = 120)]
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
    /// Print what is wrong with the options, one line a fault, and exit with 78 if anything is
    CheckConfig,
    /// Bring users and groups in from the club's directory
    Sync,
}

/// The options.
#[derive(Debug, Clone, Args)]
// This service's own port, so that both run beside each other without an option.
#[command(mut_arg("bind", |bind| bind.default_value("127.0.0.1:3001")))]
pub struct Config {
    /// Time zone of the club, as an IANA name: a semester begins when its first day does there.
    #[arg(long, env = "TIME_ZONE", value_name = "ZONE", default_value = "UTC", global = true)]
    pub time_zone: Tz,

    /// Sign-in names of those who may do everything, comma-separated.
    #[arg(long, env = "ADMINS", value_name = "NAME", value_delimiter = ',', global = true)]
    pub admins: Vec<String>,

    /// Fill an empty database with a made-up club.
    #[arg(long, env = "DEMO", global = true, value_parser = BoolishValueParser::new())]
    pub demo: bool,

    /// Where the database is: sqlite://FILE or postgres://… as libpq reads it
    /// [default: sqlite://data/portfolio.sqlite3].
    #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true, global = true)]
    pub database_url: Option<Secret>,

    /// File that holds the address of the database.
    #[arg(long, env = "DATABASE_URL_FILE", value_name = "FILE", global = true)]
    pub database_url_file: Option<PathBuf>,

    /// How the service listens, logs and ends.
    #[command(flatten)]
    pub server: ServerOptions,

    /// How the database is used.
    #[command(flatten)]
    pub database: DatabaseOptions,

    /// Where users and groups come from.
    #[command(flatten)]
    pub directory: DirectoryOptions,
}

/// Where the database is when nothing is said.
const DEFAULT_DATABASE: &str = "sqlite://data/portfolio.sqlite3";

impl Config {
    /// What is wrong with the options, one line a fault.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.server.faults();
        faults.extend(self.database_url().err());
        faults.extend(self.directory().err());
        faults
    }

    /// Where the database is.
    ///
    /// # Errors
    /// One line saying what is wrong with the options.
    pub fn database_url(&self) -> Result<db::Url, String> {
        let given = Secret::resolve("database-url", self.database_url.as_ref(), self.database_url_file.as_deref())?;
        let url = given.as_ref().map_or(DEFAULT_DATABASE, Secret::reveal);
        url.parse().map_err(|error| format!("--database-url {error}"))
    }

    /// Where users and groups come from, if from anywhere.
    ///
    /// # Errors
    /// One line saying what is wrong with the options.
    pub fn directory(&self) -> Result<Option<Source>, String> {
        self.directory.source()
    }
}
