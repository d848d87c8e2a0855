//! The errors of queries and handlers.

use std::fmt;

use actix_web::{HttpResponse, ResponseError, http::StatusCode};
use common::problem::{Problem, Violations, code};
use diesel::result::{DatabaseErrorKind, Error as DieselError};

use crate::database::error_class::{ErrorClass, classify};

/// The error of an operation. `?` converts database errors and problems into it.
#[derive(Debug)]
pub enum Error {
    /// A problem to be shown to the caller.
    Problem(Problem),
    /// The database failed. The class of its message decides between another attempt, 503 and 500.
    Database(DieselError),
    /// The database or another server cannot be reached in time: 503. The text goes to the log only.
    Unavailable(String),
    /// Something read before a lock was taken has changed meanwhile; the transaction runs again from its start.
    Stale,
}

impl Error {
    /// Whether the same transaction may succeed when it runs again.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Stale => true,
            Self::Database(error) => classify(error) == ErrorClass::Retry,
            _ => false,
        }
    }

    /// The cause, or the explanation if there is none. For the log and the command line only.
    pub fn describe(self) -> String {
        let problem = self.into_problem();
        problem.cause().map_or_else(|| problem.explanation(), str::to_owned)
    }

    /// The problem shown to the caller.
    pub fn into_problem(self) -> Problem {
        match self {
            Self::Problem(problem) => problem,
            Self::Database(error) if classify(&error) == ErrorClass::Other => Problem::internal(error),
            Self::Database(error) => Problem::new(code::UNAVAILABLE).because(error),
            Self::Unavailable(cause) => Problem::new(code::UNAVAILABLE).because(cause),
            Self::Stale => Problem::new(code::UNAVAILABLE).because("another writer was first at every attempt"),
        }
    }
}

impl From<DieselError> for Error {
    fn from(error: DieselError) -> Self {
        Self::Database(error)
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<Violations> for Error {
    fn from(violations: Violations) -> Self {
        Self::Problem(violations.into())
    }
}

/// A text without line breaks: libpq and PostgreSQL write hints on lines of their own, after a tab.
pub(crate) fn on_one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Converts the violation of a unique constraint into a problem.
pub trait OnUnique<T> {
    /// When the database refused the row because `columns` (as `table.column, table.column`) must be unique, the
    /// answer is `problem`. PostgreSQL names the constraint, which must then be `table_column_column_key`.
    fn on_unique(self, columns: &str, problem: impl FnOnce() -> Problem) -> Result<T, Error>;
}

impl<T> OnUnique<T> for Result<T, DieselError> {
    fn on_unique(self, columns: &str, problem: impl FnOnce() -> Problem) -> Result<T, Error> {
        match self {
            Err(DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, info))
                if match info.constraint_name() {
                    Some(name) => name == constraint_name(columns),
                    None => info.message().ends_with(columns),
                } =>
            {
                Err(problem().into())
            }
            other => other.map_err(Error::from),
        }
    }
}

/// `table.a, table.b` → `table_a_b_key`, as PostgreSQL names a UNIQUE constraint.
fn constraint_name(columns: &str) -> String {
    let table = columns.split('.').next().unwrap_or_default();
    let columns: Vec<_> = columns.split(", ").filter_map(|column| column.split('.').nth(1)).collect();
    format!("{table}_{}_key", columns.join("_"))
}

/// The error type of handlers: a problem, which the middleware `problem_responses` renders. A type of its own, because
/// neither [`Problem`], whose crate knows no server, nor [`Error`], of which some variants ask for a retry, is an error
/// of actix.
#[derive(Debug)]
pub struct Failure(pub Problem);

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into().into_problem())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ResponseError for Failure {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Only the status: the middleware finds the problem in the response's error and renders its body.
    fn error_response(&self) -> HttpResponse {
        HttpResponse::new(self.status_code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unique(message: &str) -> DieselError {
        DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, Box::new(message.to_owned()))
    }

    fn unknown(message: &str) -> Error {
        DieselError::DatabaseError(DatabaseErrorKind::Unknown, Box::new(message.to_owned())).into()
    }

    #[test]
    fn hints_of_libpq_are_on_the_line_of_the_error() {
        let refused = "connection failed: refused\n\tIs the server running?\n";
        assert_eq!(on_one_line(refused), "connection failed: refused Is the server running?");
    }

    #[test]
    fn only_the_named_rule_becomes_the_problem() {
        let taken = || Problem::new(code::DUPLICATE_NAME);
        let error = Err::<(), _>(unique("UNIQUE constraint failed: tags.name_key"));
        assert!(matches!(error.on_unique("tags.name_key", taken), Err(Error::Problem(p)) if p.status() == 409));
        let error = Err::<(), _>(unique("UNIQUE constraint failed: users.name"));
        assert!(matches!(error.on_unique("tags.name_key", taken), Err(Error::Database(_))));
        assert_eq!(constraint_name("members.group_id, members.user_id"), "members_group_id_user_id_key");
    }

    #[test]
    fn deadlocks_and_busy_databases_are_retried_and_end_as_503() {
        for message in ["deadlock detected", "database is locked"] {
            assert!(unknown(message).is_retryable());
            assert_eq!(unknown(message).into_problem().status(), 503);
        }
        assert!(!unknown("canceling statement due to lock timeout").is_retryable());
        assert_eq!(unknown("canceling statement due to lock timeout").into_problem().status(), 503);
        assert_eq!(unknown("syntax error").into_problem().status(), 500);
    }
}
