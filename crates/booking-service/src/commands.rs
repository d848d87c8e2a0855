//! The command line: one function for each command.

use std::io::{self, Write};

use chrono::TimeDelta;
use common::time::Clock;
use service_kit::{
    database::{Database, types::DbTimestamp},
    error::Error,
    health,
    maintenance::{
        cli::{DatabaseCommand, Refused},
        tables::Contents,
    },
};

use crate::{
    auth::Scope,
    club::Club,
    config::{Cli, Command, Config, ScopeArg, TokenCommand, UserCommand},
    schema, server,
    sign_in::tokens::{self, TokenRow},
    users,
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
        Command::Sync => sync(config).await,
        Command::Database(command) => database(config, command).await,
        Command::Token(command) => token(config, command).await,
        Command::User(UserCommand::GrantPrivilege { name }) => grant_privilege(config, name).await,
    };
    let (lines, status) = match done {
        Ok(()) => return 0,
        Err(Stopped::Faults(faults)) => (faults, FAULTY_OPTIONS),
        Err(Stopped::Failure(cause)) => (vec![cause.replace('\n', " ")], 1),
    };
    for line in lines {
        // Not through the log, whose filter may hide it. Without standard error nobody can be told anyway.
        let _ = writeln!(io::stderr(), "booking-service: {line}");
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

async fn sync(config: &Config) -> Result<(), Stopped> {
    let club = Club::new(config).map_err(|fault| Stopped::Faults(vec![fault]))?;
    if club.directory.is_none() {
        return Err(Stopped::Faults(vec!["sync needs --directory-file or --traq-url".to_owned()]));
    }
    Ok(users::sync::run(&open(config).await?, &club, Clock::default().now()).await?)
}

async fn database(config: &Config, command: DatabaseCommand) -> Result<(), Stopped> {
    let url = config.database_url().map_err(|fault| Stopped::Faults(vec![fault]))?;
    let contents = Contents { migrations: &server::MIGRATIONS, tables: schema::TABLES };
    // A reader who has gone away is no reason to stop half way.
    let say = |line: &str| drop(print(&[line.to_owned()]));
    Ok(command.run(url, contents, say).await?)
}

async fn token(config: &Config, command: TokenCommand) -> Result<(), Stopped> {
    let (db, now) = (open(config).await?, Clock::default().now());
    match command {
        TokenCommand::Create { user, name, scope, expires_in } => {
            let scope = match scope {
                ScopeArg::Read => Scope::Read,
                ScopeArg::Write => Scope::Write,
            };
            let expires_at = expires_in.map(|days| now.plus(TimeDelta::days(days.into())));
            let token = db.write(move |conn| tokens::create(conn, &user, &name, scope, expires_at, now)).await?;
            print(&[token.reveal().to_owned()])
        }
        TokenCommand::List { user } => {
            let rows = db.read(move |conn| tokens::list(conn, user.as_deref())).await?;
            print(&rows.iter().map(|row| line(row, config)).collect::<Vec<_>>())
        }
        TokenCommand::Revoke { id } => Ok(db.write(move |conn| tokens::revoke(conn, id, now)).await?),
    }
}

/// A token as a line of fields between tabs. The name goes last, being the owner's words.
fn line(token: &TokenRow, config: &Config) -> String {
    let shown = |moment: DbTimestamp| moment.in_zone(config.time_zone).to_string();
    let expires = token.expires_at.map_or_else(|| "never".to_owned(), shown);
    let used = token.last_used_at.map_or_else(|| "never".to_owned(), shown);
    let (made, name) = (shown(token.created_at), token.name.replace(['\t', '\n', '\r'], " "));
    format!("{}\t{}\t{}\t{made}\t{expires}\t{used}\t{name}", token.id, token.user_name, token.scope.word())
}

async fn grant_privilege(config: &Config, name: String) -> Result<(), Stopped> {
    let db = open(config).await?;
    Ok(db.write(move |conn| users::queries::grant_privilege(conn, &name)).await?)
}

fn print(lines: &[String]) -> Result<(), Stopped> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}
