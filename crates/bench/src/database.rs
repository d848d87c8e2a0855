//! Databases with seeded clubs, made when they are first asked for.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use bench::seed::Size;
use clap::ValueEnum;
use diesel::{QueryableByName, RunQueryDsl, sql_query, sql_types::BigInt};
use service_kit::database::Url;

use crate::{
    Result,
    program::{Running, path_of, run},
};

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Sqlite,
    Postgres,
}

/// Statements that every transaction begins and ends with.
pub const TRANSACTION_STATEMENTS: f64 = 2.0;

/// Which service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Booking,
    Portfolio,
}

impl Service {
    /// The name that `scripts/seed` knows it by.
    fn word(self) -> &'static str {
        match self {
            Self::Booking => "booking",
            Self::Portfolio => "portfolio",
        }
    }

    /// The name of its program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Booking => "booking-service",
            Self::Portfolio => "portfolio-service",
        }
    }
}

/// The word for a size or database on the command line.
pub fn word(value: impl ValueEnum + Copy) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// A database of a service.
#[derive(Debug, Clone)]
pub struct Database {
    pub service: Service,
    pub url: String,
    /// How long the seed took; nothing when the database was there already.
    pub seeded_in: Option<Duration>,
}

impl Database {
    /// A seeded database, in a folder or in the PostgreSQL of `scripts/postgres`.
    pub fn seeded(service: Service, kind: Kind, size: Size, folder: &Path) -> Result<Self> {
        let name = format!("{}_{}", word(size), service.program().replace('-', "_"));
        let mark = folder.join(format!("{name}.{}", word(kind)));
        let url = match kind {
            Kind::Sqlite => format!("sqlite://{}", folder.join(format!("{name}.sqlite3")).display()),
            Kind::Postgres => format!("{}&options=-csearch_path%3D{name}", server()?),
        };
        let mut database = Self { service, url, seeded_in: None };
        if !mark.exists() {
            if kind == Kind::Postgres {
                let mut conn = server()?.parse::<Url>()?.connect()?;
                sql_query(format!("CREATE SCHEMA {name}")).execute(&mut conn)?;
            }
            let begun = Instant::now();
            run(&path_of("seed")?, &[service.word(), "--size", &word(size), "--database-url", &database.url])?;
            database.seeded_in = Some(begun.elapsed());
            if kind == Kind::Postgres {
                // What the server would do within minutes, and must not do beside what is measured.
                sql_query("VACUUM (ANALYZE)").execute(&mut server()?.parse::<Url>()?.connect()?)?;
            }
            std::fs::write(mark, "")?;
        }
        Ok(database)
    }

    /// The service on it, without limits.
    pub async fn serve(&self, options: &[&str]) -> Result<Running> {
        let mut arguments = vec!["--database-url", &self.url, "--rate-limit", "0", "--log", "off"];
        arguments.extend(match self.service {
            Service::Booking => ["--feed-rate-limit", "0"],
            Service::Portfolio => ["--admins", "alice"],
        });
        arguments.extend(options);
        Running::start(&path_of(self.service.program())?, &arguments).await
    }

    /// An API token that may write, of a user of the booking-service.
    pub fn token(&self, user: &str) -> Result<String> {
        let arguments = ["--log", "warn", "token", "create", "--user", user, "--name", "bench", "--scope", "write"];
        run(&path_of("booking-service")?, &[&arguments[..], &["--database-url", &self.url]].concat())
    }

    /// Rows that the PostgreSQL server has read for anybody, as far as it was told.
    pub fn rows_read(&self) -> Result<i64> {
        #[derive(QueryableByName)]
        struct Rows {
            #[diesel(sql_type = BigInt)]
            rows: i64,
        }
        let query = "SELECT tup_returned AS rows FROM pg_stat_database WHERE datname = current_database()";
        Ok(sql_query(query).get_result::<Rows>(&mut self.url.parse::<Url>()?.connect()?)?.rows)
    }
}

/// The address of the throw-away server.
fn server() -> Result<String> {
    std::env::var("TEST_POSTGRES_URL").map_err(|_| "TEST_POSTGRES_URL is not set: start this by scripts/bench".into())
}
