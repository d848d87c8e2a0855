//! The key of an installation.

use std::{collections::HashSet, path::PathBuf, sync::LazyLock};

use clap::Args;

use crate::{
    credentials::{Keys, random_secret},
    error::Error,
    secret::{Secret, SecretOption},
};

/// The key of an installation.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Key")]
pub struct KeyOptions {
    /// Key of this installation, at least 32 characters. It encrypts cookies and derives feed addresses. Further lines
    /// are former keys, whose cookies and addresses stay valid [default: in development mode a random key at each
    /// start].
    #[arg(long, env = "SECRET_KEY", value_name = "TEXT", hide_env_values = true, global = true)]
    #[arg(allow_hyphen_values = true)]
    pub secret_key: Option<Secret>,

    /// File that contains the key, and former keys on further lines.
    #[arg(long, env = "SECRET_KEY_FILE", value_name = "FILE", global = true)]
    pub secret_key_file: Option<PathBuf>,
}

/// The fewest characters a key may have outside development.
const SHORTEST_KEY: usize = 32;

/// The fewest different characters of a key. A repeated character is no secret, and 32 random digits have fewer than 6
/// different ones less than once in a million times.
const LEAST_VARIETY: usize = 6;

/// A key that is not secret: former versions used it in development mode.
const PUBLIC_KEY: &str = "development only: anybody can read this key";

/// The key of this process in development mode.
static RANDOM_KEY: LazyLock<Result<Secret, String>> =
    LazyLock::new(|| random_secret().map(Secret::from).map_err(Error::describe));

impl KeyOptions {
    /// The option with the key.
    pub fn secret(&self) -> SecretOption<'_> {
        SecretOption("secret-key", self.secret_key.as_ref(), self.secret_key_file.as_deref())
    }

    /// The keys of this installation; random ones if it has none and needs none.
    pub fn keys(&self, is_needed: bool) -> Result<Keys, String> {
        let secret = self.secret().resolve_lines()?;
        let key = match secret {
            Some(key) => key,
            None if !is_needed => RANDOM_KEY.clone()?,
            None => {
                return Err("--secret-key is needed with a sign-in provider and on any address but loopback".to_owned());
            }
        };
        for (index, line) in Keys::lines(&key).enumerate() {
            let key_name = if index == 0 { String::new() } else { format!(", former key {index},") };
            if line.chars().count() < SHORTEST_KEY {
                return Err(format!("--secret-key{key_name} must have {SHORTEST_KEY} characters or more"));
            }
            if line.chars().collect::<HashSet<_>>().len() < LEAST_VARIETY {
                return Err(format!("--secret-key{key_name} must have {LEAST_VARIETY} different characters or more"));
            }
            if line == PUBLIC_KEY {
                return Err(format!("--secret-key{key_name} is the well-known key for development"));
            }
        }
        Ok(Keys::new(&key))
    }
}
