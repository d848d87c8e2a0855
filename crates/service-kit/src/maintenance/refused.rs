//! Why a command did nothing, and the checks that every command begins with.

use std::{fmt, io, path::Path};

use diesel::{ConnectionError, result::Error as DieselError};

use crate::database::{Url, migrate::MigrationError};

/// Why a command did not do what it was asked to, in one line.
#[derive(Debug)]
pub enum Refused {
    /// The options are at fault.
    Options(String),
    /// Anything else.
    Failed(String),
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
