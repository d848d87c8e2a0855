//! Values that are never shown.

use std::{fmt, os::unix::fs::PermissionsExt as _, path::Path, str::FromStr};

/// The largest file of a secret. Keys and tokens have some hundred bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// A value that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The value. Do not store or log it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The fewest characters of a secret that another server issued, unless the service listens on loopback only.
    /// Issued secrets have 20 or more; a shorter one is a placeholder or can be guessed.
    pub const MIN_LENGTH: usize = 16;
}

/// A secret as it was given: the name of its option, its value, or the file that holds it.
#[derive(Debug, Clone, Copy)]
pub struct SecretOption<'a>(pub &'static str, pub Option<&'a Secret>, pub Option<&'a Path>);

impl SecretOption<'_> {
    /// The secret, from its value or its file. A byte order mark at the start of a file and the line breaks at its end
    /// are not part of it.
    ///
    /// # Errors
    /// One line naming the option when both are set, the file cannot be read, or there is nothing but white space, or
    /// more than one line.
    pub fn resolve(self) -> Result<Option<Secret>, String> {
        let secret = self.resolve_lines()?;
        if secret.as_ref().is_some_and(|secret| secret.0.trim_end_matches(['\r', '\n']).contains(['\r', '\n'])) {
            let option = if self.2.is_some() { format!("{}-file", self.0) } else { self.0.to_owned() };
            return Err(format!("--{option}: a secret has one line"));
        }
        Ok(secret)
    }

    /// As [`resolve`](Self::resolve), for an option that has one value a line.
    ///
    /// # Errors
    /// One line naming the option when both are set, the file cannot be read, or there is nothing but white space.
    pub fn resolve_lines(self) -> Result<Option<Secret>, String> {
        let Self(option, value, file) = self;
        match (value, file) {
            (Some(_), Some(_)) => {
                let variable = option.replace('-', "_").to_uppercase();
                Err(format!("--{option} (or {variable}) and --{option}-file (or {variable}_FILE) are both set"))
            }
            (Some(value), None) if value.0.trim().is_empty() => Err(format!("--{option} is empty")),
            (value, None) => Ok(value.cloned()),
            (None, Some(file)) => {
                let fault = |why: &dyn fmt::Display| format!("--{option}-file: cannot read {}: {why}", file.display());
                let bytes = common::file::read(file, MAX_FILE_BYTES).map_err(|error| fault(&error))?;
                let text = common::file::text(&bytes).ok_or_else(|| fault(&"it is not UTF-8"))?;
                let text = text.trim_end_matches(['\r', '\n']);
                if text.trim().is_empty() {
                    return Err(format!("--{option}-file: {} is empty", file.display()));
                }
                Ok(Some(Secret(text.to_owned())))
            }
        }
    }

    /// The fault of a secret that is too short, as one line. A secret that cannot be read is another fault.
    pub fn too_short(self) -> Option<String> {
        let secret = self.resolve().ok()??;
        let is_short = secret.0.chars().count() < Secret::MIN_LENGTH;
        is_short.then(|| {
            format!("--{} must have {} characters or more on any address but loopback", self.0, Secret::MIN_LENGTH)
        })
    }

    /// A warning when every user of this machine may read the file. It is not an error, because secrets mounted into
    /// containers usually have such permissions.
    pub fn exposed(self) -> Option<String> {
        let file = self.2?;
        let metadata = std::fs::metadata(file).ok()?;
        (metadata.is_file() && metadata.permissions().mode() & 0o004 != 0)
            .then(|| format!("--{}-file: every user of this machine may read {}", self.0, file.display()))
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl FromStr for Secret {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}
