//! The command line: one function for each command.

use std::io::{self, Write};

use common::time::Clock;
use service_kit::{
    database::Database,
    error::Error,
    health,
    maintenance::{
        cli::{DatabaseCommand, Refused},
        tables::Contents,
    },
};

use crate::{
    club::Club,
    config::{Cli, Command, Config},
    schema, server, sync,
};

/// Exit status when the options are at fault (`EX_CONFIG` of sysexits.h): starting again will not help.
const FAULTY_OPTIONS: i32 = 78;

/// Why a command did not do what it was asked to.
enum Stopped {
    /// The options are at fault: one line for each fault.
    Faults(Vec<String>),
    /// Anything else, as one line.
    Failure(String),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Failure(error.to_string())
    }
}

impl From<Refused> for Stopped {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Options(fault) => Self::Faults(vec![fault]),
            Refused::Failed(cause) => Self::Failure(cause),
        }
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        let problem = error.into_problem();
        // Whoever runs a command may read the cause, which a caller over HTTP may not.
        Self::Failure(problem.cause().map_or_else(|| problem.explanation(), str::to_owned))
    }
}

/// Runs the command of a command line, `serve` when it has none. What a command answers goes to standard output,
/// everything else to standard error. The exit status is 0, 78 when the options are at fault, else 1.
pub async fn run(cli: Cli) -> i32 {
    let config = &cli.config;
    let done = match cli.command.unwrap_or(Command::Serve) {
        Command::Serve => serve(config).await,
        Command::Migrate => migrate(config).await,
        Command::Openapi => openapi(),
        Command::Health => health(config).await,
        Command::CheckConfig => return check_config(config),
        Command::Sync => synchronize(config).await,
        Command::Database(command) => database(config, command).await,
    };
    let (lines, status) = match done {
        Ok(()) => return 0,
        Err(Stopped::Faults(faults)) => (faults, FAULTY_OPTIONS),
        Err(Stopped::Failure(cause)) => (vec![cause.replace('\n', " ")], 1),
    };
    for line in lines {
        // Not through the log, whose filter may hide it. Without standard error nobody can be told anyway.
        let _ = writeln!(io::stderr(), "portfolio-service: {line}");
    }
    status
}

async fn serve(config: &Config) -> Result<(), Stopped> {
    let faults = config.faults();
    if !faults.is_empty() {
        return Err(Stopped::Faults(faults));
    }
    warn(config);
    Ok(server::start(config, Clock::default()).await?.serve().await?)
}

fn warn(config: &Config) {
    for line in config.warnings() {
        log::warn!("{line}");
    }
}

/// Opens the database, its schema up to date.
async fn open(config: &Config) -> Result<Database, Stopped> {
    config.database_url().map_err(|fault| Stopped::Faults(vec![fault]))?;
    Ok(server::open(config).await?)
}

async fn migrate(config: &Config) -> Result<(), Stopped> {
    open(config).await.map(|_| ())
}

async fn synchronize(config: &Config) -> Result<(), Stopped> {
    let club = Club::new(config).map_err(|fault| Stopped::Faults(vec![fault]))?;
    if club.directory.is_none() {
        return Err(Stopped::Faults(vec!["sync needs --directory-file, or --traq-url and its token".to_owned()]));
    }
    Ok(sync::run(&open(config).await?, &club, Clock::default().now()).await?)
}

async fn database(config: &Config, command: DatabaseCommand) -> Result<(), Stopped> {
    let url = config.database_url().map_err(|fault| Stopped::Faults(vec![fault]))?;
    let contents = Contents { migrations: &server::MIGRATIONS, tables: schema::TABLES };
    // A reader who has gone away is no reason to stop half way.
    let say = |line: &str| drop(print(&[line.to_owned()]));
    Ok(command.run(url, contents, say).await?)
}

fn openapi() -> Result<(), Stopped> {
    let document = server::ABOUT.openapi().to_pretty_json();
    print(&[document.map_err(|error| Stopped::Failure(error.to_string()))?])
}

async fn health(config: &Config) -> Result<(), Stopped> {
    health::check(config.server.bind).await.map_err(Stopped::Failure)
}

fn check_config(config: &Config) -> i32 {
    warn(config);
    let mut lines = config.faults();
    let status = if lines.is_empty() { 0 } else { FAULTY_OPTIONS };
    if lines.is_empty() {
        lines.push("ok".to_owned());
    }
    // The status says it all, should nobody read the output.
    let _ = print(&lines);
    status
}

fn print(lines: &[String]) -> Result<(), Stopped> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}
