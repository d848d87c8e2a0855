//! Seeded databases, each created when it is first needed.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use bench::seed::Size;
use clap::ValueEnum;
use diesel::{
    QueryableByName, RunQueryDsl, sql_query,
    sql_types::{BigInt, Integer},
};
use service_kit::database::Url;

use crate::{
    Result,
    program::{Build, PostgresServer, Running, run},
};

/// The kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Sqlite,
    Postgres,
}

/// A service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Booking,
    Portfolio,
}

impl Service {
    /// Its name as an argument of `scripts/seed`.
    fn seed_argument(self) -> &'static str {
        match self {
            Self::Booking => "booking",
            Self::Portfolio => "portfolio",
        }
    }

    /// The file name of its program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Booking => "booking-service",
            Self::Portfolio => "portfolio-service",
        }
    }
}

/// A value of an option as on the command line.
pub fn option_value(value: impl ValueEnum + Copy) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// A database of a service.
#[derive(Debug, Clone)]
pub struct Database {
    pub service: Service,
    build: Build,
    kind: Kind,
    pub url: String,
    /// The duration of the seed; `None` when the database existed already.
    pub seeded_in: Option<Duration>,
}

impl Database {
    /// A seeded database: a file in `folder`, or a schema in the PostgreSQL of `scripts/postgres`.
    pub fn seeded(build: &Build, service: Service, kind: Kind, size: Size, folder: &Path) -> Result<Self> {
        let name = format!("{}_{}_{}", build.name, option_value(size), service.program().replace('-', "_"));
        let marker = folder.join(format!("{name}.{}", option_value(kind)));
        let url = match kind {
            Kind::Sqlite => format!("sqlite://{}", folder.join(format!("{name}.sqlite3")).display()),
            Kind::Postgres => format!("{}&options=-csearch_path%3D{name}", postgres_url()?),
        };
        let mut database = Self { service, build: build.clone(), kind, url, seeded_in: None };
        if !marker.exists() {
            if kind == Kind::Postgres {
                let mut conn = postgres_url()?.parse::<Url>()?.connect()?;
                sql_query(format!("CREATE SCHEMA {name}")).execute(&mut conn)?;
            }
            let started = Instant::now();
            run(
                &build.program("seed")?,
                &[service.seed_argument(), "--size", &option_value(size), "--database-url", &database.url],
            )?;
            database.seeded_in = Some(started.elapsed());
            if kind == Kind::Postgres {
                // Otherwise autovacuum would run during the measurements.
                sql_query("VACUUM (ANALYZE)").execute(&mut postgres_url()?.parse::<Url>()?.connect()?)?;
            }
            std::fs::write(marker, "")?;
        }
        Ok(database)
    }

    /// Starts the service on this database, without rate limits.
    pub async fn serve(&self, options: &[&str]) -> Result<Running> {
        let mut arguments =
            vec!["--database-url", &self.url, "--rate-limit", "0", "--daily-limit", "0", "--log", "off"];
        arguments.extend(match self.service {
            Service::Booking => ["--feed-rate-limit", "0"],
            Service::Portfolio => ["--admins", "alice"],
        });
        arguments.extend(options);
        Running::start(&self.build.program(self.service.program())?, &arguments).await
    }

    /// Creates an API token of a user of the booking-service, with the scope `write`.
    pub fn token(&self, user: &str) -> Result<String> {
        let arguments = ["--log", "warn", "token", "create", "--user", user, "--name", "bench", "--scope", "write"];
        run(&self.build.program("booking-service")?, &[&arguments[..], &["--database-url", &self.url]].concat())
    }

    /// The PostgreSQL server of this database; `None` for SQLite.
    pub fn server(&self) -> Result<Option<PostgresServer>> {
        #[derive(QueryableByName)]
        struct Backend {
            #[diesel(sql_type = Integer)]
            process: i32,
        }
        if self.kind == Kind::Sqlite {
            return Ok(None);
        }
        let query = sql_query("SELECT pg_backend_pid() AS process");
        // The backend lives until the connection is dropped.
        let mut conn = self.url.parse::<Url>()?.connect()?;
        let process = query.get_result::<Backend>(&mut conn)?.process;
        PostgresServer::of_backend(u32::try_from(process)?).map(Some)
    }

    /// The rows that PostgreSQL has read in this database, from the statistics that connections have reported.
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

/// The URL of the PostgreSQL of `scripts/postgres`.
fn postgres_url() -> Result<String> {
    std::env::var("TEST_POSTGRES_URL").map_err(|_| "TEST_POSTGRES_URL is not set: start this by scripts/bench".into())
}
