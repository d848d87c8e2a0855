//! Takes deletions and changes of events back.

use chrono_tz::Tz;
use common::problem::{Problem, Rule};
use diesel::prelude::*;
use serde_json::{Value, json};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{self, Action, Changes, Entry},
};
use std::collections::HashSet;
use uuid::Uuid;

use super::{
    attendance,
    queries::{Row, Schedule, check_admin_or_privileged, find, not_found},
};
use crate::{
    auth::Caller,
    codes, deletion, groups, invitations,
    objects::EVENT,
    rooms::{
        booking::{self, Booking},
        changes as room_changes, queries as room_queries,
    },
    schema::{attendees, events},
    users,
};

/// Takes the deletion of an event back, and that of its room, and gives it another group if one is named.
///
/// # Errors
/// 404, also 30 days after the deletion; 403 for anybody but its administrators and privileged users; 409 `not-deleted`;
/// 400 for an unknown group; 409 `group-deleted`; 409 `room-conflict`; 409 `room-deleted` for a room that was not made for an event and that the caller may not
/// restore.
pub fn restore(
    conn: &mut AnyConnection,
    id: DbUuid,
    other_group: Option<DbUuid>,
    me: &Caller,
    zone: Tz,
    now: DbTimestamp,
) -> Result<(), Error> {
    let before = find_even_deleted(conn, id)?;
    check_admin_or_privileged(conn, id, me)?;
    // Against members who join or leave meanwhile.
    let group = other_group.unwrap_or(before.group_id);
    let has_group = groups::queries::lock_against_deletion(conn, group)?;
    booking::lock_places(conn, vec![before.place_key.clone()])?;
    let event = find_even_deleted(conn, id)?;
    check_admin_or_privileged(conn, id, me)?;
    deletion::check_restorable("event", event.deleted_at, now)?;
    let room = room_queries::find_even_deleted(conn, event.room_id)?;
    if (event.room_id, &event.place_key, event.group_id) != (before.room_id, &before.place_key, before.group_id)
        || room.place_key != event.place_key
    {
        return Err(Error::Stale);
    }
    if !has_group {
        return Err(match other_group {
            Some(_) => Problem::parameter("groupId", Rule::UnknownGroup, "names no group").into(),
            None => Problem::new(codes::GROUP_DELETED).into(),
        });
    }
    if room.deleted_at.is_some() {
        let by = if room.made_for_event { None } else { Some(&me.author) };
        if by.is_some() {
            room_queries::check_admin_or_privileged(conn, room.id, me)
                .map_err(|_| Problem::new(codes::ROOM_DELETED))?;
        }
        room_changes::restore_locked(conn, &room, by, zone, now)?;
    }
    let (starts_at, ends_at, shared) = (event.starts_at, event.ends_at, event.shared);
    let booking = Booking { room: room.period(), starts_at, ends_at, shared, except: Some(id) };
    booking::refuse_conflicts(conn, &booking, zone)?;
    deletion::restore_event(conn, id, &me.author, now)?;
    if group != event.group_id {
        change_group(conn, &event, group, me, now)?;
    } else if now < ends_at {
        renew_invitations(conn, &event, now)?;
    }
    Ok(())
}

fn change_group(
    conn: &mut AnyConnection,
    event: &Row,
    group: DbUuid,
    me: &Caller,
    now: DbTimestamp,
) -> Result<(), Error> {
    diesel::update(events::table.find(event.id)).set(events::group_id.eq(group)).execute(conn)?;
    attendance::delete_pending(conn, event.id)?;
    invitations::invite(conn, event.id, group, now)?;
    let changes = Changes::from_iter([("groupId".to_owned(), json!([event.group_id, group]))]);
    history::record(conn, &me.author, &[Entry { kind: &EVENT, object: event.id, action: Action::Changed, changes }])
}

/// The columns of an event, deleted or not.
fn find_even_deleted(conn: &mut AnyConnection, id: DbUuid) -> Result<Row, Error> {
    let row = events::table.find(id).select(Row::as_select()).first(conn).optional()?;
    row.ok_or_else(not_found)
}

/// Invites the present members of the event's group, and withdraws the invitations of those who have left meanwhile.
fn renew_invitations(conn: &mut AnyConnection, event: &Row, now: DbTimestamp) -> Result<(), Error> {
    let pending = attendees::table
        .filter(attendees::event_id.eq(event.id))
        .filter(attendees::schedule.eq(Schedule::Pending))
        .select(attendees::user_id);
    let pending: Vec<DbUuid> = pending.load(conn)?;
    let members: HashSet<_> = groups::queries::members_of_all(conn, &[event.group_id])?.into_iter().collect();
    let others: Vec<_> = pending.into_iter().filter(|user| !members.contains(user)).collect();
    let (mut left, mut inactive) = (Vec::new(), Vec::new());
    for user in others {
        if users::queries::any_active(conn, &[user])? { left.push(user) } else { inactive.push(user) }
    }
    invitations::leave(conn, &left, Some(event.group_id), now)?;
    invitations::leave(conn, &inactive, None, now)?;
    invitations::invite(conn, event.id, event.group_id, now)
}

/// The event as it was after a change, as the body of a `PUT`. `fields` are those that it has now.
///
/// # Errors
/// 404; 400 if the event has no such change.
pub fn body_after(conn: &mut AnyConnection, id: DbUuid, to: i64, mut fields: Value) -> Result<Value, Error> {
    let event = find(conn, id)?;
    let rows = history::since(conn, id, to)?;
    let rows = rows.filter(|rows| rows.last().is_some_and(|row| row.action != Action::Deleted));
    let unknown = || Problem::invalid("/to", Rule::UnknownChange, "names no change of the event after which it exists");
    let rows = rows.ok_or_else(unknown)?;
    for row in rows.iter().filter(|row| row.id > to) {
        let changes: Changes = serde_json::from_str(&row.changes).map_err(Problem::internal)?;
        history::undo(&mut fields, &changes);
    }
    let room = fields["roomId"].as_str().and_then(|id| id.parse::<Uuid>().ok()).map(DbUuid);
    let room = room.ok_or_else(|| Problem::internal("the history of an event has no room"))?;
    // A room that was made for the event may be gone or be somewhere else, but the place stays what it was.
    let is_own = if room == event.room_id {
        event.owns_room
    } else {
        room_queries::find_even_deleted(conn, room).is_ok_and(|room| room.made_for_event)
    };
    fields[if is_own { "roomId" } else { "place" }].take();
    Ok(fields)
}
