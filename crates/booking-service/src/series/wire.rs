//! What series look like in answers.

use chrono_tz::Tz;
use common::{problem::Problem, time::Zoned};
use serde::Serialize;
use serde_json::{Value, json};
use service_kit::{database::types::DbUuid, error::Error};
use utoipa::ToSchema;

use super::{
    queries::{Series, SkipCode, Skipped},
    refused::Refused,
};
use crate::{codes, events::ResponseEvent, rooms::booking::conflicts_json};

/// A date of a series that has no event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkippedDate {
    time_start: Zoned,
    time_end: Zoned,
    #[schema(inline)]
    code: SkipCode,
    /// The conflicting events, as in `room-conflict`; only in the answer to a request that checks the date.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>, nullable = false)]
    conflicts: Option<Value>,
}

impl SkippedDate {
    /// A date that cannot be booked.
    pub fn refused(date: &Refused, zone: Tz) -> Self {
        let conflicts = (!date.conflicts.is_empty()).then(|| conflicts_json(&date.conflicts, zone));
        let (time_start, time_end) = (date.starts_at.in_zone(zone), date.ends_at.in_zone(zone));
        Self { time_start, time_end, code: date.code, conflicts }
    }

    /// A date that could not be booked.
    pub fn stored(date: &Skipped, zone: Tz) -> Self {
        let (time_start, time_end) = (date.starts_at.in_zone(zone), date.ends_at.in_zone(zone));
        Self { time_start, time_end, code: date.code, conflicts: None }
    }
}

/// 409 `series-conflict` with the dates that cannot be booked.
pub fn series_conflict(dates: &[Refused], zone: Tz) -> Error {
    let dates: Vec<_> = dates.iter().map(|date| SkippedDate::refused(date, zone)).collect();
    Problem::new(codes::SERIES_CONFLICT).member("dates", json!(dates)).into()
}

/// A series of events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "seriesId": "0198c0de-0000-7000-8000-000000000060", "rrule": "FREQ=WEEKLY;COUNT=15", "timeZone": "Asia/Tokyo",
    "admins": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"], "events": [], "skipped": [{
        "timeStart": "2026-04-28T18:00:00+09:00", "timeEnd": "2026-04-28T20:00:00+09:00", "code": "room-conflict"
    }],
    "createdBy": "f4626cad-abe0-5cf0-9f8a-af69cd254c29",
    "createdAt": "2026-03-01T12:00:00+09:00", "updatedAt": "2026-03-01T12:00:00+09:00"
}))]
pub struct ResponseEventSeries {
    series_id: DbUuid,
    /// The rule, RFC 5545.
    rrule: String,
    /// The zone of the wall clock, a name of the IANA database.
    time_zone: String,
    /// By id. Each event has administrators of its own.
    admins: Vec<DbUuid>,
    /// Those that are not deleted, by timeStart and id.
    events: Vec<ResponseEvent>,
    /// The dates that could not be booked, by timeStart.
    skipped: Vec<SkippedDate>,
    /// The nil UUID when the creator is not known.
    created_by: DbUuid,
    created_at: Zoned,
    updated_at: Zoned,
    /// How many occurrences `until` has deleted; only in the answer to a change with `until`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    deleted: Option<usize>,
}

impl ResponseEventSeries {
    /// A series as shown in `zone`.
    pub fn new(series: Series, zone: Tz) -> Self {
        let skipped = series.skipped.iter().map(|date| SkippedDate::stored(date, zone)).collect();
        Self {
            series_id: series.row.id,
            rrule: series.row.rrule,
            time_zone: series.row.time_zone,
            admins: series.admins,
            events: series.events.into_iter().map(|event| ResponseEvent::new(event, zone)).collect(),
            skipped,
            created_by: series.row.created_by.unwrap_or_else(DbUuid::nil),
            created_at: series.row.created_at.in_zone(zone),
            updated_at: series.row.updated_at.in_zone(zone),
            deleted: None,
        }
    }

    /// The same, with the number of occurrences that were deleted.
    pub fn with_deleted(self, number: usize) -> Self {
        Self { deleted: Some(number), ..self }
    }

    /// The same, with the conflicts of its skipped dates.
    pub fn with_conflicts(self, skipped: Vec<SkippedDate>) -> Self {
        Self { skipped, ..self }
    }
}
