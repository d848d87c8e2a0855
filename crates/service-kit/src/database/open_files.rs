//! Whether the files of a SQLite database are still those that were opened.
//!
//! SQLite does not notice when they are deleted, moved or replaced: it goes on with the open files, and what it writes
//! is lost when the service ends. The database, its write-ahead log (`-wal`) and the index of that (`-shm`) are compared
//! by device and inode before each job, and before a write is acknowledged.
#![expect(clippy::disallowed_types, reason = "the lock is held only to close the connection")]

use std::{
    fs::metadata,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use diesel::{ConnectionError, ConnectionResult};

use super::{any_connection::AnyConnection, lock_file::with_suffix, types::words, url::Url};

/// The files of a database, as they were opened.
pub(super) struct OpenFiles {
    /// The database, the write-ahead log and its index.
    paths: [PathBuf; 3],
    ids: [Option<FileId>; 3],
    /// While this is open, SQLite does not replace the write-ahead log.
    conn: Mutex<Option<AnyConnection>>,
}

/// Device and inode.
type FileId = (u64, u64);

impl OpenFiles {
    /// The files of a database that a connection has open.
    pub fn open(url: &Url, path: &Path) -> ConnectionResult<Self> {
        let mut conn = url.connect()?;
        // Opens the write-ahead log.
        words(&mut conn, "SELECT name AS value FROM sqlite_schema LIMIT 1")
            .map_err(ConnectionError::CouldntSetupConfiguration)?;
        // SQLite puts the others beside the file that a symbolic link leads to.
        let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let paths = [path.to_owned(), with_suffix(&file, "-wal"), with_suffix(&file, "-shm")];
        Ok(Self { ids: paths.each_ref().map(|path| id(path)), conn: Mutex::new(Some(conn)), paths })
    }

    /// Closes the connection.
    pub fn close(&self) {
        drop(self.conn.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Whether the files are still the same.
    ///
    /// # Errors
    /// A sentence that says what happened and what to do.
    pub fn check(&self) -> Result<(), String> {
        let Some(file) = (0..self.paths.len()).find(|file| id(&self.paths[*file]) != self.ids[*file]) else {
            return Ok(());
        };
        let advice = match file {
            0 => "move it back, or stop the service, restore a backup and start the service again".to_owned(),
            _ => format!("restart the service, which then completes {}", self.paths[0].display()),
        };
        Err(format!(
            "{} was deleted, moved or replaced while this service uses it, so nothing is read or written until the \
             opened file is back; {advice}",
            self.paths[file].display()
        ))
    }
}

fn id(path: &Path) -> Option<FileId> {
    metadata(path).map(|file| (file.dev(), file.ino())).ok()
}
