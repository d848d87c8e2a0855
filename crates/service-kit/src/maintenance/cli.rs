//! The commands that keep a database: back it up, restore it, move it.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use clap::Subcommand;
use diesel::{ConnectionError, result::Error as DieselError};

use super::{backup, copy_to_postgres::copy_to, restore, tables::TableInfo};
use crate::{
    config::Secret,
    database::{
        Url,
        migrate::{MigrationError, Migrations},
    },
};

/// What a service keeps in its database.
#[derive(Clone, Copy)]
pub struct Contents {
    /// What makes the tables.
    pub migrations: &'static Migrations,
    /// The tables, each after those that it refers to.
    pub tables: &'static [TableInfo],
}

/// The same for every service.
#[derive(Debug, Clone, Subcommand)]
pub enum DatabaseCommand {
    /// Write a copy of the SQLite database, whole and checked, while it is in use or not
    Backup {
        /// The file to make.
        file: PathBuf,
    },
    /// Put a backup in the place of the SQLite database, which no program may be using
    Restore {
        /// A file that `backup` made.
        file: PathBuf,
    },
    /// Copy the SQLite database to an empty PostgreSQL database, and compare
    CopyTo {
        /// Where to, as `postgres://…`.
        #[arg(value_name = "URL", required_unless_present = "url_file")]
        url: Option<Secret>,
        /// File that holds the URL.
        #[arg(long, value_name = "FILE", conflicts_with = "url")]
        url_file: Option<PathBuf>,
    },
}

/// Why a command did not do what it was asked to, in one line.
#[derive(Debug)]
pub enum Refused {
    /// The options are at fault.
    Options(String),
    /// Anything else.
    Failed(String),
}

impl DatabaseCommand {
    /// Runs the command on a database. What is of interest goes to `say`, line by line.
    ///
    /// # Errors
    /// When the command cannot do it; the database is as it was then.
    pub async fn run(self, database: Url, contents: Contents, say: fn(&str)) -> Result<(), Refused> {
        let done = tokio::task::spawn_blocking(move || match self {
            Self::Backup { file } => backup::backup(&database, &file, contents.migrations, say),
            Self::Restore { file } => restore::restore(&database, &file, contents.migrations, say),
            Self::CopyTo { url, url_file } => {
                let url = Secret::resolve("url", url.as_ref(), url_file.as_deref()).map_err(Refused::Options)?;
                let url = url.ok_or_else(|| Refused::Options("copy-to needs a URL".to_owned()))?;
                let url = url.reveal().parse().map_err(|fault| Refused::Options(format!("the URL {fault}")))?;
                copy_to(&database, &url, &contents, say)
            }
        });
        done.await.map_err(|panicked| Refused::Failed(panicked.to_string()))?
    }
}

/// The file of a SQLite database. Commands that need one say what to do instead for PostgreSQL.
pub(super) fn database_file<'a>(url: &'a Url, instead: &str) -> Result<&'a Path, Refused> {
    url.file().ok_or_else(|| Refused::Options(instead.to_owned()))
}

/// The file of a SQLite database, which must exist: connecting would make an empty one.
pub(super) fn existing_file<'a>(url: &'a Url, instead: &str) -> Result<&'a Path, Refused> {
    let file = database_file(url, instead)?;
    if file.is_file() { Ok(file) } else { Err(Refused::Failed(format!("there is no database at {url}"))) }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Options(cause) | Self::Failed(cause)) = self;
        f.write_str(cause)
    }
}

macro_rules! failures {
    ($($error:ty)+) => {
        $(impl From<$error> for Refused {
            fn from(error: $error) -> Self {
                Self::Failed(error.to_string())
            }
        })+
    };
}
failures! { io::Error ConnectionError DieselError MigrationError }
