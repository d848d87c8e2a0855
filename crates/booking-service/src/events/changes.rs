//! Making, changing and deleting events: the paths on which a double booking could arise. Each locks the places it
//! touches before it looks (see [`rooms::booking`]).

use chrono_tz::Tz;
use common::{
    input::IdSet,
    problem::{Problem, Violations},
};
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
    with_connection,
};

use super::{
    attendance,
    queries::{Row, find, need_admin},
};
use crate::{
    auth::Caller,
    codes, groups,
    rooms::{
        booking::{self, Booking},
        changes::{self as room_changes, NewRoom},
        overlap::Span,
        place::place_key,
        queries::{self as room_queries, is_long},
    },
    schema::{event_admins, events},
    users,
};

/// Where an event is to be.
#[derive(Debug, Clone, Hash)]
pub enum Where {
    /// At a place, in a room made for it.
    Place(String),
    /// In a room that exists.
    Room(DbUuid),
}

/// An event as a request asks for it.
#[derive(Debug, Clone)]
pub struct Draft {
    pub name: String,
    pub description: String,
    pub shared: bool,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub at: Where,
    pub group: DbUuid,
    pub open: bool,
    pub admins: IdSet<1>,
    /// Name, and whether only administrators may take it off.
    pub tags: Vec<(String, bool)>,
}

impl Draft {
    fn span(&self) -> Span {
        Span { start: self.starts_at.utc(), end: self.ends_at.utc() }
    }

    fn keeps_time_of(&self, event: &Row) -> bool {
        (self.starts_at, self.ends_at) == (event.starts_at, event.ends_at)
    }

    fn admins(&self) -> Vec<DbUuid> {
        self.admins.iter().map(|(_, id)| DbUuid(id)).collect()
    }

    fn room_at(&self, place: &str) -> NewRoom {
        NewRoom {
            place: place.to_owned(),
            starts_at: self.starts_at,
            ends_at: self.ends_at,
            verified: false,
            admins: self.admins(),
        }
    }
}

/// The room an event ends up in.
struct Held {
    room: DbUuid,
    place: String,
    owns_room: bool,
}

/// Makes an event and invites the members of its group.
///
/// # Errors
/// 400 for an unknown group, room or administrator, or a time outside the room's window; 409 `room-conflict`.
pub fn create(
    conn: &mut AnyConnection,
    draft: &Draft,
    by: DbUuid,
    zone: Tz,
    now: DbTimestamp,
) -> Result<DbUuid, Error> {
    check_references(conn, draft, None)?;
    let held = match &draft.at {
        Where::Place(place) => {
            let key = place_key(place);
            booking::lock_places(conn, vec![key.clone()])?;
            refuse_instant_conflicts(conn, draft, &key, None, None, zone)?;
            let room = room_changes::insert(conn, &[draft.room_at(place)], by, now)?[0];
            Held { room, place: place.clone(), owns_room: true }
        }
        Where::Room(id) => {
            let room = room_queries::find_locked(conn, *id)?.ok_or_else(unknown_room)?;
            refuse_stock_conflicts(conn, draft, &room, None, zone)?;
            Held { room: room.id, place: room.place, owns_room: false }
        }
    };
    let id = DbUuid::new();
    diesel::insert_into(events::table)
        .values((
            (events::id.eq(id), events::name.eq(&draft.name), events::description.eq(&draft.description)),
            (events::shared.eq(draft.shared), events::starts_at.eq(draft.starts_at), events::ends_at.eq(draft.ends_at)),
            events::is_long.eq(is_long(draft.starts_at, draft.ends_at)),
            (events::place_key.eq(place_key(&held.place)), events::place.eq(held.place)),
            (events::room_id.eq(held.room), events::owns_room.eq(held.owns_room)),
            (events::group_id.eq(draft.group), events::open.eq(draft.open), events::sequence.eq(0)),
            (events::created_by.eq(by), events::created_at.eq(now), events::updated_at.eq(now)),
        ))
        .execute(conn)?;
    insert_admins(conn, id, &draft.admins())?;
    attendance::put_tags(conn, id, &draft.tags, now)?;
    attendance::invite(conn, id, draft.group)?;
    Ok(id)
}

/// Changes the whole of an event but its maker and the answers to it.
///
/// # Errors
/// 404; 403 for anybody but its administrators and privileged users; else as [`create`].
pub fn update(
    conn: &mut AnyConnection,
    id: DbUuid,
    draft: &Draft,
    me: &Caller,
    zone: Tz,
    now: DbTimestamp,
) -> Result<(), Error> {
    let seen = find(conn, id)?;
    need_admin(conn, id, me)?;
    check_references(conn, draft, Some(&seen))?;
    let stock = match &draft.at {
        // Its own room moves with it, however it is named.
        Where::Room(room) if seen.owns_room && *room == seen.room_id => None,
        Where::Room(room) if *room == seen.room_id => Some(room_queries::get_even_deleted(conn, *room)?.row),
        Where::Room(room) => Some(room_queries::find(conn, *room)?.ok_or_else(unknown_room)?),
        Where::Place(_) => None,
    };
    let place = match (&draft.at, &stock) {
        (_, Some(room)) => room.place.clone(),
        (Where::Place(place), None) => place.clone(),
        (Where::Room(_), None) => seen.place.clone(),
    };
    let key = place_key(&place);
    booking::lock_places(conn, vec![seen.place_key.clone(), key.clone()])?;
    let event = find_locked(conn, &seen, me)?;
    let held = match stock {
        Some(room) => move_to_stock(conn, &event, &room, draft, zone, now)?,
        None => move_to_instant(conn, &event, &place, draft, zone, now)?,
    };
    let moved = !draft.keeps_time_of(&event) || held.place != event.place || held.room != event.room_id;
    diesel::update(events::table.find(id))
        .set((
            (events::name.eq(&draft.name), events::description.eq(&draft.description)),
            (events::shared.eq(draft.shared), events::starts_at.eq(draft.starts_at), events::ends_at.eq(draft.ends_at)),
            events::is_long.eq(is_long(draft.starts_at, draft.ends_at)),
            (events::place_key.eq(key), events::place.eq(held.place)),
            (events::room_id.eq(held.room), events::owns_room.eq(held.owns_room)),
            (events::group_id.eq(draft.group), events::open.eq(draft.open), events::updated_at.eq(now)),
            events::sequence.eq(event.sequence + i32::from(moved)),
        ))
        .execute(conn)?;
    diesel::delete(event_admins::table.filter(event_admins::event_id.eq(id))).execute(conn)?;
    insert_admins(conn, id, &draft.admins())?;
    attendance::replace_tags(conn, id, &draft.tags, now)?;
    if draft.group != event.group_id {
        attendance::forget_pending(conn, id)?;
        attendance::invite(conn, id, draft.group)?;
    }
    Ok(())
}

/// Marks an event as deleted; a room of its own goes with it.
///
/// # Errors
/// 404; 403 for anybody but its administrators and privileged users.
pub fn delete(conn: &mut AnyConnection, id: DbUuid, me: &Caller, now: DbTimestamp) -> Result<(), Error> {
    let seen = find(conn, id)?;
    need_admin(conn, id, me)?;
    booking::lock_places(conn, vec![seen.place_key.clone()])?;
    let event = find_locked(conn, &seen, me)?;
    diesel::update(events::table.find(id))
        .set((events::deleted_at.eq(now), events::updated_at.eq(now), events::sequence.eq(event.sequence + 1)))
        .execute(conn)?;
    leave_room(conn, &event, now)
}

/// An event whose place is locked by now, as it is for somebody who may change it. Whoever moves an event or a room, or
/// changes who may, holds the lock of its place: what is unchanged since it was `seen` stays so.
fn find_locked(conn: &mut AnyConnection, seen: &Row, me: &Caller) -> Result<Row, Error> {
    let event = find(conn, seen.id)?;
    need_admin(conn, seen.id, me)?;
    if event.room_id != seen.room_id || event.place_key != seen.place_key || event.owns_room != seen.owns_room {
        return Err(Error::Stale);
    }
    Ok(event)
}

fn move_to_stock(
    conn: &mut AnyConnection,
    event: &Row,
    room: &room_queries::Row,
    draft: &Draft,
    zone: Tz,
    now: DbTimestamp,
) -> Result<Held, Error> {
    // Read again under the lock: it may have been verified or deleted meanwhile.
    let room = match room_queries::find(conn, room.id)? {
        Some(fresh) if fresh.place_key != room.place_key => return Err(Error::Stale),
        Some(fresh) => fresh,
        // A past event keeps a room that is gone, but nobody books it for another time.
        None if room.id == event.room_id && draft.keeps_time_of(event) => room.clone(),
        None => return Err(unknown_room()),
    };
    refuse_stock_conflicts(conn, draft, &room, Some(event.id), zone)?;
    if room.id != event.room_id {
        leave_room(conn, event, now)?;
    }
    Ok(Held { room: room.id, place: room.place, owns_room: false })
}

fn move_to_instant(
    conn: &mut AnyConnection,
    event: &Row,
    place: &str,
    draft: &Draft,
    zone: Tz,
    now: DbTimestamp,
) -> Result<Held, Error> {
    let is_there = room_queries::find(conn, event.room_id)?.is_some();
    let has_own = event.owns_room && is_there && !is_used_by_others(conn, event)?;
    let stays = event.owns_room && place == event.place && draft.keeps_time_of(event);
    let room = (has_own || stays).then_some(event.room_id);
    refuse_instant_conflicts(conn, draft, &place_key(place), room, Some(event.id), zone)?;
    let room = match room {
        Some(room) if has_own => {
            room_changes::move_to(conn, room, &draft.room_at(place), now)?;
            room
        }
        Some(room) => room,
        None => room_changes::insert(conn, &[draft.room_at(place)], event.created_by, now)?[0],
    };
    Ok(Held { room, place: place.to_owned(), owns_room: true })
}

/// Deletes the room of an event that leaves it, if it was made for that event and no other uses it.
fn leave_room(conn: &mut AnyConnection, event: &Row, now: DbTimestamp) -> Result<(), Error> {
    if event.owns_room && !is_used_by_others(conn, event)? {
        room_changes::soft_delete(conn, event.room_id, now)?;
    }
    Ok(())
}

fn is_used_by_others(conn: &mut AnyConnection, event: &Row) -> Result<bool, Error> {
    let others = events::table
        .filter(events::room_id.eq(event.room_id))
        .filter(events::id.ne(event.id))
        .filter(events::deleted_at.is_null());
    Ok(select(exists(others)).get_result(conn)?)
}

fn refuse_instant_conflicts(
    conn: &mut AnyConnection,
    draft: &Draft,
    place_key: &str,
    room: Option<DbUuid>,
    except: Option<DbUuid>,
    zone: Tz,
) -> Result<(), Error> {
    let booking = Booking {
        place_key,
        room,
        verified: false,
        starts_at: draft.starts_at,
        ends_at: draft.ends_at,
        shared: draft.shared,
        except,
    };
    let conflicts = booking::conflicts(conn, &booking)?;
    if conflicts.is_empty() {
        return Ok(());
    }
    let free = booking::free_between(draft.span(), &conflicts);
    Err(booking::conflict(&conflicts, free, zone).into())
}

fn refuse_stock_conflicts(
    conn: &mut AnyConnection,
    draft: &Draft,
    room: &room_queries::Row,
    except: Option<DbUuid>,
    zone: Tz,
) -> Result<(), Error> {
    if !room.window().contains(&draft.span()) {
        let (from, to) = (room.starts_at.in_zone(zone), room.ends_at.in_zone(zone));
        let detail = format!("The room is held from {from} to {to}.");
        return Err(Problem::new(codes::OUTSIDE_ROOM_WINDOW).detail(detail).into());
    }
    let booking = Booking {
        place_key: &room.place_key,
        room: Some(room.id),
        verified: room.verified,
        starts_at: draft.starts_at,
        ends_at: draft.ends_at,
        shared: draft.shared,
        except,
    };
    let conflicts = booking::conflicts(conn, &booking)?;
    if conflicts.is_empty() {
        return Ok(());
    }
    let room = room_queries::get(conn, room.id, except)?;
    let free = crate::rooms::overlap::free_times(room.window(), &room.uses);
    Err(booking::conflict(&conflicts, free, zone).into())
}

/// Refuses a request that names what is not there, all of it at once; what an event has already may be gone.
fn check_references(conn: &mut AnyConnection, draft: &Draft, event: Option<&Row>) -> Result<(), Error> {
    let mut violations = Violations::default();
    users::queries::note_unknown(conn, "/admins", &draft.admins, &mut violations)?;
    if event.is_none_or(|event| event.group_id != draft.group) && !groups::queries::hold(conn, draft.group)? {
        violations.push("/groupId", "unknown-group", "names no group");
    }
    if let Where::Room(room) = draft.at
        && event.is_none_or(|event| event.room_id != room)
        && room_queries::find(conn, room)?.is_none()
    {
        violations.push("/roomId", "unknown-room", "names no room");
    }
    Ok(violations.into_result()?)
}

fn unknown_room() -> Error {
    Problem::invalid("/roomId", "unknown-room", "names no room").into()
}

fn insert_admins(conn: &mut AnyConnection, event: DbUuid, admins: &[DbUuid]) -> Result<(), Error> {
    let rows: Vec<_> =
        admins.iter().map(|user| (event_admins::event_id.eq(event), event_admins::user_id.eq(*user))).collect();
    for rows in rows.chunks(1000) {
        with_connection!(conn, c => diesel::insert_into(event_admins::table).values(rows).execute(c)?);
    }
    Ok(())
}
