//! The JSON of events.

use common::{
    // utoipa maps every type called `Duration` to the string of chrono's.
    duration::Duration as Span,
    problem::{Problem, Rule, Violations},
};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde::{Serialize, Serializer};
use service_kit::{database::types::DbUuid, error::Error};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr,
        schema::{Schema, Type},
    },
};

use super::queries;
use crate::users::User;

/// Who sees an event and its hosts; a number in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventLevel {
    /// 0: everybody sees the event; its hosts and admins see the hosts.
    Anonymous,
    /// 1: everybody sees the event and its hosts.
    Public,
    /// 2: only its hosts and admins see the event.
    Private,
}

impl EventLevel {
    /// The number in JSON and in the database.
    pub fn number(self) -> i16 {
        self as i16
    }

    fn from_number(number: i64) -> Option<Self> {
        [Self::Anonymous, Self::Public, Self::Private].into_iter().find(|level| i64::from(level.number()) == number)
    }
}

impl Serialize for EventLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i16(self.number())
    }
}

impl Deserr<Violations> for EventLevel {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let number = i64::deserialize_from_value(value, at)?;
        let message = "must be 0 (anonymous), 1 (public) or 2 (private)";
        Self::from_number(number).ok_or_else(|| Violations::one(at, Rule::NotAllowed, message))
    }
}

impl PartialSchema for EventLevel {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .enum_values(Some([0, 1, 2]))
            .description(Some(
                "0 anonymous: the hosts are hidden; 1 public; 2 private: only hosts and admins see the event",
            ))
            .into()
    }
}

impl ToSchema for EventLevel {}

/// An event in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "0198c0de-0000-7000-8000-000000000020", "name": "Rust evening", "level": 1,
    "duration": {"since": "2026-04-04T09:00:00Z", "until": "2026-04-04T11:00:00Z"}
}))]
pub struct Event {
    id: DbUuid,
    name: String,
    duration: Span,
    level: EventLevel,
}

impl Event {
    /// Converts a row.
    pub fn new(event: queries::Event) -> Result<Self, Error> {
        let level = EventLevel::from_number(event.level.into());
        let level = level.ok_or_else(|| Problem::internal("an event has an unknown level"))?;
        Ok(Self { id: event.id, name: event.name, duration: event.duration, level })
    }
}

/// An event with all fields.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "0198c0de-0000-7000-8000-000000000020", "name": "Rust evening", "level": 1,
    "duration": {"since": "2026-04-04T09:00:00Z", "until": "2026-04-04T11:00:00Z"},
    "description": "Bring a laptop.", "place": "S516",
    "hostname": [{"id": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "name": "alice", "realName": ""}]
}))]
pub struct EventDetail {
    #[serde(flatten)]
    event: Event,
    description: String,
    place: String,
    /// The hosts, ordered by name. Empty if the event is anonymous and the caller is neither a host nor an admin.
    hostname: Vec<User>,
}

impl EventDetail {
    /// Converts a row.
    pub fn new(detail: queries::Detail) -> Result<Self, Error> {
        let hostname = detail.hosts.into_iter().map(User::from).collect();
        let (description, place) = (detail.description, detail.place);
        Ok(Self { event: Event::new(detail.event)?, description, place, hostname })
    }
}

/// Changes of an event. A field that is left out stays.
#[derive(Debug, Clone, Copy, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({"level": 1}))]
pub struct EditEventRequest {
    #[deserr(default)]
    pub level: Option<EventLevel>,
}
