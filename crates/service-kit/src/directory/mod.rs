//! The club directory: where users and groups come from (contract, booking, "The club directory").
//!
//! One client for every service. [`Source::read`] answers the whole directory or an error, never a part of it, so a
//! caller that keeps its copy on an error has "a failed read changes nothing". Bots are left out.

pub mod demo;
mod file;
pub mod snapshot;
mod traq;

use std::{fmt, path::PathBuf};

use url::Url;

pub use self::{
    file::{GROUP_NAMESPACE, USER_NAMESPACE},
    snapshot::{DirectoryError, DirectoryGroup, DirectoryUser, Snapshot, UserState},
};

/// What a service's copy of it is called, among the copies that it shows the age of.
pub const COPY: &str = "directory";

/// Where the directory is read from.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// The made-up club of `--demo`.
    Demo,
    /// A TOML or JSON file, told apart by its extension.
    File(PathBuf),
    /// A traQ server.
    Traq {
        /// The address that ends in `/api/v3`. User name, password, query and fragment in it are not used.
        base: Url,
        /// The bearer token, which `Debug` does not show.
        token: String,
    },
}

impl Source {
    /// Reads the whole directory. This blocks for up to a minute when a server hangs, so it belongs on a blocking
    /// thread.
    ///
    /// # Errors
    /// When the directory cannot be reached or read, or is not fit for use: an id or name that is used twice or
    /// empty, an unknown state, in a file also a member that nobody is.
    pub fn read(&self) -> Result<Snapshot, DirectoryError> {
        let snapshot = match self {
            Self::Demo => demo::snapshot(),
            Self::File(path) => file::read(path)?,
            Self::Traq { base, token } => traq::Client::new(base, token, &traq::Limits::default()).read()?,
        };
        snapshot.checked()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Demo => f.write_str("Demo"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Traq { base, .. } => {
                // A base with a password in it must not get into a log either.
                let base = format!("{}{}", base.origin().ascii_serialization(), base.path());
                f.debug_struct("Traq").field("base", &base).field("token", &"redacted").finish()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_neither_token_nor_password() {
        let base = Url::parse("https://me:hunter2@q.example/api/v3?key=hunter2").unwrap();
        let shown = format!("{:?}", Source::Traq { base, token: "hunter2".into() });
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("https://q.example/api/v3"), "{shown}");
    }

    #[test]
    fn states_keep_their_numbers() {
        for number in 0..3 {
            assert_eq!(i64::from(UserState::from_number(number).unwrap().number()), number);
        }
        assert_eq!(UserState::from_number(3), None);
        assert_eq!(UserState::from_number(-1), None);
    }

    #[test]
    fn what_is_there_twice_or_empty_is_refused() {
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let fault = |entries: [(Uuid, &str); 2]| check("user", entries.into_iter()).unwrap_err().to_string();
        assert!(check("user", [(one, "anna"), (two, "Anna")].into_iter()).is_ok());
        assert!(fault([(one, "anna"), (two, "anna")]).contains("name \"anna\""));
        assert!(fault([(one, "anna"), (one, "ben")]).contains(&one.to_string()));
        assert!(fault([(one, "anna"), (two, " ")]).contains("no name"));
        assert!(fault([(one, "anna"), (Uuid::nil(), "ben")]).contains("nil"));
    }
}
