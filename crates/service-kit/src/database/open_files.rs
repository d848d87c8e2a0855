//! Whether the files of a SQLite database are still those that were opened.
//!
//! SQLite does not notice when they are deleted, moved or replaced: it goes on with the open files, and what it writes
//! is lost when the service ends. `cp` over the file keeps the file and replaces its content, without SQLite's locks.
//!
//! * The database, its write-ahead log (`-wal`) and the index of that (`-shm`) are compared by device and inode.
//! * The content is compared when the database file has changed, as it does at checkpoints. A connection that ignores
//!   the write-ahead log reads a [`Mark`] from it. A plain copy of the same file from earlier has the same mark; it is
//!   noticed only if it is smaller.
#![expect(clippy::disallowed_types, reason = "the locks are held on database threads only, for a few reads of a file")]

use std::{
    fs::{Metadata, metadata},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use diesel::{Connection, ConnectionError, ConnectionResult, SqliteConnection};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{any_connection::AnyConnection, lock_file::with_suffix, retry::retry_until, types::words, url::Url};

/// How long a content is read again that seems to be another one: a checkpoint may be writing it.
const RETRY_TIME: Duration = Duration::from_millis(50);

/// How old the result of a check may be for a read: looking at three files takes as long as a short read.
const READ_INTERVAL: Duration = Duration::from_millis(100);

/// What is not encoded in the path of a `file:` URL.
const PATH: AsciiSet = NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');

/// The files of a database, as they were opened.
pub(super) struct OpenFiles {
    /// The database, the write-ahead log and its index.
    paths: [PathBuf; 3],
    ids: [Option<FileId>; 3],
    last_check: Mutex<Check>,
    /// While this is open, SQLite does not replace the write-ahead log.
    conn: Mutex<Option<AnyConnection>>,
}

/// Device and inode.
type FileId = (u64, u64);

/// A check, and what it found in the database file.
struct Check {
    at: Instant,
    result: Result<(), String>,
    version: FileVersion,
    mark: Mark,
    has_our_content: bool,
}

/// Time of the last change, and size.
type FileVersion = ((i64, i64), u64);

/// What distinguishes a database from others and from the copies that SQLite makes of it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mark {
    /// The applied migrations, with their times.
    migrations: Vec<String>,
    /// SQLite increments it at each change of the schema, and in each copy by `VACUUM INTO` and `.backup`.
    schema_version: String,
}

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
        let check = Check {
            at: Instant::now(),
            result: Ok(()),
            version: metadata(path).as_ref().map(version).unwrap_or_default(),
            mark: Mark::read(path).unwrap_or_default(),
            has_our_content: true,
        };
        Ok(Self {
            ids: paths.each_ref().map(|path| metadata(path).as_ref().map(id).ok()),
            last_check: Mutex::new(check),
            conn: Mutex::new(Some(conn)),
            paths,
        })
    }

    /// Closes the connection.
    pub fn close(&self) {
        drop(lock(&self.conn).take());
    }

    /// Whether the files are still the same. A write is checked again after its commit.
    ///
    /// # Errors
    /// A sentence that says what happened and what to do.
    pub fn check(&self, is_write: bool) -> Result<(), String> {
        let mut last = lock(&self.last_check);
        if is_write || last.result.is_err() || last.at.elapsed() >= READ_INTERVAL {
            last.result = self.check_now(&mut last);
            last.at = Instant::now();
        }
        last.result.clone()
    }

    fn check_now(&self, last: &mut Check) -> Result<(), String> {
        let found = self.paths.each_ref().map(|path| metadata(path).ok());
        let differs = |file: usize| found[file].as_ref().map(id) != self.ids[file];
        let path = |file: usize| self.paths[file].display();
        if differs(0) {
            return Err(format!(
                "{} was deleted, moved or replaced while this service uses it, so nothing is read or written any more; \
                 move it back, or stop the service, restore a backup and start the service again",
                path(0)
            ));
        }
        if let Some(file) = [1, 2].into_iter().find(|file| differs(*file)) {
            return Err(format!(
                "{} was deleted, moved or replaced while this service uses it, so nothing is read or written any more; \
                 restart the service, which then completes {}",
                path(file),
                path(0)
            ));
        }
        if let Some(found) = &found[0] {
            self.check_content(version(found), last);
        }
        if !last.has_our_content {
            return Err(format!(
                "the content of {} was overwritten, or its schema changed by another program, while this service uses \
                 it, so nothing is read or written any more; stop the service, restore a backup if the file was \
                 overwritten, and start the service again",
                path(0)
            ));
        }
        Ok(())
    }

    fn check_content(&self, version: FileVersion, last: &mut Check) {
        if version == last.version {
            return;
        }
        // The file shrinks only with another version of the schema.
        let has_shrunk = version.1 < last.version.1;
        let is_next = |mark: &Mark| mark.follows(&last.mark) && (!has_shrunk || *mark != last.mark);
        let mark = retry_until(RETRY_TIME, || Mark::read(&self.paths[0]).filter(is_next), Option::is_some);
        last.has_our_content = mark.is_some();
        last.version = version;
        if let Some(mark) = mark {
            last.mark = mark;
        }
    }
}

impl Mark {
    /// The mark in the file itself. `None` when it is no database.
    fn read(path: &Path) -> Option<Self> {
        let path = utf8_percent_encode(path.to_str()?, &PATH);
        // Without locks and write-ahead log.
        let mut conn = SqliteConnection::establish(&format!("file:{path}?immutable=1")).ok()?;
        let schema_version =
            words(&mut conn, "SELECT CAST(schema_version AS TEXT) AS value FROM pragma_schema_version").ok()?.concat();
        let migrations = "SELECT version || ' ' || run_on AS value FROM __diesel_schema_migrations ORDER BY version";
        // Without the table, nothing was migrated yet.
        let migrations = words(&mut conn, migrations).unwrap_or_default();
        Some(Self { migrations, schema_version })
    }

    /// Whether a database with this mark can have had the other one before.
    fn follows(&self, former: &Self) -> bool {
        let is_migrated = self.migrations.len() > former.migrations.len();
        former.migrations.iter().all(|migration| self.migrations.contains(migration))
            && (is_migrated || former.migrations.is_empty() || self.schema_version == former.schema_version)
    }
}

fn id(file: &Metadata) -> FileId {
    (file.dev(), file.ino())
}

fn version(file: &Metadata) -> FileVersion {
    ((file.mtime(), file.mtime_nsec()), file.len())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_may_have_more_migrations_and_no_other_ones() {
        let mark = |migrations: &[&str], version: &str| Mark {
            migrations: migrations.iter().map(|&name| name.to_owned()).collect(),
            schema_version: version.to_owned(),
        };
        let former = mark(&["1 a", "2 b"], "7");
        for (next, is_next) in [
            (mark(&["1 a", "2 b"], "7"), true),
            (mark(&["1 a", "2 b", "3 c"], "9"), true),
            (mark(&["1 a", "2 b"], "8"), false),
            (mark(&["1 a", "2 x"], "7"), false),
            (mark(&["1 a"], "7"), false),
            (mark(&[], "0"), false),
        ] {
            assert_eq!(next.follows(&former), is_next, "{next:?}");
        }
        // While another process had everything in its write-ahead log.
        assert!(former.follows(&Mark::default()));
    }
}
