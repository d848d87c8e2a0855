//! The commands that every service has.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use club_directory::Source;

use crate::{
    command::{CommandError, WRONG_OPTIONS, exit_status, print},
    config::{DatabaseOptions, ServerOptions},
    database::{AnyConnection, Database, Url, migrate, types::words},
    directory::{self, NameRule},
    health,
    maintenance::{cli::DatabaseCommand, tables::Contents},
    state::ServiceInfo,
    with_connection,
};

/// The largest file of certificates. That of all public certificate authorities has 200 KiB.
const MAX_CERTIFICATE_BYTES: u64 = 8 << 20;

/// The commands that are the same in every service.
#[derive(Debug, Clone, Subcommand)]
pub enum CommonCommand {
    /// Bring the database schema up to date and exit
    Migrate,
    /// Print the OpenAPI document
    Openapi,
    /// Ask the running service whether it is ready, and exit with 1 if it is not
    Health,
    /// Check the options and ask the sign-in provider: print one line for each fault, and exit with 78 if there is one
    /// (with 2 at the first value that cannot be parsed)
    CheckConfig,
    /// Back up, restore or move the database.
    #[command(flatten)]
    Database(DatabaseCommand),
}

/// Options of the command `sync`.
#[derive(Debug, Clone, Args)]
pub struct SyncOptions {
    /// Accept a directory that takes access from more than half of the active members
    #[arg(long)]
    pub force: bool,
}

/// A service with its options.
pub struct CommandContext<'a> {
    /// The service.
    pub info: &'static ServiceInfo,
    /// Its tables.
    pub contents: Contents,
    /// How it listens.
    pub server: &'a ServerOptions,
    /// How the database is used.
    pub database: &'a DatabaseOptions,
    /// The address of the database, or what is wrong with it.
    pub database_url: Result<Url, String>,
    /// Where the directory is read from, if there is one.
    pub directory: Option<Source>,
    /// Its sign-in names.
    pub names: NameRule,
    /// Sign-in names that options contain, and that a directory file must have.
    pub listed: &'a [String],
    /// The faults of all options, one line each.
    pub faults: Vec<String>,
    /// What is allowed but not advisable, one line each.
    pub warnings: Vec<String>,
}

impl CommandContext<'_> {
    /// Runs a command and returns the exit status.
    pub async fn run(self, command: CommonCommand) -> i32 {
        let outcome = match command {
            CommonCommand::Migrate => self.migrate().await,
            CommonCommand::Openapi => {
                let document = self.info.openapi().to_pretty_json();
                document.map_err(|error| CommandError::Failed(error.to_string())).and_then(|text| print(&[text]))
            }
            CommonCommand::Health => health::check(&self.server.bind).await.map_err(CommandError::Failed),
            CommonCommand::CheckConfig => return self.check_config(),
            CommonCommand::Database(command) => self.maintain(command).await,
        };
        exit_status(self.info.name, outcome)
    }

    /// Logs the warnings about the options.
    ///
    /// # Errors
    /// The faults of the options.
    pub fn check(&self) -> Result<(), CommandError> {
        if !self.faults.is_empty() {
            return Err(CommandError::Options(self.faults.clone()));
        }
        self.warn();
        Ok(())
    }

    fn warn(&self) {
        for line in &self.warnings {
            log::warn!("{line}");
        }
    }

    fn url(&self) -> Result<Url, CommandError> {
        self.database_url.clone().map_err(|fault| CommandError::Options(vec![fault]))
    }

    /// Opens the database with its schema up to date, a new one if there is none.
    async fn open(&self) -> Result<Database, CommandError> {
        Ok(Database::start(&self.url()?, self.contents.migrations, self.database.limits()).await?)
    }

    async fn migrate(&self) -> Result<(), CommandError> {
        let url = self.url()?;
        self.open().await?;
        log::info!("{url} is up to date");
        Ok(())
    }

    /// Opens a database that a service has used before, and names it on standard error.
    pub async fn open_existing(&self) -> Result<Database, CommandError> {
        let url = self.url()?;
        let name = tokio::task::spawn_blocking(move || name_existing(&url)).await;
        let name = name.map_err(|error| CommandError::Failed(error.to_string()))??;
        let db = self.open().await?;
        // The command goes on if nothing reads standard error.
        let _ = writeln!(io::stderr(), "{}: database {name}", self.info.name);
        Ok(db)
    }

    /// Also reads the files that `serve` reads only later: the directory, and the certificates of the database.
    fn check_config(mut self) -> i32 {
        self.warn();
        if let Some(source @ Source::File(_)) = &self.directory {
            match directory::read(source) {
                Ok(directory) => {
                    self.names.warn(&directory.users);
                    let unlisted =
                        self.listed.iter().filter(|name| directory.users.iter().all(|user| user.name != **name));
                    self.faults
                        .extend(unlisted.map(|name| format!("the directory does not list {name:?} of --admins")));
                }
                Err(fault) => self.faults.push(fault),
            }
        }
        for file in self.database_url.iter().flat_map(Url::tls_files) {
            let read = common::file::read(file.as_ref(), MAX_CERTIFICATE_BYTES);
            self.faults.extend(read.err().map(|error| format!("cannot read {file}: {error}")));
        }
        let (lines, status) =
            if self.faults.is_empty() { (vec!["ok".to_owned()], 0) } else { (self.faults, WRONG_OPTIONS) };
        // If nothing reads the output, the exit status is enough.
        let _ = print(&lines);
        status
    }

    async fn maintain(&self, command: DatabaseCommand) -> Result<(), CommandError> {
        // A closed pipe does not stop the command half way.
        let progress = |line: &str| drop(print(&[line.to_owned()]));
        command.run(self.url()?, self.contents, progress).await
    }
}

/// The name of a database that has the tables of a service.
fn name_existing(url: &Url) -> Result<String, CommandError> {
    let failed = |error: &dyn std::fmt::Display| CommandError::Failed(format!("cannot open {url}: {error}"));
    // Connecting would create the file.
    if let Some(file) = url.file()
        && !file.try_exists().map_err(|error| failed(&error))?
    {
        let fault = format!("there is no database at {url}: `serve` and `migrate` create one");
        return Err(CommandError::Failed(fault));
    }
    let mut conn = url.connect().map_err(|error| failed(&error))?;
    let applied = with_connection!(&mut conn, conn => migrate::applied(conn)).map_err(|error| failed(&error))?;
    if applied.is_empty() {
        let fault = format!("the database {url} has no tables: `serve` and `migrate` create them");
        return Err(CommandError::Failed(fault));
    }
    match &mut conn {
        AnyConnection::Sqlite(_) => Ok(url.to_string()),
        AnyConnection::Postgresql(conn) => {
            let query = "SELECT format('%s, schema %s, on %s', current_database(), current_schema(), \
                         coalesce(host(inet_server_addr()), 'this machine')) AS value";
            let name = words(conn, query).map_err(|error| failed(&error))?;
            Ok(name.concat())
        }
    }
}
