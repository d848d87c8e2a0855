//! The database to read: a connection with time-outs, which is checked before use and reads one snapshot.

use std::time::Duration;

use mysql::{Conn, Opts, OptsBuilder, Params, Row, Value, prelude::Queryable};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::{
    options::ImportOptions,
    relay::{Limits, Relay},
    row::{SourceRow, SourceTable},
};
use service_kit::{
    command::CommandError,
    config::{Secret, SecretOption},
    error::Error,
};

/// Rows of a page of the source, and of one statement: databases limit the number of values.
pub const CHUNK: usize = 1000;

/// How much longer the client waits than the relay, which says why.
const MARGIN: Duration = Duration::from_secs(1);

/// Bytes of the longest row.
const LONGEST_ROW: usize = 64 << 20;

/// The most columns of the tables that are read.
const MOST_COLUMNS: usize = 10_000;

/// A connection that only reads.
pub struct Source {
    conn: Conn,
    relay: Relay,
    /// Host and database, for messages.
    place: String,
    /// The version string of the server.
    version: String,
    /// The optional columns that this source does not have, with their tables.
    missing_columns: Vec<(&'static str, &'static str)>,
}

impl Source {
    /// Connects, and checks the version of the server and the columns of these tables.
    pub fn open(options: &ImportOptions, tables: &[SourceTable]) -> Result<Self, CommandError> {
        let url = parse(options.url.reveal()).map_err(|fault| CommandError::option(format!("the URL {fault}")))?;
        let password =
            SecretOption("password", None, options.password_file.as_deref()).resolve().map_err(CommandError::option)?;
        let text = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let host = url.host_str().unwrap_or_default();
        let port = url.port().unwrap_or(3306);
        let database = text(url.path().trim_start_matches('/'));
        let place = format!("{host}:{port}/{database}");
        let cannot = |cause: String| CommandError::Failed(format!("cannot connect to the source {place}: {cause}"));
        let limits = Limits::DEFAULT;
        let relay =
            Relay::start(host.trim_matches(['[', ']']), port, limits).map_err(|error| cannot(error.to_string()))?;
        let settings = OptsBuilder::new()
            .ip_or_hostname(Some(relay.address.ip().to_string()))
            .tcp_port(relay.address.port())
            // The server may tell a client on the same machine to use its socket, which a container cannot reach.
            .prefer_socket(false)
            .user(Some(text(url.username())))
            .pass(password.as_ref().map(Secret::reveal))
            .db_name(Some(database))
            // Otherwise the client asks the server.
            .max_allowed_packet(Some(LONGEST_ROW))
            .tcp_connect_timeout(Some(limits.connect))
            .read_timeout(Some(limits.silence + MARGIN))
            .write_timeout(Some(limits.silence + MARGIN))
            // A column of the type TIMESTAMP is shown in the zone of the session.
            .init(vec!["SET time_zone = '+00:00'"]);
        let conn = Conn::new(Opts::from(settings)).map_err(|error| cannot(cause(&error, &relay)))?;
        let mut source = Self { conn, relay, place, version: String::new(), missing_columns: Vec::new() };
        source.check_version().map_err(CommandError::Failed)?;
        source.check_tables(tables).map_err(CommandError::Failed)?;
        Ok(source)
    }

    /// Host, port and database.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The version string of the server.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn check_version(&mut self) -> Result<(), String> {
        let version: Option<Row> = self.conn.query_first("SELECT VERSION()").map_err(|error| self.lost(&error))?;
        self.version = version.map(|row| texts(row).concat()).unwrap_or_default();
        if is_new_enough(&self.version) {
            return Ok(());
        }
        let Self { place, version, .. } = self;
        Err(format!(
            "the source {place} is version {version}: MariaDB 10.6 or MySQL 8.0 is the oldest that can be read"
        ))
    }

    fn check_tables(&mut self, tables: &[SourceTable]) -> Result<(), String> {
        let names: Vec<_> = tables.iter().map(|table| format!("'{}'", table.name)).collect();
        let query = format!(
            "SELECT table_name, column_name FROM information_schema.columns \
             WHERE table_schema = DATABASE() AND table_name IN ({})",
            names.join(", ")
        );
        let mut columns = Vec::new();
        for row in self.conn.query_iter(query).map_err(|error| lost(&self.place, &self.relay, &error))? {
            let row = row.map_err(|error| lost(&self.place, &self.relay, &error))?;
            if let Ok([table, column]) = <[String; 2]>::try_from(texts(row)) {
                columns.push((table, column));
            }
            if columns.len() > MOST_COLUMNS {
                return Err(format!("the source {} has more than {MOST_COLUMNS} columns", self.place));
            }
        }
        let has_table = |table: &str| columns.iter().any(|(name, _)| name == table);
        let has_column =
            |table: &str, column: &str| columns.iter().any(|(name, other)| name == table && other == column);
        let mut missing = Vec::new();
        for table in tables {
            if has_table(table.name) {
                for column in table.columns.iter().filter(|column| !has_column(table.name, column)) {
                    if table.optional.contains(column) {
                        self.missing_columns.push((table.name, column));
                    } else {
                        missing.push(format!("the column {}.{column}", table.name));
                    }
                }
            } else {
                missing.push(format!("the table {}", table.name));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!("the source {} lacks {}, or its user may not read that", self.place, missing.join(", ")))
    }

    /// Begins the transaction: all later reads see one snapshot.
    pub fn begin(&mut self) -> Result<(), Error> {
        let statements = [
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        ];
        statements
            .into_iter()
            .try_for_each(|statement| self.conn.query_drop(statement))
            .map_err(|error| self.error(&error))
    }

    /// The number of rows of a table.
    pub fn count(&mut self, table: &SourceTable) -> Result<u64, Error> {
        let row: Result<Option<Row>, _> = self.conn.query_first(format!("SELECT COUNT(*) FROM `{}`", table.name));
        let row = row.map_err(|error| self.error(&error))?;
        Ok(row.and_then(|row| texts(row).concat().parse().ok()).unwrap_or_default())
    }

    /// The next rows in the order of their keys, after the key `after`: [`CHUNK`] of them, or fewer at the end.
    pub fn page(&mut self, table: &SourceTable, key: &str, after: Option<Value>) -> Result<Vec<SourceRow>, Error> {
        let condition = if after.is_some() { format!("WHERE `{key}` > ?") } else { String::new() };
        let parameters = after.into_iter().collect();
        let rows = self.select(table, &format!("{condition} ORDER BY `{key}` LIMIT {CHUNK}"), parameters)?;
        if rows.len() > CHUNK {
            return Err(Error::Unavailable(format!("the source {} answers with more rows than asked for", self.place)));
        }
        Ok(rows)
    }

    /// All rows whose column `key` is one of these.
    pub fn rows_of(&mut self, table: &SourceTable, key: &str, ids: &[String]) -> Result<Vec<SourceRow>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let places = vec!["?"; ids.len()].join(", ");
        self.select(table, &format!("WHERE `{key}` IN ({places})"), ids.iter().map(Value::from).collect())
    }

    fn select(&mut self, table: &SourceTable, rest: &str, parameters: Vec<Value>) -> Result<Vec<SourceRow>, Error> {
        // The names of tables and columns are constants of the services.
        let columns: Vec<_> = table.columns.iter().map(|column| self.column(table, column)).collect();
        let query = format!("SELECT {} FROM `{}` {rest}", columns.join(", "), table.name);
        let parameters = if parameters.is_empty() { Params::Empty } else { Params::Positional(parameters) };
        let rows: Result<Vec<Row>, _> = self.conn.exec(query, parameters);
        let rows = rows.map_err(|error| self.error(&error))?;
        Ok(rows
            .into_iter()
            .map(|row| SourceRow::new(table, row.unwrap_raw().into_iter().flatten().collect()))
            .collect())
    }

    /// A column in a query.
    fn column(&self, table: &SourceTable, column: &'static str) -> String {
        if self.missing_columns.contains(&(table.name, column)) { "NULL".to_owned() } else { format!("`{column}`") }
    }

    fn error(&self, error: &mysql::Error) -> Error {
        Error::Unavailable(self.lost(error))
    }

    fn lost(&self, error: &mysql::Error) -> String {
        lost(&self.place, &self.relay, error)
    }
}

fn lost(place: &str, relay: &Relay, error: &mysql::Error) -> String {
    format!("the source {place} cannot be read, and nothing is written: {}", cause(error, relay))
}

/// Why the client failed, in words of the server or of the relay: those of the client name its parts.
fn cause(error: &mysql::Error, relay: &Relay) -> String {
    match error {
        mysql::Error::MySqlError(error) => error.message.clone(),
        error => relay.failure().map_or_else(
            || format!("it sends what is no answer of a MariaDB or MySQL server ({error})"),
            |failure| format!("it {failure}"),
        ),
    }
}

/// The values of a row as texts.
fn texts(row: Row) -> Vec<String> {
    let text = |value| match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        _ => String::new(),
    };
    row.unwrap_raw().into_iter().flatten().map(text).collect()
}

fn parse(text: &str) -> Result<Url, &'static str> {
    const SHAPE: &str = "must be mysql://USER@HOST[:PORT]/DATABASE";
    let url = Url::parse(text).map_err(|_| SHAPE)?;
    if url.password().is_some() {
        return Err("must have no password: --password-file is for that");
    }
    let has_all = url.scheme() == "mysql" && url.has_host() && !url.username().is_empty();
    let is_one_database = url.path().len() > 1 && !url.path()[1..].contains('/');
    let has_more = url.query().is_some() || url.fragment().is_some();
    if has_all && is_one_database && !has_more { Ok(url) } else { Err(SHAPE) }
}

/// Whether a server of this version is MariaDB 10.6 or later, or MySQL 8.0 or later.
fn is_new_enough(version: &str) -> bool {
    // MariaDB may put 5.5.5- before its version, for old replication clients that cannot read two digits.
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    let release = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    release >= if version.contains("MariaDB") { (10, 6) } else { (8, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_are_told_apart() {
        for good in [
            "10.6.0-MariaDB",
            "10.11.19-MariaDB-0+deb12u1",
            "11.4.2-MariaDB",
            "5.5.5-10.6.16-MariaDB",
            "8.0.11",
            "8.4.3",
            "9.1.0-commercial",
        ] {
            assert!(is_new_enough(good), "{good}");
        }
        for bad in ["10.5.28-MariaDB", "5.5.5-10.3.39-MariaDB", "5.7.44", "5.5.68-MariaDB", "", "unknown"] {
            assert!(!is_new_enough(bad), "{bad}");
        }
    }

    #[test]
    fn an_address_has_user_host_and_database_and_no_password() {
        for good in
            ["mysql://reader@db.example/knoQ", "mysql://reader@127.0.0.1:3307/portfolio", "mysql://r%40x@[::1]/p"]
        {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in [
            "mysql://reader:hunter2@db/x",
            "mysql://db/x",
            "mysql://reader@db",
            "mysql://reader@db/",
            "postgres://reader@db/x",
            "mysql://reader@db/x/y",
            "mysql://reader@db/x?y=z",
            "x",
        ] {
            let fault = parse(bad).unwrap_err();
            assert!(!fault.contains("hunter2"), "{bad}");
        }
    }
}
