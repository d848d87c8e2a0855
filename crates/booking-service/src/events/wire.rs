//! What events look like in answers.

use chrono_tz::Tz;
use common::time::Zoned;
use serde::Serialize;
use service_kit::database::types::DbUuid;
use utoipa::ToSchema;

use super::{
    event_tags::EventTag,
    queries::{Event, EventDetail, Schedule},
};
use crate::{groups::ResponseGroup, rooms::ResponseRoom};

/// A tag on an event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResponseEventTag {
    tag_id: DbUuid,
    name: String,
    /// Only administrators of the event and privileged users may remove the tag.
    locked: bool,
}

impl From<EventTag> for ResponseEventTag {
    fn from(tag: EventTag) -> Self {
        Self { tag_id: tag.id, name: tag.name, locked: tag.locked }
    }
}

/// An event in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "eventId": "0198c0de-0000-7000-8000-000000000020", "name": "Rust evening", "description": "Bring a laptop.",
    "sharedRoom": false, "timeStart": "2026-04-04T18:00:00+09:00", "timeEnd": "2026-04-04T20:00:00+09:00",
    "place": "S516", "roomId": "0198c0de-0000-7000-8000-000000000010",
    "groupId": "11111111-1111-1111-1111-111111111111", "open": true,
    "admins": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"],
    "tags": [{"tagId": "0198c0de-0000-7000-8000-000000000030", "name": "rust", "locked": false}],
    "attendees": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"], "createdBy": "f4626cad-abe0-5cf0-9f8a-af69cd254c29",
    "createdAt": "2026-03-01T12:00:00+09:00", "updatedAt": "2026-03-01T12:00:00+09:00",
    "seriesId": "0198c0de-0000-7000-8000-000000000060", "occurrence": 3
}))]
pub struct ResponseEvent {
    event_id: DbUuid,
    name: String,
    description: String,
    /// Whether other shared events may use the room at the same time.
    shared_room: bool,
    time_start: Zoned,
    time_end: Zoned,
    place: String,
    room_id: DbUuid,
    group_id: DbUuid,
    /// Whether anybody may attend, not only members of the group.
    open: bool,
    admins: Vec<DbUuid>,
    tags: Vec<ResponseEventTag>,
    /// The users who are invited or have answered.
    attendees: Vec<DbUuid>,
    /// The nil UUID when the creator is not known.
    created_by: DbUuid,
    created_at: Zoned,
    updated_at: Zoned,
    /// When the event was deleted; only in the activity list and with `updatedSince`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    deleted_at: Option<Zoned>,
    /// The series that the event belongs to, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    series_id: Option<DbUuid>,
    /// The number of its date in the series.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    occurrence: Option<i32>,
}

impl ResponseEvent {
    /// An event as shown in `zone`.
    pub fn new(event: Event, zone: Tz) -> Self {
        Self {
            event_id: event.row.id,
            name: event.row.name,
            description: event.row.description,
            shared_room: event.row.shared,
            time_start: event.row.starts_at.in_zone(zone),
            time_end: event.row.ends_at.in_zone(zone),
            place: event.row.place,
            room_id: event.row.room_id,
            group_id: event.row.group_id,
            open: event.row.open,
            admins: event.admins,
            tags: event.tags.into_iter().map(Into::into).collect(),
            attendees: event.attendees,
            created_by: event.row.created_by.unwrap_or_else(DbUuid::nil),
            created_at: event.row.created_at.in_zone(zone),
            updated_at: event.row.updated_at.in_zone(zone),
            deleted_at: event.row.deleted_at.map(|at| at.in_zone(zone)),
            series_id: event.row.series_id,
            occurrence: event.row.occurrence,
        }
    }
}

/// A user's answer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResponseAttendee {
    user_id: DbUuid,
    /// `attendance`: comes; `absent`: does not come; `pending`: has not answered yet.
    #[schema(inline)]
    schedule: Schedule,
}

/// An event with its room and group.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "eventId": "0198c0de-0000-7000-8000-000000000020", "name": "Rust evening", "description": "Bring a laptop.",
    "sharedRoom": false, "timeStart": "2026-04-04T18:00:00+09:00", "timeEnd": "2026-04-04T20:00:00+09:00",
    "place": "S516", "groupName": "traP", "open": true,
    "room": {
        "roomId": "0198c0de-0000-7000-8000-000000000010", "place": "S516", "timeStart": "2026-04-04T18:00:00+09:00",
        "timeEnd": "2026-04-04T21:00:00+09:00", "verified": true, "freeTimes": [], "sharedTimes": [],
        "admins": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"], "createdBy": "f4626cad-abe0-5cf0-9f8a-af69cd254c29",
        "createdAt": "2026-03-01T12:00:00+09:00", "updatedAt": "2026-03-01T12:00:00+09:00"
    },
    "group": {
        "groupId": "11111111-1111-1111-1111-111111111111", "name": "traP", "description": "", "open": false,
        "isTraQGroup": true, "members": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"], "admins": [],
        "createdBy": "00000000-0000-0000-0000-000000000000",
        "createdAt": "2026-03-01T12:00:00+09:00", "updatedAt": "2026-03-01T12:00:00+09:00"
    },
    "admins": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"],
    "tags": [{"tagId": "0198c0de-0000-7000-8000-000000000030", "name": "rust", "locked": false}],
    "attendees": [{"userId": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "schedule": "attendance"}],
    "createdBy": "f4626cad-abe0-5cf0-9f8a-af69cd254c29",
    "createdAt": "2026-03-01T12:00:00+09:00", "updatedAt": "2026-03-01T12:00:00+09:00",
    "seriesId": "0198c0de-0000-7000-8000-000000000060", "occurrence": 3
}))]
pub struct ResponseEventDetail {
    event_id: DbUuid,
    name: String,
    description: String,
    /// Whether other shared events may use the room at the same time.
    shared_room: bool,
    time_start: Zoned,
    time_end: Zoned,
    place: String,
    group_name: String,
    /// Whether anybody may attend, not only members of the group.
    open: bool,
    room: ResponseRoom,
    group: ResponseGroup,
    admins: Vec<DbUuid>,
    tags: Vec<ResponseEventTag>,
    /// Each user once.
    attendees: Vec<ResponseAttendee>,
    /// The nil UUID when the creator is not known.
    created_by: DbUuid,
    created_at: Zoned,
    updated_at: Zoned,
    /// The series that the event belongs to, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    series_id: Option<DbUuid>,
    /// The number of its date in the series.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    occurrence: Option<i32>,
}

impl ResponseEventDetail {
    /// An event as shown in `zone`.
    pub fn new(event: EventDetail, zone: Tz) -> Self {
        let attendee = |(user_id, schedule)| ResponseAttendee { user_id, schedule };
        Self {
            event_id: event.row.id,
            name: event.row.name,
            description: event.row.description,
            shared_room: event.row.shared,
            time_start: event.row.starts_at.in_zone(zone),
            time_end: event.row.ends_at.in_zone(zone),
            place: event.row.place,
            group_name: event.group.row.name.clone(),
            open: event.row.open,
            room: ResponseRoom::new(event.room, zone),
            group: ResponseGroup::new(event.group, zone),
            admins: event.admins,
            tags: event.tags.into_iter().map(Into::into).collect(),
            attendees: event.answers.into_iter().map(attendee).collect(),
            created_by: event.row.created_by.unwrap_or_else(DbUuid::nil),
            created_at: event.row.created_at.in_zone(zone),
            updated_at: event.row.updated_at.in_zone(zone),
            series_id: event.row.series_id,
            occurrence: event.row.occurrence,
        }
    }
}
