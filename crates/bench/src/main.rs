//! Measures the services; see `docs/performance.md`.
//!
//! [`http`] is the load generator, [`program`] runs the services, [`database`] seeds their databases, [`scenes`] has
//! the kinds of requests, [`measure`] measures them, [`process`] and [`contended`] measure everything else, and
//! [`report`] prints the results.
#![expect(clippy::print_stdout, reason = "it is a program for the terminal")]
#![expect(clippy::cast_precision_loss, reason = "counts become rates, which are shown with few digits")]

mod contended;
mod database;
mod http;
mod measure;
mod process;
mod program;
mod report;
mod results;
mod scenes;

use std::{error::Error, path::PathBuf, time::Duration};

use bench::seed::Size;
use clap::{Parser, ValueEnum};

use crate::{database::Kind, report::Report};

/// The result of a step. An error ends the run.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Measures the services.
#[derive(Debug, Parser)]
#[command(name = "scripts/bench", max_term_width = 120)]
pub struct Cli {
    /// Only these scenes and nothing else, comma-separated [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    scene: Vec<String>,

    /// Size of the data
    #[arg(long, value_enum, default_value_t = Size::Large)]
    size: Size,

    /// Size of the larger data with which the growth of the times is measured; the same size leaves the growth out
    #[arg(long, value_enum, default_value_t = Size::Crowded)]
    grown: Size,

    /// Only this database [default: both]
    #[arg(long, value_enum)]
    database: Option<Kind>,

    /// Numbers of concurrent connections, comma-separated; the growth is measured with 8
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 8, 64])]
    connections: Vec<usize>,

    /// Duration of each measurement in each round
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    seconds: f64,

    /// Number of rounds; the results are medians of the rounds
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,

    /// Only check that everything runs: small data, no growth, one short round. The numbers mean nothing
    #[arg(long)]
    quick: bool,

    /// What to measure, comma-separated [default: all but the builds, which take long and have their own target folder;
    /// with --scene only scenes]
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,

    /// Folder with `booking-service`, `portfolio-service` and `seed` of another build. The scenes are measured with
    /// both builds in turn, each on data of its own, and the processor times of a request are compared
    #[arg(long, value_name = "FOLDER")]
    against: Option<PathBuf>,

    /// File for the results as JSON
    #[arg(long, value_name = "FILE", default_value = "target/bench.json")]
    json: PathBuf,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Requests
    Scenes,
    /// Many clients that book one room
    Contended,
    /// Peak memory
    Memory,
    /// Time from the start of a process to its first answer
    Start,
    /// Clean and incremental builds
    Builds,
}

impl Cli {
    fn databases(&self) -> Vec<Kind> {
        self.database.map_or_else(|| Kind::value_variants().to_vec(), |kind| vec![kind])
    }

    fn includes(&self, part: Part) -> bool {
        self.part.contains(&part)
    }

    fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

fn main() -> Result<()> {
    let mut cli = Cli::parse();
    if let Some(name) = cli.scene.iter().find(|name| scenes::ALL.iter().all(|scene| scene.name != name.as_str())) {
        let all: Vec<_> = scenes::ALL.iter().map(|scene| scene.name).collect();
        return Err(format!("{name} is no scene; there are {}", all.join(", ")).into());
    }
    if cli.part.is_empty() && cli.scene.is_empty() {
        cli.part = vec![Part::Scenes, Part::Contended, Part::Memory, Part::Start];
    } else if cli.part.is_empty() {
        cli.part = vec![Part::Scenes];
    }
    if cli.quick {
        (cli.size, cli.grown, cli.seconds, cli.rounds) = (Size::Small, Size::Small, 0.2, 1);
    }
    // One thread, because the service cannot use the processor time that the load generator takes.
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(&cli))
}

async fn run(cli: &Cli) -> Result<()> {
    let mut report = Report::new(cli);
    let outcome = measure_all(cli, &mut report).await;
    // After an error, the results so far are still printed.
    println!("{}", report.markdown());
    report.write(&cli.json).and(outcome)
}

async fn measure_all(cli: &Cli, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir()?;
    for kind in cli.databases() {
        if cli.includes(Part::Scenes) {
            measure::scenes(cli, kind, folder.path(), report).await?;
        }
        if cli.includes(Part::Memory) {
            process::memory(cli, kind, folder.path(), report).await?;
        }
        // Last, because it adds thousands of events to the calendar of one member.
        if cli.includes(Part::Contended) {
            contended::measure(cli, kind, folder.path(), report).await?;
        }
    }
    if cli.includes(Part::Start) {
        process::start(cli, folder.path(), report).await?;
    }
    if cli.includes(Part::Builds) {
        process::builds(folder.path(), report)?;
    }
    Ok(())
}
