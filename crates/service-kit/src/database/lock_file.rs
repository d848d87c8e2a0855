//! A lock on a file beside a SQLite database, held while a process uses the database. The operating system releases it
//! when the process ends.
//!
//! SQLite's own locks are on the database file, which a restore replaces: a server that opened the old file meanwhile
//! would go on using it.

use std::{
    fs::{File, OpenOptions, Permissions, TryLockError},
    io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// A lock that lasts until it is dropped.
#[derive(Debug)]
pub(crate) struct DatabaseLock {
    _lock: File,
}

impl DatabaseLock {
    /// A shared lock: other programs may use the database as well.
    pub(crate) fn shared(database: &Path) -> io::Result<Self> {
        let lock = open(database)?;
        match lock.try_lock_shared() {
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(io::Error::other("another command has exclusive use of the database")),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// An exclusive lock; `None` when another program uses the database.
    pub(crate) fn exclusive(database: &Path) -> io::Result<Option<Self>> {
        let lock = open(database)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn open(database: &Path) -> io::Result<File> {
    // Resolves symbolic links, so that all programs use the same lock file.
    let path = with_suffix(&database.canonicalize().unwrap_or_else(|_| database.to_owned()), ".lock");
    // A lock file of another user may be readable only, which is enough.
    let lock = File::open(&path)
        .or_else(|_| OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path))
        .map_err(|error| io::Error::other(format!("cannot open {}: {error}", path.display())))?;
    // Whoever may not read the database must not be able to block it.
    let permissions = database.metadata().map_or_else(|_| Permissions::from_mode(0o600), |file| file.permissions());
    if lock.metadata()?.permissions() != permissions {
        // Only the owner of the lock file can set them.
        lock.set_permissions(permissions).ok();
    }
    Ok(lock)
}

/// The path with a suffix added to its name.
pub(crate) fn with_suffix(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}
