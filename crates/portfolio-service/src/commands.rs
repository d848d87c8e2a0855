//! The command line: one function for each command.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use common::time::Clock;
use service_kit::error::Error;

use crate::{
    club::Club,
    config::{Cli, Command, Config},
    server, sync,
};

/// Exit status when the options are at fault (`EX_CONFIG` of sysexits.h): starting again will not help.
const FAULTY_OPTIONS: u8 = 78;

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

/// Runs the command of a command line, `serve` when it has none. What a command answers goes to standard output,
/// everything else to standard error. Exits with 0, with 78 when the options are at fault, else with 1.
pub async fn run(cli: Cli) -> ExitCode {
    let config = &cli.config;
    let done = match cli.command.unwrap_or(Command::Serve) {
        Command::Serve => serve(config).await,
        Command::Migrate => migrate(config).await,
        Command::Openapi => openapi(),
        Command::CheckConfig => return check_config(config),
        Command::Sync => synchronize(config).await,
    };
    let (lines, status) = match done {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Stopped::Faults(faults)) => (faults, ExitCode::from(FAULTY_OPTIONS)),
        Err(Stopped::Failure(cause)) => (vec![cause.replace('\n', " ")], ExitCode::FAILURE),
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
    Ok(server::start(config, Clock::default()).await?.serve().await?)
}

async fn migrate(config: &Config) -> Result<(), Stopped> {
    config.database_url().map_err(|fault| Stopped::Faults(vec![fault]))?;
    server::open(config).await?;
    Ok(())
}

async fn synchronize(config: &Config) -> Result<(), Stopped> {
    let club = Club::new(config).map_err(|fault| Stopped::Faults(vec![fault]))?;
    config.database_url().map_err(|fault| Stopped::Faults(vec![fault]))?;
    if club.directory.is_none() {
        return Err(Stopped::Faults(vec!["sync needs --directory-file, or --traq-url and its token".to_owned()]));
    }
    let db = server::open(config).await?;
    let done = sync::run(&db, &club, Clock::default().now()).await.map_err(Error::into_problem);
    done.map_err(|problem| Stopped::Failure(problem.cause().unwrap_or("the sync failed").to_owned()))
}

fn openapi() -> Result<(), Stopped> {
    let document = service_kit::server::document(&server::ABOUT).to_pretty_json();
    print(&[document.map_err(|error| Stopped::Failure(error.to_string()))?])
}

fn check_config(config: &Config) -> ExitCode {
    let mut lines = config.faults();
    let status = if lines.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAULTY_OPTIONS) };
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
