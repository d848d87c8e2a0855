//! Measures the services; see `docs/performance.md`.
//!
//! [`http`] asks, [`program`] runs the services, [`database`] seeds what they serve, [`scenes`] are the requests,
//! [`measure`] runs them, [`process`] and [`contended`] measure what is no scene, [`report`] prints the results.
#![expect(clippy::print_stdout, reason = "it is a program for the terminal")]
#![expect(clippy::cast_precision_loss, reason = "counts become rates, of which three digits are looked at")]

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

/// Whatever went wrong ends the run.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Measures the services.
#[derive(Debug, Parser)]
#[command(name = "scripts/bench", max_term_width = 120)]
pub struct Cli {
    /// Only these scenes and nothing else, comma-separated [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    scene: Vec<String>,

    /// How much data the scenes have
    #[arg(long, value_enum, default_value_t = Size::Large)]
    size: Size,

    /// How much data they have in comparison, for the growth; the same size leaves growth out
    #[arg(long, value_enum, default_value_t = Size::Huge)]
    grown: Size,

    /// Only this database [default: both]
    #[arg(long, value_enum)]
    database: Option<Kind>,

    /// Connections at the same time, comma-separated; with 8 the growth is measured
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 8, 64])]
    connections: Vec<usize>,

    /// How long each side of a comparison runs in each round
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    seconds: f64,

    /// Rounds; the median of them counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,

    /// A look whether everything works: small data, no growth, one short round. Its numbers mean nothing
    #[arg(long)]
    quick: bool,

    /// What to measure, comma-separated [default: all but the builds, which take their own target folder and long; with
    /// --scene only scenes]
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,

    /// Where the JSON goes
    #[arg(long, value_name = "FILE", default_value = "target/bench.json")]
    json: PathBuf,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Requests
    Scenes,
    /// Many who want one room
    Contended,
    /// The peak of memory
    Memory,
    /// From the start of the process to the first answer
    Start,
    /// Clean and incremental builds
    Builds,
}

impl Cli {
    fn databases(&self) -> Vec<Kind> {
        self.database.map_or_else(|| Kind::value_variants().to_vec(), |one| vec![one])
    }

    fn does(&self, part: Part) -> bool {
        self.part.contains(&part)
    }

    fn time(&self) -> Duration {
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
    // One thread: whatever the load generator takes is missing to the service.
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(&cli))
}

async fn run(cli: &Cli) -> Result<()> {
    let mut report = Report::new(cli);
    let done = everything(cli, &mut report).await;
    // What was measured before something went wrong is worth keeping.
    println!("{}", report.markdown());
    report.write(&cli.json).and(done)
}

async fn everything(cli: &Cli, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir()?;
    for kind in cli.databases() {
        if cli.does(Part::Scenes) {
            measure::scenes(cli, kind, folder.path(), report).await?;
        }
        if cli.does(Part::Memory) {
            process::memory(cli, kind, folder.path(), report).await?;
        }
        // Last, because it fills the calendar of one member with thousands of events.
        if cli.does(Part::Contended) {
            contended::measure(cli, kind, folder.path(), report).await?;
        }
    }
    if cli.does(Part::Start) {
        process::start(cli, folder.path(), report).await?;
    }
    if cli.does(Part::Builds) {
        process::builds(folder.path(), report)?;
    }
    Ok(())
}
