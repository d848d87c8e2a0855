//! What events look like on the wire.

use chrono_tz::Tz;
use common::{
    input::{Id, IdSet, Text, bounded_list},
    problem::Violations,
    time::{Timestamp, Zoned},
};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde::Serialize;
use serde_json::json;
use service_kit::database::types::{DbTimestamp, DbUuid};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, schema::Schema},
};

use super::{
    changes::Draft,
    queries::{Event, EventDetail, EventTag, Schedule},
    venue::{self, check_venue, venue},
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
    "createdAt": "2026-03-01T12:00:00+09:00", "updatedAt": "2026-03-01T12:00:00+09:00"
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
    "createdAt": "2026-03-01T12:00:00+09:00", "updatedAt": "2026-03-01T12:00:00+09:00"
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
        }
    }
}

/// A tag for an event.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({"name": "rust", "locked": false}))]
pub struct RequestEventTag {
    #[schema(inline)]
    name: Text<1, 16>,
    /// Only administrators of the event and privileged users may remove the tag.
    #[deserr(default)]
    #[schema(value_type = Option<bool>)]
    locked: Option<bool>,
}

impl RequestEventTag {
    /// Name, and whether it is locked.
    #[must_use]
    pub fn into_pair(self) -> (String, bool) {
        (self.name.into_inner(), self.locked.unwrap_or_default())
    }
}

/// The fields of both kinds of request. Exactly one of `place` and `room_id` is given.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase, validate = check_fields -> Violations)]
#[schema(rename_all = "camelCase")]
struct Fields {
    #[schema(inline)]
    name: Text<1, 32>,
    #[schema(inline)]
    description: Text<0, 10000>,
    /// Whether other shared events may use the room at the same time.
    shared_room: bool,
    time_start: Timestamp,
    time_end: Timestamp,
    #[deserr(default)]
    #[schema(inline, required = true, nullable = false)]
    place: Option<Text<1, 32>>,
    /// The room.
    #[deserr(default)]
    #[schema(required = true, nullable = false)]
    room_id: Option<Id>,
    group_id: Id,
    /// Whether anybody may attend, not only members of the group. Left out, also of a change, it is false.
    #[deserr(default)]
    open: Option<bool>,
    #[schema(inline)]
    admins: IdSet<1>,
    /// All tags. Left out, also of a change, there are none.
    #[deserr(default)]
    #[schema(value_type = Option<Vec<RequestEventTag>>, max_items = 1000)]
    tags: RequestEventTags,
}

/// The most tags of one event.
const MAX_TAGS: usize = 1000;

/// The tags of an event; empty by default.
#[derive(Debug, Clone, Default)]
pub struct RequestEventTags(Vec<RequestEventTag>);

impl RequestEventTags {
    /// The name of each, and whether it is locked.
    #[must_use]
    pub fn into_pairs(self) -> Vec<(String, bool)> {
        self.0.into_iter().map(RequestEventTag::into_pair).collect()
    }
}

impl Deserr<Violations> for RequestEventTags {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        match value {
            Value::Null => Ok(Self::default()),
            value => bounded_list(value, at, MAX_TAGS).map(Self),
        }
    }
}

fn check_fields(fields: Fields, at: ValuePointerRef<'_>) -> Result<Fields, Violations> {
    let mut violations = Violations::default();
    if fields.time_start >= fields.time_end {
        violations = crate::rooms::out_of_order(at);
    }
    check_venue(fields.place.as_ref(), fields.room_id, at, &mut violations);
    if violations.0.is_empty() { Ok(fields) } else { Err(violations) }
}

/// A new or changed event: at a `place` or in the room `roomId`, exactly one of them.
pub struct RequestEvent(Fields);

impl RequestEvent {
    /// The event as [`changes`](super::changes) takes it.
    #[must_use]
    pub fn into_draft(self) -> Draft {
        let fields = self.0;
        Draft {
            name: fields.name.into_inner(),
            description: fields.description.into_inner(),
            shared: fields.shared_room,
            starts_at: DbTimestamp(fields.time_start),
            ends_at: DbTimestamp(fields.time_end),
            venue: venue(fields.place, fields.room_id),
            group: fields.group_id.into(),
            open: fields.open.unwrap_or_default(),
            admins: fields.admins,
            tags: fields.tags.into_pairs(),
        }
    }
}

impl Deserr<Violations> for RequestEvent {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        Fields::deserialize_from_value(value, at).map(Self)
    }
}

impl PartialSchema for RequestEvent {
    fn schema() -> RefOr<Schema> {
        let example = json!({
            "name": "Rust evening", "description": "Bring a laptop.", "sharedRoom": false,
            "timeStart": "2026-04-04T18:00:00+09:00", "timeEnd": "2026-04-04T20:00:00+09:00",
            "place": "Discord", "groupId": "11111111-1111-1111-1111-111111111111", "open": true,
            "admins": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"], "tags": [{"name": "rust"}]
        });
        venue::schema("RequestEvent", "Either an event at a `place`, or an event in the room `roomId`.", example)
    }
}

impl ToSchema for RequestEvent {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        let instant = "An event at any `place`. The service creates a room for the time of the event.";
        let existing_room = "An event in the room `roomId`, inside the room's period.";
        schemas.extend(venue::schemas::<Fields>("RequestEvent", instant, existing_room));
        schemas.push((RequestEventTag::name().into_owned(), RequestEventTag::schema()));
    }
}

/// An answer to an event.
#[derive(Debug, Clone, Copy, Deserr, ToSchema)]
#[deserr(error = Violations)]
#[schema(example = json!({"schedule": "attendance"}))]
pub struct RequestSchedule {
    /// `attendance`: comes; `absent`: does not come; `pending`: has not answered yet.
    #[schema(inline)]
    pub schedule: Schedule,
}
