//! Measures the scenes. Every round measures each number of connections and the larger data for a short time, so that a
//! disturbance of the machine affects all of them alike. The results are medians of the rounds.

use std::{path::Path, time::Duration};

use crate::{
    Cli, Result,
    database::{Database, Kind, Service, option_value},
    http::{Connection, LoadResult, load},
    program::{Build, PostgresServer, Running},
    report::Report,
    results::{GROWTH_CONNECTIONS, Growth, Load, SceneResult, SeedTime},
    scenes::{ALL, Facts, Scene},
};

/// A running service with its data.
struct Target {
    database: Database,
    server: Option<PostgresServer>,
    running: Running,
    facts: Facts,
}

impl Target {
    async fn start(database: Database) -> Result<Self> {
        let running = database.serve(&[]).await?;
        let facts = Facts::find(&database, &running).await?;
        Ok(Self { server: database.server()?, database, running, facts })
    }

    /// Runs a scene for some time. Returns the result and the milliseconds of processor time that a request takes of
    /// the service and of its PostgreSQL.
    async fn load(&self, scene: &Scene, connections: usize, time: Duration) -> Result<(LoadResult, f64)> {
        let requests = (scene.requests)(&self.facts.now(&self.running).await?);
        let before = self.processor_time()?;
        let result = load(&self.running.address, connections, time, &requests, scene.status).await?;
        let used = self.processor_time()? - before;
        let answers = result.statuses.values().sum::<u64>();
        Ok((result, used * 1000.0 / answers as f64))
    }

    /// The bytes of an answer to a client that accepts no content coding.
    async fn length(&self, scene: &Scene) -> Result<usize> {
        let request = (scene.requests)(&self.facts.now(&self.running).await?)(u64::MAX / 3);
        Ok(Connection::open(&self.running.address).await?.exchange(&request, false).await?.length)
    }

    fn processor_time(&self) -> Result<f64> {
        let server = self.server.map(PostgresServer::processor_time).transpose()?;
        Ok(self.running.processor_time()? + server.unwrap_or_default())
    }

    /// The number of SQL statements of a request, `BEGIN` and `COMMIT` included.
    async fn statements(&self, scene: &Scene, time: Duration) -> Result<f64> {
        let before = self.running.statements().await?;
        let (result, _) = self.load(scene, 1, time).await?;
        let statements = self.running.statements().await? - before;
        let answers = result.statuses.values().sum::<u64>();
        Ok(statements as f64 / answers as f64)
    }
}

/// Measures the chosen scenes of both services on one database.
pub async fn scenes(cli: &Cli, kind: Kind, folder: &Path, report: &mut Report) -> Result<()> {
    for service in [Service::Booking, Service::Portfolio] {
        let scenes = ALL.iter().filter(|scene| scene.service == service);
        let scenes = scenes.filter(|scene| cli.scene.is_empty() || cli.scene.iter().any(|name| name == scene.name));
        let scenes: Vec<_> = scenes.collect();
        if scenes.is_empty() {
            continue;
        }
        let build = Build::this()?;
        let target = Target::start(seeded(&build, service, kind, cli.size, folder, report)?).await?;
        let grown = if cli.grown == cli.size {
            None
        } else {
            Some(Target::start(seeded(&build, service, kind, cli.grown, folder, report)?).await?)
        };
        let other = match &cli.against {
            None => None,
            Some(programs) => {
                let database = Database::seeded(&Build::other(programs), service, kind, cli.size, folder)?;
                Some(Target::start(database).await?)
            }
        };
        for scene in scenes {
            let result = run_scene(cli, kind, scene, &target, grown.as_ref(), other.as_ref()).await?;
            report.add(scene.bound, result);
        }
    }
    Ok(())
}

/// A seeded database. Adds the duration of the seed to the report.
pub fn seeded(
    build: &Build,
    service: Service,
    kind: Kind,
    size: bench::seed::Size,
    folder: &Path,
    report: &mut Report,
) -> Result<Database> {
    let database = Database::seeded(build, service, kind, size, folder)?;
    if let Some(duration) = database.seeded_in {
        let (service, seconds) = (service.program(), duration.as_secs_f64());
        report.seeds.push(SeedTime { service, database: option_value(kind), size: option_value(size), seconds });
    }
    Ok(database)
}

async fn run_scene(
    cli: &Cli,
    kind: Kind,
    scene: &Scene,
    target: &Target,
    grown: Option<&Target>,
    other: Option<&Target>,
) -> Result<SceneResult> {
    let time = cli.duration();
    let measures_growth = cli.connections.contains(&GROWTH_CONNECTIONS);
    let mut loads: Vec<Vec<Load>> = vec![Vec::new(); cli.connections.len()];
    let mut growths = Vec::new();
    // Warms up.
    target.load(scene, GROWTH_CONNECTIONS, time / 2).await?;
    let statements = target.statements(scene, time / 4).await?;
    for target in grown.into_iter().chain(other) {
        target.load(scene, GROWTH_CONNECTIONS, time / 2).await?;
    }
    for _ in 0..cli.rounds {
        for (n, connections) in cli.connections.iter().copied().enumerate() {
            target.running.reset_peak_memory();
            let (result, processor_ms) = target.load(scene, connections, time).await?;
            let other_processor_ms = match other {
                Some(other) => Some(other.load(scene, connections, time).await?.1),
                None => None,
            };
            loads[n].push(Load {
                connections,
                per_second: result.per_second(),
                p50_ms: result.quantile(500),
                p99_ms: result.quantile(990),
                processor_ms,
                other_processor_ms,
                peak: target.running.peak_memory()?,
            });
        }
        if let Some(grown) = grown.filter(|_| measures_growth) {
            growths.push((grown.load(scene, GROWTH_CONNECTIONS, time).await?.1, grown.length(scene).await?));
        }
    }
    let result = SceneResult {
        scene: scene.name,
        database: option_value(kind),
        loads: loads.iter().filter_map(|rounds| median_load(rounds)).collect(),
        length: target.length(scene).await?,
        statements,
        rows: if kind == Kind::Postgres && !cli.quick { Some(rows_per_request(scene, target).await?) } else { None },
        grown: growths.last().map(|(_, length)| *length).and_then(|length| {
            let processor_ms = median(growths.iter().map(|(processor_ms, _)| *processor_ms).collect())?;
            Some(Growth { processor_ms, length })
        }),
    };
    eprintln!("{} on {}: done", result.scene, result.database);
    Ok(result)
}

/// The median of each time and rate, and the highest peak of memory.
fn median_load(rounds: &[Load]) -> Option<Load> {
    let median_of = |number: fn(&Load) -> f64| median(rounds.iter().map(number).collect());
    Some(Load {
        connections: rounds.first()?.connections,
        per_second: median_of(|load| load.per_second)?,
        p50_ms: median_of(|load| load.p50_ms)?,
        p99_ms: median_of(|load| load.p99_ms)?,
        processor_ms: median_of(|load| load.processor_ms)?,
        other_processor_ms: median(rounds.iter().filter_map(|load| load.other_processor_ms).collect()),
        peak: rounds.iter().map(|load| load.peak).max()?,
    })
}

/// The median; of an even number of values, the upper one of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The number of rows that PostgreSQL reads for a request. A connection reports its statistics when it is used a second
/// after its last report, so the service has one connection, and this function waits for its reports.
async fn rows_per_request(scene: &Scene, target: &Target) -> Result<f64> {
    const REQUESTS: u32 = 20;
    let running = target.database.serve(&["--database-connections", "1"]).await?;
    let mut connection = Connection::open(&running.address).await?;
    let requests = (scene.requests)(&target.facts.now(&running).await?);
    let mut rows = [0; 2];
    for (n, count) in [1, REQUESTS].into_iter().enumerate() {
        // Numbers that no other request has.
        for number in 0..u64::from(count) {
            connection.exchange(&requests(u64::MAX / 2 + number), false).await?;
        }
        tokio::time::sleep(Duration::from_millis(1100)).await;
        connection.exchange(&requests(u64::MAX / 2 + 1000), false).await?;
        rows[n] = target.database.rows_read()?;
    }
    Ok((rows[1] - rows[0]) as f64 / f64::from(REQUESTS + 1))
}
