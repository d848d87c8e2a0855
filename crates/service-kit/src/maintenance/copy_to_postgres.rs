//! Copies a SQLite database to PostgreSQL: all rows in one transaction, compared at the end.

use std::fmt;

use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl, SqliteConnection,
    backend::Backend,
    connection::{AnsiTransactionManager, DefaultLoadingMode, SimpleConnection, TransactionManager},
    deserialize::{self, FromSql},
    pg::{Pg, PgRowByRowLoadingMode, PgValue},
    row::{Field, NamedRow, Row},
    sql_query,
    sql_types::{BigInt, Binary, Bool, Integer, SmallInt, Text},
    sqlite::{Sqlite, SqliteType},
};
use sha2::{Digest as _, Sha256};

use super::{
    check::Say,
    database_file::existing_file,
    tables::{Contents, Kind, TableInfo},
};
use crate::database::{
    AnyConnection, Url,
    lock_file::DatabaseLock,
    migrate,
    types::{DbTimestamp, DbUuid, POSTGRES_EPOCH, words},
};
use crate::{command::CommandError, progress::Progress};

/// Copies a SQLite database to an empty PostgreSQL database, in which it creates the schema. The copy of a database in use
/// sends nothing to others.
///
/// # Errors
/// When one of the databases cannot be used, or the rows differ at the end. Nothing is copied then.
pub fn copy_to(
    source: &Url,
    target: &Url,
    contents: &Contents,
    progress: &Progress,
    say: Say<'_>,
) -> Result<(), CommandError> {
    let file = existing_file(source, "copy-to copies from SQLite; for PostgreSQL there are pg_dump and pg_restore")?;
    if !target.is_postgres() {
        return Err(CommandError::option("copy-to copies to postgres://…; for SQLite there are backup and restore"));
    }
    let (_lock, is_in_use) = if let Some(lock) = DatabaseLock::exclusive(file)? {
        (lock, false)
    } else {
        say("A program uses the database: what it writes from now on is not copied.");
        (DatabaseLock::shared(file)?, true)
    };
    let versions = migrate::versions::<Sqlite>(&contents.migrations.sqlite)?;
    let AnyConnection::Sqlite(mut sqlite) = source.connect()? else { return Err(failed("no SQLite")) };
    if migrate::applied(&mut sqlite)? != versions {
        return Err(failed(format!("{source} has a schema of another version: run `migrate` of this program first")));
    }
    let AnyConnection::Postgresql(mut pg) = target.connect()? else { return Err(failed("no PostgreSQL")) };
    pg.batch_execute("SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0")?;
    let applied = migrate::applied(&mut pg)?;
    let is_ours = applied == migrate::versions::<Pg>(&contents.migrations.postgres)?;
    if !applied.is_empty() && !is_ours {
        return Err(failed("the schema of the target is of another version"));
    }
    let others = "SELECT relname::text AS value FROM pg_class \
                  WHERE relnamespace = to_regnamespace(quote_ident(current_schema())) \
                  AND relkind IN ('r', 'p', 'v', 'm', 'f')";
    if let ([], [other, ..]) = (applied.as_slice(), words(&mut pg, others)?.as_slice()) {
        return Err(failed(format!("the target is not empty: it has {other}, which is not of this program")));
    }
    migrate::run(target, contents.migrations)?;

    AnsiTransactionManager::begin_transaction_sql(&mut pg, "BEGIN")?;
    copy(&mut sqlite, &mut pg, contents.tables, progress, say)?;
    let mut target = AnyConnection::Postgresql(pg);
    if is_in_use {
        (contents.silence)(&mut target)?.iter().for_each(|line| say(line));
    }
    let AnyConnection::Postgresql(mut pg) = target else { return Err(failed("no PostgreSQL")) };
    <PgConnection as Connection>::TransactionManager::commit_transaction(&mut pg)?;
    Ok(())
}

/// Copies tables from one snapshot, in the order of the list, into the open transaction of the target.
fn copy(
    source: &mut SqliteConnection,
    target: &mut PgConnection,
    tables: &[TableInfo],
    progress: &Progress,
    say: Say<'_>,
) -> Result<(), CommandError> {
    let names: Vec<_> = tables.iter().map(|table| quoted(table.name)).collect();
    // A server that starts on the target has to wait.
    target.batch_execute(&format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", names.join(", ")))?;
    for (table, name) in tables.iter().zip(&names) {
        let rows = words(target, &format!("SELECT 'x' AS value FROM {name} LIMIT 1"))?;
        if !rows.is_empty() {
            return Err(failed(format!("the target is not empty: the table {} has rows", table.name)));
        }
    }
    AnsiTransactionManager::begin_transaction_sql(source, "BEGIN DEFERRED")?;
    for table in tables {
        let of_table = |error: CommandError| CommandError::Failed(format!("{}: {error}", table.name));
        let rows = words(source, &format!("SELECT CAST(count(*) AS TEXT) AS value FROM {}", quoted(table.name)))?;
        // Each row is copied, and read again to be compared.
        let parts = rows.concat().parse().ok().map(|rows: u64| 2 * rows);
        progress.step(format!("copying {}", table.name), parts);
        let (sent, received) = copy_table(source, target, table, progress).map_err(of_table)?;
        if sent != received {
            let difference = format!("{sent} were read and {received} are in the target");
            return Err(of_table(failed(difference)));
        }
        continue_numbering(target, &quoted(table.name))?;
        // PostgreSQL would do this within minutes; until then plans are bad.
        target.batch_execute(&format!("ANALYZE {}", quoted(table.name)))?;
        say(&format!("{}: {sent}", table.name));
    }
    Ok(())
}

/// Makes the numbers that PostgreSQL gives new rows of a table continue after those that were copied.
fn continue_numbering(target: &mut PgConnection, table: &str) -> Result<(), CommandError> {
    let numbered = "SELECT attname::text AS value FROM pg_attribute WHERE attidentity <> '' AND attrelid = ";
    for column in words(target, &format!("{numbered} '{table}'::regclass"))? {
        target.batch_execute(&format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), max({0})) FROM {table} HAVING max({0}) > 0",
            quoted(&column)
        ))?;
    }
    Ok(())
}

fn copy_table(
    source: &mut SqliteConnection,
    target: &mut PgConnection,
    table: &TableInfo,
    progress: &Progress,
) -> Result<(Digest, Digest), CommandError> {
    let columns = (table.columns)();
    let names: Vec<_> = columns.iter().map(|(name, _)| quoted(name)).collect();
    let all = format!("SELECT {} FROM {}", names.join(", "), quoted(table.name));
    let (mut sent, mut received) = (Digest::default(), Digest::default());
    let mut chunk = Chunk::default();
    for row in sql_query(&all).load_iter::<Record, DefaultLoadingMode>(source)? {
        let row = row?;
        sent.add(&row);
        progress.add(1);
        chunk.push(&columns, &row)?;
        if chunk.0.len() >= FULL_CHUNK {
            (table.receive)(target, chunk.finish())?;
            chunk = Chunk::default();
        }
    }
    (table.receive)(target, chunk.finish())?;
    for row in sql_query(&all).load_iter::<Record, PgRowByRowLoadingMode>(target)? {
        received.add(&row?);
        progress.add(1);
    }
    Ok((sent, received))
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

fn failed(cause: impl Into<String>) -> CommandError {
    CommandError::Failed(cause.into())
}

/// A row as SQLite stores it. Rows of PostgreSQL are converted to the same form, so that both can be compared.
struct Record(Vec<Value>);

#[derive(Debug, PartialEq, Eq)]
enum Value {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl QueryableByName<Sqlite> for Record {
    fn build<'a>(row: &impl NamedRow<'a, Sqlite>) -> deserialize::Result<Self> {
        Self::from_row(row, |value| {
            Ok(match value.value_type() {
                None => Value::Null,
                Some(SqliteType::Text) => Value::Text(<String as FromSql<Text, Sqlite>>::from_sql(value)?),
                Some(SqliteType::Binary) => Value::Bytes(<Vec<u8> as FromSql<Binary, Sqlite>>::from_sql(value)?),
                Some(SqliteType::Float | SqliteType::Double) => return Err("a number is not an integer".into()),
                Some(_) => Value::Number(<i64 as FromSql<BigInt, Sqlite>>::from_sql(value)?),
            })
        })
    }
}

impl QueryableByName<Pg> for Record {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        Self::from_row(row, of_postgres)
    }
}

impl Record {
    fn from_row<'a, DB: Backend>(
        row: &impl NamedRow<'a, DB>,
        read: impl Fn(DB::RawValue<'_>) -> deserialize::Result<Value>,
    ) -> deserialize::Result<Self> {
        let value = |n| {
            let field = Row::get(row, n).ok_or("a row is too short")?;
            field.value().map_or(Ok(Value::Null), &read)
        };
        (0..row.field_count()).map(value).collect::<Result<_, _>>().map(Self)
    }
}

/// By the object ids of PostgreSQL's built-in types.
fn of_postgres(value: PgValue<'_>) -> deserialize::Result<Value> {
    Ok(match value.get_oid().get() {
        16 => Value::Number(<bool as FromSql<Bool, Pg>>::from_sql(value)?.into()),
        17 => Value::Bytes(<Vec<u8> as FromSql<Binary, Pg>>::from_sql(value)?),
        20 => Value::Number(<i64 as FromSql<BigInt, Pg>>::from_sql(value)?),
        21 => Value::Number(<i16 as FromSql<SmallInt, Pg>>::from_sql(value)?.into()),
        23 => Value::Number(<i32 as FromSql<Integer, Pg>>::from_sql(value)?.into()),
        25 => Value::Text(<String as FromSql<Text, Pg>>::from_sql(value)?),
        1184 => Value::Number(<DbTimestamp as FromSql<DbTimestamp, Pg>>::from_sql(value)?.micros()),
        2950 => Value::Bytes(<DbUuid as FromSql<DbUuid, Pg>>::from_sql(value)?.0.into_bytes().to_vec()),
        other => return Err(format!("a column is of the unknown type {other}").into()),
    })
}

/// A digest of rows in any order: their number, and the sum of their hashes.
#[derive(Default, PartialEq, Eq)]
struct Digest {
    rows: u64,
    sum: u128,
}

impl Digest {
    fn add(&mut self, row: &Record) {
        let mut hash = Sha256::new();
        for value in &row.0 {
            let number;
            let (kind, bytes): (u8, &[u8]) = match value {
                Value::Null => (0, &[]),
                Value::Number(value) => {
                    number = value.to_be_bytes();
                    (1, &number)
                }
                Value::Text(text) => (2, text.as_bytes()),
                Value::Bytes(bytes) => (3, bytes),
            };
            hash.update([kind]);
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        }
        let hash = hash.finalize();
        self.rows += 1;
        self.sum = self.sum.wrapping_add(u128::from_be_bytes(std::array::from_fn(|n| hash[n])));
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, checksum {:032x}", self.rows, self.sum)
    }
}

/// Rows in the binary format of PostgreSQL's `COPY`, collected for one statement.
struct Chunk(Vec<u8>);

/// Bytes of a full chunk.
const FULL_CHUNK: usize = 1 << 20;

impl Default for Chunk {
    fn default() -> Self {
        // The signature, then no flags and no extension.
        Self(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec())
    }
}

impl Chunk {
    fn push(&mut self, columns: &[(&str, Kind)], row: &Record) -> Result<(), CommandError> {
        self.0.extend(i16::try_from(columns.len()).map_err(|error| failed(error.to_string()))?.to_be_bytes());
        for ((name, kind), value) in columns.iter().zip(&row.0) {
            let bytes = in_binary(*kind, value).map_err(|cause| {
                let of_row = row.0.first();
                failed(format!("{name} of the row {of_row:?} {cause}"))
            })?;
            let Some(bytes) = bytes else {
                self.0.extend((-1_i32).to_be_bytes());
                continue;
            };
            self.0.extend(i32::try_from(bytes.len()).map_err(|error| failed(error.to_string()))?.to_be_bytes());
            self.0.extend(bytes);
        }
        Ok(())
    }

    /// The rows with the end marker of the format.
    fn finish(&mut self) -> &[u8] {
        self.0.extend((-1_i16).to_be_bytes());
        &self.0
    }
}

/// A value in PostgreSQL's binary format for a column of this kind; `None` for NULL.
fn in_binary(kind: Kind, value: &Value) -> Result<Option<Vec<u8>>, &'static str> {
    const TOO_LARGE: &str = "is a number that is too large";
    Ok(Some(match (kind, value) {
        (_, Value::Null) => return Ok(None),
        (Kind::Bool, Value::Number(number @ 0..=1)) => vec![u8::from(*number == 1)],
        (Kind::SmallInt, Value::Number(number)) => {
            i16::try_from(*number).map_err(|_| TOO_LARGE)?.to_be_bytes().to_vec()
        }
        (Kind::Integer, Value::Number(number)) => i32::try_from(*number).map_err(|_| TOO_LARGE)?.to_be_bytes().to_vec(),
        (Kind::BigInt, Value::Number(number)) => number.to_be_bytes().to_vec(),
        (Kind::DbTimestamp, Value::Number(number)) => {
            number.checked_sub(POSTGRES_EPOCH).ok_or(TOO_LARGE)?.to_be_bytes().to_vec()
        }
        (Kind::Text, Value::Text(text)) if text.contains('\0') => {
            return Err("has U+0000, which PostgreSQL cannot store");
        }
        (Kind::Text, Value::Text(text)) => text.as_bytes().to_vec(),
        (Kind::Binary, Value::Bytes(bytes)) => bytes.clone(),
        (Kind::DbUuid, Value::Bytes(bytes)) if bytes.len() == 16 => bytes.clone(),
        _ => return Err("is of another type than its column"),
    }))
}
