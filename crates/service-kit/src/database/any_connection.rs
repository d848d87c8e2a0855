//! The connection to either database.
#![expect(missing_docs, reason = "the derive macro makes undocumented public items")]

use diesel::{PgConnection, SqliteConnection};

/// A connection to either database. Queries are written once, against this type.
#[derive(diesel::MultiConnection)]
pub enum AnyConnection {
    /// PostgreSQL 13 or newer.
    Postgresql(PgConnection),
    /// The bundled SQLite.
    Sqlite(SqliteConnection),
}
