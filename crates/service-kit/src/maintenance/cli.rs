//! The maintenance commands: back up, restore and copy a database.

use std::path::PathBuf;

use clap::Subcommand;

use super::{backup, check::Say, copy_to_postgres::copy_to, restore, tables::Contents};
use crate::{
    command::CommandError,
    database::Url,
    progress::Progress,
    secret::{Secret, SecretOption},
};

/// The same for every service.
#[derive(Debug, Clone, Subcommand)]
pub enum DatabaseCommand {
    /// Back up the SQLite database to a file and check the file; the service may be running
    Backup {
        /// The file to create.
        file: PathBuf,
    },
    /// Replace the SQLite database by a backup; no program may be using the database
    Restore {
        /// A file that `backup` created.
        file: PathBuf,
    },
    /// Copy the SQLite database to an empty PostgreSQL database, and compare the two
    CopyTo {
        /// URL of the PostgreSQL database, `postgres://…`.
        #[arg(value_name = "URL", required_unless_present = "url_file")]
        url: Option<Secret>,
        /// File that contains the URL.
        #[arg(long, value_name = "FILE", conflicts_with = "url")]
        url_file: Option<PathBuf>,
    },
}

impl DatabaseCommand {
    /// Runs the command on a database. Its results go to `say`, line by line.
    pub async fn run(self, database: Url, contents: Contents, say: fn(&str)) -> Result<(), CommandError> {
        let task = tokio::task::spawn_blocking(move || {
            let progress = &Progress::start("opening the database");
            let say: Say<'_> = &|line| progress.suspend(|| say(line));
            match self {
                Self::Backup { file } => backup::backup(&database, &file, contents.migrations, progress, say),
                Self::Restore { file } => restore::restore(&database, &file, &contents, progress, say),
                Self::CopyTo { url, url_file } => {
                    let url = SecretOption("url", url.as_ref(), url_file.as_deref())
                        .resolve()
                        .map_err(CommandError::option)?;
                    let url = url.ok_or_else(|| CommandError::option("copy-to needs a URL".to_owned()))?;
                    let url = url.reveal().parse().map_err(|fault| CommandError::option(format!("the URL {fault}")))?;
                    copy_to(&database, &url, &contents, progress, say)
                }
            }
        });
        task.await.map_err(|panicked| CommandError::Failed(panicked.to_string()))?
    }
}
