//! The database to read: a connection with time-outs, which is checked before use and reads one snapshot.

use std::{io::ErrorKind, time::Duration};

use mysql::{Conn, Opts, OptsBuilder, Params, Value, prelude::Queryable};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::{
    options::ImportOptions,
    row::{SourceRow, SourceTable},
};
use service_kit::{
    command::CommandError,
    config::{Secret, SecretOption},
    error::Error,
};

/// How long to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait for the next bytes of an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Rows of a page of the source, and of one statement: databases limit the number of values.
pub const CHUNK: usize = 1000;

/// A connection that only reads.
pub struct Source {
    conn: Conn,
    /// Host and database, for messages.
    place: String,
    /// The version string of the server.
    version: String,
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
        let settings = OptsBuilder::new()
            .ip_or_hostname(Some(host.trim_matches(['[', ']'])))
            .tcp_port(port)
            // The server may tell a client on the same machine to use its socket, which a container cannot reach.
            .prefer_socket(false)
            .user(Some(text(url.username())))
            .pass(password.as_ref().map(Secret::reveal))
            .db_name(Some(database))
            .tcp_connect_timeout(Some(CONNECT_TIMEOUT))
            .read_timeout(Some(READ_TIMEOUT))
            .write_timeout(Some(READ_TIMEOUT))
            // A column of the type TIMESTAMP is shown in the zone of the session.
            .init(vec!["SET time_zone = '+00:00'"]);
        let conn = Conn::new(Opts::from(settings)).map_err(|error| {
            CommandError::Failed(format!("cannot connect to the source {place}: {}", cause(&error)))
        })?;
        let mut source = Self { conn, place, version: String::new() };
        source.check_version().map_err(CommandError::Failed)?;
        source.check_tables(tables).map_err(CommandError::Failed)?;
        Ok(source)
    }

    /// Host, port and database.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The version string of the server.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    fn check_version(&mut self) -> Result<(), String> {
        let version: Option<String> = self.conn.query_first("SELECT VERSION()").map_err(|error| self.lost(&error))?;
        self.version = version.unwrap_or_default();
        if is_new_enough(&self.version) {
            return Ok(());
        }
        let Self { place, version, .. } = self;
        Err(format!(
            "the source {place} is version {version}: MariaDB 10.6 or MySQL 8.0 is the oldest that can be read"
        ))
    }

    fn check_tables(&mut self, tables: &[SourceTable]) -> Result<(), String> {
        let query = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = DATABASE()";
        let columns: Vec<(String, String)> = self.conn.query(query).map_err(|error| self.lost(&error))?;
        let has_table = |table: &str| columns.iter().any(|(name, _)| name == table);
        let has_column =
            |table: &str, column: &str| columns.iter().any(|(name, other)| name == table && other == column);
        let mut missing = Vec::new();
        for table in tables {
            if has_table(table.name) {
                let missing_columns = table.columns.iter().filter(|column| !has_column(table.name, column));
                missing.extend(missing_columns.map(|column| format!("the column {}.{column}", table.name)));
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

    /// The next rows in the order of their keys, after the key `after`: [`CHUNK`] of them, or fewer at the end.
    pub fn page(&mut self, table: &SourceTable, key: &str, after: Option<&str>) -> Result<Vec<SourceRow>, Error> {
        let condition = if after.is_some() { format!("WHERE `{key}` > ?") } else { String::new() };
        let parameters = after.map(Value::from).into_iter().collect();
        self.select(table, &format!("{condition} ORDER BY `{key}` LIMIT {CHUNK}"), parameters)
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
        let query = format!("SELECT `{}` FROM `{}` {rest}", table.columns.join("`, `"), table.name);
        let parameters = if parameters.is_empty() { Params::Empty } else { Params::Positional(parameters) };
        let rows: Result<Vec<mysql::Row>, _> = self.conn.exec(query, parameters);
        let rows = rows.map_err(|error| self.error(&error))?;
        Ok(rows
            .into_iter()
            .map(|row| SourceRow::new(table, row.unwrap_raw().into_iter().flatten().collect()))
            .collect())
    }

    fn error(&self, error: &mysql::Error) -> Error {
        Error::Unavailable(self.lost(error))
    }

    fn lost(&self, error: &mysql::Error) -> String {
        format!("the source {} cannot be read, and nothing is written: {}", self.place, cause(error))
    }
}

/// The innermost message of an error.
fn cause(error: &mysql::Error) -> String {
    match error {
        mysql::Error::IoError(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            format!("no answer within {} s; is it a MariaDB or MySQL server?", READ_TIMEOUT.as_secs())
        }
        mysql::Error::IoError(error) => error.to_string(),
        mysql::Error::MySqlError(error) => error.message.clone(),
        mysql::Error::DriverError(error) => error.to_string(),
        other => other.to_string(),
    }
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
