//! What a failure of the database means for a request.

use diesel::result::{DatabaseErrorKind, Error};

/// What to do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// Another transaction is in the way: the same one may succeed when it runs again. 503 after the last attempt.
    Retry,
    /// The database cannot do its work at present: 503.
    Unavailable,
    /// A fault of the program: 500.
    Other,
}

use self::ErrorClass::{Other, Retry, Unavailable};

/// Parts of messages and what they mean. Diesel has a `DatabaseErrorKind` for a few of these only, and no SQLSTATE.
/// Every PostgreSQL connection is set to English ([`super::connection`]).
const MESSAGES: &[(&str, ErrorClass)] = &[
    // SQLSTATE 40001 and 40P01, SQLITE_BUSY and SQLITE_LOCKED.
    ("could not serialize access", Retry),
    ("deadlock detected", Retry),
    ("database is locked", Retry),
    ("database table is locked", Retry),
    ("database schema is locked", Retry),
    // 55P03 and 57014: time-outs, and cancelled by an administrator or a standby.
    ("could not obtain lock", Unavailable),
    ("canceling statement due to", Unavailable),
    // 57P01 to 57P05, 08006: ended by an administrator, a crash or a time-out, or lost.
    ("terminating connection", Unavailable),
    ("server closed the connection", Unavailable),
    ("connection to server", Unavailable),
    ("no connection to the server", Unavailable),
    ("could not receive data", Unavailable),
    ("could not send data", Unavailable),
    ("connection has been closed", Unavailable),
    ("SSL SYSCALL error", Unavailable),
    ("SSL error", Unavailable),
    // 57P03: starting up, shutting down, in recovery.
    ("the database system is", Unavailable),
    ("not accepting connections", Unavailable),
    ("not currently accepting connections", Unavailable),
    // 53300.
    ("too many clients", Unavailable),
    ("too many connections", Unavailable),
    ("remaining connection slots are reserved", Unavailable),
    // 53100, 53200, SQLITE_FULL, SQLITE_NOMEM, SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_CORRUPT, SQLITE_NOTADB.
    ("No space left on device", Unavailable),
    ("Disk quota exceeded", Unavailable),
    ("could not extend file", Unavailable),
    ("out of memory", Unavailable),
    ("out of shared memory", Unavailable),
    ("database or disk is full", Unavailable),
    ("disk I/O error", Unavailable),
    ("unable to open database file", Unavailable),
    ("database disk image is malformed", Unavailable),
    ("file is not a database", Unavailable),
    // 25006, SQLITE_READONLY: a standby, or a file system that was mounted read-only after an error.
    ("read-only transaction", Unavailable),
    ("attempt to write a readonly database", Unavailable),
];

/// The class of a failure.
pub(crate) fn classify(error: &Error) -> ErrorClass {
    match error {
        Error::BrokenTransactionManager => Unavailable,
        Error::DatabaseError(kind, info) => match kind {
            DatabaseErrorKind::SerializationFailure => Retry,
            DatabaseErrorKind::ClosedConnection
            | DatabaseErrorKind::UnableToSendCommand
            | DatabaseErrorKind::ReadOnlyTransaction => Unavailable,
            DatabaseErrorKind::UniqueViolation
            | DatabaseErrorKind::ForeignKeyViolation
            | DatabaseErrorKind::NotNullViolation
            | DatabaseErrorKind::CheckViolation => Other,
            _ => {
                let message = info.message();
                MESSAGES.iter().find(|(part, _)| message.contains(part)).map_or(Other, |(_, class)| *class)
            }
        },
        _ => Other,
    }
}

/// Whether another connection to the same SQLite file is in the way.
pub(crate) fn is_locked(error: &Error) -> bool {
    classify(error) == Retry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(message: &str) -> ErrorClass {
        classify(&Error::DatabaseError(DatabaseErrorKind::Unknown, Box::new(message.to_owned())))
    }

    #[test]
    fn whole_messages_have_their_class() {
        for message in [
            "could not serialize access due to concurrent update",
            "deadlock detected",
            "database is locked",
            "database table is locked: rooms",
        ] {
            assert_eq!(class(message), Retry, "{message}");
        }
        for message in [
            "canceling statement due to lock timeout",
            "canceling statement due to statement timeout",
            "canceling statement due to user request",
            "canceling statement due to conflict with recovery",
            "terminating connection due to administrator command",
            "terminating connection because of crash of another server process",
            "server closed the connection unexpectedly",
            "the database system is starting up",
            "the database system is shutting down",
            "sorry, too many clients already",
            "too many connections for role \"club\"",
            "remaining connection slots are reserved for roles with the SUPERUSER attribute",
            "could not extend file \"base/5/16384\": No space left on device",
            "could not write to file \"base/pgsql_tmp/1\": No space left on device",
            "out of memory",
            "out of shared memory",
            "database or disk is full",
            "disk I/O error",
            "database disk image is malformed",
            "file is not a database",
            "cannot execute INSERT in a read-only transaction",
            "attempt to write a readonly database",
        ] {
            assert_eq!(class(message), Unavailable, "{message}");
        }
        for message in ["syntax error at or near \"FROM\"", "relation \"rooms\" does not exist", "division by zero"] {
            assert_eq!(class(message), Other, "{message}");
        }
        let violation = Box::new("duplicate key value: deadlock detected".to_owned());
        assert_eq!(classify(&Error::DatabaseError(DatabaseErrorKind::UniqueViolation, violation)), Other);
    }
}
