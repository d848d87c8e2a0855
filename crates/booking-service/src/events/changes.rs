//! Changes and deletes events. Each operation locks the places of the event before it checks for conflicts
//! (see [`rooms::booking`](crate::rooms::booking)).

use std::collections::BTreeSet;

use chrono_tz::Tz;
use common::kept::Unchecked;
use diesel::{
    dsl::{exists, select},
    prelude::*,
};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

pub use super::creation::{Draft, Venue, create};
use super::{
    attendance,
    creation::{
        Location, admins_of, check_references, insert_admins, refuse_conflicts_at_place, refuse_conflicts_in_room,
        unknown_room,
    },
    event_tags::load_tags,
    queries::{Row, check_admin_or_privileged, find},
    search::text_key,
};
use crate::{
    auth::Caller,
    deletion, groups, invitations,
    period_filter::is_long,
    rooms::{booking, changes as room_changes, place::place_key, queries as room_queries},
    schema::{event_admins, events},
};

/// Replaces an event except its creator, its creation time and the answers to it. An event that has these values already
/// does not change.
///
/// # Errors
/// 404; 403 for anybody but its administrators and privileged users; 400 for a field that was not checked and is not what
/// the event has; otherwise as [`create`].
pub fn update(
    conn: &mut AnyConnection,
    id: DbUuid,
    (draft, unchecked): (&Draft, &Unchecked),
    me: &Caller,
    zone: Tz,
    now: DbTimestamp,
) -> Result<(), Error> {
    let before = find(conn, id)?;
    check_admin_or_privileged(conn, id, me)?;
    let kept =
        unchecked.kept(&[("name", &before.name), ("description", &before.description), ("place", &before.place)])?;
    let draft = &draft.keeping(&kept, &before);
    // Against members who join or leave either group meanwhile.
    for group in BTreeSet::from([before.group_id, draft.group]) {
        groups::queries::lock_against_deletion(conn, group)?;
    }
    check_references(conn, draft, Some(&before))?;
    let existing_room = match &draft.venue {
        // The event's own room moves with it, even if the request names that room by its id.
        Venue::Room(room) if before.owns_room && *room == before.room_id => None,
        Venue::Room(room) if *room == before.room_id => Some(room_queries::find_even_deleted(conn, *room)?),
        Venue::Room(room) => Some(room_queries::find(conn, *room)?.ok_or_else(unknown_room)?),
        Venue::Place(_) => None,
    };
    let place = match (&draft.venue, &existing_room) {
        (_, Some(room)) => room.place.clone(),
        (Venue::Place(place), None) => place.clone(),
        (Venue::Room(_), None) => before.place.clone(),
    };
    let key = place_key(&place);
    booking::lock_places(conn, vec![before.place_key.clone(), key.clone()])?;
    let event = find_locked(conn, &before, me)?;
    let has_fields = draft.has_fields_of(&event, &admins_of(conn, id)?);
    let has_venue = match &draft.venue {
        Venue::Room(room) => *room == event.room_id,
        Venue::Place(place) => event.owns_room && *place == event.place,
    };
    if has_fields && has_venue && draft.has_tags(&load_tags(conn, id)?) {
        return Ok(());
    }
    let location = match existing_room {
        Some(room) => move_to_existing_room(conn, &event, &room, draft, zone)?,
        None => move_to_own_room(conn, &event, &place, draft, zone, now)?,
    };
    let is_by_itself = !has_fields || location.place != event.place;
    let change = Change { event: &event, draft, location, is_by_itself };
    store(conn, &change, now)?;
    replace_admins(conn, id, draft)?;
    attendance::replace_tags(conn, &[id], &draft.tags, &me.author, now)
}

/// A change of an event that can be stored: its places are locked, and nothing conflicts.
#[derive(Debug)]
pub struct Change<'a> {
    pub event: &'a Row,
    pub draft: &'a Draft,
    pub location: Location,
    /// Whether later changes of its series leave the event out.
    pub is_by_itself: bool,
}

/// Stores a change of an event, but for its administrators and tags. A room that is made for it must exist.
pub fn store(conn: &mut AnyConnection, change: &Change<'_>, now: DbTimestamp) -> Result<(), Error> {
    let Change { event, draft, location, is_by_itself } = change;
    let Draft { name, description, shared, starts_at, ends_at, venue: _, group, open, admins: _, tags: _ } = draft;
    let id = event.id;
    let moved = !draft.has_time_of(event) || location.place != event.place || location.room != event.room_id;
    diesel::update(events::table.find(id))
        .set((
            (events::name.eq(name), events::description.eq(description)),
            events::text_key.eq(text_key(name, description)),
            (events::shared.eq(*shared), events::starts_at.eq(*starts_at), events::ends_at.eq(*ends_at)),
            events::is_long.eq(is_long(*starts_at, *ends_at)),
            (events::place_key.eq(place_key(&location.place)), events::place.eq(&location.place)),
            (events::room_id.eq(location.room), events::owns_room.eq(location.owns_room)),
            (events::group_id.eq(*group), events::open.eq(*open), events::updated_at.eq(now)),
            events::sequence.eq(event.sequence + i32::from(moved)),
            events::changed_by_itself.eq(event.changed_by_itself || (*is_by_itself && event.series_id.is_some())),
        ))
        .execute(conn)?;
    if location.room != event.room_id {
        deletion::delete_unused_rooms(conn, &[event.room_id], now)?;
    }
    if draft.group != event.group_id {
        attendance::delete_pending(conn, id)?;
    }
    // Who joined the group after the event had ended was not invited.
    let is_to_come_again = event.ends_at <= now && draft.ends_at > now;
    if draft.group != event.group_id || is_to_come_again {
        invitations::invite(conn, id, draft.group, now)?;
    }
    Ok(())
}

/// Replaces the administrators of an event.
pub fn replace_admins(conn: &mut AnyConnection, id: DbUuid, draft: &Draft) -> Result<(), Error> {
    diesel::delete(event_admins::table.filter(event_admins::event_id.eq(id))).execute(conn)?;
    insert_admins(conn, &[id], &draft.admins())
}

/// Marks an event as deleted, and also its room if that was made for an event and no event uses it any more.
///
/// # Errors
/// 404; 403 for anybody but its administrators and privileged users.
pub fn delete(conn: &mut AnyConnection, id: DbUuid, me: &Caller, now: DbTimestamp) -> Result<(), Error> {
    let before = find(conn, id)?;
    check_admin_or_privileged(conn, id, me)?;
    booking::lock_places(conn, vec![before.place_key.clone()])?;
    let event = find_locked(conn, &before, me)?;
    deletion::delete_events(conn, &[event.id], &me.author, now)
}

/// Reads an event again after its place has been locked, and checks again that the caller may change it. Every change
/// of an event's time, room or administrators takes that lock, so the result is valid until the end of the transaction.
///
/// # Errors
/// [`Error::Stale`] if the event has moved to another room, place or group before the lock.
fn find_locked(conn: &mut AnyConnection, before: &Row, me: &Caller) -> Result<Row, Error> {
    let event = find(conn, before.id)?;
    check_admin_or_privileged(conn, before.id, me)?;
    let locked = |event: &Row| (event.room_id, event.place_key.clone(), event.owns_room, event.group_id);
    if locked(&event) != locked(before) {
        return Err(Error::Stale);
    }
    Ok(event)
}

fn move_to_existing_room(
    conn: &mut AnyConnection,
    event: &Row,
    room: &room_queries::Row,
    draft: &Draft,
    zone: Tz,
) -> Result<Location, Error> {
    // Read again under the lock, because the room may have been verified or deleted.
    let room = match room_queries::find(conn, room.id)? {
        Some(locked) if locked.place_key != room.place_key => return Err(Error::Stale),
        Some(locked) => locked,
        // An event keeps a deleted room, unless its time changes.
        None if room.id == event.room_id && draft.has_time_of(event) => room.clone(),
        None => return Err(unknown_room()),
    };
    if room.id != event.room_id || !draft.books_like(event) {
        refuse_conflicts_in_room(conn, draft, &room, Some(event.id), zone)?;
    }
    Ok(Location { room: room.id, place: room.place, owns_room: false })
}

fn move_to_own_room(
    conn: &mut AnyConnection,
    event: &Row,
    place: &str,
    draft: &Draft,
    zone: Tz,
    now: DbTimestamp,
) -> Result<Location, Error> {
    let own = OwnRoom::choose(conn, event, place, draft)?;
    if own.room != event.room_id || place != event.place || !draft.books_like(event) {
        refuse_conflicts_at_place(conn, draft, &place_key(place), own.room, Some(event.id), zone)?;
    }
    own.make(conn, event, place, draft, now)
}

/// The room of its own that an event has after a change.
#[derive(Debug, Clone, Copy)]
pub struct OwnRoom {
    /// Its id.
    pub room: DbUuid,
    moves: bool,
    is_new: bool,
}

impl OwnRoom {
    /// A new room.
    pub fn new() -> Self {
        Self { room: DbUuid::new(), moves: false, is_new: true }
    }

    /// The room that an event would have at a place: the present one, or a new one.
    pub fn choose(conn: &mut AnyConnection, event: &Row, place: &str, draft: &Draft) -> Result<Self, Error> {
        let exists = room_queries::find(conn, event.room_id)?.is_some();
        let moves = event.owns_room && exists && !is_room_used_by_others(conn, event)?;
        let keeps = event.owns_room && place == event.place && draft.has_time_of(event);
        let is_new = !moves && !keeps;
        Ok(Self { room: if is_new { DbUuid::new() } else { event.room_id }, moves, is_new })
    }

    /// Moves it, or inserts it. The places must be locked.
    pub fn make(
        self,
        conn: &mut AnyConnection,
        event: &Row,
        place: &str,
        draft: &Draft,
        now: DbTimestamp,
    ) -> Result<Location, Error> {
        if self.moves {
            room_changes::move_to(conn, self.room, &draft.own_room(place), now)?;
        } else if self.is_new {
            room_changes::insert_with_ids(conn, &[(self.room, draft.own_room(place))], event.created_by, now)?;
        }
        Ok(Location { room: self.room, place: place.to_owned(), owns_room: true })
    }
}

fn is_room_used_by_others(conn: &mut AnyConnection, event: &Row) -> Result<bool, Error> {
    let others = events::table
        .filter(events::room_id.eq(event.room_id))
        .filter(events::id.ne(event.id))
        .filter(events::deleted_at.is_null());
    Ok(select(exists(others)).get_result(conn)?)
}
