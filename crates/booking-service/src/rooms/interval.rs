//! Spans of time on the wire.

use chrono_tz::Tz;
use common::time::{Timestamp, Zoned};
use serde::Serialize;
use utoipa::ToSchema;

use super::overlap::Span;

/// A half-open span of time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = duration)]
pub struct Interval {
    /// The first instant inside the span.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    time_start: Zoned,
    /// The first instant after the span.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    time_end: Zoned,
}

impl Interval {
    /// The spans with their times in `zone`.
    #[must_use]
    pub fn all(spans: Vec<Span>, zone: Tz) -> Vec<Self> {
        let show = |at| Timestamp::new(at).map(|at| at.in_zone(zone));
        spans
            .into_iter()
            .filter_map(|span| Some(Self { time_start: show(span.start)?, time_end: show(span.end)? }))
            .collect()
    }
}
