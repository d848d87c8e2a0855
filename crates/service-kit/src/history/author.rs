//! Who makes a change.

use std::sync::{
    Arc,
    atomic::{AtomicI32, Ordering},
};

use crate::database::types::{DbTimestamp, DbUuid};

text_enum! {
    /// How a change was made.
    pub enum By {
        /// By a user who is signed in here.
        Session = "session",
        /// By a program with a token.
        Token = "token",
        /// By a user whom a reverse proxy names.
        Proxy = "proxy",
        /// By a command of the operator.
        Command = "command",
        /// By the copy of the directory.
        Directory = "directory",
        /// By the import from a replaced system, or before there was a history.
        Import = "import",
    }
}

/// Who makes a change.
#[derive(Debug, Clone)]
pub struct Author {
    /// The user, if there is one.
    pub actor: Option<DbUuid>,
    /// How they make it.
    pub by: By,
    /// The name of the token.
    pub token: Option<Arc<str>>,
    /// The id of the request.
    pub request_id: Option<Arc<str>>,
    /// The time.
    pub at: DbTimestamp,
    /// How many objects they have created and changed in this transaction, for the daily limit.
    pub counter: Arc<AtomicI32>,
}

impl Author {
    /// A change that is not made by a request.
    pub fn new(by: By, at: DbTimestamp) -> Self {
        Self { actor: None, by, token: None, request_id: None, at, counter: Arc::default() }
    }

    /// The same author, of whom nothing is counted.
    pub fn uncounted(&self) -> Self {
        Self { counter: Arc::default(), ..self.clone() }
    }

    /// Counts objects for the daily limit. The rows of the history count by themselves.
    pub fn count(&self, number: usize) {
        self.counter.fetch_add(i32::try_from(number).unwrap_or(i32::MAX / 2), Ordering::Relaxed);
    }

    /// How many have been counted.
    pub fn counted(&self) -> i32 {
        self.counter.load(Ordering::Relaxed)
    }
}
