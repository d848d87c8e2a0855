//! Answers to polls.

use std::collections::HashSet;

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
    with_connection,
};

use super::{
    changes::{Lock, check_open, find_locked},
    queries::{answer_of, choices, is_admin, is_invited, slots},
};
use crate::{
    codes,
    schema::{draft_event_answers, draft_event_choices},
};

/// An answer as in the body of a request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The slots that suit.
    pub yes: IdSet<0>,
    /// The slots that may suit; none of them is in `yes`.
    pub maybe: IdSet<0>,
    /// A remark.
    pub comment: Option<String>,
}

/// Records the first answer of a user.
///
/// # Errors
/// 404; 403 for users who may not answer, and 403 `poll-closed`; 409 `already-answered`; 400 for a slot of another
/// poll.
pub fn create(
    conn: &mut AnyConnection,
    poll: DbUuid,
    user: DbUuid,
    answer: &Answer,
    now: DbTimestamp,
) -> Result<(), Error> {
    check_may_answer(conn, poll, user, now)?;
    let row = (
        draft_event_answers::draft_event_id.eq(poll),
        draft_event_answers::user_id.eq(user),
        draft_event_answers::comment.eq(&answer.comment),
        draft_event_answers::updated_at.eq(now),
    );
    // Waits for a concurrent answer of this user that is not committed yet.
    let created = with_connection!(conn, c => diesel::insert_into(draft_event_answers::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(c)?);
    if created == 0 {
        return Err(Problem::new(codes::ALREADY_ANSWERED).into());
    }
    insert_choices(conn, poll, user, answer)
}

/// Replaces the answer of a user. An equal answer keeps its time.
///
/// # Errors
/// 404, also if the user has not answered; otherwise as [`create`].
pub fn update(
    conn: &mut AnyConnection,
    poll: DbUuid,
    user: DbUuid,
    answer: &Answer,
    now: DbTimestamp,
) -> Result<(), Error> {
    check_may_answer(conn, poll, user, now)?;
    let present: HashSet<_> =
        choices(conn, poll, Some(&[user]))?.into_iter().map(|choice| (choice.slot, choice.maybe)).collect();
    let chosen = |set: &IdSet<0>, maybe| set.iter().map(move |(_, slot)| (DbUuid(slot), maybe)).collect::<Vec<_>>();
    let new = HashSet::from_iter([chosen(&answer.yes, false), chosen(&answer.maybe, true)].concat());
    if new == present && answer_of(conn, poll, user)?.comment == answer.comment {
        return Ok(());
    }
    let columns = (draft_event_answers::comment.eq(&answer.comment), draft_event_answers::updated_at.eq(now));
    if diesel::update(draft_event_answers::table.find((poll, user))).set(columns).execute(conn)? == 0 {
        return Err(Problem::not_found("answer").into());
    }
    let old_choices = draft_event_choices::table
        .filter(draft_event_choices::draft_event_id.eq(poll))
        .filter(draft_event_choices::user_id.eq(user));
    diesel::delete(old_choices).execute(conn)?;
    insert_choices(conn, poll, user, answer)
}

/// Locks a poll against changes and its confirmation, and checks that a user may answer it.
fn check_may_answer(conn: &mut AnyConnection, id: DbUuid, user: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    let poll = find_locked(conn, id, Lock::Shared)?;
    if !poll.open && !is_invited(conn, id, user)? && !is_admin(conn, id, user)? {
        return Err(Problem::forbidden("an invitation, an administrator of the poll, or an open poll").into());
    }
    check_open(&poll, now)
}

fn insert_choices(conn: &mut AnyConnection, poll: DbUuid, user: DbUuid, answer: &Answer) -> Result<(), Error> {
    let slot_ids: HashSet<_> = slots(conn, poll)?.into_iter().map(|slot| slot.id).collect();
    let mut violations = Violations::default();
    let mut rows = Vec::new();
    for (field, ids, maybe) in [("slotIds", &answer.yes, false), ("maybeSlotIds", &answer.maybe, true)] {
        for (index, slot) in ids.iter() {
            if !slot_ids.contains(&DbUuid(slot)) {
                violations.push(format!("/{field}/{index}"), Rule::UnknownSlot, "names no slot of the poll");
            }
            rows.push((
                draft_event_choices::draft_event_id.eq(poll),
                draft_event_choices::user_id.eq(user),
                draft_event_choices::slot_id.eq(DbUuid(slot)),
                draft_event_choices::maybe.eq(maybe),
            ));
        }
    }
    violations.into_result()?;
    if !rows.is_empty() {
        with_connection!(conn, c => diesel::insert_into(draft_event_choices::table).values(&rows).execute(c)?);
    }
    Ok(())
}
