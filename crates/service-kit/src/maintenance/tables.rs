//! The tables of a service as data: for copying all of them without a word about each.

use diesel::{
    PgConnection, QueryResult,
    sql_types::{BigInt, Binary, Bool, Integer, Nullable, SmallInt, Text},
};

use crate::database::{
    migrate::Migrations,
    types::{DbTimestamp, DbUuid},
};

/// What a service keeps in its database.
#[derive(Clone, Copy)]
pub struct Contents {
    /// What makes the tables.
    pub migrations: &'static Migrations,
    /// The tables, each after those that it refers to.
    pub tables: &'static [TableInfo],
}

/// One table, as `schema.rs` declares it. [`tables!`](crate::tables) makes them.
pub struct TableInfo {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: fn() -> Vec<(&'static str, Kind)>,
    /// Takes rows of all columns in the binary format of PostgreSQL's `COPY`.
    pub receive: fn(&mut PgConnection, &[u8]) -> QueryResult<usize>,
}

/// What a column keeps.
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
pub trait Kinded {
    /// What it keeps.
    const KIND: Kind;
}

macro_rules! kinds {
    ($($kind:ident)+) => { $(impl Kinded for $kind { const KIND: Kind = Kind::$kind; })+ };
}
kinds! { DbUuid DbTimestamp Text Binary SmallInt Integer BigInt Bool }

impl<T: Kinded + diesel::sql_types::SqlType> Kinded for Nullable<T> {
    const KIND: Kind = T::KIND;
}

/// All columns of a table.
pub trait Columns {
    /// Their names and what they keep.
    fn describe() -> Vec<(&'static str, Kind)>;
}

macro_rules! columns {
    ($first:ident $($rest:ident)*) => {
        impl<$first: diesel::Column<SqlType: Kinded>, $($rest: diesel::Column<SqlType: Kinded>),*> Columns
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
columns! { A B C D E F G H I J K L M N O P Q R S T }

/// The columns of a table of `schema.rs`.
#[must_use]
pub fn columns_of<T: diesel::Table<AllColumns: Columns>>() -> Vec<(&'static str, Kind)> {
    T::AllColumns::describe()
}

/// The [`TableInfo`] of each of these tables of `schema.rs`. They go in an order in which each stands after those that
/// it refers to.
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
