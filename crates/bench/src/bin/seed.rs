//! `scripts/seed`: fills an empty database with a generated club.

use std::{
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use bench::seed::{self, Size};
use chrono::NaiveDate;
use clap::{Parser, ValueEnum};
use common::time::Clock;
use service_kit::{
    config::{Secret, SecretOption},
    database::{Database, Limits, Url},
    progress::Progress,
};

/// Fill an empty database with a generated club, for measurements. The same day gives the same rows.
#[derive(Debug, Parser)]
#[command(name = "scripts/seed", max_term_width = 120)]
struct Cli {
    /// The service that the database belongs to
    #[arg(value_enum)]
    service: Service,

    /// Size of the club
    #[arg(long, value_enum)]
    size: Size,

    /// The day that the rows are arranged around; it begins at midnight UTC [default: today]
    #[arg(long, value_name = "YYYY-MM-DD")]
    day: Option<NaiveDate>,

    /// URL of the database: `sqlite://FILE` or `postgres://…`
    #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true)]
    database_url: Option<Secret>,

    /// File that holds the URL of the database
    #[arg(long, env = "DATABASE_URL_FILE", value_name = "FILE")]
    database_url_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Service {
    Booking,
    Portfolio,
}

/// Long time limits, because nothing else uses the database.
const LIMITS: Limits = Limits { connections: Some(1), checkout: Duration::from_secs(10), work: Duration::from_mins(5) };

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Err(error) = run(Cli::parse()).await {
        let _ = writeln!(io::stderr(), "scripts/seed: {}", error.to_string().replace('\n', " "));
        std::process::exit(1);
    }
}

async fn run(cli: Cli) -> io::Result<()> {
    let url = SecretOption("database-url", cli.database_url.as_ref(), cli.database_url_file.as_deref()).resolve();
    let url = url.map_err(io::Error::other)?.ok_or_else(|| io::Error::other("--database-url is missing"))?;
    let url: Url = url.reveal().parse().map_err(|fault| io::Error::other(format!("--database-url {fault}")))?;
    let day = cli.day.unwrap_or_else(|| Clock::default().now().utc().date_naive());
    let progress = Progress::start("creating the tables");
    let say = |line: &str| progress.suspend(|| drop(writeln!(io::stdout(), "{line}")));
    let outcome = match cli.service {
        Service::Booking => {
            let db = Database::start(&url, &booking_service::server::MIGRATIONS, LIMITS).await?;
            let outcome = seed::booking::fill(&db, cli.size, day, &progress, &say).await;
            db.close().await;
            outcome
        }
        Service::Portfolio => {
            let db = Database::start(&url, &portfolio_service::server::MIGRATIONS, LIMITS).await?;
            let outcome = seed::portfolio::fill(&db, cli.size, day, &progress, &say).await;
            db.close().await;
            outcome
        }
    };
    outcome.map_err(|error| io::Error::other(error.describe()))
}
