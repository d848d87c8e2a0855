//! A backup in the place of a SQLite database.

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
    check::check,
    database_file::database_file,
};
use crate::command::CommandError;
use crate::database::{
    Url,
    connection::make_folder_of,
    error_class::is_locked,
    lock_file::{InUse, beside},
    migrate::{self, Migrations},
    retry::{retry_until, retry_while_locked},
    types::words,
};

/// How long a program that is just ending may take to let the database go.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// What SQLite keeps beside a database while it is open, or after a crash.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Puts a backup in the place of a SQLite database that nobody uses. The former database stays beside it under another
/// name. Whenever this is cut off, either of the two is there, and whole.
///
/// # Errors
/// When the backup or the database is not what it should be; the database is as it was then.
pub fn restore(database: &Url, backup: &Path, migrations: &Migrations, say: fn(&str)) -> Result<(), CommandError> {
    let failed = |cause: String| CommandError::Failed(cause);
    let given = database_file(database, "restore is for SQLite; for PostgreSQL there is pg_restore")?;
    let of_backup = |error: io::Error| failed(format!("cannot read {}: {error}", backup.display()));
    let backup = &backup.canonicalize().map_err(of_backup)?;
    make_folder_of(given)?;
    // A link stays one.
    let file = &given.canonicalize().unwrap_or_else(|_| given.to_owned());
    if file == backup {
        return Err(failed(format!("{} is the database itself", backup.display())));
    }
    if BESIDE.iter().any(|end| beside(backup, end).exists()) {
        return Err(failed(format!("{} is a database in use and no backup", backup.display())));
    }
    let alone = retry_until(LOCK_TIMEOUT, || InUse::alone(file), |found| !matches!(found, Ok(None)))?;
    let _alone = alone.ok_or_else(|| failed(format!("a program uses {database}: stop it first")))?;

    let of_file = |error: io::Error| failed(format!("cannot write {}: {error}", file.display()));
    let new = New::copy_of(backup, file).map_err(of_file)?;
    let checked = check(&mut SqliteConnection::establish(text(&new.0)?)?, migrations)
        .map_err(|cause| failed(format!("{}: {cause}", backup.display())))?;
    let applied = migrate::run(&Url::of_file(&new.0), migrations)?;
    if BESIDE.iter().any(|end| beside(&new.0, end).exists()) {
        return Err(failed("the copy of the backup is still open".to_owned()));
    }

    let old = fs::metadata(file).ok();
    let lock = if old.is_some() { Some(hold(file)?) } else { None };
    if let Some(left) = BESIDE.iter().map(|end| beside(file, end)).find(|left| left.exists()) {
        return Err(failed(format!("{} belongs to another database: move it away first", left.display())));
    }
    let former = old.map(|old| new.takes_the_place_of(file, &old)).transpose().map_err(of_file)?;
    let in_place = File::open(&new.0)
        .and_then(|it| it.sync_all())
        .and_then(|()| fs::rename(&new.0, file))
        .and_then(|()| File::open(folder_of(file))?.sync_all());
    in_place.map_err(of_file)?;
    drop(lock);

    say(&format!("restored to {database}"));
    checked.tell(say);
    for version in applied {
        say(&format!("brought up to schema version {version}"));
    }
    if let Some(former) = former {
        say(&format!("the former database is {}", former.display()));
    }
    Ok(())
}

/// The database to be, until it has its name. What an earlier restore left of one goes.
struct New(PathBuf);

impl New {
    fn copy_of(backup: &Path, database: &Path) -> io::Result<Self> {
        let new = Self(beside(database, ".restoring"));
        new.remove();
        let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new.0)?;
        io::copy(&mut File::open(backup)?, &mut to)?;
        Ok(new)
    }

    /// Makes it like the old one to everybody, gives that a second name, and returns this.
    fn takes_the_place_of(&self, database: &Path, old: &Metadata) -> io::Result<PathBuf> {
        fs::set_permissions(&self.0, old.permissions())?;
        chown(&self.0, Some(old.uid()), Some(old.gid()))?;
        keep(database)
    }

    fn remove(&self) {
        let files = BESIDE.iter().map(|end| beside(&self.0, end)).chain([self.0.clone()]);
        // Most of them are not there.
        files.for_each(|file| drop(fs::remove_file(file)));
    }
}

impl Drop for New {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Takes a database from everybody, of whatever program, for as long as the connection lives, and brings into its file
/// what SQLite keeps beside it: left there, that would be taken for a part of the new one.
fn hold(file: &Path) -> Result<SqliteConnection, CommandError> {
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

/// Gives a database a second name, under which it stays.
fn keep(file: &Path) -> io::Result<PathBuf> {
    let now = Clock::default().now().utc().format("%Y%m%dT%H%M%S%6fZ");
    let former = beside(file, &format!(".before-{now}"));
    // Not every file system can do that.
    if fs::hard_link(file, &former).is_err() {
        fs::copy(file, &former)?;
        File::open(&former)?.sync_all()?;
    }
    Ok(former)
}
