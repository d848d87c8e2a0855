//! What a service counts, in the Prometheus text format at `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use crate::db::Db;

/// Labels of a request: what was asked and how it ended. The route is the template, so the number of series is bounded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    route: String,
    status: u16,
}

/// The numbers of one service.
pub struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    seconds: Family<Route, Histogram, fn() -> Histogram>,
    statements: Counter,
    in_use: Gauge,
    connections: Gauge,
    ages: Family<Copy, Gauge<f64, AtomicU64>>,
}

/// What a copy is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Copy {
    what: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    method: &'static str,
    route: String,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let requests = Family::<Request, Counter>::default();
        registry.register("http_requests", "Requests answered", requests.clone());
        let seconds = Family::new_with_constructor(
            (|| Histogram::new(exponential_buckets(0.0005, 2.0, 15))) as fn() -> Histogram,
        );
        registry.register("http_request_duration_seconds", "Time from request to end of answer", seconds.clone());
        let statements = Counter::default();
        registry.register("db_statements", "SQL statements sent", statements.clone());
        let in_use = Gauge::default();
        registry.register("db_connections_in_use", "Database connections in use", in_use.clone());
        let connections = Gauge::default();
        registry.register("db_connections", "Database connections at most", connections.clone());
        let ages = Family::default();
        let help = "Time since a copy of what another service has was last brought up to date";
        registry.register("copy_age_seconds", help, Family::clone(&ages));
        Self { registry, requests, seconds, statements, in_use, connections, ages }
    }
}

impl Metrics {
    /// Counts one request; there is a series for each method and route, so both must be of a bounded number.
    pub fn count(&self, method: &'static str, route: &str, status: u16, seconds: f64) {
        let route = route.to_owned();
        self.seconds.get_or_create(&Route { method, route: route.clone() }).observe(seconds);
        self.requests.get_or_create(&Request { method, route, status }).inc();
    }

    /// All numbers as text.
    #[must_use]
    pub fn text(&self, db: &Db, ages: &[(&'static str, f64)]) -> String {
        // Set and not added to, as two readers at the same time would add twice.
        self.statements.inner().store(db.statements(), Ordering::Relaxed);
        let (in_use, all) = db.connections();
        self.in_use.set(in_use.into());
        self.connections.set(all.into());
        for (what, seconds) in ages {
            self.ages.get_or_create(&Copy { what }).set(*seconds);
        }
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
