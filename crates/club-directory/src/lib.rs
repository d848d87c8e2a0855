//! The club directory: where users and groups come from (contract, booking, "The club directory").
//!
//! [`Source::read`] returns the complete directory or an error, never a part of it: a
//! failed read changes nothing. Bots are left out.

mod booking;
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

/// Where the directory is read from.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// The made-up club of `--demo`.
    Demo,
    /// A TOML or JSON file, according to its extension.
    File(PathBuf),
    /// A traQ server.
    Traq {
        /// The address that ends in `/api/v3`. User name, password, query and fragment in it are not used.
        base: Url,
        /// The bearer token, which `Debug` does not show.
        token: String,
    },
    /// A booking-service.
    Booking {
        /// The address of its operations, which ends in `/api`.
        base: Url,
        /// An API token, which `Debug` does not show.
        token: String,
    },
}

impl Source {
    /// Reads the directory. This blocks for up to a minute when a server hangs.
    ///
    /// # Errors
    /// When the directory cannot be reached or read, or is not fit for use: a repeated or empty id or name, an unknown
    /// state, or in a file an unknown member.
    pub fn read(&self) -> Result<Snapshot, DirectoryError> {
        let snapshot = match self {
            Self::Demo => demo::CLUB.clone(),
            Self::File(path) => file::read(path)?,
            Self::Traq { base, token } => traq::Client::new(base, token, &traq::Limits::default()).read()?,
            Self::Booking { base, token } => booking::read(&traq::Client::new(base, token, &traq::Limits::default()))?,
        };
        snapshot.checked()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Demo => f.write_str("Demo"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Traq { base, .. } | Self::Booking { base, .. } => {
                // A base with a password in it must not get into a log either.
                let base = format!("{}{}", base.origin().ascii_serialization(), base.path());
                let name = if let Self::Booking { .. } = self { "Booking" } else { "Traq" };
                f.debug_struct(name).field("base", &base).field("token", &"redacted").finish()
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
}
