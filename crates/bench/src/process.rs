//! Measures memory, start times and build times.

use std::{
    fs::File,
    path::Path,
    process::Command,
    time::{Instant, SystemTime},
};

use bench::seed::Size;

use crate::{
    Cli, Result,
    database::{Kind, Service, option_value},
    http::{Connection, load},
    measure::{median, seeded},
    program::Build,
    report::Report,
    results::{BuildOrStart, Memory},
    scenes::{ALL, Facts},
};

const MB: u64 = 1 << 20;

/// Measures the peak memory of a small club under load, and of the complete list of events of the largest club.
pub async fn memory(cli: &Cli, kind: Kind, folder: &Path, report: &mut Report) -> Result<()> {
    let size = if cli.quick { cli.size } else { Size::Club };
    for service in [Service::Booking, Service::Portfolio] {
        let database = seeded(&Build::this()?, service, kind, size, folder, report)?;
        let running = database.serve(&[]).await?;
        let facts = Facts::find(&database, &running).await?;
        for scene in ALL.iter().filter(|scene| scene.service == service) {
            let facts = facts.now(&running).await?;
            load(&running.address, 64, cli.duration(), &(scene.requests)(&facts), scene.status).await?;
        }
        let what = format!("{}, {}, all scenes with 64 connections", service.program(), option_value(size));
        report.memory.push(Memory { what, database: option_value(kind), peak: running.peak_memory()?, bound: 64 * MB });
    }
    let database = seeded(&Build::this()?, Service::Booking, kind, cli.grown, folder, report)?;
    // Long time limits: only the memory is measured here, not the time.
    let running = database.serve(&["--database-timeout", "300", "--request-timeout", "600"]).await?;
    let facts = Facts::find(&database, &running).await?;
    let mut connection = Connection::open(&running.address).await?;
    let answer = connection.exchange(&facts.request("GET", "/api/events", ""), false).await?;
    let what = format!(
        "booking-service, {}, GET /api/events ({} MB, status {})",
        option_value(cli.grown),
        answer.length as u64 / MB,
        answer.status
    );
    report.memory.push(Memory { what, database: option_value(kind), peak: running.peak_memory()?, bound: 256 * MB });
    Ok(())
}

/// Measures the time from the start of the process to the first 200 of `/readyz`, on a seeded database.
pub async fn start(cli: &Cli, folder: &Path, report: &mut Report) -> Result<()> {
    for service in [Service::Booking, Service::Portfolio] {
        let database = seeded(&Build::this()?, service, Kind::Sqlite, cli.size, folder, report)?;
        let mut times = Vec::new();
        for _ in 0..5 {
            times.push(database.serve(&[]).await?.ready_after.as_secs_f64());
        }
        let what = format!("{} ready on {} SQLite, median of 5", service.program(), option_value(cli.size));
        report.times.push(BuildOrStart { what, seconds: median(times).unwrap_or(f64::NAN), bound: 0.1 });
    }
    Ok(())
}

/// Measures a clean release build of one service, and the build of its tests after a change in one slice.
pub fn builds(folder: &Path, report: &mut Report) -> Result<()> {
    let target = folder.join("target");
    let mut build = |what: &str, arguments: &[&str], bound: f64| -> Result<()> {
        let started = Instant::now();
        let status = Command::new("cargo").args(arguments).env("CARGO_TARGET_DIR", &target).status()?;
        if !status.success() {
            return Err(format!("cargo {} failed", arguments.join(" ")).into());
        }
        report.times.push(BuildOrStart { what: what.to_owned(), seconds: started.elapsed().as_secs_f64(), bound });
        Ok(())
    };
    let release = ["build", "--release", "--locked", "-p", "booking-service"];
    build("clean build of the booking-service in release", &release, 240.0)?;
    let tests = ["test", "--no-run", "--locked", "-p", "booking-service"];
    build("first build of its tests", &tests, f64::INFINITY)?;
    // Cargo builds again when the modification time of a file changes.
    let file = Path::new("crates/booking-service/src/rooms/handlers.rs");
    File::options().write(true).open(file)?.set_modified(SystemTime::now())?;
    build("build of its tests after a change in one file", &tests, 20.0)
}
