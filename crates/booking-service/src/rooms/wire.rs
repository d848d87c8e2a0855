//! What rooms look like on the wire.

use chrono::TimeDelta;
use chrono_tz::Tz;
use common::{
    input::{Flag, Id, IdSet, Text},
    problem::{Problem, Rule, Violations},
    time::{Timestamp, Zoned},
};
use deserr::{Deserr, ValuePointerRef};
use serde::Serialize;
use service_kit::{
    database::types::{DbTimestamp, DbUuid},
    error::Error,
};
use utoipa::{IntoParams, ToSchema};

use super::{
    changes::NewRoom,
    interval::Interval,
    queries::{Room, Selection},
};

/// A place during a period of time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "roomId": "0198c0de-0000-7000-8000-000000000010", "place": "S516", "timeStart": "2026-04-04T18:00:00+09:00",
    "timeEnd": "2026-04-04T21:00:00+09:00", "verified": false,
    "freeTimes": [{"timeStart": "2026-04-04T20:00:00+09:00", "timeEnd": "2026-04-04T21:00:00+09:00"}],
    "sharedTimes": [{"timeStart": "2026-04-04T20:00:00+09:00", "timeEnd": "2026-04-04T21:00:00+09:00"}],
    "admins": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"], "createdBy": "f4626cad-abe0-5cf0-9f8a-af69cd254c29",
    "createdAt": "2026-03-01T12:00:00+09:00", "updatedAt": "2026-03-01T12:00:00+09:00"
}))]
pub struct ResponseRoom {
    room_id: DbUuid,
    place: String,
    time_start: Zoned,
    time_end: Zoned,
    /// Whether a privileged user has confirmed that the club may use the room.
    verified: bool,
    /// The parts of the period that no event uses.
    free_times: Vec<Interval>,
    /// The parts of the period that no exclusive event uses, including the free times.
    shared_times: Vec<Interval>,
    admins: Vec<DbUuid>,
    /// The nil UUID when the creator is not known.
    created_by: DbUuid,
    created_at: Zoned,
    updated_at: Zoned,
}

impl ResponseRoom {
    /// A room as shown in `zone`.
    pub fn new(room: Room, zone: Tz) -> Self {
        Self {
            free_times: Interval::all(room.free_times, zone),
            shared_times: Interval::all(room.shared_times, zone),
            room_id: room.row.id,
            place: room.row.place,
            time_start: room.row.starts_at.in_zone(zone),
            time_end: room.row.ends_at.in_zone(zone),
            verified: room.row.verified,
            admins: room.admins,
            created_by: room.row.created_by.unwrap_or_else(DbUuid::nil),
            created_at: room.row.created_at.in_zone(zone),
            updated_at: room.row.updated_at.in_zone(zone),
        }
    }
}

/// A new room.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase, validate = ends_after_start -> Violations)]
#[schema(rename_all = "camelCase", example = json!({
    "place": "S516", "timeStart": "2026-04-04T18:00:00+09:00", "timeEnd": "2026-04-04T21:00:00+09:00",
    "admins": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"]
}))]
pub struct RequestRoom {
    #[schema(inline)]
    place: Text<1, 32>,
    time_start: Timestamp,
    time_end: Timestamp,
    #[schema(inline)]
    pub admins: IdSet<1>,
}

fn ends_after_start(room: RequestRoom, at: ValuePointerRef<'_>) -> Result<RequestRoom, Violations> {
    if room.time_start < room.time_end { Ok(room) } else { Err(out_of_order(at)) }
}

/// The violation "timeEnd is not after timeStart".
pub fn out_of_order(at: ValuePointerRef<'_>) -> Violations {
    Violations::one(at.push_key("timeEnd"), Rule::OutOfOrder, "must be after timeStart")
}

impl RequestRoom {
    /// The unverified room to insert.
    pub fn to_new_room(&self) -> NewRoom {
        let admins = self.admins.iter().map(|(_, id)| DbUuid(id)).collect();
        NewRoom::new(self.place.to_string(), DbTimestamp(self.time_start), DbTimestamp(self.time_end), admins)
    }
}

/// Which rooms to list.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct ListQuery {
    /// Only rooms whose period ends after this time.
    #[deserr(default)]
    #[param(nullable = false)]
    date_begin: Option<Timestamp>,
    /// Only rooms whose period begins before this time.
    #[deserr(default)]
    #[param(nullable = false)]
    date_end: Option<Timestamp>,
    /// An event that does not count as a use, such as the event that a form edits.
    #[deserr(rename = "excludeEventID", default)]
    #[param(rename = "excludeEventID", nullable = false)]
    exclude_event_id: Option<Id>,
    /// Only rooms that a privileged user has confirmed.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    only_verified: Flag,
}

impl ListQuery {
    /// The selection, and the event that does not count as a use.
    ///
    /// # Errors
    /// 400 when the span ends before it begins.
    pub fn into_selection(self) -> Result<(Selection, Option<DbUuid>), Error> {
        let (from, to) = check_span(self.date_begin, self.date_end)?;
        let selection = Selection { from, to, only_verified: self.only_verified.0, ..Selection::default() };
        Ok((selection, self.exclude_event_id.map(DbUuid::from)))
    }
}

/// Checks a span in query parameters. Either end may be missing. A span that ends when it begins asks for that instant
/// (contract, JSON): it becomes the shortest span from there.
///
/// # Errors
/// 400 when it ends before it begins.
pub fn check_span(
    begin: Option<Timestamp>,
    end: Option<Timestamp>,
) -> Result<(Option<DbTimestamp>, Option<DbTimestamp>), Error> {
    let end = match (begin, end) {
        (Some(begin), Some(end)) if end < begin => {
            return Err(Problem::parameter("dateEnd", Rule::OutOfOrder, "must not be before dateBegin").into());
        }
        (Some(begin), Some(end)) if end == begin => Some(end.plus(TimeDelta::microseconds(1))),
        _ => end,
    };
    Ok((begin.map(DbTimestamp), end.map(DbTimestamp)))
}

/// How to show a room.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations)]
#[into_params(parameter_in = Query)]
pub struct GetQuery {
    /// An event that does not count as a use.
    #[deserr(rename = "excludeEventID", default)]
    #[param(rename = "excludeEventID", nullable = false)]
    pub exclude_event_id: Option<Id>,
}

/// How to delete a room.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations)]
#[into_params(parameter_in = Query)]
pub struct DeleteQuery {
    /// Also delete its events that have not ended.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    pub force: Flag,
    /// An event that does not count as a use.
    #[deserr(rename = "excludeEventID", default)]
    #[param(rename = "excludeEventID", nullable = false)]
    pub exclude_event_id: Option<Id>,
}

/// How to import rooms.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct ImportQuery {
    /// Only check the table and change nothing.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    pub dry_run: Flag,
}
