//! The run of an import.

use std::{
    collections::{HashMap, HashSet},
    mem,
};

use chrono_tz::Tz;
use diesel::{Connection, result::Error as DieselError};

use crate::{options::ImportOptions, report::Report, row::SourceTable, source::Source};
use service_kit::{
    command::CommandError,
    database::{
        AnyConnection, Database, JobOwner,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{self, Action, Author, By, Entry, Kind},
    progress::Progress,
};

/// An import as an object of the history.
static IMPORT: Kind = Kind { name: "import", hidden: &[] };

/// A running import.
pub struct Import {
    /// The database to read.
    pub source: Source,
    /// The report to print.
    pub report: Report,
    /// Zone of the times in the source.
    pub zone: Tz,
    /// Whether to update rows that have changed in the source since an earlier import.
    pub(crate) update: bool,
    dry_run: bool,
    progress: Progress,
    /// The ids that the source has, by kind.
    pub(crate) seen: HashMap<&'static str, HashSet<DbUuid>>,
}

impl Import {
    /// Connects to the source and checks its version and its tables. Nothing is written.
    pub async fn connect(
        options: ImportOptions,
        tables: &'static [SourceTable],
        zone: Tz,
    ) -> Result<Self, CommandError> {
        let (update, dry_run) = (options.update, options.dry_run);
        let progress = Progress::start("connecting to the source");
        let opened = tokio::task::spawn_blocking(move || Source::open(&options, tables));
        let source =
            opened.await.map_err(|_| CommandError::Failed("the source is no MariaDB or MySQL server".to_owned()))??;
        Ok(Self { source, report: Report::default(), zone, update, dry_run, progress, seen: HashMap::new() })
    }

    /// Shows what happens next.
    pub fn step(&self, name: &'static str) {
        self.progress.step(name, None);
    }

    /// Shows that the rows of a table are imported.
    pub(crate) fn step_of_table(&mut self, table: &SourceTable) -> Result<(), Error> {
        let rows = self.source.count(table)?;
        self.progress.step(format!("importing {}", table.name), Some(rows));
        Ok(())
    }

    /// Shows that this many more rows of the table are imported.
    pub(crate) fn progress(&self, rows: usize) {
        self.progress.add(rows as u64);
    }

    /// Writes one row of the history for the import, if it has changed anything.
    pub fn record(&self, conn: &mut AnyConnection, now: DbTimestamp) -> Result<(), Error> {
        let changes = self.report.changes();
        if changes.is_empty() {
            return Ok(());
        }
        let entry = Entry { kind: &IMPORT, object: DbUuid::new(), action: Action::Created, changes };
        history::record(conn, &Author::new(By::Import, now), &[entry])
    }

    /// The first lines of the report.
    fn head(&self) -> Vec<String> {
        let (place, version) = (self.source.place(), self.source.version());
        let mut head = vec![format!("source: {place}, {version}; its times are read in {}", self.zone)];
        if self.dry_run {
            head.push("dry run: nothing is written".to_owned());
        }
        head
    }

    /// Runs `work` in one transaction. A dry run does the same and rolls it back, so that both report the same.
    ///
    /// # Errors
    /// Those of `work`; nothing is written then.
    pub async fn run<F>(mut self, db: &Database, mut work: F) -> Result<Report, Error>
    where
        F: FnMut(&mut AnyConnection, &mut Self) -> Result<(), Error> + Send + 'static,
    {
        db.write(JobOwner::Internal, move |conn| {
            // Starts again when the database aborted the transaction.
            self.report = Report::new(self.head());
            self.seen.clear();
            self.source.begin()?;
            let result = conn.transaction(|conn| {
                work(conn, &mut self)?;
                if self.dry_run { Err(DieselError::RollbackTransaction.into()) } else { Ok(()) }
            });
            match result {
                Err(Error::Database(DieselError::RollbackTransaction)) if self.dry_run => {}
                result => result?,
            }
            Ok(mem::take(&mut self.report))
        })
        .await
    }
}
