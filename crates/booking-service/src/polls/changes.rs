//! Creates, changes and deletes polls.

use std::collections::BTreeSet;

use common::{
    input::IdSet,
    problem::{Problem, Rule, Violations},
};
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{self, Author},
    with_connection,
};

use super::queries::{DraftEventStatus, Row, check_admin_or_privileged, check_editor, find, get, invitees, slots};
use crate::{
    auth::Caller,
    codes, deletion, groups,
    objects::POLL,
    schema::{draft_event_admins, draft_event_invitees, draft_event_slots, draft_event_tags, draft_events},
    tags, users,
};

/// The most slots of a poll.
pub const MAX_SLOTS: usize = 100;

/// Rows inserted by one statement, well below the limits of both databases on bound values.
const CHUNK: usize = 1000;

/// A span of time that a poll proposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NewSlot {
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
}

/// A poll as in the body of a request.
#[derive(Debug, Clone)]
pub struct NewPoll {
    pub name: String,
    pub description: String,
    pub open: bool,
    pub deadline: DbTimestamp,
    /// Without duplicates.
    pub slots: Vec<NewSlot>,
    pub admins: IdSet<1>,
    pub invitees: IdSet<0>,
    /// Groups whose current members are invited.
    pub invite_groups: IdSet<0>,
    /// The name of each, and whether it will be locked on the event.
    pub tags: Vec<(String, bool)>,
}

/// A change of a poll. Fields that are `None` stay as they are.
#[derive(Debug, Clone)]
pub struct PollChange {
    pub name: Option<String>,
    pub description: Option<String>,
    pub open: Option<bool>,
    pub deadline: Option<DbTimestamp>,
    /// Without duplicates.
    pub additional_slots: Vec<NewSlot>,
    pub admins: Option<IdSet<1>>,
    /// The complete new list.
    pub invitees: Option<IdSet<0>>,
}

impl PollChange {
    /// Whether a poll with these administrators and active invitees has all these values.
    fn is_in(&self, poll: &Row, admins: &[DbUuid], invitees: &[DbUuid]) -> bool {
        let same = |new: BTreeSet<DbUuid>, present: &[DbUuid]| new == present.iter().copied().collect();
        self.name.as_ref().is_none_or(|name| *name == poll.name)
            && self.description.as_ref().is_none_or(|description| *description == poll.description)
            && self.open.is_none_or(|open| open == poll.open)
            && self.deadline.is_none_or(|deadline| deadline == poll.deadline)
            && self.additional_slots.is_empty()
            && self.admins.as_ref().is_none_or(|new| same(ids(new).into_iter().collect(), admins))
            && self.invitees.as_ref().is_none_or(|new| same(ids(new).into_iter().collect(), invitees))
    }
}

/// How a transaction locks a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// Against changes of the poll and its confirmation, not against answers.
    Shared,
    /// Against answers as well.
    Exclusive,
}

/// Locks a poll until the end of the transaction and returns its columns. On SQLite the transaction is the only writer.
pub(super) fn find_locked(conn: &mut AnyConnection, id: DbUuid, lock: Lock) -> Result<Row, Error> {
    if let AnyConnection::Postgresql(pg) = conn {
        let poll = draft_events::table.find(id).select(draft_events::id);
        match lock {
            Lock::Shared => poll.for_share().execute(pg)?,
            Lock::Exclusive => poll.for_no_key_update().execute(pg)?,
        };
    }
    // A statement of its own: one that waits for the lock would not see the event of the confirmation it waited for.
    find(conn, id)
}

/// Checks that a poll still takes answers and changes.
///
/// # Errors
/// 403 `poll-closed` after the deadline or the confirmation.
pub(super) fn check_open(poll: &Row, now: DbTimestamp) -> Result<(), Error> {
    match poll.status(now) {
        DraftEventStatus::Open => Ok(()),
        DraftEventStatus::Closed | DraftEventStatus::Confirmed => Err(Problem::new(codes::POLL_CLOSED).into()),
    }
}

/// Creates a poll.
///
/// # Errors
/// 400 for a deadline that has passed, and for users and groups that do not exist.
pub fn create(conn: &mut AnyConnection, poll: &NewPoll, by: &Author, now: DbTimestamp) -> Result<DbUuid, Error> {
    let mut violations = Violations::default();
    note_past_deadline(poll.deadline, now, &mut violations);
    users::queries::note_unfit_admins(conn, &poll.admins, &[], &mut violations)?;
    users::queries::note_unknown(conn, "/invitees", &poll.invitees, &mut violations)?;
    groups::queries::note_unknown(conn, "/inviteGroups", &poll.invite_groups, &mut violations)?;
    violations.into_result()?;
    let creator = by.actor.ok_or_else(|| Problem::internal("a poll that nobody creates"))?;
    let id = DbUuid::new();
    diesel::insert_into(draft_events::table)
        .values((
            (draft_events::id.eq(id), draft_events::name.eq(&poll.name)),
            (draft_events::description.eq(&poll.description), draft_events::open.eq(poll.open)),
            (draft_events::deadline.eq(poll.deadline), draft_events::created_by.eq(creator)),
            (draft_events::created_at.eq(now), draft_events::updated_at.eq(now)),
        ))
        .execute(conn)?;
    insert_slots(conn, id, &poll.slots)?;
    insert_admins(conn, id, &poll.admins)?;
    let group_members = groups::queries::members_of_all(conn, &ids(&poll.invite_groups))?;
    let invitees: BTreeSet<_> = ids(&poll.invitees).into_iter().chain(group_members).collect();
    insert_invitees(conn, id, &Vec::from_iter(invitees))?;
    insert_tags(conn, id, &poll.tags, by, now)?;
    Ok(id)
}

/// Changes a poll. One that has these values already does not change.
///
/// # Errors
/// 404; 403 for anybody but its administrators and privileged users; 403 `poll-closed` after the confirmation, and
/// after the deadline unless the change sets a later one; 400 for a deadline that has passed, for slots that the poll
/// already has, for too many slots, and for users that do not exist.
pub fn update(
    conn: &mut AnyConnection,
    id: DbUuid,
    change: &PollChange,
    me: &Caller,
    now: DbTimestamp,
) -> Result<(), Error> {
    let poll = find_locked(conn, id, Lock::Exclusive)?;
    check_admin_or_privileged(conn, id, me)?;
    let reopens = poll.event_id.is_none() && change.deadline.is_some_and(|deadline| now < deadline);
    if !reopens {
        check_open(&poll, now)?;
    }
    let mut violations = Violations::default();
    if let Some(deadline) = change.deadline {
        note_past_deadline(deadline, now, &mut violations);
    }
    let present = get(conn, id)?.admins;
    if let Some(admins) = &change.admins {
        users::queries::note_unfit_admins(conn, admins, &present, &mut violations)?;
    }
    if let Some(invitees) = &change.invitees {
        users::queries::note_unknown(conn, "/invitees", invitees, &mut violations)?;
    }
    note_slot_violations(conn, id, &change.additional_slots, &mut violations)?;
    violations.into_result()?;
    let active_invitees = invitees(conn, id)?;
    if change.is_in(&poll, &present, &active_invitees) {
        return Ok(());
    }
    diesel::update(draft_events::table.find(id))
        .set((
            draft_events::name.eq(change.name.as_ref().unwrap_or(&poll.name)),
            draft_events::description.eq(change.description.as_ref().unwrap_or(&poll.description)),
            draft_events::open.eq(change.open.unwrap_or(poll.open)),
            draft_events::deadline.eq(change.deadline.unwrap_or(poll.deadline)),
            draft_events::updated_at.eq(now),
        ))
        .execute(conn)?;
    insert_slots(conn, id, &change.additional_slots)?;
    if let Some(admins) = &change.admins {
        diesel::delete(draft_event_admins::table.filter(draft_event_admins::draft_event_id.eq(id))).execute(conn)?;
        insert_admins(conn, id, admins)?;
    }
    if let Some(invitees) = &change.invitees {
        // Invitees who are not active are not shown, so that a client cannot send them back. They stay.
        let shown = draft_event_invitees::table.filter(draft_event_invitees::draft_event_id.eq(id));
        for active in active_invitees.chunks(CHUNK) {
            diesel::delete(shown.filter(draft_event_invitees::user_id.eq_any(active))).execute(conn)?;
        }
        insert_invitees(conn, id, &ids(invitees))?;
    }
    Ok(())
}

/// Marks a poll as deleted. The event of a confirmed poll stays.
///
/// # Errors
/// 404; 403 for anybody but its administrators and privileged users.
pub fn delete(conn: &mut AnyConnection, id: DbUuid, me: &Caller, now: DbTimestamp) -> Result<(), Error> {
    find_locked(conn, id, Lock::Exclusive)?;
    check_admin_or_privileged(conn, id, me)?;
    diesel::update(draft_events::table.find(id))
        .set((draft_events::deleted_at.eq(now), draft_events::updated_at.eq(now)))
        .execute(conn)?;
    history::deleted(conn, &me.author, &POLL, &[id])
}

/// Takes the deletion of a poll back.
///
/// # Errors
/// 404, also 30 days after the deletion; 403 for anybody but its administrators and privileged users; 409 `not-deleted`.
pub fn restore(conn: &mut AnyConnection, id: DbUuid, me: &Caller, now: DbTimestamp) -> Result<(), Error> {
    check_editor(conn, id, me)?;
    let poll = draft_events::table.find(id).select(draft_events::deleted_at);
    let deleted_at = match conn {
        AnyConnection::Postgresql(pg) => poll.for_no_key_update().first(pg)?,
        AnyConnection::Sqlite(sqlite) => poll.first(sqlite)?,
    };
    deletion::check_restorable("poll", deleted_at, now)?;
    diesel::update(draft_events::table.find(id))
        .set((draft_events::deleted_at.eq(None::<DbTimestamp>), draft_events::updated_at.eq(now)))
        .execute(conn)?;
    history::restored(conn, &me.author, &POLL, id)
}

fn note_past_deadline(deadline: DbTimestamp, now: DbTimestamp, violations: &mut Violations) {
    if deadline <= now {
        violations.push("/deadline", Rule::InThePast, "must be in the future");
    }
}

fn note_slot_violations(
    conn: &mut AnyConnection,
    poll: DbUuid,
    additional: &[NewSlot],
    violations: &mut Violations,
) -> Result<(), Error> {
    if additional.is_empty() {
        return Ok(());
    }
    let existing: BTreeSet<_> = slots(conn, poll)?.iter().map(|slot| (slot.starts_at, slot.ends_at)).collect();
    if existing.len() + additional.len() > MAX_SLOTS {
        let message = format!("must leave the poll with {MAX_SLOTS} slots at most; it has {}", existing.len());
        violations.push("/additionalCandidateSlots", Rule::Length, message);
    }
    for (n, slot) in additional.iter().enumerate() {
        if existing.contains(&(slot.starts_at, slot.ends_at)) {
            violations.push(format!("/additionalCandidateSlots/{n}"), Rule::Duplicate, "is a slot already");
        }
    }
    Ok(())
}

fn ids<const MIN: usize>(set: &IdSet<MIN>) -> Vec<DbUuid> {
    set.iter().map(|(_, id)| DbUuid(id)).collect()
}

fn insert_slots(conn: &mut AnyConnection, poll: DbUuid, slots: &[NewSlot]) -> Result<(), Error> {
    if slots.is_empty() {
        return Ok(());
    }
    let row = |slot: &NewSlot| {
        (
            draft_event_slots::id.eq(DbUuid::new()),
            draft_event_slots::draft_event_id.eq(poll),
            draft_event_slots::starts_at.eq(slot.starts_at),
            draft_event_slots::ends_at.eq(slot.ends_at),
        )
    };
    let rows: Vec<_> = slots.iter().map(row).collect();
    with_connection!(conn, c => diesel::insert_into(draft_event_slots::table).values(rows).execute(c)?);
    Ok(())
}

fn insert_admins(conn: &mut AnyConnection, poll: DbUuid, admins: &IdSet<1>) -> Result<(), Error> {
    let row = |(_, user)| (draft_event_admins::draft_event_id.eq(poll), draft_event_admins::user_id.eq(DbUuid(user)));
    let rows: Vec<_> = admins.iter().map(row).collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(draft_event_admins::table).values(rows).execute(c)?);
    }
    Ok(())
}

fn insert_invitees(conn: &mut AnyConnection, poll: DbUuid, invitees: &[DbUuid]) -> Result<(), Error> {
    let row = |user: &DbUuid| (draft_event_invitees::draft_event_id.eq(poll), draft_event_invitees::user_id.eq(*user));
    let rows: Vec<_> = invitees.iter().map(row).collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(draft_event_invitees::table)
            .values(rows)
            .on_conflict_do_nothing()
            .execute(c)?);
    }
    Ok(())
}

fn insert_tags(
    conn: &mut AnyConnection,
    poll: DbUuid,
    tags: &[(String, bool)],
    by: &Author,
    now: DbTimestamp,
) -> Result<(), Error> {
    if tags.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = tags.iter().map(|(name, _)| name.as_str()).collect();
    let tag_ids = tags::get_or_create(conn, &names, by, now)?;
    let row = |((tag, _), (_, locked)): (&(DbUuid, String), &(String, bool))| {
        (
            draft_event_tags::draft_event_id.eq(poll),
            draft_event_tags::tag_id.eq(*tag),
            draft_event_tags::locked.eq(*locked),
        )
    };
    let rows: Vec<_> = tag_ids.iter().zip(tags).map(row).collect();
    for rows in rows.chunks(CHUNK) {
        // Names with equal keys are the same tag.
        with_connection!(conn, c => diesel::insert_into(draft_event_tags::table)
            .values(rows)
            .on_conflict_do_nothing()
            .execute(c)?);
    }
    Ok(())
}
