//! The command line: one function for each command of this service.

use ::import::{Import, ImportOptions};
use chrono_tz::Tz;
use club_sign_in::provider::Provider;
use common::time::Clock;
use service_kit::{
    cli::{CommandContext, CommonCommand, SyncOptions},
    command::{CommandError, exit_status, print},
    config::DatabaseOptions,
    directory,
    maintenance::tables::Contents,
};

use crate::{
    club::Club,
    config::{Cli, Command, Config},
    import, schema, server, sync,
};

/// Runs the command, `serve` by default, and returns the exit status.
pub async fn run(cli: Cli) -> i32 {
    let config = &cli.config;
    let outcome = match cli.command.unwrap_or(Command::Serve) {
        Command::Serve => serve(config).await,
        Command::Sync(options) => synchronize(config, &options).await,
        Command::Import(options) => import(config, options).await,
        Command::Common(command) => {
            let mut context = command_context(config);
            if let (CommonCommand::CheckConfig, Ok(Some(settings))) = (&command, config.provider()) {
                context.warnings.extend(Provider::new(Some(settings), false).doubts().await);
            }
            return context.run(command).await;
        }
    };
    exit_status(server::INFO.name, outcome)
}

fn command_context(config: &Config) -> CommandContext<'_> {
    CommandContext {
        info: &server::INFO,
        contents: Contents { migrations: &server::MIGRATIONS, tables: schema::TABLES, silence: |_| Ok(Vec::new()) },
        server: &config.server,
        database: &config.database,
        database_url: config.database_url(),
        directory: config.directory().ok().flatten(),
        names: sync::NAMES,
        listed: &config.admins,
        faults: config.faults(),
        warnings: config.warnings(),
    }
}

async fn serve(config: &Config) -> Result<(), CommandError> {
    command_context(config).check()?;
    Ok(server::start(config, Clock::default()).await?.serve().await?)
}

/// The club of a command that needs the club directory.
fn club_with_directory(config: &Config, command: &str) -> Result<Club, CommandError> {
    let club = Club::new(config).map_err(CommandError::option)?;
    if club.directory.is_none() {
        return Err(CommandError::option(format!("{command} needs --directory-file or --traq-url")));
    }
    Ok(club)
}

async fn synchronize(config: &Config, options: &SyncOptions) -> Result<(), CommandError> {
    let club = club_with_directory(config, "sync")?;
    let db = command_context(config).open_existing().await?;
    print(&[sync::run(&db, &club, options.force, Clock::default().now()).await?.to_string()])
}

async fn import(config: &Config, options: ImportOptions) -> Result<(), CommandError> {
    let club = club_with_directory(config, "import")?;
    let directory = directory::fetch(club.directory.as_ref()).await?;
    // The source stores its times in UTC.
    let import = Import::connect(options, import::TABLES, Tz::UTC).await?;
    // The import is one long transaction.
    let database = DatabaseOptions { database_timeout: 3600, ..config.database.clone() };
    let db = CommandContext { database: &database, ..command_context(config) }.open_existing().await?;
    let now = Clock::default().now();
    print(&import::run(import, &db, directory, club.semester(now), now).await?.lines())
}
