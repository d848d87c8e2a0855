//! Creates, changes and deletes events. Each operation locks the places of the event before it checks for conflicts
//! (see [`rooms::booking`](crate::rooms::booking)).

use std::collections::{BTreeMap, BTreeSet};

use chrono_tz::Tz;
use common::{
    input::IdSet,
    problem::{Problem, Rule, Violations},
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
    history::Author,
    with_connection,
};

use super::{
    attendance,
    queries::{Row, check_admin_or_privileged, find, load_tags},
    search::text_key,
};
use crate::{
    auth::Caller,
    codes, deletion, groups, invitations,
    period_filter::is_long,
    rooms::{
        booking::{self, Booking, RoomPeriod},
        changes::{self as room_changes, NewRoom},
        place::place_key,
        queries::{self as room_queries},
    },
    schema::{event_admins, events},
    tags, users,
};

/// Where an event takes place.
#[derive(Debug, Clone, Hash)]
pub enum Venue {
    /// At a place, in a room that is made for the event.
    Place(String),
    /// In an existing room.
    Room(DbUuid),
}

/// An event as in the body of a request.
#[derive(Debug, Clone)]
pub struct Draft {
    pub name: String,
    pub description: String,
    pub shared: bool,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub venue: Venue,
    pub group: DbUuid,
    pub open: bool,
    pub admins: IdSet<1>,
    /// The name of each, and whether it is locked.
    pub tags: Vec<(String, bool)>,
}

impl Draft {
    /// An event of which only the required fields are known.
    #[must_use]
    pub fn new(
        name: String,
        (starts_at, ends_at): (DbTimestamp, DbTimestamp),
        venue: Venue,
        group: DbUuid,
        admins: IdSet<1>,
    ) -> Self {
        let (description, shared, open, tags) = (String::new(), false, false, Vec::new());
        Self { name, description, shared, starts_at, ends_at, venue, group, open, admins, tags }
    }

    fn has_time_of(&self, event: &Row) -> bool {
        (self.starts_at, self.ends_at) == (event.starts_at, event.ends_at)
    }

    fn admins(&self) -> Vec<DbUuid> {
        self.admins.iter().map(|(_, id)| DbUuid(id)).collect()
    }

    fn own_room(&self, place: &str) -> NewRoom {
        let room = NewRoom::new(place.to_owned(), self.starts_at, self.ends_at, self.admins());
        NewRoom { made_for_event: true, ..room }
    }

    fn booking<'a>(&self, room: RoomPeriod<'a>, except: Option<DbUuid>) -> Booking<'a> {
        Booking { room, starts_at: self.starts_at, ends_at: self.ends_at, shared: self.shared, except }
    }
}

/// The room that an event is in after a change.
struct Location {
    room: DbUuid,
    place: String,
    owns_room: bool,
}

/// Creates an event, and invites the members of its group.
///
/// # Errors
/// 400 for an unknown group, room or administrator, or a time outside the room's period; 409 `room-conflict`.
pub fn create(
    conn: &mut AnyConnection,
    draft: &Draft,
    by: &Author,
    zone: Tz,
    now: DbTimestamp,
) -> Result<DbUuid, Error> {
    check_references(conn, draft, None)?;
    let location = match &draft.venue {
        Venue::Place(place) => {
            let (room, key) = (DbUuid::new(), place_key(place));
            booking::lock_places(conn, vec![key.clone()])?;
            refuse_conflicts_at_place(conn, draft, &key, room, None, zone)?;
            room_changes::insert_with_ids(conn, &[(room, draft.own_room(place))], by.actor, now)?;
            Location { room, place: place.clone(), owns_room: true }
        }
        Venue::Room(id) => {
            let room = room_queries::find_locked(conn, *id)?.ok_or_else(unknown_room)?;
            refuse_conflicts_in_room(conn, draft, &room, None, zone)?;
            Location { room: room.id, place: room.place, owns_room: false }
        }
    };
    let id = DbUuid::new();
    diesel::insert_into(events::table)
        .values((
            (events::id.eq(id), events::name.eq(&draft.name), events::description.eq(&draft.description)),
            events::text_key.eq(text_key(&draft.name, &draft.description)),
            (events::shared.eq(draft.shared), events::starts_at.eq(draft.starts_at), events::ends_at.eq(draft.ends_at)),
            events::is_long.eq(is_long(draft.starts_at, draft.ends_at)),
            (events::place_key.eq(place_key(&location.place)), events::place.eq(location.place)),
            (events::room_id.eq(location.room), events::owns_room.eq(location.owns_room)),
            (events::group_id.eq(draft.group), events::open.eq(draft.open), events::sequence.eq(0)),
            (events::created_by.eq(by.actor), events::created_at.eq(now), events::updated_at.eq(now)),
        ))
        .execute(conn)?;
    insert_admins(conn, id, &draft.admins())?;
    attendance::add_tags(conn, id, &draft.tags, by, now)?;
    invitations::invite(conn, id, draft.group, now)?;
    Ok(id)
}

/// Replaces an event except its creator, its creation time and the answers to it. An event that has these values already
/// does not change.
///
/// # Errors
/// 404; 403 for anybody but its administrators and privileged users; otherwise as [`create`].
pub fn update(
    conn: &mut AnyConnection,
    id: DbUuid,
    draft: &Draft,
    me: &Caller,
    zone: Tz,
    now: DbTimestamp,
) -> Result<(), Error> {
    let before = find(conn, id)?;
    check_admin_or_privileged(conn, id, me)?;
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
    if is_unchanged(conn, &event, draft)? {
        return Ok(());
    }
    let location = match existing_room {
        Some(room) => move_to_existing_room(conn, &event, &room, draft, zone)?,
        None => move_to_own_room(conn, &event, &place, draft, zone, now)?,
    };
    let moved = !draft.has_time_of(&event) || location.place != event.place || location.room != event.room_id;
    diesel::update(events::table.find(id))
        .set((
            (events::name.eq(&draft.name), events::description.eq(&draft.description)),
            events::text_key.eq(text_key(&draft.name, &draft.description)),
            (events::shared.eq(draft.shared), events::starts_at.eq(draft.starts_at), events::ends_at.eq(draft.ends_at)),
            events::is_long.eq(is_long(draft.starts_at, draft.ends_at)),
            (events::place_key.eq(key), events::place.eq(location.place)),
            (events::room_id.eq(location.room), events::owns_room.eq(location.owns_room)),
            (events::group_id.eq(draft.group), events::open.eq(draft.open), events::updated_at.eq(now)),
            events::sequence.eq(event.sequence + i32::from(moved)),
        ))
        .execute(conn)?;
    if location.room != event.room_id {
        deletion::delete_unused_rooms(conn, &[event.room_id], now)?;
    }
    diesel::delete(event_admins::table.filter(event_admins::event_id.eq(id))).execute(conn)?;
    insert_admins(conn, id, &draft.admins())?;
    attendance::replace_tags(conn, id, &draft.tags, &me.author, now)?;
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

/// Whether an event has all the values of a request already.
fn is_unchanged(conn: &mut AnyConnection, event: &Row, draft: &Draft) -> Result<bool, Error> {
    let same_venue = match &draft.venue {
        Venue::Room(room) => *room == event.room_id,
        Venue::Place(place) => event.owns_room && *place == event.place,
    };
    if !same_venue
        || !draft.has_time_of(event)
        || (&draft.name, &draft.description) != (&event.name, &event.description)
        || (draft.shared, draft.open, draft.group) != (event.shared, event.open, event.group_id)
    {
        return Ok(false);
    }
    let tags: BTreeMap<String, bool> =
        draft.tags.iter().rev().map(|(name, locked)| (tags::key(name), *locked)).collect();
    let present = load_tags(conn, &[event.id])?.remove(&event.id).unwrap_or_default();
    let present: BTreeMap<_, _> = present.iter().map(|tag| (tags::key(&tag.name), tag.locked)).collect();
    Ok(tags == present && BTreeSet::from_iter(draft.admins()) == BTreeSet::from_iter(admins_of(conn, event.id)?))
}

fn admins_of(conn: &mut AnyConnection, event: DbUuid) -> Result<Vec<DbUuid>, Error> {
    let admins = event_admins::table.filter(event_admins::event_id.eq(event));
    Ok(admins.select(event_admins::user_id).load(conn)?)
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
    refuse_conflicts_in_room(conn, draft, &room, Some(event.id), zone)?;
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
    let exists = room_queries::find(conn, event.room_id)?.is_some();
    let moves_room = event.owns_room && exists && !is_room_used_by_others(conn, event)?;
    let keeps_room = event.owns_room && place == event.place && draft.has_time_of(event);
    let room = if moves_room || keeps_room { event.room_id } else { DbUuid::new() };
    refuse_conflicts_at_place(conn, draft, &place_key(place), room, Some(event.id), zone)?;
    if moves_room {
        room_changes::move_to(conn, room, &draft.own_room(place), now)?;
    } else if !keeps_room {
        room_changes::insert_with_ids(conn, &[(room, draft.own_room(place))], event.created_by, now)?;
    }
    Ok(Location { room, place: place.to_owned(), owns_room: true })
}

fn is_room_used_by_others(conn: &mut AnyConnection, event: &Row) -> Result<bool, Error> {
    let others = events::table
        .filter(events::room_id.eq(event.room_id))
        .filter(events::id.ne(event.id))
        .filter(events::deleted_at.is_null());
    Ok(select(exists(others)).get_result(conn)?)
}

/// Refuses conflicts of an event in a room with the same span.
fn refuse_conflicts_at_place(
    conn: &mut AnyConnection,
    draft: &Draft,
    place_key: &str,
    room: DbUuid,
    except: Option<DbUuid>,
    zone: Tz,
) -> Result<(), Error> {
    let room = RoomPeriod { room, place_key, starts_at: draft.starts_at, ends_at: draft.ends_at };
    booking::refuse_conflicts(conn, &draft.booking(room, except), zone)
}

/// Refuses conflicts of an event in an existing room, and an event outside the room's period.
fn refuse_conflicts_in_room(
    conn: &mut AnyConnection,
    draft: &Draft,
    room: &room_queries::Row,
    except: Option<DbUuid>,
    zone: Tz,
) -> Result<(), Error> {
    if draft.starts_at < room.starts_at || room.ends_at < draft.ends_at {
        let (from, to) = (room.starts_at.in_zone(zone), room.ends_at.in_zone(zone));
        let detail = format!("The club holds the room from {from} to {to}.");
        return Err(Problem::new(codes::OUTSIDE_ROOM_PERIOD).detail(detail).into());
    }
    booking::refuse_conflicts(conn, &draft.booking(room.period(), except), zone)
}

/// Checks that everything a request refers to exists, with one violation for each thing that does not. The group and
/// the room that the event already has may be deleted.
fn check_references(conn: &mut AnyConnection, draft: &Draft, event: Option<&Row>) -> Result<(), Error> {
    let mut violations = Violations::default();
    let present = event.map_or_else(|| Ok(Vec::new()), |event| admins_of(conn, event.id))?;
    users::queries::note_unfit_admins(conn, &draft.admins, &present, &mut violations)?;
    if event.is_none_or(|event| event.group_id != draft.group)
        && !groups::queries::lock_against_deletion(conn, draft.group)?
    {
        violations.push("/groupId", Rule::UnknownGroup, "names no group");
    }
    if let Venue::Room(room) = draft.venue
        && event.is_none_or(|event| event.room_id != room)
        && room_queries::find(conn, room)?.is_none()
    {
        violations.push("/roomId", Rule::UnknownRoom, "names no room");
    }
    Ok(violations.into_result()?)
}

fn unknown_room() -> Error {
    Problem::invalid("/roomId", Rule::UnknownRoom, "names no room").into()
}

fn insert_admins(conn: &mut AnyConnection, event: DbUuid, admins: &[DbUuid]) -> Result<(), Error> {
    let rows: Vec<_> =
        admins.iter().map(|user| (event_admins::event_id.eq(event), event_admins::user_id.eq(*user))).collect();
    for rows in rows.chunks(1000) {
        with_connection!(conn, c => diesel::insert_into(event_admins::table).values(rows).execute(c)?);
    }
    Ok(())
}
