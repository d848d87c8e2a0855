//! Copies of a SQLite database.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use diesel::{Connection, RunQueryDsl, SqliteConnection, sql_query, sql_types::Text};

use super::{
    check::{Say, check},
    database_file::existing_file,
};
use crate::database::{
    Url,
    lock_file::{DatabaseLock, with_suffix},
    migrate::Migrations,
};
use crate::{command::CommandError, progress::Progress};

/// Writes a copy of a SQLite database to a new file. Other programs may read and write meanwhile; the copy is one
/// snapshot with everything that was committed before the start. The file appears once it is complete, checked and
/// synced to disk.
///
/// # Errors
/// When the database is damaged or not of this service, or the file exists or cannot be written. No file is created
/// then.
pub fn backup(
    database: &Url,
    file: &Path,
    migrations: &Migrations,
    progress: &Progress,
    say: Say<'_>,
) -> Result<(), CommandError> {
    let source = existing_file(database, "backup is for SQLite; for PostgreSQL there is pg_dump")?;
    if file.exists() {
        return Err(CommandError::Failed(format!("{} already exists, and is not overwritten", file.display())));
    }
    let of_file = |error: io::Error| CommandError::Failed(format!("cannot write {}: {error}", file.display()));
    let folder = folder_of(file).canonicalize().map_err(of_file)?;
    let name = file.file_name().ok_or_else(|| CommandError::Failed("the file has no name".to_owned()))?;
    // Absolute, because SQLite reads a name that begins with `file:` as a URI.
    let part = PartialFile::new(with_suffix(&folder.join(name), ".part")).map_err(of_file)?;
    let _lock = DatabaseLock::shared(source)?;

    progress.step("copying the database", source.metadata().ok().map(|found| found.len()));
    progress.follow(part.0.clone());
    let mut conn = database.connect()?;
    sql_query("VACUUM INTO ?")
        .bind::<Text, _>(text(&part.0)?)
        .execute(&mut conn)
        .map_err(|error| CommandError::Failed(format!("cannot write {}: {error}", file.display())))?;
    progress.step("checking the copy", None);
    let checked = check(&mut SqliteConnection::establish(text(&part.0)?)?, migrations)
        .map_err(|cause| CommandError::Failed(format!("{database}: {cause}")))?;
    File::open(&part.0).and_then(|file| file.sync_all()).map_err(of_file)?;
    fs::rename(&part.0, file).map_err(of_file)?;
    File::open(&folder).and_then(|file| file.sync_all()).map_err(of_file)?;
    checked.print(say);
    Ok(())
}

/// A file that is being written, readable by its owner only. It is deleted on drop unless it was renamed.
struct PartialFile(PathBuf);

impl PartialFile {
    fn new(file: PathBuf) -> io::Result<Self> {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file) {
            Ok(_) => Ok(Self(file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(io::Error::other(format!(
                "{} exists: another backup is running, or was interrupted; if so, delete the file",
                file.display()
            ))),
            Err(error) => Err(error),
        }
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // After the rename the part no longer exists. Other errors have been reported already.
        let _ = fs::remove_file(&self.0);
    }
}

/// The folder that a file is in.
pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A path as text, which SQLite needs.
pub(super) fn text(path: &Path) -> Result<&str, CommandError> {
    path.to_str().ok_or_else(|| CommandError::Failed(format!("{} is not UTF-8", path.display())))
}
