//! Answers to events, and the tags of events.

use common::problem::Problem;
use diesel::{OptionalExtension, dsl::case_when, prelude::*, upsert::excluded};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::Author,
    with_connection,
};

use super::queries::{Row, Schedule, check_admin_or_privileged, find, not_found};
use crate::{
    auth::Caller,
    codes, groups,
    schema::{attendees, event_tags, events, tags},
};

/// The most tags of one event.
pub const MAX_TAGS: usize = 100;

/// Removes the attendees who have not answered.
pub fn delete_pending(conn: &mut AnyConnection, event: DbUuid) -> Result<(), Error> {
    let pending = attendees::event_id.eq(event).and(attendees::schedule.eq(Schedule::Pending));
    diesel::delete(attendees::table.filter(pending)).execute(conn)?;
    Ok(())
}

/// Sets the caller's answer.
///
/// # Errors
/// 404; 403 unless the event is open, the caller belongs to its group, or is listed, and after its end for all answers
/// but [`Schedule::Absent`] (contract, `PUT attendees/me`).
pub fn answer(
    conn: &mut AnyConnection,
    event: DbUuid,
    me: &Caller,
    schedule: Schedule,
    now: DbTimestamp,
) -> Result<(), Error> {
    let event = find(conn, event)?;
    check_may_answer(conn, &event, me, schedule, now)?;
    record_answers(conn, &[(event.id, me.id, schedule)], now)
}

/// Sets the caller's answer to an event and to the later events of its series that the caller may answer.
///
/// # Errors
/// As [`answer`].
pub fn answer_later(
    conn: &mut AnyConnection,
    event: DbUuid,
    me: &Caller,
    schedule: Schedule,
    now: DbTimestamp,
) -> Result<(), Error> {
    let event = find(conn, event)?;
    check_may_answer(conn, &event, me, schedule, now)?;
    let mut answers = vec![(event.id, me.id, schedule)];
    if let Some(series) = event.series_id {
        let later = events::table
            .filter(events::series_id.eq(series))
            .filter(events::starts_at.ge(event.starts_at))
            .filter(events::id.ne(event.id))
            .filter(events::deleted_at.is_null());
        let later: Vec<Row> = later.select(Row::as_select()).load(conn)?;
        for event in later {
            match check_may_answer(conn, &event, me, schedule, now) {
                Ok(()) => answers.push((event.id, me.id, schedule)),
                Err(Error::Problem(problem)) if problem.status() == 403 => {}
                Err(error) => return Err(error),
            }
        }
        // In one order, so that two answers of one user cannot deadlock.
        answers.sort_unstable_by_key(|(event, ..)| *event);
    }
    record_answers(conn, &answers, now)
}

/// Checks that the caller may answer so.
pub fn check_may_answer(
    conn: &mut AnyConnection,
    event: &Row,
    me: &Caller,
    schedule: Schedule,
    now: DbTimestamp,
) -> Result<(), Error> {
    let is_listed = |conn: &mut AnyConnection| attendees::table.find((event.id, me.id)).count().get_result::<i64>(conn);
    if !event.open && !groups::queries::is_member(conn, event.group_id, me.id)? && is_listed(conn)? == 0 {
        return Err(Problem::forbidden("an open event, membership of its group, or an invitation").into());
    }
    if schedule != Schedule::Absent && event.ends_at <= now {
        return Err(Problem::forbidden("an event that has not ended").into());
    }
    Ok(())
}

/// Records the answers of users to events, and replaces earlier ones. An equal answer keeps its time.
pub fn record_answers(
    conn: &mut AnyConnection,
    answers: &[(DbUuid, DbUuid, Schedule)],
    now: DbTimestamp,
) -> Result<(), Error> {
    let is_same = attendees::schedule.eq(excluded(attendees::schedule));
    let changed_at = case_when(is_same, attendees::changed_at).otherwise(excluded(attendees::changed_at));
    for answers in answers.chunks(1000) {
        let rows: Vec<_> = answers
            .iter()
            .map(|(event, user, schedule)| {
                (
                    attendees::event_id.eq(*event),
                    attendees::user_id.eq(*user),
                    attendees::schedule.eq(*schedule),
                    attendees::changed_at.eq(now),
                )
            })
            .collect();
        with_connection!(conn, c => diesel::insert_into(attendees::table)
            .values(&rows)
            .on_conflict((attendees::event_id, attendees::user_id))
            .do_update()
            .set((
                attendees::schedule.eq(excluded(attendees::schedule)),
                attendees::changed_at.eq(changed_at),
            ))
            .execute(c)?);
    }
    Ok(())
}

/// Adds tags to events, and creates tags that do not exist. A tag that an event already has stays as it is. Returns the
/// number of tags that were added.
pub fn add_tags(
    conn: &mut AnyConnection,
    events: &[DbUuid],
    tags: &[(String, bool)],
    by: &Author,
    now: DbTimestamp,
) -> Result<usize, Error> {
    let names: Vec<_> = tags.iter().map(|(name, _)| name.as_str()).collect();
    let tag_ids = crate::tags::get_or_create(conn, &names, by, now)?;
    let row = |event: DbUuid, tag: DbUuid, locked: bool| {
        (event_tags::event_id.eq(event), event_tags::tag_id.eq(tag), event_tags::locked.eq(locked))
    };
    let tags: Vec<_> = tag_ids.iter().zip(tags).map(|((tag, _), (_, locked))| (*tag, *locked)).collect();
    let rows: Vec<_> =
        events.iter().flat_map(|event| tags.iter().map(move |(tag, locked)| row(*event, *tag, *locked))).collect();
    let mut added = 0;
    for rows in rows.chunks(1000) {
        added += with_connection!(conn, c => diesel::insert_into(event_tags::table)
            .values(rows)
            .on_conflict_do_nothing()
            .execute(c)?);
    }
    Ok(added)
}

/// Replaces the tags of events.
pub fn replace_tags(
    conn: &mut AnyConnection,
    events: &[DbUuid],
    tags: &[(String, bool)],
    by: &Author,
    now: DbTimestamp,
) -> Result<(), Error> {
    diesel::delete(event_tags::table.filter(event_tags::event_id.eq_any(events))).execute(conn)?;
    add_tags(conn, events, tags, by, now).map(|_| ())
}

/// Adds one tag to an event. A tag that the event already has stays as it is.
///
/// # Errors
/// 404; 403 if the tag is locked and the caller is neither an administrator of the event nor privileged; 409
/// `too-many-tags`.
pub fn add_tag(
    conn: &mut AnyConnection,
    event: DbUuid,
    tag: &(String, bool),
    me: &Caller,
    now: DbTimestamp,
) -> Result<(), Error> {
    lock(conn, event)?;
    if tag.1 {
        check_admin_or_privileged(conn, event, me)?;
    }
    let present: i64 = event_tags::table.filter(event_tags::event_id.eq(event)).count().get_result(conn)?;
    if usize::try_from(present).is_ok_and(|present| present >= MAX_TAGS) {
        return Err(Problem::new(codes::TOO_MANY_TAGS).into());
    }
    if add_tags(conn, &[event], std::slice::from_ref(tag), &me.author, now)? > 0 {
        mark_changed(conn, event, now)?;
    }
    Ok(())
}

/// Removes a tag from an event.
///
/// # Errors
/// 404 if there is no such event or it does not have the tag; 403 if the tag is locked and the caller is neither an
/// administrator of the event nor privileged.
pub fn remove_tag(
    conn: &mut AnyConnection,
    event: DbUuid,
    name: &str,
    me: &Caller,
    now: DbTimestamp,
) -> Result<(), Error> {
    lock(conn, event)?;
    let row: Option<(DbUuid, bool)> = event_tags::table
        .inner_join(tags::table)
        .filter(event_tags::event_id.eq(event))
        .filter(tags::name_key.eq(crate::tags::key(name)))
        .select((event_tags::tag_id, event_tags::locked))
        .first(conn)
        .optional()?;
    let (tag, locked) = row.ok_or_else(|| Problem::not_found("tag on this event"))?;
    if locked {
        check_admin_or_privileged(conn, event, me)?;
    }
    diesel::delete(event_tags::table.find((event, tag))).execute(conn)?;
    mark_changed(conn, event, now)
}

/// Locks an event until the end of the transaction. Every change of an event's tags takes this lock before the locks of
/// tags, so that two changes cannot deadlock.
fn lock(conn: &mut AnyConnection, event: DbUuid) -> Result<(), Error> {
    let query = events::table.find(event).filter(events::deleted_at.is_null()).select(events::id);
    let id: Option<DbUuid> = match conn {
        AnyConnection::Postgresql(pg) => query.for_no_key_update().first(pg).optional()?,
        AnyConnection::Sqlite(sqlite) => query.first(sqlite).optional()?,
    };
    id.map(|_| ()).ok_or_else(not_found)
}

/// Sets the time of an event's last change.
fn mark_changed(conn: &mut AnyConnection, event: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    diesel::update(events::table.find(event)).set(events::updated_at.eq(now)).execute(conn)?;
    Ok(())
}
