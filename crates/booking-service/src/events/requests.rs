//! The bodies of requests about events.

use common::{
    input::{Id, IdSet, Text, bounded_list},
    kept::Replacement,
    problem::Violations,
    time::Timestamp,
};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde_json::json;
use service_kit::database::types::DbTimestamp;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, schema::Schema},
};

use super::{
    attendance::MAX_TAGS,
    changes::Draft,
    queries::Schedule,
    venue::{self, check_venue, venue},
};

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
    #[schema(value_type = Option<Vec<RequestEventTag>>, max_items = 100)]
    tags: RequestEventTags,
}

/// The tags of an event; empty by default.
#[derive(Debug, Clone, Default)]
pub struct RequestEventTags(Vec<RequestEventTag>);

impl RequestEventTags {
    /// The name of each, and whether it is locked.
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
#[derive(Debug, Clone)]
pub struct RequestEvent(Fields);

impl RequestEvent {
    /// The event as [`changes`](super::changes) takes it.
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

impl Replacement for RequestEvent {
    const FIELDS: &'static [(&'static str, &'static str)] = &[("name", "x"), ("description", ""), ("place", "x")];
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
