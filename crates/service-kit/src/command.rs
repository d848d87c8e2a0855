//! How a command ends: its error, its exit status and what it prints.

use std::{
    fmt,
    io::{self, Write},
};

use diesel::{ConnectionError, result::Error as DieselError};

use crate::{
    database::migrate::MigrationError,
    error::{Error, on_one_line},
};

/// Exit status for wrong options (`EX_CONFIG` of sysexits.h): another start does not help.
pub(crate) const WRONG_OPTIONS: i32 = 78;

/// Why a command failed.
#[derive(Debug)]
pub enum CommandError {
    /// The options are wrong: one line for each fault.
    Options(Vec<String>),
    /// Anything else, in one sentence.
    Failed(String),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(faults) => f.write_str(&faults.join("; ")),
            Self::Failed(cause) => f.write_str(cause),
        }
    }
}

macro_rules! failures {
    ($($error:ty)+) => {
        $(impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                Self::Failed(error.to_string())
            }
        })+
    };
}
failures! { io::Error ConnectionError DieselError MigrationError }

impl CommandError {
    /// One wrong option.
    pub fn option(fault: impl Into<String>) -> Self {
        Self::Options(vec![fault.into()])
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        Self::Failed(error.describe())
    }
}

/// Ends a command: prints its error to standard error. The exit status is 0, 78 for wrong options, else 1.
#[must_use]
pub fn exit_status(program: &str, outcome: Result<(), CommandError>) -> i32 {
    let (lines, status) = match outcome {
        Ok(()) => return 0,
        Err(CommandError::Options(faults)) => (faults, WRONG_OPTIONS),
        Err(CommandError::Failed(cause)) => (vec![on_one_line(&cause)], 1),
    };
    for line in lines {
        // Not through the log, whose filter may hide it.
        let _ = writeln!(io::stderr(), "{program}: {line}");
    }
    status
}

/// Prints lines to standard output.
pub fn print(lines: &[String]) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}
