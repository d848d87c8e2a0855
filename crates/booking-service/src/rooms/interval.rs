//! Spans of time on the wire.

use chrono_tz::Tz;
use common::time::Zoned;
use serde::Serialize;
use utoipa::ToSchema;

use super::overlap::Span;

/// A half-open span of time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = duration)]
pub struct Interval {
    /// The first instant inside the span.
    time_start: Zoned,
    /// The first instant after the span.
    time_end: Zoned,
}

impl Interval {
    /// The spans with their times in `zone`.
    pub fn all(spans: Vec<Span>, zone: Tz) -> Vec<Self> {
        let show = |span: Span| Self { time_start: span.start.in_zone(zone), time_end: span.end.in_zone(zone) };
        spans.into_iter().map(show).collect()
    }
}
