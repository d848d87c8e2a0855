//! Migrations at start: under a lock, so that two replicas may start together, and never backwards.

use std::fmt;

use diesel::{
    Connection, RunQueryDsl,
    connection::{AnsiTransactionManager, TransactionManager},
    migration::{Migration, MigrationSource},
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness};

use super::{AnyConnection, Url};

/// The migrations of a service, written once for each database with the same versions.
pub struct Migrations {
    /// Applied to SQLite.
    pub sqlite: EmbeddedMigrations,
    /// Applied to PostgreSQL.
    pub postgres: EmbeddedMigrations,
}

/// Why the schema could not be brought up to date.
#[derive(Debug)]
pub enum MigrationError {
    /// The database has a migration that this binary does not know: it was written by a newer version.
    Newer {
        /// The unknown version.
        version: String,
    },
    /// The database cannot be reached or refused a statement.
    Failed(String),
}

impl fmt::Display for MigrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer { version } => write!(
                f,
                "the database has schema version {version}, which this version of the program does not know; \
                 run the newer program, or restore a backup made before the upgrade"
            ),
            Self::Failed(cause) => write!(f, "the database schema cannot be brought up to date: {cause}"),
        }
    }
}

impl std::error::Error for MigrationError {}

/// One number for all services: they have databases of their own, and waiting for each other would only cost time.
const ADVISORY_LOCK: i64 = 0x6c65_6374_7572_6573;

/// Applies what is missing and returns the versions applied. Safe to run from several processes at once.
///
/// # Errors
/// [`MigrationError::Newer`] when the database is ahead, [`MigrationError::Failed`] for anything else; nothing has
/// changed then.
pub fn run(url: &Url, migrations: &Migrations) -> Result<Vec<String>, MigrationError> {
    match url.connect().map_err(failed)? {
        AnyConnection::Postgresql(mut conn) => {
            AnsiTransactionManager::begin_transaction_sql(&mut conn, "BEGIN").map_err(failed)?;
            // Neither waiting for another replica's migrations nor rewriting a large table may be broken off.
            for limit in ["SET LOCAL lock_timeout = 0", "SET LOCAL statement_timeout = 0"] {
                diesel::sql_query(limit).execute(&mut conn).map_err(failed)?;
            }
            diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
                .bind::<diesel::sql_types::BigInt, _>(ADVISORY_LOCK)
                .execute(&mut conn)
                .map_err(failed)?;
            in_open_transaction(&mut conn, &migrations.postgres)
        }
        AnyConnection::Sqlite(mut conn) => {
            AnsiTransactionManager::begin_transaction_sql(&mut conn, "BEGIN IMMEDIATE").map_err(failed)?;
            in_open_transaction(&mut conn, &migrations.sqlite)
        }
    }
}

fn in_open_transaction<C>(conn: &mut C, known: &EmbeddedMigrations) -> Result<Vec<String>, MigrationError>
where
    C: Connection + MigrationHarness<C::Backend> + 'static,
    EmbeddedMigrations: MigrationSource<C::Backend>,
{
    let mut known = MigrationSource::<C::Backend>::migrations(known).map_err(failed)?;
    known.sort_by(|a, b| a.name().version().cmp(&b.name().version()));
    let applied = conn.applied_migrations().map_err(failed)?;
    if let Some(newer) = applied.iter().find(|version| known.iter().all(|ours| ours.name().version() != **version)) {
        return Err(MigrationError::Newer { version: newer.to_string() });
    }
    known.retain(|migration| !applied.contains(&migration.name().version()));
    let done = conn.run_migrations(&known).map_err(failed)?.iter().map(ToString::to_string).collect();
    C::TransactionManager::commit_transaction(conn).map_err(failed)?;
    Ok(done)
}

fn failed(cause: impl fmt::Display) -> MigrationError {
    MigrationError::Failed(cause.to_string())
}
