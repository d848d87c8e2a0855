//! How a command ends: its error, its exit status and what it prints.

use std::{
    fmt,
    io::{self, Write},
    time::SystemTime,
};

use chrono::{DateTime, Utc};
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

/// Refuses a clock that was never set: times and ids count from 1970.
pub fn check_clock(now: SystemTime) -> Result<(), CommandError> {
    if now >= SystemTime::UNIX_EPOCH {
        return Ok(());
    }
    let now = DateTime::<Utc>::from(now).format("%F %T");
    Err(CommandError::Failed(format!("the clock of this machine says {now} UTC, before 1970; set it, and start again")))
}

/// Prints lines to standard output.
pub fn print(lines: &[String]) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_before_1970_is_named() {
        assert!(check_clock(SystemTime::UNIX_EPOCH).is_ok());
        let refused = check_clock(SystemTime::UNIX_EPOCH - Duration::from_secs(1)).unwrap_err().to_string();
        assert!(refused.contains("says 1969-12-31 23:59:59 UTC"), "{refused}");
    }
}
