//! How long jobs wait for a connection, for `/metrics`.

use std::{sync::Arc, time::Instant};

use prometheus_client::metrics::{counter::Counter, gauge::Gauge, histogram::Histogram};

/// The metrics of the queue of a [`Database`](super::Database).
#[derive(Debug, Clone)]
pub struct QueueMetrics {
    /// Jobs in the queue.
    pub waiting: Gauge,
    /// Time until a job had a connection.
    pub seconds: Histogram,
    /// Jobs that got no connection, or whose caller disconnected first.
    pub refused: Counter,
}

impl Default for QueueMetrics {
    fn default() -> Self {
        // The last bucket ends at the usual checkout time-out.
        let seconds = Histogram::new([0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5]);
        Self { waiting: Gauge::default(), seconds, refused: Counter::default() }
    }
}

impl QueueMetrics {
    pub(super) fn begin(self: &Arc<Self>) -> QueueTimer {
        self.waiting.inc();
        QueueTimer { metrics: self.clone(), started: Instant::now(), is_refused: true }
    }
}

/// A waiting job. Dropped without [`succeed`](Self::succeed), it counts as refused.
pub(super) struct QueueTimer {
    metrics: Arc<QueueMetrics>,
    started: Instant,
    is_refused: bool,
}

impl QueueTimer {
    pub(super) fn succeed(mut self) {
        self.is_refused = false;
        self.metrics.seconds.observe(self.started.elapsed().as_secs_f64());
    }
}

impl Drop for QueueTimer {
    fn drop(&mut self) {
        self.metrics.waiting.dec();
        if self.is_refused {
            self.metrics.refused.inc();
        }
    }
}
