//! The confirmation of a poll: one of its slots becomes an event, as `POST /events` makes it.

use std::collections::{BTreeMap, HashMap};

use chrono_tz::Tz;
use common::{
    input::IdSet,
    problem::{Problem, Rule},
};
use diesel::prelude::*;
use serde_json::json;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::Author,
};

use super::{
    changes::{Lock, find_locked},
    queries::{Row, answers, check_admin_or_privileged, choices, get_detail},
    results::{Choice, non_respondents},
};
use crate::{
    auth::Caller,
    codes,
    events::{
        attendance,
        changes::{self, Draft, Venue},
        queries::Schedule,
    },
    schema::draft_events,
    users,
};

/// The properties of the event that the poll itself does not have.
#[derive(Debug, Clone)]
pub struct Confirmation {
    pub slot: DbUuid,
    pub venue: Venue,
    pub group: DbUuid,
    pub shared: bool,
    pub open: bool,
}

/// Confirms a slot of a poll: creates the event and returns its id.
///
/// # Errors
/// 404; 403 for anybody but its administrators and privileged users; otherwise as [`confirm_locked`].
pub fn confirm(
    conn: &mut AnyConnection,
    id: DbUuid,
    confirmation: &Confirmation,
    me: &Caller,
    zone: Tz,
    now: DbTimestamp,
) -> Result<DbUuid, Error> {
    let poll = find_locked(conn, id, Lock::Exclusive)?;
    check_admin_or_privileged(conn, id, me)?;
    confirm_locked(conn, poll, confirmation, &me.author, zone, now)
}

/// Confirms a slot of a poll that is locked. The user `by`, who does it, becomes an administrator of the event if the
/// poll has no active one.
///
/// # Errors
/// 409 `poll-confirmed` with the event's id; 400 for a slot of another poll; otherwise as for a new event.
pub fn confirm_locked(
    conn: &mut AnyConnection,
    poll: Row,
    confirmation: &Confirmation,
    by: &Author,
    zone: Tz,
    now: DbTimestamp,
) -> Result<DbUuid, Error> {
    if let Some(event) = poll.event_id {
        return Err(Problem::new(codes::POLL_CONFIRMED).member("eventId", json!(event)).into());
    }
    let id = poll.id;
    let detail = get_detail(conn, id)?;
    let slot = detail.slots.iter().find(|slot| slot.id == confirmation.slot);
    let slot = *slot.ok_or_else(|| Problem::invalid("/slotId", Rule::UnknownSlot, "names no slot of the poll"))?;
    let mut admins = detail.poll.admins;
    // A privileged user confirms a poll whose administrators have all left.
    if !users::queries::any_active(conn, &admins)? {
        admins.extend(by.actor);
    }
    let (venue, admins) = (confirmation.venue.clone(), IdSet::new(admins.iter().map(|id| id.0)));
    let draft = Draft {
        description: poll.description,
        shared: confirmation.shared,
        open: confirmation.open,
        tags: detail.tags.into_iter().map(|tag| (tag.name, tag.locked)).collect(),
        ..Draft::new(poll.name, (slot.starts_at, slot.ends_at), venue, confirmation.group, admins)
    };
    let event = changes::create(conn, &draft, by, zone, now)?;
    let respondents: Vec<_> = answers(conn, id, &PageBounds::all())?.into_iter().map(|answer| answer.user).collect();
    let schedules = schedules(slot.id, &detail.invitees, &respondents, &choices(conn, id, None)?);
    let rows: Vec<_> = schedules.into_iter().map(|(user, schedule)| (event, user, schedule)).collect();
    attendance::record_answers(conn, &rows, now)?;
    diesel::update(draft_events::table.find(id))
        .set((draft_events::event_id.eq(event), draft_events::updated_at.eq(now)))
        .execute(conn)?;
    Ok(event)
}

/// The answers to the event that follow from the answers to its poll: yes is attendance, maybe and no answer are
/// pending, an answer without the slot is absent.
fn schedules(
    slot: DbUuid,
    invitees: &[DbUuid],
    respondents: &[DbUuid],
    choices: &[Choice],
) -> BTreeMap<DbUuid, Schedule> {
    let choices: HashMap<_, _> =
        choices.iter().filter(|choice| choice.slot == slot).map(|choice| (choice.user, choice.maybe)).collect();
    let schedule = |user: &DbUuid| match choices.get(user) {
        Some(false) => Schedule::Attendance,
        Some(true) => Schedule::Pending,
        None => Schedule::Absent,
    };
    let others = non_respondents(invitees, respondents.iter().copied());
    let others = others.into_iter().map(|user| (user, Schedule::Pending));
    respondents.iter().map(|user| (*user, schedule(user))).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_becomes_a_schedule() {
        let id = |n: u128| DbUuid(uuid::Uuid::from_u128(n));
        let (slot, other) = (id(90), id(91));
        let choice = |user, slot, maybe| Choice { user: id(user), slot, maybe };
        let choices = [choice(1, slot, false), choice(1, other, true), choice(2, slot, true), choice(3, other, false)];
        let found = schedules(slot, &[id(1), id(3), id(5)], &[id(1), id(2), id(3), id(4)], &choices);
        let expected = [
            (id(1), Schedule::Attendance),
            (id(2), Schedule::Pending),
            (id(3), Schedule::Absent),
            (id(4), Schedule::Absent),
            (id(5), Schedule::Pending),
        ];
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }
}
