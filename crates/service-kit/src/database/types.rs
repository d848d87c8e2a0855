//! Column types that mean the same on both databases: identifiers and points in time.

use std::{borrow::Cow, io::Write, ops::Deref};

use chrono_tz::Tz;
use common::{
    input::Id,
    time::{Timestamp, Zoned},
};
use diesel::{
    Connection, QueryResult, QueryableByName, RunQueryDsl,
    backend::Backend,
    deserialize::{self, FromSql, FromSqlRow},
    expression::AsExpression,
    pg::{Pg, PgValue},
    query_builder::{QueryId, SqlQuery},
    query_dsl::LoadQuery,
    serialize::{self, IsNull, Output, ToSql},
    sql_query,
    sql_types::{BigInt, HasSqlType, SqlOrd, SqlType, Text},
    sqlite::Sqlite,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, schema::Schema},
};
use uuid::Uuid;

use super::any_connection::MultiBackend;

/// A row of [`words`].
#[derive(QueryableByName)]
pub(crate) struct Word {
    #[diesel(sql_type = Text)]
    value: String,
}

/// The texts that a query selects as `value`.
pub(crate) fn words<C>(conn: &mut C, query: &str) -> QueryResult<Vec<String>>
where
    C: Connection,
    for<'query> SqlQuery: LoadQuery<'query, C, Word>,
{
    Ok(sql_query(query).load::<Word>(conn)?.into_iter().map(|word| word.value).collect())
}

/// An identifier: the SQL type of a column (`uuid` on PostgreSQL, 16 bytes on SQLite) and its value in Rust.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    SqlType,
    QueryId,
    AsExpression,
    FromSqlRow,
)]
#[diesel(postgres_type(oid = 2950, array_oid = 2951), sqlite_type(name = "Binary"), sql_type = DbUuid)]
#[serde(transparent)]
pub struct DbUuid(pub Uuid);

impl DbUuid {
    /// A new time-ordered identifier (UUID version 7).
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// The nil UUID, for fields that must name a user where there is none.
    pub fn nil() -> Self {
        Self(Uuid::nil())
    }
}

impl Default for DbUuid {
    fn default() -> Self {
        Self::new()
    }
}

impl From<Id> for DbUuid {
    fn from(id: Id) -> Self {
        Self(id.0)
    }
}

impl std::fmt::Display for DbUuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialSchema for DbUuid {
    fn schema() -> RefOr<Schema> {
        Id::schema()
    }
}

impl ToSchema for DbUuid {
    fn name() -> Cow<'static, str> {
        "UUID".into()
    }
}

/// A point in time: the SQL type of a column (`timestamptz` on PostgreSQL, microseconds since 1970 on SQLite) and its
/// value in Rust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, SqlType, QueryId, AsExpression, FromSqlRow)]
#[diesel(postgres_type(oid = 1184, array_oid = 1185), sqlite_type(name = "Long"), sql_type = DbTimestamp)]
pub struct DbTimestamp(pub Timestamp);

impl DbTimestamp {
    /// As the wire shows it in `zone`.
    pub fn in_zone(self, zone: Tz) -> Zoned {
        self.0.in_zone(zone)
    }
}

/// Both databases compare points in time, so they can select the latest.
impl SqlOrd for DbTimestamp {}

impl From<Timestamp> for DbTimestamp {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

/// The form in a cursor: microseconds since 1970. Answers show it [in a zone](DbTimestamp::in_zone).
impl Serialize for DbTimestamp {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_i64(self.micros())
    }
}

impl<'de> Deserialize<'de> for DbTimestamp {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let at = Timestamp::from_micros(i64::deserialize(from)?);
        at.map(Self).ok_or_else(|| D::Error::custom("no point in time that can be shown"))
    }
}

impl Deref for DbTimestamp {
    type Target = Timestamp;
    fn deref(&self) -> &Timestamp {
        &self.0
    }
}

/// Microseconds from 1970-01-01 to 2000-01-01, from which PostgreSQL counts.
pub(crate) const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

impl FromSql<DbUuid, Pg> for DbUuid {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(Uuid::from_slice(value.as_bytes())?))
    }
}

impl ToSql<DbUuid, Pg> for DbUuid {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(self.0.as_bytes())?;
        Ok(IsNull::No)
    }
}

impl FromSql<DbUuid, Sqlite> for DbUuid {
    fn from_sql(mut value: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(Uuid::from_slice(value.read_blob())?))
    }
}

impl ToSql<DbUuid, Sqlite> for DbUuid {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.0.as_bytes().as_slice());
        Ok(IsNull::No)
    }
}

fn timestamp(micros: Option<i64>) -> deserialize::Result<DbTimestamp> {
    micros.and_then(Timestamp::from_micros).map(DbTimestamp).ok_or_else(|| "a point in time is out of range".into())
}

impl FromSql<DbTimestamp, Pg> for DbTimestamp {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        timestamp(<i64 as FromSql<BigInt, Pg>>::from_sql(value)?.checked_add(POSTGRES_EPOCH))
    }
}

impl ToSql<DbTimestamp, Pg> for DbTimestamp {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&(self.0.micros() - POSTGRES_EPOCH).to_be_bytes())?;
        Ok(IsNull::No)
    }
}

impl FromSql<DbTimestamp, Sqlite> for DbTimestamp {
    fn from_sql(value: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        timestamp(Some(<i64 as FromSql<BigInt, Sqlite>>::from_sql(value)?))
    }
}

impl ToSql<DbTimestamp, Sqlite> for DbTimestamp {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.0.micros());
        Ok(IsNull::No)
    }
}

macro_rules! on_both_backends {
    ($type:ty) => {
        impl HasSqlType<$type> for MultiBackend {
            fn metadata(lookup: &mut Self::MetadataLookup) -> Self::TypeMetadata {
                Self::lookup_sql_type::<$type>(lookup)
            }
        }

        impl FromSql<$type, MultiBackend> for $type {
            fn from_sql(value: <MultiBackend as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
                value.from_sql::<$type, $type>()
            }
        }

        impl ToSql<$type, MultiBackend> for $type {
            fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, MultiBackend>) -> serialize::Result {
                out.set_value((*self, self));
                Ok(IsNull::No)
            }
        }
    };
}

on_both_backends!(DbUuid);
on_both_backends!(DbTimestamp);
