//! The metrics of a service, in the Prometheus text format at `/metrics`.

use std::{
    collections::HashSet,
    fmt::Write as _,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use chrono::DateTime;
use common::time::Timestamp;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Metric, Registry},
};

use crate::{
    copies::CopyNumbers,
    credentials::Keys,
    database::{Database, QueueMetrics},
    http::body_budget::BodyBudget,
    logging::dropped_records,
    process::Process,
};

/// Content type of [`Metrics::text`].
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Content type of [`classic`].
pub const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Converts `OpenMetrics` text to the classic text format of Prometheus, in which the descriptions of a counter name it
/// with its suffix, and which has no end marker.
pub fn classic(text: &str) -> String {
    let counters: HashSet<_> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let mut classic = String::with_capacity(text.len());
    for line in text.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT ")) {
        let words: Vec<_> = line.splitn(4, ' ').collect();
        // Writing to a String cannot fail.
        let _ = match words[..] {
            ["#", keyword, name, rest] if counters.contains(name) => {
                writeln!(classic, "# {keyword} {name}_total {rest}")
            }
            _ => writeln!(classic, "{line}"),
        };
    }
    classic
}

/// Labels of a request: method, route and status. The route is the template, so the number of series is bounded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    route: String,
    status: u16,
}

/// The metrics of one service.
pub struct Metrics {
    registry: RwLock<Registry>,
    requests: Family<Request, Counter>,
    seconds: Family<Route, Histogram, fn() -> Histogram>,
    /// Requests being answered.
    pub in_flight: Gauge,
    /// Bytes of the bodies of requests being answered.
    pub bodies: Arc<BodyBudget>,
    /// Requests refused because their user has created too much.
    pub daily_limit_refusals: Counter,
    in_use: Gauge,
    connections: Gauge,
    ages: Family<CopyLabel, Gauge<f64, AtomicU64>>,
    failures: Family<CopyLabel, Counter>,
    dropped: Counter,
}

/// The label of a copy: its source.
type CopyLabel = [(&'static str, &'static str); 1];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    method: &'static str,
    route: String,
}

/// A request that is being answered.
pub struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Adds a metric to a registry, and returns it.
fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    /// The metrics of a service of this name and version that starts now.
    pub fn new(service: &'static str, version: &str, now: Timestamp, db: &Database, keys: Option<&Keys>) -> Self {
        let mut all = Registry::default();
        let requests = add(&mut all, "http_requests", "Requests that have ended", Family::default());
        let seconds = Family::new_with_constructor(
            (|| Histogram::new(exponential_buckets(0.0005, 2.0, 15))) as fn() -> Histogram,
        );
        let seconds = add(&mut all, "http_request_duration_seconds", "Time from request to end of answer", seconds);
        let in_flight = add(&mut all, "http_requests_in_flight", "Requests being answered", Gauge::default());

        let bodies = Arc::<BodyBudget>::default();
        let help = "Bytes of the bodies of requests being answered";
        add(&mut all, "http_request_body_bytes", help, bodies.bytes.clone());
        let help = "Requests refused because too many bytes of bodies were in memory";
        add(&mut all, "http_request_bodies_refused", help, bodies.refused.clone());

        let help = "Requests refused because their user had created or changed too much in a day";
        let daily_limit_refusals = add(&mut all, "daily_limit_refusals", help, Counter::default());

        add(&mut all, "db_statements", "SQL statements sent", db.statements().clone());
        let in_use = add(&mut all, "db_connections_in_use", "Database connections in use", Gauge::default());
        let connections = add(&mut all, "db_connections", "Database connections at most", Gauge::default());
        let QueueMetrics { waiting, seconds: waited, refused } = db.queue_metrics().clone();
        add(&mut all, "db_connections_waiting", "Work that waits for a database connection", waiting);
        add(&mut all, "db_connection_wait_seconds", "Time that work waited for a database connection", waited);
        let help = "Work given up because there was no database connection";
        add(&mut all, "db_connections_refused", help, refused);

        let help = "Time since a copy of another service's data was last updated";
        let ages = add(&mut all, "copy_age_seconds", help, Family::default());
        let help = "Failed updates of a copy of another service's data";
        let failures = add(&mut all, "copy_failures", help, Family::default());

        if let Some(keys) = keys {
            let help = "Accepted secrets and cookies that a former key of the installation made";
            add(&mut all, "former_key_uses", help, keys.former_uses().clone());
        }

        let help = "Log records that were dropped because they could not be written";
        let dropped = add(&mut all, "log_records_dropped", help, Counter::default());

        let help = "Always 1; the labels name the build";
        let build = add(&mut all, "service_build_info", help, Family::<[(&str, String); 3], Gauge>::default());
        // The commit, as the environment named it during the build.
        let revision = option_env!("REVISION").unwrap_or("unknown");
        let labels = [("service", service), ("version", version), ("revision", revision)];
        build.get_or_create(&labels.map(|(name, value)| (name, value.to_owned()))).set(1);
        let help = "When the service started, in seconds since 1970";
        let started = add(&mut all, "process_start_time_seconds", help, Gauge::<f64, AtomicU64>::default());
        started.set((now.utc() - DateTime::UNIX_EPOCH).as_seconds_f64());
        all.register_collector(Box::new(Process));
        Self {
            registry: RwLock::new(all),
            requests,
            seconds,
            in_flight,
            bodies,
            daily_limit_refusals,
            in_use,
            connections,
            ages,
            failures,
            dropped,
        }
    }

    /// Adds a metric of one service, and returns it.
    pub fn add<M: Metric + Clone>(&self, name: &str, help: &str, metric: M) -> M {
        add(&mut self.registry.write().unwrap_or_else(PoisonError::into_inner), name, help, metric)
    }

    /// Counts a request as being answered until the returned value is dropped.
    pub fn begin(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    /// Counts one request; there is a series for each method and route, so both must be of a bounded number.
    pub fn count(&self, method: &'static str, route: &str, status: u16, seconds: f64) {
        let route = route.to_owned();
        self.seconds.get_or_create(&Route { method, route: route.clone() }).observe(seconds);
        self.requests.get_or_create(&Request { method, route, status }).inc();
    }

    /// All metrics as text.
    pub fn text(&self, db: &Database, copies: &[CopyNumbers]) -> String {
        // Set, not added to: two requests for the metrics at once would add twice.
        self.dropped.inner().store(dropped_records(), Ordering::Relaxed);
        let (in_use, all) = db.connections();
        self.in_use.set(in_use.into());
        self.connections.set(all.into());
        for CopyNumbers { what, age, failures } in copies {
            if let Some(seconds) = age {
                self.ages.get_or_create(&[("what", *what)]).set(*seconds);
            }
            self.failures.get_or_create(&[("what", *what)]).inner().store(*failures, Ordering::Relaxed);
        }
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry.read().unwrap_or_else(PoisonError::into_inner));
        text
    }
}
