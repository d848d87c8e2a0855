//! Migrations at the start, under a lock so that replicas may start at the same time. There are no downgrades.

use std::fmt;

use diesel::{
    Connection, PgConnection, RunQueryDsl,
    backend::Backend,
    connection::{AnsiTransactionManager, TransactionManager},
    migration::{Migration, MigrationSource},
    pg::Pg,
    query_builder::SqlQuery,
    query_dsl::LoadQuery,
    sqlite::Sqlite,
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness};

use super::{
    any_connection::AnyConnection,
    types::{Word, words},
    url::Url,
};
use crate::{error::Error, with_connection};

/// The migrations of a service, written once for each database with the same versions.
pub struct Migrations {
    /// Applied to SQLite.
    pub sqlite: EmbeddedMigrations,
    /// Applied to PostgreSQL.
    pub postgres: EmbeddedMigrations,
    /// A table of the first migration that no other service has, by which the service recognizes its database.
    pub own_table: &'static str,
    /// What SQL cannot compute, by the version of the migration that it belongs to.
    pub steps: &'static [(&'static str, Step)],
}

/// Runs after all migrations, on the newest schema, in their transaction.
pub type Step = fn(&mut AnyConnection) -> Result<(), Error>;

/// Why the schema could not be brought up to date.
#[derive(Debug)]
pub enum MigrationError {
    /// The database has a migration that this binary does not know: it was written by a newer version.
    Newer {
        /// The unknown version.
        version: String,
    },
    /// The database belongs to another service.
    Foreign,
    /// The PostgreSQL server takes no writes. Says why.
    ReadOnly(&'static str),
    /// Between the service and PostgreSQL is a pooler that gives each transaction another connection.
    Pooled,
    /// The PostgreSQL database has another encoding than UTF-8.
    Encoding(String),
    /// The database cannot be reached.
    Unreachable(String),
    /// The database refused a statement.
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
            Self::Foreign => f.write_str("this is the database of another service"),
            Self::ReadOnly(why) => f.write_str(why),
            Self::Pooled => f.write_str(
                "--database-url leads to a pooler that changes the connection to PostgreSQL between transactions; \
                 PgBouncer must use pool_mode = session",
            ),
            Self::Encoding(name) => write!(
                f,
                "the database has the encoding {name}; create it with UTF-8: createdb --encoding=UTF8 --template=template0"
            ),
            Self::Unreachable(cause) => write!(f, "cannot connect to the database of --database-url: {cause}"),
            Self::Failed(cause) => write!(f, "the database schema cannot be brought up to date: {cause}"),
        }
    }
}

impl std::error::Error for MigrationError {}

/// The number of the advisory lock. Services have separate databases, so one number is enough.
const ADVISORY_LOCK: i64 = 0x6c65_6374_7572_6573;

/// Applies the missing migrations and returns their versions. Several processes may run this at once.
///
/// # Errors
/// See [`MigrationError`]; nothing has changed then.
pub fn run(url: &Url, migrations: &Migrations) -> Result<Vec<String>, MigrationError> {
    let mut conn = url.connect().map_err(|error| MigrationError::Unreachable(error.to_string()))?;
    with_connection!(&mut conn, conn => check_owner(conn, migrations))?;
    let applied = match &mut conn {
        AnyConnection::Postgresql(conn) => {
            check_server(url, conn)?;
            let encoding = words(conn, "SELECT current_setting('server_encoding') AS value").map_err(failed)?;
            if encoding != ["UTF8"] {
                return Err(MigrationError::Encoding(encoding.concat()));
            }
            AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN").map_err(failed)?;
            // No time-out: another replica may be migrating, rewriting a large table takes long, and so does a step
            // between two statements.
            for limit in ["lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"] {
                diesel::sql_query(format!("SET LOCAL {limit} = 0")).execute(conn).map_err(failed)?;
            }
            diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
                .bind::<diesel::sql_types::BigInt, _>(ADVISORY_LOCK)
                .execute(conn)
                .map_err(failed)?;
            in_open_transaction(conn, &migrations.postgres)?
        }
        AnyConnection::Sqlite(conn) => {
            AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN IMMEDIATE").map_err(failed)?;
            in_open_transaction(conn, &migrations.sqlite)?
        }
    };
    for (_, step) in migrations.steps.iter().filter(|(version, _)| applied.iter().any(|applied| applied == version)) {
        step(&mut conn).map_err(|error| MigrationError::Failed(error.describe()))?;
    }
    with_connection!(&mut conn, conn => AnsiTransactionManager::commit_transaction(conn)).map_err(failed)?;
    Ok(applied)
}

/// Refuses a server that cannot be written to, and a pooler that breaks what is set for a connection.
fn check_server(url: &Url, conn: &mut PgConnection) -> Result<(), MigrationError> {
    let state = "SELECT concat_ws(' ', current_setting('transaction_read_only'), pg_is_in_recovery()) AS value";
    let why = match words(conn, state).map_err(failed)?.concat().as_str() {
        "on t" => {
            "the PostgreSQL server of --database-url is a standby, which takes no writes; name the primary, or all \
             servers with target_session_attrs=read-write"
        }
        "on f" => {
            "the PostgreSQL server of --database-url takes no writes: default_transaction_read_only is on for this \
             role, database or server"
        }
        _ => "",
    };
    if !why.is_empty() {
        return Err(MigrationError::ReadOnly(why));
    }
    // Two connections that are open at once have the same process only if a pooler shares it.
    let process = "SELECT pg_backend_pid()::text AS value";
    let mut other = url.connect().map_err(|error| MigrationError::Unreachable(error.to_string()))?;
    let other = with_connection!(&mut other, other => words(other, process)).map_err(failed)?;
    if words(conn, process).map_err(failed)? == other { Err(MigrationError::Pooled) } else { Ok(()) }
}

/// The migrations of a service for one database, the oldest first.
pub(crate) fn all<DB: Backend>(migrations: &EmbeddedMigrations) -> Result<Vec<Box<dyn Migration<DB>>>, MigrationError>
where
    EmbeddedMigrations: MigrationSource<DB>,
{
    let mut all = MigrationSource::<DB>::migrations(migrations).map_err(failed)?;
    all.sort_by(|a, b| a.name().version().cmp(&b.name().version()));
    Ok(all)
}

/// Their versions.
pub(crate) fn versions<DB: Backend>(migrations: &EmbeddedMigrations) -> Result<Vec<String>, MigrationError>
where
    EmbeddedMigrations: MigrationSource<DB>,
{
    Ok(all::<DB>(migrations)?.iter().map(|migration| migration.name().version().to_string()).collect())
}

/// The applied versions of a database, the oldest first; none if no service has ever opened it. Reads only.
pub(crate) fn applied<C>(conn: &mut C) -> Result<Vec<String>, MigrationError>
where
    C: Connection<Backend: Tables>,
    for<'query> SqlQuery: LoadQuery<'query, C, Word>,
{
    if !has_table(conn, "__diesel_schema_migrations")? {
        return Ok(Vec::new());
    }
    words(conn, "SELECT version AS value FROM __diesel_schema_migrations ORDER BY version").map_err(failed)
}

/// Refuses the database of another service, which has applied migrations but not [`Migrations::own_table`].
pub(crate) fn check_owner<C>(conn: &mut C, migrations: &Migrations) -> Result<(), MigrationError>
where
    C: Connection<Backend: Tables>,
    for<'query> SqlQuery: LoadQuery<'query, C, Word>,
{
    let is_foreign = !applied(conn)?.is_empty() && !has_table(conn, migrations.own_table)?;
    if is_foreign { Err(MigrationError::Foreign) } else { Ok(()) }
}

fn has_table<C>(conn: &mut C, name: &str) -> Result<bool, MigrationError>
where
    C: Connection<Backend: Tables>,
    for<'query> SqlQuery: LoadQuery<'query, C, Word>,
{
    Ok(words(conn, C::Backend::TABLES).map_err(failed)?.iter().any(|table| table == name))
}

/// A database with its query for the names of the tables.
pub(crate) trait Tables: Backend {
    /// The names of the tables that queries see.
    const TABLES: &str;
}

impl Tables for Pg {
    const TABLES: &str =
        "SELECT relname::text AS value FROM pg_class WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid)";
}

impl Tables for Sqlite {
    const TABLES: &str = "SELECT name AS value FROM sqlite_schema WHERE type = 'table'";
}

fn in_open_transaction<C>(conn: &mut C, migrations: &EmbeddedMigrations) -> Result<Vec<String>, MigrationError>
where
    C: Connection + MigrationHarness<C::Backend> + 'static,
    EmbeddedMigrations: MigrationSource<C::Backend>,
{
    let mut pending = all::<C::Backend>(migrations)?;
    let applied = conn.applied_migrations().map_err(failed)?;
    if let Some(newer) = applied.iter().find(|version| pending.iter().all(|ours| ours.name().version() != **version)) {
        return Err(MigrationError::Newer { version: newer.to_string() });
    }
    pending.retain(|migration| !applied.contains(&migration.name().version()));
    Ok(conn.run_migrations(&pending).map_err(failed)?.iter().map(ToString::to_string).collect())
}

fn failed(cause: impl fmt::Display) -> MigrationError {
    MigrationError::Failed(cause.to_string())
}
