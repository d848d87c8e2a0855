//! Requests about polls.

use std::collections::HashSet;

use chrono_tz::Tz;
use common::{
    input::{Id, IdSet, Text},
    problem::{Rule, Violations, pointer},
    time::Timestamp,
};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde_json::json;
use service_kit::database::types::{DbTimestamp, DbUuid};
use utoipa::{
    IntoParams, PartialSchema, ToSchema,
    openapi::{RefOr, schema::Schema},
};

use super::{
    answers::Answer,
    changes::{NewPoll, PollChange},
    confirmation::Confirmation,
    queries::DraftEventStatus,
    slots::{RequestCandidateSlot, RequestSlots},
};
use crate::events::{
    RequestEventTag, RequestEventTags,
    selection::Relation,
    venue::{self, check_venue, venue},
};

/// A new poll.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({
    "name": "Kick-off", "description": "Pizza afterwards.", "open": false, "deadline": "2999-04-01T18:00:00+09:00",
    "candidateSlots": [
        {"date": "2999-04-04", "startTime": "18:00", "endTime": "20:00"},
        {"timeStart": "2999-04-05T22:00:00+09:00", "timeEnd": "2999-04-06T02:00:00+09:00"}
    ],
    "admins": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"], "inviteGroups": ["11111111-1111-1111-1111-111111111111"]
}))]
pub struct RequestDraftEvent {
    #[schema(inline)]
    name: Text<1, 32>,
    #[deserr(default)]
    #[schema(inline)]
    description: Option<Text<0, 10_000>>,
    /// Whether anybody may answer, not only the invitees. Default false.
    #[deserr(default)]
    open: Option<bool>,
    /// The time until which the poll takes answers and changes. Must be in the future.
    deadline: Timestamp,
    /// Without duplicates.
    #[schema(value_type = Vec<RequestCandidateSlot>, min_items = 1, max_items = 100)]
    candidate_slots: RequestSlots<1>,
    #[schema(inline)]
    admins: IdSet<1>,
    #[deserr(default)]
    #[schema(inline)]
    invitees: Option<IdSet<0>>,
    /// Groups whose current members are invited.
    #[deserr(default)]
    #[schema(inline)]
    invite_groups: Option<IdSet<0>>,
    /// Tags of the event.
    #[deserr(default)]
    #[schema(value_type = Option<Vec<RequestEventTag>>, max_items = 1000)]
    tags: RequestEventTags,
}

impl RequestDraftEvent {
    /// The poll, with its slots in the club's time zone.
    ///
    /// # Errors
    /// 400 for duplicate slots and for local times that the clocks skip.
    pub fn to_poll(&self, zone: Tz) -> Result<NewPoll, Violations> {
        let none = || IdSet::new([]);
        Ok(NewPoll {
            name: self.name.to_string(),
            description: self.description.as_deref().unwrap_or_default().to_owned(),
            open: self.open.unwrap_or_default(),
            deadline: DbTimestamp(self.deadline),
            slots: self.candidate_slots.to_slots("/candidateSlots", zone)?,
            admins: self.admins.clone(),
            invitees: self.invitees.clone().unwrap_or_else(none),
            invite_groups: self.invite_groups.clone().unwrap_or_else(none),
            tags: self.tags.clone().into_pairs(),
        })
    }
}

/// A change of a poll. Fields that are left out stay as they are.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({
    "name": "Kick-off", "additionalCandidateSlots": [{"date": "2999-04-06", "startTime": "9:00", "endTime": "11:00"}]
}))]
pub struct RequestDraftEventUpdate {
    #[deserr(default)]
    #[schema(inline)]
    name: Option<Text<1, 32>>,
    #[deserr(default)]
    #[schema(inline)]
    description: Option<Text<0, 10_000>>,
    /// Whether anybody may answer, not only the invitees.
    #[deserr(default)]
    open: Option<bool>,
    /// Must be in the future. It opens a closed poll again.
    #[deserr(default)]
    deadline: Option<Timestamp>,
    /// Slots that the poll does not have yet. A poll has at most 100.
    #[deserr(default)]
    #[schema(value_type = Option<Vec<RequestCandidateSlot>>, max_items = 100)]
    additional_candidate_slots: RequestSlots<0>,
    /// The complete new list. Removed users who have answered keep their answers.
    #[deserr(default)]
    #[schema(inline)]
    invitees: Option<IdSet<0>>,
    /// The complete new list.
    #[deserr(default)]
    #[schema(inline)]
    admins: Option<IdSet<1>>,
}

impl RequestDraftEventUpdate {
    /// The change, with its slots in the club's time zone.
    ///
    /// # Errors
    /// 400 for duplicate slots and for local times that the clocks skip.
    pub fn to_change(&self, zone: Tz) -> Result<PollChange, Violations> {
        Ok(PollChange {
            name: self.name.as_deref().map(str::to_owned),
            description: self.description.as_deref().map(str::to_owned),
            open: self.open,
            deadline: self.deadline.map(DbTimestamp),
            additional_slots: self.additional_candidate_slots.to_slots("/additionalCandidateSlots", zone)?,
            admins: self.admins.clone(),
            invitees: self.invitees.clone(),
        })
    }
}

/// Which slots of a poll suit. An empty `slotIds` means none of them.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase, validate = disjoint -> Violations)]
#[schema(rename_all = "camelCase", example = json!({
    "slotIds": ["0198c0de-0000-7000-8000-000000000041"], "maybeSlotIds": [], "comment": "I may be late."
}))]
pub struct RequestAvailability {
    /// The ids of the slots that suit.
    #[schema(inline)]
    slot_ids: IdSet<0>,
    /// Must not contain any of `slotIds`.
    #[deserr(default)]
    #[schema(inline)]
    maybe_slot_ids: Option<IdSet<0>>,
    #[deserr(default)]
    #[schema(inline)]
    comment: Option<Text<0, 500>>,
}

fn disjoint(request: RequestAvailability, at: ValuePointerRef<'_>) -> Result<RequestAvailability, Violations> {
    let yes: HashSet<_> = request.slot_ids.iter().map(|(_, id)| id).collect();
    let mut violations = Violations::default();
    for (n, _) in request.maybe_slot_ids.iter().flat_map(IdSet::iter).filter(|(_, id)| yes.contains(id)) {
        let list = at.push_key("maybeSlotIds");
        violations.push(pointer(list.push_index(n)), Rule::Duplicate, "is in slotIds as well");
    }
    if violations.0.is_empty() { Ok(request) } else { Err(violations) }
}

impl From<RequestAvailability> for Answer {
    fn from(request: RequestAvailability) -> Self {
        Self {
            yes: request.slot_ids,
            maybe: request.maybe_slot_ids.unwrap_or_else(|| IdSet::new([])),
            comment: request.comment.map(Text::into_inner),
        }
    }
}

/// The fields of both kinds of confirmation. Exactly one of `place` and `room_id` is given.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase, validate = place_or_room -> Violations)]
#[schema(rename_all = "camelCase")]
struct ConfirmationFields {
    /// The id of the slot that becomes the event.
    slot_id: Id,
    #[deserr(default)]
    #[schema(inline, required = true, nullable = false)]
    place: Option<Text<1, 32>>,
    /// An existing room whose period contains the slot.
    #[deserr(default)]
    #[schema(required = true, nullable = false)]
    room_id: Option<Id>,
    /// The id of the group of the event.
    group_id: Id,
    /// Whether other shared events may use the room at the same time. Default false.
    #[deserr(default)]
    shared_room: Option<bool>,
    /// Whether anybody may attend the event, not only members of the group. Default false.
    #[deserr(default)]
    open: Option<bool>,
}

fn place_or_room(fields: ConfirmationFields, at: ValuePointerRef<'_>) -> Result<ConfirmationFields, Violations> {
    let mut violations = Violations::default();
    check_venue(fields.place.as_ref(), fields.room_id, at, &mut violations);
    if violations.0.is_empty() { Ok(fields) } else { Err(violations) }
}

/// The event that a poll becomes: at a `place` or in the room `roomId`, exactly one of them.
pub struct RequestConfirmation(ConfirmationFields);

impl Deserr<Violations> for RequestConfirmation {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        ConfirmationFields::deserialize_from_value(value, at).map(Self)
    }
}

impl PartialSchema for RequestConfirmation {
    fn schema() -> RefOr<Schema> {
        let example = json!({
            "slotId": "0198c0de-0000-7000-8000-000000000041", "place": "Discord",
            "groupId": "11111111-1111-1111-1111-111111111111", "open": true
        });
        let description = "The event that a poll becomes: either at a `place`, or in the room `roomId`.";
        venue::schema("RequestConfirmation", description, example)
    }
}

impl ToSchema for RequestConfirmation {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        let instant = "An event at any `place`. The service creates a room for the time of the slot.";
        let stock = "An event in the room `roomId`, whose period contains the slot.";
        schemas.extend(venue::schemas::<ConfirmationFields>("RequestConfirmation", instant, stock));
    }
}

impl From<RequestConfirmation> for Confirmation {
    fn from(RequestConfirmation(fields): RequestConfirmation) -> Self {
        Self {
            slot: DbUuid::from(fields.slot_id),
            venue: venue(fields.place, fields.room_id),
            group: fields.group_id.into(),
            shared: fields.shared_room.unwrap_or_default(),
            open: fields.open.unwrap_or_default(),
        }
    }
}

/// Which polls of a user to list.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations)]
#[into_params(parameter_in = Query)]
pub struct OfUserQuery {
    /// How the user is related to them: invited (`belongs`, the default), an administrator (`admins`), one of the two
    /// (`belongs-or-admins`), or has answered (`attendees`).
    #[deserr(default)]
    #[param(inline, nullable = false)]
    pub relation: Option<Relation>,
    /// Only those in this state.
    #[deserr(default)]
    #[param(inline, nullable = false)]
    pub status: Option<DraftEventStatus>,
}
