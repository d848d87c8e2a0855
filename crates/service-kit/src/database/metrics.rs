//! How long work waits for a connection, for the metrics.

use std::sync::Arc;

use prometheus_client::metrics::{counter::Counter, gauge::Gauge, histogram::Histogram};
use tokio::time::Instant;

/// The numbers of one door.
#[derive(Debug, Clone)]
pub struct QueueMetrics {
    /// Work that waits now.
    pub waiting: Gauge,
    /// How long it took until there was a connection.
    pub seconds: Histogram,
    /// How often there was none.
    pub refused: Counter,
}

impl Default for QueueMetrics {
    fn default() -> Self {
        // The last one is near the most that anything waits.
        let seconds = Histogram::new([0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5]);
        Self { waiting: Gauge::default(), seconds, refused: Counter::default() }
    }
}

impl QueueMetrics {
    pub(super) fn begin(self: &Arc<Self>) -> Waiting {
        self.waiting.inc();
        Waiting { waits: self.clone(), begun: Instant::now(), is_refused: true }
    }
}

/// Work that waits. Without success it was refused, or its caller has gone.
pub(super) struct Waiting {
    waits: Arc<QueueMetrics>,
    begun: Instant,
    is_refused: bool,
}

impl Waiting {
    pub(super) fn begun(&self) -> Instant {
        self.begun
    }

    pub(super) fn succeed(mut self) {
        self.is_refused = false;
        self.waits.seconds.observe(self.begun.elapsed().as_secs_f64());
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.waits.waiting.dec();
        if self.is_refused {
            self.waits.refused.inc();
        }
    }
}
