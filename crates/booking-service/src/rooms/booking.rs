//! Locks on places, the uses of places, and the refusal of conflicting bookings (contract, "No double booking").
//!
//! Every change that may create a conflict locks its places, in sorted order, before it reads their uses. Rows that it
//! read before may be stale, so it reads them again.

use std::collections::{HashMap, HashSet};

use chrono_tz::Tz;
use common::problem::Problem;
use diesel::prelude::*;
use serde_json::{Value, json};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use super::{
    interval::Interval,
    overlap::{self, Occupancy, Span, Use},
};
use crate::{
    codes,
    expressions::IsTrue,
    period_filter::is_long,
    schema::{events, places, rooms},
};

/// Locks places until the end of the transaction, and inserts rows for new places.
///
/// On SQLite the transaction is the only writer already.
///
/// # Errors
/// 503 when a lock is not free in time.
pub fn lock_places(conn: &mut AnyConnection, mut keys: Vec<String>) -> Result<(), Error> {
    // Sorted, so that two transactions that lock the same places cannot deadlock.
    keys.sort_unstable();
    keys.dedup();
    let rows: Vec<_> = keys.iter().map(|key| places::key.eq(key)).collect();
    with_connection!(conn, c => diesel::insert_into(places::table).values(&rows).on_conflict_do_nothing().execute(c)?);
    if let AnyConnection::Postgresql(pg) = conn {
        // FOR UPDATE would also block inserts that only refer to the place by a foreign key.
        places::table
            .filter(places::key.eq_any(&keys))
            .order(places::key)
            .for_no_key_update()
            .select(places::key)
            .load::<String>(pg)?;
    }
    Ok(())
}

/// The period of a room, which may not exist yet.
#[derive(Debug, Clone, Copy)]
pub struct RoomPeriod<'a> {
    /// The room.
    pub room: DbUuid,
    /// Its place, as [`place_key`](super::place::place_key) gives it.
    pub place_key: &'a str,
    /// The first instant of the period.
    pub starts_at: DbTimestamp,
    /// The first instant after it.
    pub ends_at: DbTimestamp,
}

impl RoomPeriod<'_> {
    /// The period as a span.
    pub fn span(&self) -> Span {
        Span::between(self.starts_at, self.ends_at)
    }
}

/// The columns of an event that decide about conflicts.
#[derive(Debug, Clone, Copy, Queryable)]
pub struct EventUse {
    id: DbUuid,
    room: DbUuid,
    starts_at: DbTimestamp,
    ends_at: DbTimestamp,
    shared: bool,
}

impl EventUse {
    fn usage(&self) -> Use {
        Use { room: self.room, span: Span::between(self.starts_at, self.ends_at), shared: self.shared }
    }

    fn to_json(self, zone: Tz) -> Value {
        json!({
            "eventId": self.id,
            "timeStart": self.starts_at.in_zone(zone),
            "timeEnd": self.ends_at.in_zone(zone),
            "sharedRoom": self.shared,
        })
    }
}

/// The events and verified rooms of one place: at least those that overlap the periods for which they were loaded.
#[derive(Debug, Clone, Default)]
pub struct PlaceUse {
    /// Its events, by start and id.
    events: Vec<EventUse>,
    /// The periods of its verified rooms. They may be missing when all events are in the room that is asked for.
    verified: Vec<Span>,
}

impl PlaceUse {
    /// The same, arranged for queries about free times.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy::new(&self.usages(), &self.verified)
    }

    fn usages(&self) -> Vec<Use> {
        self.events.iter().map(EventUse::usage).collect()
    }
}

/// The uses of the places of these periods, by place; additional places do no harm. The event `except` is left out. A
/// place without events may be missing.
///
/// Takes at most two statements, and two more when some periods are longer than a day and others are not.
pub fn load_uses(
    conn: &mut AnyConnection,
    periods: &[RoomPeriod<'_>],
    except: Option<DbUuid>,
) -> Result<HashMap<String, PlaceUse>, Error> {
    let mut places: HashMap<String, PlaceUse> = HashMap::new();
    // Two searches, so that one period of a year does not make the search for all other places cover that year.
    let (long, short): (Vec<&RoomPeriod<'_>>, Vec<_>) =
        periods.iter().partition(|period| is_long(period.starts_at, period.ends_at));
    for periods in [short, long] {
        let first = periods.iter().map(|period| period.starts_at).min();
        let last = periods.iter().map(|period| period.ends_at).max();
        let (Some(first), Some(last)) = (first, last) else { continue };
        let place = periods.first().map(|period| period.place_key);
        let place = place.filter(|place| periods.iter().all(|period| period.place_key == *place));
        let events = load_events(conn, place, first, last)?;
        let verified =
            if are_in_other_rooms(&events, &periods) { load_verified(conn, first, last)? } else { Vec::new() };
        for (key, event) in events {
            if Some(event.id) != except {
                places.entry(key).or_default().events.push(event);
            }
        }
        for room in verified {
            if let Some(place) = places.get_mut(&room.place_key) {
                place.verified.push(room.span());
            }
        }
    }
    for place in places.values_mut() {
        place.events.sort_unstable_by_key(|event| (event.starts_at, event.id));
        place.events.dedup_by_key(|event| event.id);
    }
    Ok(places)
}

/// Whether some of the events are at the place of a period, but not in its room. Otherwise it does not matter which
/// rooms are verified, as events in one room exclude each other in any case.
fn are_in_other_rooms(events: &[(String, EventUse)], periods: &[&RoomPeriod<'_>]) -> bool {
    // `None` for a place with several rooms.
    let mut rooms: HashMap<&str, Option<DbUuid>> = HashMap::new();
    for period in periods {
        let room = rooms.entry(period.place_key).or_insert(Some(period.room));
        *room = room.filter(|room| *room == period.room);
    }
    events.iter().any(|(place, event)| rooms.get(&**place).is_some_and(|room| *room != Some(event.room)))
}

/// The events at a place that overlap `[from, to)`. Without a place, those at all places: the text of a statement with a
/// list of places would depend on the length of the list, and such a list usually has most places of the club.
fn load_events(
    conn: &mut AnyConnection,
    place: Option<&str>,
    from: DbTimestamp,
    to: DbTimestamp,
) -> Result<Vec<(String, EventUse)>, Error> {
    let uses = events::table
        .filter(events::deleted_at.is_null())
        .select((events::place_key, (events::id, events::room_id, events::starts_at, events::ends_at, events::shared)));
    let (short, long) = overlapping_by_length!(events, from, to);
    Ok(with_connection!(conn, c => match place {
        // Two queries: PostgreSQL keeps this plan, and plans one query with `OR` for each execution.
        Some(key) => {
            let uses = uses.filter(events::place_key.eq(key));
            uses.filter(short).union_all(uses.filter(long)).load(c)?
        }
        None => uses.filter(short.or(long)).load(c)?,
    }))
}

/// A verified room.
#[derive(Debug, Clone, Queryable)]
pub struct VerifiedRoom {
    /// The room.
    pub id: DbUuid,
    /// Its place.
    pub place: String,
    /// The key of its place.
    pub place_key: String,
    /// The first instant of its period.
    pub starts_at: DbTimestamp,
    /// The first instant after it.
    pub ends_at: DbTimestamp,
}

impl VerifiedRoom {
    /// Its period.
    pub fn span(&self) -> Span {
        Span::between(self.starts_at, self.ends_at)
    }
}

/// The verified rooms whose periods overlap `[from, to)`, of all places.
///
/// They are few, because verified rooms of one place never overlap. With a condition on the place, SQLite would read
/// all later rooms of that place.
pub fn load_verified(conn: &mut AnyConnection, from: DbTimestamp, to: DbTimestamp) -> Result<Vec<VerifiedRoom>, Error> {
    let verified = rooms::table
        .filter(IsTrue::new(rooms::verified))
        .filter(rooms::deleted_at.is_null())
        .filter(overlapping!(rooms, from, to))
        .select((rooms::id, rooms::place, rooms::place_key, rooms::starts_at, rooms::ends_at));
    Ok(with_connection!(conn, c => verified.load(c)?))
}

/// An event that is about to be created or changed.
#[derive(Debug, Clone, Copy)]
pub struct Booking<'a> {
    /// The room that it will be in.
    pub room: RoomPeriod<'a>,
    /// The first instant of the event.
    pub starts_at: DbTimestamp,
    /// The first instant after it.
    pub ends_at: DbTimestamp,
    /// Whether other shared events may use the room at the same time.
    pub shared: bool,
    /// The event that is changed: its state before the change does not conflict with the booking.
    pub except: Option<DbUuid>,
}

impl<'a> Booking<'a> {
    /// The time of the event in its room.
    fn during_event(&self) -> RoomPeriod<'a> {
        RoomPeriod { starts_at: self.starts_at, ends_at: self.ends_at, ..self.room }
    }

    fn usage(&self) -> Use {
        Use { room: self.room.room, span: Span::between(self.starts_at, self.ends_at), shared: self.shared }
    }

    /// The event that it changes, as it will be.
    fn changed_event(&self) -> Option<EventUse> {
        let Self { room, starts_at, ends_at, shared, except } = *self;
        except.map(|id| EventUse { id, room: room.room, starts_at, ends_at, shared })
    }
}

/// Refuses a booking that conflicts with an event. The place must be locked.
///
/// # Errors
/// 409 `room-conflict`.
pub fn refuse_conflicts(conn: &mut AnyConnection, booking: &Booking<'_>, zone: Tz) -> Result<(), Error> {
    let mut load = |period: RoomPeriod<'_>| -> Result<PlaceUse, Error> {
        Ok(load_uses(conn, &[period], booking.except)?.remove(period.place_key).unwrap_or_default())
    };
    let uses = load(booking.during_event())?;
    let new = booking.usage();
    let is_conflict = |event: &&EventUse| overlap::conflicts(&new, &event.usage(), &uses.verified);
    let conflicts: Vec<_> = uses.events.iter().filter(is_conflict).copied().collect();
    if conflicts.is_empty() {
        return Ok(());
    }
    let free = load(booking.room)?.occupancy().free_times(booking.room.room, booking.room.span());
    Err(room_conflict(&conflicts, free, zone).into())
}

/// The events that each of several bookings conflicts with. Their places must be locked; `verified` are the verified
/// rooms of the time from the first to the last. The events that the bookings change count as they will be. New events
/// do not conflict with each other: the caller has checked that they do not overlap.
///
/// Takes two statements for each place, and two more when some bookings are longer than a day and others are not.
pub fn conflicts_of_all(
    conn: &mut AnyConnection,
    bookings: &[Booking<'_>],
    verified: &[VerifiedRoom],
) -> Result<Vec<Vec<EventUse>>, Error> {
    let changed: HashSet<DbUuid> = bookings.iter().filter_map(|booking| booking.except).collect();
    let mut by_place: HashMap<&str, Vec<usize>> = HashMap::new();
    for (n, booking) in bookings.iter().enumerate() {
        by_place.entry(booking.room.place_key).or_default().push(n);
    }
    let mut conflicts = vec![Vec::new(); bookings.len()];
    for (place, numbers) in by_place {
        let periods: Vec<_> = numbers.iter().map(|n| bookings[*n].during_event()).collect();
        let mut events = load_uses(conn, &periods, None)?.remove(place).unwrap_or_default().events;
        events.retain(|event| !changed.contains(&event.id));
        events.extend(numbers.iter().filter_map(|n| bookings[*n].changed_event()));
        let verified: Vec<_> = verified.iter().filter(|room| room.place_key == place).map(VerifiedRoom::span).collect();
        for n in numbers {
            let booking = &bookings[n];
            let excludes = |event: &&EventUse| {
                Some(event.id) != booking.except && overlap::conflicts(&booking.usage(), &event.usage(), &verified)
            };
            conflicts[n].extend(events.iter().filter(excludes));
        }
    }
    Ok(conflicts)
}

/// Conflicting events, as in `room-conflict`.
pub fn conflicts_json(conflicts: &[EventUse], zone: Tz) -> Value {
    conflicts.iter().map(|event| event.to_json(zone)).collect()
}

/// Refuses to verify rooms if events would then conflict. The places must be locked.
///
/// # Errors
/// 409 `room-conflict` with the events outside these rooms that would conflict.
pub fn refuse_conflicts_of_verified(conn: &mut AnyConnection, rooms: &[RoomPeriod<'_>], zone: Tz) -> Result<(), Error> {
    conflicts_of_verified(conn, rooms, zone)?.map_or(Ok(()), |(_, problem)| Err(problem.into()))
}

/// As [`refuse_conflicts_of_verified`]: the rooms with conflicts, and the refusal; `None` if there are no conflicts.
pub(super) fn conflicts_of_verified(
    conn: &mut AnyConnection,
    rooms: &[RoomPeriod<'_>],
    zone: Tz,
) -> Result<Option<(Vec<DbUuid>, Problem)>, Error> {
    let places = load_uses(conn, rooms, None)?;
    let (mut conflicts, mut free, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for room in rooms {
        let Some(place) = places.get(room.place_key) else { continue };
        let period = room.span();
        let events: Vec<_> = place.events.iter().filter(|event| event.usage().span.overlaps(&period)).collect();
        let uses: Vec<_> = events.iter().map(|event| event.usage()).collect();
        let indexes = overlap::conflicts_made_by_verifying(period, &uses);
        let outside = indexes.into_iter().map(|n| *events[n]).filter(|event| event.room != room.room);
        let outside: Vec<_> = outside.collect();
        if !outside.is_empty() {
            conflicts.extend(outside);
            refused.push(room.room);
            free.extend(Occupancy::new(&uses, &[period]).free_times(room.room, period));
        }
    }
    if conflicts.is_empty() {
        return Ok(None);
    }
    // One event may conflict in several rooms.
    conflicts.sort_unstable_by_key(|event| (event.starts_at, event.id));
    conflicts.dedup_by_key(|event| event.id);
    Ok(Some((refused, room_conflict(&conflicts, free, zone))))
}

/// 409 `room-conflict` with the conflicting events and the free times of the room.
fn room_conflict(conflicts: &[EventUse], free: Vec<Span>, zone: Tz) -> Problem {
    Problem::new(codes::ROOM_CONFLICT)
        .member("conflicts", conflicts_json(conflicts, zone))
        .member("freeTimes", json!(Interval::all(free, zone)))
}

/// 409 `room-overlap` with the overlapping verified rooms.
pub(super) fn room_overlap(mut rooms: Vec<DbUuid>) -> Problem {
    rooms.sort_unstable();
    rooms.dedup();
    Problem::new(codes::ROOM_OVERLAP).member("rooms", json!(rooms))
}
