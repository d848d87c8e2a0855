//! The file of a SQLite database, for the commands that need one.

use std::{io::ErrorKind, path::Path};

use crate::{command::CommandError, database::Url};

/// The file of a SQLite database. Commands that need one say what to do instead for PostgreSQL.
pub(super) fn database_file<'a>(url: &'a Url, instead: &str) -> Result<&'a Path, CommandError> {
    url.file().ok_or_else(|| CommandError::option(instead.to_owned()))
}

/// The file of a SQLite database, which must exist: connecting would create an empty one.
pub(super) fn existing_file<'a>(url: &'a Url, instead: &str) -> Result<&'a Path, CommandError> {
    let file = database_file(url, instead)?;
    match file.metadata() {
        Ok(found) if found.is_file() => Ok(file),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(CommandError::Failed(format!("cannot open {url}: {error}")))
        }
        _ => Err(CommandError::Failed(format!("there is no database at {url}"))),
    }
}
