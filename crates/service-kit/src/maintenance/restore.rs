//! Replaces a SQLite database by a backup.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, chown},
    path::{Path, PathBuf},
    time::Duration,
};

use common::time::Clock;
use diesel::{Connection, SqliteConnection, connection::SimpleConnection};

use super::{
    backup::{folder_of, text},
    check::{Say, check},
    database_file::database_file,
    tables::Contents,
};
use crate::database::{
    Url,
    connection::make_folder_of,
    error_class::is_locked,
    lock_file::{DatabaseLock, with_suffix},
    migrate,
    retry::{retry_until, retry_while_locked},
    types::words,
};
use crate::{command::CommandError, progress::Progress};

/// How long to wait for a program that is about to end.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// The suffix of the new database before it is renamed.
const NEW_SUFFIX: &str = ".restoring";

/// The suffixes of the files that SQLite has beside an open database, or after a crash.
const SIDE_FILE_SUFFIXES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Replaces a SQLite database that no program uses by a backup. The former database stays beside it under another name.
/// If the program is killed meanwhile, the file is one of the two, complete. The new one sends nothing to others.
///
/// # Errors
/// When the backup or the database is damaged or not of this service. The database is unchanged then.
pub fn restore(
    database: &Url,
    backup: &Path,
    contents: &Contents,
    progress: &Progress,
    say: Say<'_>,
) -> Result<(), CommandError> {
    let failed = |cause: String| CommandError::Failed(cause);
    let given = database_file(database, "restore is for SQLite; for PostgreSQL there is pg_restore")?;
    let of_backup = |error: io::Error| failed(format!("cannot read {}: {error}", backup.display()));
    let backup = &backup.canonicalize().map_err(of_backup)?;
    let mut content = File::open(backup).map_err(of_backup)?;
    if !content.metadata().map_err(of_backup)?.is_file() {
        return Err(failed(format!("cannot read {}: it is no file", backup.display())));
    }
    make_folder_of(given)?;
    // A symbolic link stays one.
    let file = &given.canonicalize().unwrap_or_else(|_| given.to_owned());
    if file == backup {
        return Err(failed(format!("{} is the database itself", backup.display())));
    }
    if SIDE_FILE_SUFFIXES.iter().any(|end| with_suffix(backup, end).exists()) {
        return Err(failed(format!("{} is a database in use and no backup", backup.display())));
    }
    let lock_file = retry_until(LOCK_TIMEOUT, || DatabaseLock::exclusive(file), |lock| !matches!(lock, Ok(None)))?;
    let _lock_file = lock_file.ok_or_else(|| failed(format!("a program uses {database}: stop it first")))?;

    let of_file = |error: io::Error| failed(format!("cannot write {}: {error}", file.display()));
    progress.step("copying the backup", content.metadata().ok().map(|found| found.len()));
    progress.follow(with_suffix(file, NEW_SUFFIX));
    let new = NewDatabase::copy_of(&mut content, file).map_err(of_file)?;
    progress.step("checking the copy", None);
    let checked = check(&mut SqliteConnection::establish(text(&new.0)?)?, contents.migrations)
        .map_err(|cause| failed(format!("{}: {cause}", backup.display())))?;
    progress.step("bringing the schema up to date", None);
    let applied = migrate::run(&Url::of_file(&new.0), contents.migrations)?;
    let silenced = Url::of_file(&new.0).connect()?.transaction(contents.silence)?;
    if SIDE_FILE_SUFFIXES.iter().any(|end| with_suffix(&new.0, end).exists()) {
        return Err(failed("the copy of the backup is still open".to_owned()));
    }

    let old = fs::metadata(file).ok();
    let lock = if old.is_some() { Some(lock_exclusively(file)?) } else { None };
    if let Some(side_file) = SIDE_FILE_SUFFIXES.iter().map(|end| with_suffix(file, end)).find(|file| file.exists()) {
        return Err(failed(format!("{} belongs to another database: move it away first", side_file.display())));
    }
    let former = old.map(|old| new.prepare_to_replace(file, &old)).transpose().map_err(of_file)?;
    let in_place = File::open(&new.0)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&new.0, file))
        .and_then(|()| File::open(folder_of(file))?.sync_all());
    in_place.map_err(of_file)?;
    drop(lock);

    say(&format!("restored to {database}"));
    checked.print(say);
    for version in applied {
        say(&format!("brought up to schema version {version}"));
    }
    for line in &silenced {
        say(line);
    }
    if let Some(former) = former {
        say(&format!("the former database is {}", former.display()));
    }
    Ok(())
}

/// The new database before it is renamed. A file that an interrupted restore left is removed first.
struct NewDatabase(PathBuf);

impl NewDatabase {
    fn copy_of(backup: &mut File, database: &Path) -> io::Result<Self> {
        let new = Self(with_suffix(database, NEW_SUFFIX));
        new.remove();
        let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new.0)?;
        io::copy(backup, &mut to)?;
        Ok(new)
    }

    /// Gives it the owner and permissions of the old one, keeps the old one under a second name, and returns that name.
    fn prepare_to_replace(&self, database: &Path, old: &Metadata) -> io::Result<PathBuf> {
        fs::set_permissions(&self.0, old.permissions())?;
        chown(&self.0, Some(old.uid()), Some(old.gid()))?;
        keep(database)
    }

    fn remove(&self) {
        let files = SIDE_FILE_SUFFIXES.iter().map(|end| with_suffix(&self.0, end)).chain([self.0.clone()]);
        // Most of them do not exist.
        files.for_each(|file| drop(fs::remove_file(file)));
    }
}

impl Drop for NewDatabase {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Locks a database against all programs for as long as the connection lives, and moves the content of SQLite's other
/// files into the database: SQLite would apply a remaining `-wal` to the new one.
fn lock_exclusively(file: &Path) -> Result<SqliteConnection, CommandError> {
    let mut conn = SqliteConnection::establish(text(file)?)?;
    let lock = retry_while_locked(LOCK_TIMEOUT, || conn.batch_execute("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE"))
        .and_then(|()| words(&mut conn, "SELECT journal_mode AS value FROM pragma_journal_mode"));
    match lock {
        Ok(mode) if mode == ["delete"] => Ok(conn),
        Err(error) if !is_locked(&error) => Err(CommandError::Failed(format!(
            "the database is damaged ({error}): move {0} and what begins with {0}- away, then restore again",
            file.display()
        ))),
        _ => Err(CommandError::Failed(format!("a program uses {}: stop it first", file.display()))),
    }
}

/// Keeps the database under a second name, which it returns.
fn keep(file: &Path) -> io::Result<PathBuf> {
    let now = Clock::default().now().utc().format("%Y%m%dT%H%M%S%6fZ");
    let former = with_suffix(file, &format!(".before-{now}"));
    // Not every file system can do that.
    if fs::hard_link(file, &former).is_err() {
        fs::copy(file, &former)?;
        File::open(&former)?.sync_all()?;
    }
    Ok(former)
}
