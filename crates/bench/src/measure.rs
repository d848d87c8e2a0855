//! Runs the scenes. Each number of connections, and the larger data, have turns of a moment again and again, so that a
//! disturbance of the machine affects all of them; the median of the rounds counts.

use std::{path::Path, time::Duration};

use crate::{
    Cli, Result,
    database::{Database, Kind, Service, TRANSACTION_STATEMENTS, word},
    http::{Connection, LoadResult, load},
    program::Running,
    report::Report,
    results::{COMPARED, Growth, Load, Measured, Seeded},
    scenes::{ALL, Facts, Scene},
};

/// A service that runs on some data.
struct Side {
    database: Database,
    running: Running,
    facts: Facts,
}

impl Side {
    async fn start(database: Database) -> Result<Self> {
        let running = database.serve(&[]).await?;
        let facts = Facts::find(&database, &running).await?;
        Ok(Self { database, running, facts })
    }

    /// What is seen in a time, and how many statements that took.
    async fn load(&self, scene: &Scene, connections: usize, time: Duration) -> Result<(LoadResult, u64)> {
        let requests = (scene.requests)(&self.facts.now(&self.running).await?);
        let before = self.running.statements().await?;
        let seen = load(&self.running.address, connections, time, &requests, scene.status).await?;
        Ok((seen, self.running.statements().await? - before))
    }
}

/// Measures the chosen scenes of both services on one database.
pub async fn scenes(cli: &Cli, kind: Kind, folder: &Path, report: &mut Report) -> Result<()> {
    for service in [Service::Booking, Service::Portfolio] {
        let chosen = ALL.iter().filter(|scene| scene.service == service);
        let chosen = chosen.filter(|scene| cli.scene.is_empty() || cli.scene.iter().any(|name| name == scene.name));
        let chosen: Vec<_> = chosen.collect();
        if chosen.is_empty() {
            continue;
        }
        let usual = Side::start(seeded(service, kind, cli.size, folder, report)?).await?;
        let grown = if cli.grown == cli.size {
            None
        } else {
            Some(Side::start(seeded(service, kind, cli.grown, folder, report)?).await?)
        };
        for scene in chosen {
            let measured = run_scene(cli, kind, scene, &usual, grown.as_ref()).await?;
            report.add(scene.bound, measured);
        }
    }
    Ok(())
}

/// A seeded database, of which the report tells how long it took.
pub fn seeded(
    service: Service,
    kind: Kind,
    size: bench::seed::Size,
    folder: &Path,
    report: &mut Report,
) -> Result<Database> {
    let database = Database::seeded(service, kind, size, folder)?;
    if let Some(took) = database.seeded_in {
        let (service, seconds) = (service.program(), took.as_secs_f64());
        report.seeded.push(Seeded { service, database: word(kind), size: word(size), seconds });
    }
    Ok(database)
}

async fn run_scene(cli: &Cli, kind: Kind, scene: &Scene, side: &Side, grown: Option<&Side>) -> Result<Measured> {
    let time = cli.time();
    let compares = cli.connections.contains(&COMPARED);
    let mut loads: Vec<Vec<Load>> = vec![Vec::new(); cli.connections.len()];
    let (mut growths, mut length) = (Vec::new(), 0);
    side.load(scene, COMPARED, time / 2).await?;
    // Requests that wait together share the beginning and the end of their transaction.
    let (alone, sent) = side.load(scene, 1, time / 4).await?;
    let answers = alone.statuses.values().sum::<u64>();
    if let Some(grown) = grown {
        grown.load(scene, COMPARED, time / 2).await?;
    }
    for _ in 0..cli.rounds {
        for (n, connections) in cli.connections.iter().copied().enumerate() {
            side.running.forget_peak();
            let (seen, _) = side.load(scene, connections, time).await?;
            length = seen.length;
            loads[n].push(Load {
                connections,
                per_second: seen.per_second(),
                p50_ms: seen.quantile(500),
                p99_ms: seen.quantile(990),
                overloaded: seen.overloaded,
                peak: side.running.peak()?,
            });
        }
        if let Some(grown) = grown.filter(|_| compares) {
            let (seen, _) = grown.load(scene, COMPARED, time).await?;
            growths.push((seen.quantile(500), seen.length));
        }
    }
    let measured = Measured {
        scene: scene.name,
        database: word(kind),
        loads: loads.iter().filter_map(|rounds| middle(rounds)).collect(),
        length,
        statements: sent as f64 / answers as f64 - TRANSACTION_STATEMENTS,
        rows: if kind == Kind::Postgres && !cli.quick { Some(rows(scene, side).await?) } else { None },
        grown: growths.last().map(|(_, length)| *length).and_then(|length| {
            let p50_ms = median(growths.iter().map(|(p50, _)| *p50).collect())?;
            Some(Growth { p50_ms, length })
        }),
    };
    eprintln!("{} on {}: done", measured.scene, measured.database);
    Ok(measured)
}

/// Each number by itself: the median of its values.
fn middle(rounds: &[Load]) -> Option<Load> {
    let of = |number: fn(&Load) -> f64| median(rounds.iter().map(number).collect());
    Some(Load {
        connections: rounds.first()?.connections,
        per_second: of(|load| load.per_second)?,
        p50_ms: of(|load| load.p50_ms)?,
        p99_ms: of(|load| load.p99_ms)?,
        overloaded: rounds.iter().map(|load| load.overloaded).sum(),
        peak: rounds.iter().map(|load| load.peak).max()?,
    })
}

/// The value in the middle; the upper one of two.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Rows that PostgreSQL reads for a request. A connection tells the server what it did when it is used a second after
/// it last told; so there is one, and it is waited for.
async fn rows(scene: &Scene, side: &Side) -> Result<f64> {
    const REQUESTS: u32 = 20;
    let running = side.database.serve(&["--database-connections", "1"]).await?;
    let mut connection = Connection::open(&running.address).await?;
    let requests = (scene.requests)(&side.facts.now(&running).await?);
    let mut rows = [0; 2];
    for (n, count) in [1, REQUESTS].into_iter().enumerate() {
        // Numbers that no load has come to.
        for number in 0..u64::from(count) {
            connection.exchange(&requests(u64::MAX / 2 + number), false).await?;
        }
        tokio::time::sleep(Duration::from_millis(1100)).await;
        connection.exchange(&requests(u64::MAX / 2 + 1000), false).await?;
        rows[n] = side.database.rows_read()?;
    }
    Ok((rows[1] - rows[0]) as f64 / f64::from(REQUESTS + 1))
}
