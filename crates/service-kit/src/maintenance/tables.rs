//! The tables of a service as data, to copy them without code for each.

use diesel::{
    PgConnection, QueryResult,
    sql_types::{BigInt, Binary, Bool, Integer, Nullable, SmallInt, Text},
};

use crate::{
    database::{
        AnyConnection,
        migrate::Migrations,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

/// The contents of a service's database.
#[derive(Clone, Copy)]
pub struct Contents {
    /// The migrations that make the tables.
    pub migrations: &'static Migrations,
    /// The tables; each comes after those that it refers to.
    pub tables: &'static [TableInfo],
    /// Keeps a copy of the database from sending anything to others, and returns what to say about that.
    pub silence: fn(&mut AnyConnection) -> Result<Vec<String>, Error>,
}

/// One table, as `schema.rs` declares it. [`tables!`](crate::tables) makes them.
pub struct TableInfo {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: fn() -> Vec<(&'static str, Kind)>,
    /// Inserts rows of all columns in the binary format of PostgreSQL's `COPY`.
    pub receive: fn(&mut PgConnection, &[u8]) -> QueryResult<usize>,
}

/// The kind of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are called as the types of Diesel and of this crate")]
pub enum Kind {
    DbUuid,
    DbTimestamp,
    Text,
    Binary,
    SmallInt,
    Integer,
    BigInt,
    Bool,
}

/// A type of `schema.rs`.
pub trait HasKind {
    /// The kind of its values.
    const KIND: Kind;
}

macro_rules! kinds {
    ($($kind:ident)+) => { $(impl HasKind for $kind { const KIND: Kind = Kind::$kind; })+ };
}
kinds! { DbUuid DbTimestamp Text Binary SmallInt Integer BigInt Bool }

impl<T: HasKind + diesel::sql_types::SqlType> HasKind for Nullable<T> {
    const KIND: Kind = T::KIND;
}

/// All columns of a table.
pub trait Columns {
    /// Their names and kinds.
    fn describe() -> Vec<(&'static str, Kind)>;
}

macro_rules! columns {
    ($first:ident $($rest:ident)*) => {
        impl<$first: diesel::Column<SqlType: HasKind>, $($rest: diesel::Column<SqlType: HasKind>),*> Columns
            for ($first, $($rest,)*)
        {
            fn describe() -> Vec<(&'static str, Kind)> {
                vec![($first::NAME, $first::SqlType::KIND), $(($rest::NAME, $rest::SqlType::KIND)),*]
            }
        }
        columns! { $($rest)* }
    };
    () => {};
}
// As many columns as Diesel's tables can have here (its feature `32-column-tables`).
columns! { A B C D E F G H I J K L M N O P Q R S T U V W X Y Z A1 B1 C1 D1 E1 F1 }

/// The columns of a table of `schema.rs`.
pub fn columns_of<T: diesel::Table<AllColumns: Columns>>() -> Vec<(&'static str, Kind)> {
    T::AllColumns::describe()
}

/// The [`TableInfo`] of each of these tables of `schema.rs`. Each must come after those that it
/// refers to.
#[macro_export]
macro_rules! tables {
    ($($table:ident)+) => {
        &[$($crate::maintenance::tables::TableInfo {
            name: stringify!($table),
            columns: $crate::maintenance::tables::columns_of::<$table::table>,
            receive: |conn, rows| {
                use diesel::{pg::CopyFormat, prelude::ExecuteCopyFromDsl};
                let send = |out: &mut dyn std::io::Write| {
                    out.write_all(rows).map_err(|error| diesel::result::Error::SerializationError(Box::new(error)))
                };
                let copy = diesel::copy_from($table::table).from_raw_data($table::table, send);
                copy.with_format(CopyFormat::Binary).execute(conn)
            },
        }),+]
    };
}
