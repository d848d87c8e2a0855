//! Checks that a SQLite database is undamaged and of this service.

use std::collections::BTreeSet;

use diesel::{Connection, SqliteConnection, connection::SimpleConnection, sqlite::Sqlite};

use crate::command::CommandError;
use crate::database::{
    migrate::{self, MigrationError, Migrations},
    types::words,
};

/// Prints a line.
pub(super) type Say<'a> = &'a dyn Fn(&str);

/// The versions and row counts of a database that passed the check.
pub(super) struct CheckedFile {
    versions: Vec<String>,
    rows: Vec<(String, String)>,
}

impl CheckedFile {
    /// Prints them.
    pub(super) fn print(&self, say: Say<'_>) {
        for (table, rows) in &self.rows {
            say(&format!("{table}: {rows} rows"));
        }
        say(&format!("schema version {}", self.versions.last().map_or("none", String::as_str)));
    }
}

/// Checks every page and every foreign key, and compares the schema with the one that the applied migrations make.
pub(super) fn check(conn: &mut SqliteConnection, migrations: &Migrations) -> Result<CheckedFile, CommandError> {
    let failed = |cause: String| CommandError::Failed(cause);
    // Functions and views of the schema must not run before it has been compared.
    conn.batch_execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")?;
    let result = words(conn, "SELECT integrity_check AS value FROM pragma_integrity_check LIMIT 1")?;
    if result != ["ok"] {
        return Err(failed(format!("damaged: {}", result.concat())));
    }
    let broken = words(conn, "SELECT \"table\" AS value FROM pragma_foreign_key_check LIMIT 1")?;
    if let Some(table) = broken.first() {
        return Err(failed(format!("damaged: a row of {table} refers to a missing one")));
    }
    migrate::check_owner(conn, migrations)?;
    let versions = migrate::applied(conn)?;
    let own_versions = migrate::versions::<Sqlite>(&migrations.sqlite)?;
    if let Some(newer) = versions.iter().find(|version| !own_versions.contains(version)) {
        return Err(MigrationError::Newer { version: newer.clone() }.into());
    }
    let model = &mut SqliteConnection::establish(":memory:")?;
    let all = migrate::all::<Sqlite>(&migrations.sqlite)?;
    let applied = all.iter().filter(|migration| versions.contains(&migration.name().version().to_string()));
    for migration in applied {
        migration.run(model).map_err(|error| failed(error.to_string()))?;
    }
    let (expected, actual) = (shape(model)?, shape(conn)?);
    if versions.is_empty() || !expected.is_subset(&actual) {
        let missing = expected.difference(&actual).next().map(|missing| format!(": {missing} is missing"));
        return Err(failed(format!("no database of this service{}", missing.unwrap_or_default())));
    }
    let tables = words(model, "SELECT name AS value FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let tables = tables.into_iter().filter(|table| !table.starts_with("__") && !table.starts_with("sqlite_"));
    let count = |table: String| {
        let rows = words(conn, &format!("SELECT CAST(count(*) AS TEXT) AS value FROM \"{table}\""))?.concat();
        Ok((table, rows))
    };
    Ok(CheckedFile { versions, rows: tables.map(count).collect::<Result<_, CommandError>>()? })
}

/// Each table with its columns, each index and each trigger.
fn shape(conn: &mut SqliteConnection) -> Result<BTreeSet<String>, CommandError> {
    let things = "SELECT type || ' ' || name || ' of ' || tbl_name AS value FROM sqlite_schema \
                  WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' UNION ALL \
                  SELECT concat_ws(' ', 'column', t.name, c.name, c.type, c.\"notnull\", c.pk) \
                  FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'";
    Ok(words(conn, things)?.into_iter().collect())
}
