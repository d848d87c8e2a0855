//! What is no scene: memory, start, and builds.

use std::{
    fs::File,
    path::Path,
    process::Command,
    time::{Instant, SystemTime},
};

use bench::seed::Size;

use crate::{
    Cli, Result,
    database::{Database, Kind, Service, word},
    http::{Connection, load},
    measure::{median, seeded},
    report::Report,
    results::{Memory, Took},
    scenes::{ALL, Facts},
};

const MB: u64 = 1 << 20;

/// Memory of a small club under load, and of the whole list of events where there are most.
pub async fn memory(cli: &Cli, kind: Kind, folder: &Path, report: &mut Report) -> Result<()> {
    let size = if cli.quick { cli.size } else { Size::Club };
    for service in [Service::Booking, Service::Portfolio] {
        let database = seeded(service, kind, size, folder, report)?;
        let running = database.serve(&[]).await?;
        let facts = Facts::find(&database, &running).await?;
        for scene in ALL.iter().filter(|scene| scene.service == service) {
            let facts = facts.now(&running).await?;
            load(&running.address, 64, cli.time(), &(scene.requests)(&facts), scene.status).await?;
        }
        let what = format!("{}, {}, all scenes with 64 connections", service.program(), word(size));
        report.memory.push(Memory { what, database: word(kind), peak: running.peak()?, bound: 64 * MB });
    }
    let database = seeded(Service::Booking, kind, cli.grown, folder, report)?;
    // As long as it takes: that a list of everything takes more than its time is told by the scenes.
    let running = database.serve(&["--database-timeout", "300", "--request-timeout", "600"]).await?;
    let facts = Facts::find(&database, &running).await?;
    let mut connection = Connection::open(&running.address).await?;
    let answer = connection.exchange(&facts.request("GET", "/api/events", ""), false).await?;
    let what = format!(
        "booking-service, {}, GET /api/events ({} MB, status {})",
        word(cli.grown),
        answer.length as u64 / MB,
        answer.status
    );
    report.memory.push(Memory { what, database: word(kind), peak: running.peak()?, bound: 256 * MB });
    Ok(())
}

/// From the start of the process to the first good answer of `/readyz`, on a database that is there.
pub async fn start(cli: &Cli, folder: &Path, report: &mut Report) -> Result<()> {
    for service in [Service::Booking, Service::Portfolio] {
        let database: Database = seeded(service, Kind::Sqlite, cli.size, folder, report)?;
        let mut times = Vec::new();
        for _ in 0..5 {
            times.push(database.serve(&[]).await?.ready_after.as_secs_f64());
        }
        let what = format!("{} ready on {} SQLite, median of 5", service.program(), word(cli.size));
        report.took.push(Took { what, seconds: median(times).unwrap_or(f64::NAN), bound: 0.1 });
    }
    Ok(())
}

/// A clean release build of one service, and the build of its tests after a change in one slice.
pub fn builds(folder: &Path, report: &mut Report) -> Result<()> {
    let target = folder.join("target");
    let mut build = |what: &str, arguments: &[&str], bound: f64| -> Result<()> {
        let begun = Instant::now();
        let status = Command::new("cargo").args(arguments).env("CARGO_TARGET_DIR", &target).status()?;
        if !status.success() {
            return Err(format!("cargo {} failed", arguments.join(" ")).into());
        }
        report.took.push(Took { what: what.to_owned(), seconds: begun.elapsed().as_secs_f64(), bound });
        Ok(())
    };
    let release = ["build", "--release", "--locked", "-p", "booking-service"];
    build("clean build of the booking-service in release", &release, 240.0)?;
    let tests = ["test", "--no-run", "--locked", "-p", "booking-service"];
    build("first build of its tests", &tests, f64::INFINITY)?;
    // Cargo goes by the time of a file.
    let slice = Path::new("crates/booking-service/src/rooms/handlers.rs");
    File::options().write(true).open(slice)?.set_modified(SystemTime::now())?;
    build("build of its tests after a change in one slice", &tests, 20.0)
}
