//! Requests that name either a `place` or a room (`roomId`).

use common::{
    input::{Id, Text},
    problem::{Rule, Violations, pointer},
};
use deserr::ValuePointerRef;
use serde_json::Value;
use utoipa::{
    PartialSchema,
    openapi::{OneOfBuilder, Ref, RefOr, schema::Schema},
};

use super::changes::Venue;

/// Adds a violation unless exactly one of `place` and `roomId` is given.
pub fn check_venue(
    place: Option<&Text<1, 32>>,
    room_id: Option<Id>,
    at: ValuePointerRef<'_>,
    violations: &mut Violations,
) {
    if place.is_some() == room_id.is_some() {
        let message = "must be given if and only if roomId is not";
        violations.push(pointer(at.push_key("place")), Rule::PlaceOrRoom, message);
    }
}

/// The venue of a request that [`check_venue`] accepts.
pub fn venue(place: Option<Text<1, 32>>, room_id: Option<Id>) -> Venue {
    match room_id {
        Some(room) => Venue::Room(room.into()),
        None => Venue::Place(place.map(Text::into_inner).unwrap_or_default()),
    }
}

/// The schema of such a request: one of the two that [`schemas`] describes.
pub fn schema(name: &str, description: &str, example: Value) -> RefOr<Schema> {
    OneOfBuilder::new()
        .item(Ref::from_schema_name(format!("{name}Instant")))
        .item(Ref::from_schema_name(format!("{name}Stock")))
        .description(Some(description))
        .examples([example])
        .into()
}

/// The schemas of both kinds of request, made from `Fields`, which has both fields as required.
pub fn schemas<Fields: PartialSchema>(name: &str, instant: &str, existing_room: &str) -> [(String, RefOr<Schema>); 2] {
    [("Instant", "roomId", instant), ("Stock", "place", existing_room)].map(|(kind, other, description)| {
        let mut schema = Fields::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.description = Some(description.to_owned());
            object.properties.remove(other);
            object.required.retain(|field| field != other);
        }
        (format!("{name}{kind}"), schema)
    })
}
