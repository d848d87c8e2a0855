//! Answers to events, and the tags on them.

use common::problem::Problem;
use diesel::{OptionalExtension, dsl::not, prelude::*};
use service_kit::{
    db::{
        AnyConnection,
        sql::{Moment, Uid},
    },
    error::Error,
    on_each,
};

use super::queries::{Schedule, find, need_admin};
use crate::{
    auth::{ACTIVE, Caller},
    groups,
    schema::{attendees, event_tags, events, group_members, tags, users},
};

/// Adds the members of a group as pending, one statement whatever their number; who is there already keeps the answer.
///
/// # Errors
/// When the database fails.
pub fn invite(conn: &mut AnyConnection, event: Uid, group: Uid) -> Result<(), Error> {
    use diesel::sql_types::Text;
    let there = || attendees::table.filter(attendees::event_id.eq(event)).select(attendees::user_id);
    let columns = (attendees::user_id, attendees::event_id, attendees::schedule);
    let (event, pending) = (event.into_sql::<service_kit::db::sql::Key>(), Schedule::Pending.into_sql::<Text>());
    if group == groups::EVERYONE {
        let active = users::table.filter(users::state.eq(ACTIVE)).filter(not(users::id.eq_any(there()))).select((
            users::id,
            event,
            pending,
        ));
        diesel::insert_into(attendees::table).values(active).into_columns(columns).execute(conn)?;
    } else {
        let members = group_members::table
            .filter(group_members::group_id.eq(group))
            .filter(not(group_members::user_id.eq_any(there())))
            .select((group_members::user_id, event, pending));
        diesel::insert_into(attendees::table).values(members).into_columns(columns).execute(conn)?;
    }
    Ok(())
}

/// Drops those who have not answered.
///
/// # Errors
/// When the database fails.
pub fn forget_pending(conn: &mut AnyConnection, event: Uid) -> Result<(), Error> {
    let pending = attendees::event_id.eq(event).and(attendees::schedule.eq(Schedule::Pending));
    diesel::delete(attendees::table.filter(pending)).execute(conn)?;
    Ok(())
}

/// Sets the caller's answer.
///
/// # Errors
/// 404; 403 unless the event is open or the caller belongs to its group.
pub fn answer(conn: &mut AnyConnection, event: Uid, me: &Caller, schedule: Schedule) -> Result<(), Error> {
    let event = find(conn, event)?;
    if !event.open && !groups::queries::is_member(conn, event.group_id, me.id)? {
        return Err(Problem::forbidden("an open event, or membership of its group").into());
    }
    let row = (attendees::event_id.eq(event.id), attendees::user_id.eq(me.id), attendees::schedule.eq(schedule));
    on_each!(conn, c => diesel::insert_into(attendees::table)
        .values(row)
        .on_conflict((attendees::event_id, attendees::user_id))
        .do_update()
        .set(attendees::schedule.eq(schedule))
        .execute(c)?);
    Ok(())
}

/// Puts tags on an event, making those that are new; what is on it already stays as it is. Returns how many are new on
/// the event.
///
/// # Errors
/// When the database fails.
pub fn put_tags(conn: &mut AnyConnection, event: Uid, wanted: &[(String, bool)], now: Moment) -> Result<usize, Error> {
    let names: Vec<_> = wanted.iter().map(|(name, _)| name.as_str()).collect();
    let found = crate::tags::get_or_create(conn, &names, now)?;
    let rows: Vec<_> = found
        .iter()
        .zip(wanted)
        .map(|((tag, _), (_, locked))| {
            (event_tags::event_id.eq(event), event_tags::tag_id.eq(*tag), event_tags::locked.eq(*locked))
        })
        .collect();
    let mut new = 0;
    for rows in rows.chunks(1000) {
        new += on_each!(conn, c => diesel::insert_into(event_tags::table)
            .values(rows)
            .on_conflict_do_nothing()
            .execute(c)?);
    }
    Ok(new)
}

/// Makes these the tags of an event.
///
/// # Errors
/// When the database fails.
pub fn replace_tags(conn: &mut AnyConnection, event: Uid, wanted: &[(String, bool)], now: Moment) -> Result<(), Error> {
    diesel::delete(event_tags::table.filter(event_tags::event_id.eq(event))).execute(conn)?;
    put_tags(conn, event, wanted, now).map(|_| ())
}

/// Puts one tag on an event; one that is there already stays as it is.
///
/// # Errors
/// 404; 403 when anybody but an administrator wants it locked.
pub fn add_tag(
    conn: &mut AnyConnection,
    event: Uid,
    tag: &(String, bool),
    me: &Caller,
    now: Moment,
) -> Result<(), Error> {
    let event = find(conn, event)?;
    if tag.1 {
        need_admin(conn, event.id, me)?;
    }
    if put_tags(conn, event.id, std::slice::from_ref(tag), now)? > 0 {
        touch(conn, event.id, now)?;
    }
    Ok(())
}

/// Takes a tag off an event.
///
/// # Errors
/// 404 when there is no such event or it has no such tag; 403 when the tag is locked and the caller no administrator.
pub fn remove_tag(conn: &mut AnyConnection, event: Uid, name: &str, me: &Caller, now: Moment) -> Result<(), Error> {
    let event = find(conn, event)?;
    let found: Option<(Uid, bool)> = event_tags::table
        .inner_join(tags::table)
        .filter(event_tags::event_id.eq(event.id))
        .filter(tags::name_key.eq(crate::tags::key(name)))
        .select((event_tags::tag_id, event_tags::locked))
        .first(conn)
        .optional()?;
    let (tag, locked) = found.ok_or_else(|| Problem::not_found("tag on this event"))?;
    if locked {
        need_admin(conn, event.id, me)?;
    }
    diesel::delete(event_tags::table.find((event.id, tag))).execute(conn)?;
    touch(conn, event.id, now)
}

/// Marks an event as changed.
fn touch(conn: &mut AnyConnection, event: Uid, now: Moment) -> Result<(), Error> {
    diesel::update(events::table.find(event)).set(events::updated_at.eq(now)).execute(conn)?;
    Ok(())
}
