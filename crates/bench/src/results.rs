//! What the parts of a run measure.

use std::time::Duration;

use serde::Serialize;

/// The number of connections with which the growth is measured.
pub const COMPARED: usize = 8;

/// How long a seed took.
#[derive(Debug, Serialize)]
pub struct Seeded {
    pub service: &'static str,
    pub database: String,
    pub size: String,
    pub seconds: f64,
}

/// One scene with some number of connections.
#[derive(Debug, Clone, Serialize)]
pub struct Load {
    pub connections: usize,
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Requests answered 503, in all rounds.
    pub overloaded: u64,
    /// The most memory that was resident, in bytes.
    pub peak: u64,
}

/// One scene on one database.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    pub scene: &'static str,
    pub database: String,
    pub loads: Vec<Load>,
    /// Bytes of a body.
    pub length: usize,
    /// SQL statements for each request, without those of the door to the database.
    pub statements: f64,
    /// Rows that PostgreSQL read for each request, of tables and indexes.
    pub rows: Option<f64>,
    pub grown: Option<Growth>,
}

/// The same scene with more data.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Growth {
    pub p50_ms: f64,
    pub length: usize,
}

impl Measured {
    /// What is compared with the larger data.
    pub fn compared(&self) -> Option<&Load> {
        self.loads.iter().find(|load| load.connections == COMPARED)
    }
}

/// What happened.
#[derive(Debug, Serialize)]
pub struct Contended {
    pub database: String,
    pub booked: u64,
    pub refused: u64,
    pub per_second: f64,
    pub slowest_ms: f64,
    /// Answers to the client that got the fewest, and to the one that got the most.
    pub fewest: u64,
    pub most: u64,
    /// p50 of bookings elsewhere, alone and meanwhile.
    pub elsewhere_alone_ms: f64,
    pub elsewhere_meanwhile_ms: f64,
}

/// The most memory that was resident while something was done.
#[derive(Debug, Serialize)]
pub struct Memory {
    pub what: String,
    pub database: String,
    pub peak: u64,
    /// The most that it may be, in bytes.
    pub bound: u64,
}

/// How long something took, and may take.
#[derive(Debug, Serialize)]
pub struct Took {
    pub what: String,
    pub seconds: f64,
    pub bound: f64,
}

/// What the report says of patience: nobody waits longer.
pub const SLOWEST: Duration = Duration::from_secs(3);
