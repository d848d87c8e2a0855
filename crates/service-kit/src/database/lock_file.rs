//! Who uses a SQLite database: a lock on a file beside it, which the system takes back however a process ends.
//!
//! SQLite's own locks belong to a file, and a restore puts another file in its place. A server that opened the old one
//! meanwhile would go on with it.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// The database is used by this process, for as long as this lives.
#[derive(Debug)]
pub(crate) struct InUse {
    _lock: File,
}

impl InUse {
    /// Along with others.
    ///
    /// # Errors
    /// When somebody has the database alone, or the lock cannot be had.
    pub(crate) fn shared(database: &Path) -> io::Result<Self> {
        let lock = open(database)?;
        match lock.try_lock_shared() {
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(io::Error::other("another command has the database for itself")),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Alone; `None` when somebody uses it.
    ///
    /// # Errors
    /// When the lock cannot be had.
    pub(crate) fn alone(database: &Path) -> io::Result<Option<Self>> {
        let lock = open(database)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn open(database: &Path) -> io::Result<File> {
    // The same for everybody, whether they come by a link or not.
    let path = beside(&database.canonicalize().unwrap_or_else(|_| database.to_owned()), ".lock");
    // One that another user made can be read only, which is enough.
    File::open(&path)
        .or_else(|_| OpenOptions::new().write(true).create(true).truncate(false).open(&path))
        .map_err(|error| io::Error::other(format!("cannot open {}: {error}", path.display())))
}

/// The file whose name has this end more.
pub(crate) fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}
