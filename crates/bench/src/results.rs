//! The results of a run.

use std::time::Duration;

use serde::Serialize;

/// The number of connections with which the growth is measured.
pub const GROWTH_CONNECTIONS: usize = 8;

/// The duration of a seed.
#[derive(Debug, Serialize)]
pub struct SeedTime {
    pub service: &'static str,
    pub database: String,
    pub size: String,
    pub seconds: f64,
}

/// The result of one scene with one number of connections.
#[derive(Debug, Clone, Serialize)]
pub struct Load {
    pub connections: usize,
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Processor time of a request, in the service and in PostgreSQL.
    pub processor_ms: f64,
    /// The same of the other build.
    pub other_processor_ms: Option<f64>,
    /// The peak of resident memory in bytes.
    pub peak: u64,
}

/// The result of one scene on one database.
#[derive(Debug, Clone, Serialize)]
pub struct SceneResult {
    pub scene: &'static str,
    pub database: String,
    pub loads: Vec<Load>,
    /// Bytes of the body of an answer.
    pub length: usize,
    /// SQL statements of a request, `BEGIN` and `COMMIT` included.
    pub statements: f64,
    /// Rows of tables and indexes that PostgreSQL reads for a request.
    pub rows: Option<f64>,
    pub grown: Option<Growth>,
}

/// The same scene with more data.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Growth {
    pub processor_ms: f64,
    pub length: usize,
}

impl SceneResult {
    /// The result that is compared with that of the larger data.
    pub fn comparable_load(&self) -> Option<&Load> {
        self.loads.iter().find(|load| load.connections == GROWTH_CONNECTIONS)
    }
}

/// The bookings of a contended room.
#[derive(Debug, Serialize)]
pub struct Contended {
    pub database: String,
    pub booked: u64,
    pub refused: u64,
    pub per_second: f64,
    pub slowest_ms: f64,
    /// The fewest and the most answers to one client.
    pub fewest: u64,
    pub most: u64,
    /// p50 of bookings of other places, before and during the bookings of the room.
    pub elsewhere_alone_ms: f64,
    pub elsewhere_meanwhile_ms: f64,
}

/// The peak of resident memory during a measurement.
#[derive(Debug, Serialize)]
pub struct Memory {
    pub what: String,
    pub database: String,
    pub peak: u64,
    /// The upper bound in bytes.
    pub bound: u64,
}

/// The duration of a build or a start, with its upper bound in seconds.
#[derive(Debug, Serialize)]
pub struct BuildOrStart {
    pub what: String,
    pub seconds: f64,
    pub bound: f64,
}

/// The upper bound of the slowest booking of a contended room.
pub const MAX_BOOKING_TIME: Duration = Duration::from_secs(3);
