//! Answers to requests about polls.

use std::collections::HashMap;

use chrono_tz::Tz;
use common::time::Zoned;
use serde::Serialize;
use service_kit::database::types::{DbTimestamp, DbUuid};
use utoipa::ToSchema;

use super::{
    queries::{DraftEventStatus, Poll, PollDetail, UserAnswer},
    results::{self, Choice, Slot},
};
use crate::events::ResponseEventTag;

/// A poll in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "draftEventId": "0198c0de-0000-7000-8000-000000000040", "name": "Kick-off",
    "deadline": "2026-04-01T18:00:00+09:00", "status": "open", "respondedCount": 1, "totalInvitees": 12,
    "admins": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"], "createdBy": "f4626cad-abe0-5cf0-9f8a-af69cd254c29",
    "createdAt": "2026-03-01T12:00:00+09:00", "updatedAt": "2026-03-01T12:00:00+09:00"
}))]
pub struct ResponseDraftEvent {
    draft_event_id: DbUuid,
    name: String,
    /// The time until which the poll takes answers and changes.
    deadline: Zoned,
    /// `open`, `closed` (the deadline has passed) or `confirmed`.
    #[schema(inline)]
    status: DraftEventStatus,
    /// The number of active users who have answered, invited or not.
    responded_count: i64,
    /// The number of active users who are asked.
    total_invitees: i64,
    admins: Vec<DbUuid>,
    created_by: DbUuid,
    created_at: Zoned,
    updated_at: Zoned,
}

impl ResponseDraftEvent {
    /// A poll with its status at `now` and its times in `zone`.
    pub fn new(poll: Poll, now: DbTimestamp, zone: Tz) -> Self {
        Self {
            draft_event_id: poll.row.id,
            status: poll.row.status(now),
            name: poll.row.name,
            deadline: poll.row.deadline.in_zone(zone),
            responded_count: poll.answers,
            total_invitees: poll.invitees,
            admins: poll.admins,
            created_by: poll.row.created_by,
            created_at: poll.row.created_at.in_zone(zone),
            updated_at: poll.row.updated_at.in_zone(zone),
        }
    }
}

/// A proposed span of time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateSlot {
    slot_id: DbUuid,
    time_start: Zoned,
    time_end: Zoned,
}

impl CandidateSlot {
    fn new(slot: &Slot, zone: Tz) -> Self {
        Self { slot_id: slot.id, time_start: slot.starts_at.in_zone(zone), time_end: slot.ends_at.in_zone(zone) }
    }
}

/// A poll with its slots.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "draftEventId": "0198c0de-0000-7000-8000-000000000040", "name": "Kick-off", "description": "Pizza afterwards.",
    "open": false, "deadline": "2026-04-01T18:00:00+09:00", "status": "open", "respondedCount": 1, "totalInvitees": 1,
    "candidateSlots": [{
        "slotId": "0198c0de-0000-7000-8000-000000000041", "timeStart": "2026-04-04T18:00:00+09:00",
        "timeEnd": "2026-04-04T20:00:00+09:00"
    }],
    "invitees": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"],
    "tags": [{"tagId": "0198c0de-0000-7000-8000-000000000030", "name": "rust", "locked": false}],
    "admins": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"], "createdBy": "f4626cad-abe0-5cf0-9f8a-af69cd254c29",
    "createdAt": "2026-03-01T12:00:00+09:00", "updatedAt": "2026-03-01T12:00:00+09:00"
}))]
pub struct ResponseDraftEventDetail {
    #[serde(flatten)]
    summary: ResponseDraftEvent,
    description: String,
    /// Whether anybody may answer, not only the invitees.
    open: bool,
    /// By time.
    candidate_slots: Vec<CandidateSlot>,
    invitees: Vec<DbUuid>,
    /// Tags of the event.
    tags: Vec<ResponseEventTag>,
    /// The event of a confirmed poll.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    event_id: Option<DbUuid>,
}

impl ResponseDraftEventDetail {
    /// A poll with its status at `now` and its times in `zone`.
    pub fn new(detail: PollDetail, now: DbTimestamp, zone: Tz) -> Self {
        Self {
            description: detail.poll.row.description.clone(),
            open: detail.poll.row.open,
            candidate_slots: detail.slots.iter().map(|slot| CandidateSlot::new(slot, zone)).collect(),
            invitees: detail.invitees,
            tags: detail.tags.into_iter().map(Into::into).collect(),
            event_id: detail.poll.row.event_id,
            summary: ResponseDraftEvent::new(detail.poll, now, zone),
        }
    }
}

/// The answer of a user.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "userId": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "draftEventId": "0198c0de-0000-7000-8000-000000000040",
    "slotIds": ["0198c0de-0000-7000-8000-000000000041"], "maybeSlotIds": [], "comment": "I may be late.",
    "updatedAt": "2026-03-01T12:00:00+09:00"
}))]
pub struct ResponseAvailability {
    user_id: DbUuid,
    draft_event_id: DbUuid,
    /// The slots that suit, by time.
    slot_ids: Vec<DbUuid>,
    /// The slots that may suit, by time.
    maybe_slot_ids: Vec<DbUuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    comment: Option<String>,
    updated_at: Zoned,
}

impl ResponseAvailability {
    /// An answer to a poll with these slots, and the user's choices of them.
    pub fn new(answer: UserAnswer, poll: DbUuid, slots: &[Slot], choices: &[Choice], zone: Tz) -> Self {
        let choices: HashMap<_, _> = choices.iter().map(|choice| (choice.slot, choice.maybe)).collect();
        let slot_ids =
            |maybe| slots.iter().filter(|slot| choices.get(&slot.id) == Some(&maybe)).map(|slot| slot.id).collect();
        Self {
            user_id: answer.user,
            draft_event_id: poll,
            slot_ids: slot_ids(false),
            maybe_slot_ids: slot_ids(true),
            comment: answer.comment,
            updated_at: answer.updated_at.in_zone(zone),
        }
    }
}

/// The users whom a slot suits.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlotResult {
    slot_id: DbUuid,
    /// The number of users whom the slot suits.
    available_count: usize,
    /// The ids of these users.
    available_users: Vec<DbUuid>,
    /// `availableCount` divided by the number of respondents; 0 without respondents.
    #[schema(minimum = 0, maximum = 1)]
    availability_rate: f64,
    /// The number of users whom the slot may suit.
    maybe_count: usize,
    /// The ids of these users.
    maybe_users: Vec<DbUuid>,
    /// Whether no slot has more `availableUsers`, or as many and more `maybeUsers`. Several slots can be top choices. A
    /// slot that nobody chose is not one.
    is_top_choice: bool,
}

impl From<results::SlotResult> for SlotResult {
    fn from(result: results::SlotResult) -> Self {
        Self {
            slot_id: result.slot,
            available_count: result.yes.len(),
            available_users: result.yes,
            availability_rate: result.rate,
            maybe_count: result.maybe.len(),
            maybe_users: result.maybe,
            is_top_choice: result.is_top,
        }
    }
}

/// A user who has answered.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Respondent {
    user_id: DbUuid,
    /// The time of the last change of the answer.
    responded_at: Zoned,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    comment: Option<String>,
}

/// The answers to a poll, slot by slot.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "draftEventId": "0198c0de-0000-7000-8000-000000000040",
    "results": [{
        "slotId": "0198c0de-0000-7000-8000-000000000041", "availableCount": 1,
        "availableUsers": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"], "availabilityRate": 1.0, "maybeCount": 0,
        "maybeUsers": [], "isTopChoice": true
    }],
    "respondents": [{
        "userId": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "respondedAt": "2026-03-01T12:00:00+09:00"
    }],
    "nonRespondents": ["0198c0de-0000-7000-8000-000000000002"]
}))]
pub struct ResponseSchedulingResults {
    draft_event_id: DbUuid,
    /// By time.
    results: Vec<SlotResult>,
    /// By id.
    respondents: Vec<Respondent>,
    /// The invitees who have not answered, by id.
    non_respondents: Vec<DbUuid>,
}

impl ResponseSchedulingResults {
    /// The results of a poll.
    pub fn new(
        poll: DbUuid,
        slots: &[Slot],
        invitees: &[DbUuid],
        answers: Vec<UserAnswer>,
        choices: &[Choice],
        zone: Tz,
    ) -> Self {
        let respondent = |answer: UserAnswer| Respondent {
            user_id: answer.user,
            responded_at: answer.updated_at.in_zone(zone),
            comment: answer.comment,
        };
        Self {
            draft_event_id: poll,
            results: results::tally(slots, choices, answers.len()).into_iter().map(Into::into).collect(),
            non_respondents: results::non_respondents(invitees, answers.iter().map(|answer| answer.user)),
            respondents: answers.into_iter().map(respondent).collect(),
        }
    }
}
