//! Events that are booked or changed together: those of a series. Their places are locked once, and what each of them
//! could conflict with is loaded for all.

use std::collections::HashMap;

use common::input::IdSet;
use diesel::{dsl::not, prelude::*};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::Author,
};

use super::{
    changes::{self, Change, OwnRoom},
    creation::{self, Draft, Location, NewEvent, Venue},
    queries::{Event, Order, Row, load_page},
    selection::{Criterion, Selection},
};
use crate::{
    deletion, invitations,
    rooms::{
        booking::{self, Booking, EventUse, RoomPeriod, VerifiedRoom},
        changes as room_changes,
        overlap::Span,
        place::place_key,
        queries as room_queries,
    },
    schema::events,
};

/// An event as it is to be.
#[derive(Debug)]
pub struct Wish<'a> {
    /// Its values.
    pub draft: Draft,
    /// The event that is changed; `None` for a new one.
    pub event: Option<&'a Row>,
    /// An event in whose room it is to be, if that is at the same place, contains it, and was not made for that event.
    pub like: Option<&'a Row>,
}

/// Why an event cannot be as it is to be.
#[derive(Debug)]
pub enum Obstacle {
    /// The events that exclude it.
    Conflicts(Vec<EventUse>),
    /// It is not inside the period of its room.
    OutsideRoomPeriod,
}

/// The room for an event.
#[derive(Debug)]
pub enum Choice {
    /// An existing one.
    Existing(Location),
    /// One that is made for it, or moves with it, at this place.
    Own(OwnRoom, String),
}

impl Choice {
    fn room(&self) -> DbUuid {
        match self {
            Self::Existing(location) => location.room,
            Self::Own(own, _) => own.room,
        }
    }

    fn place(&self) -> &str {
        match self {
            Self::Existing(location) => &location.place,
            Self::Own(_, place) => place,
        }
    }
}

/// Finds a room for each event, or what prevents it. The places must be locked, and the rooms of venues must exist.
///
/// An event at a place is in the verified room there that contains it, or else in a room of its own.
pub fn find_rooms(conn: &mut AnyConnection, wishes: &[Wish<'_>]) -> Result<Vec<Result<Choice, Obstacle>>, Error> {
    let first = wishes.iter().map(|wish| wish.draft.starts_at).min();
    let last = wishes.iter().map(|wish| wish.draft.ends_at).max();
    let (Some(first), Some(last)) = (first, last) else { return Ok(Vec::new()) };
    let verified = booking::load_verified(conn, first, last)?;
    let rooms = wishes.iter().flat_map(|wish| {
        let of_venue = if let Venue::Room(room) = wish.draft.venue { Some(room) } else { None };
        of_venue.into_iter().chain(wish.like.map(|like| like.room_id))
    });
    let rooms = room_queries::find_all(conn, rooms.collect())?;
    let mut choices = Vec::with_capacity(wishes.len());
    for wish in wishes {
        choices.push(choose(conn, wish, &verified, &rooms)?);
    }
    let keys: Vec<_> = choices.iter().flatten().map(|choice| place_key(choice.place())).collect();
    let possible = wishes.iter().zip(&choices).filter_map(|(wish, choice)| Some((wish, choice.as_ref().ok()?)));
    let bookings = possible.zip(&keys).map(|((wish, choice), place_key)| {
        let Draft { starts_at, ends_at, .. } = wish.draft;
        let room = RoomPeriod { room: choice.room(), place_key, starts_at, ends_at };
        wish.draft.booking(room, wish.event.map(|event| event.id))
    });
    let bookings: Vec<Booking<'_>> = bookings.collect();
    let mut conflicts = booking::conflicts_of_all(conn, &bookings, &verified)?.into_iter();
    let mut checked = |choice: Result<Choice, Obstacle>| {
        let choice = choice?;
        match conflicts.next() {
            Some(conflicts) if !conflicts.is_empty() => Err(Obstacle::Conflicts(conflicts)),
            _ => Ok(choice),
        }
    };
    Ok(choices.into_iter().map(&mut checked).collect())
}

fn choose(
    conn: &mut AnyConnection,
    wish: &Wish<'_>,
    verified: &[VerifiedRoom],
    rooms: &HashMap<DbUuid, room_queries::Row>,
) -> Result<Result<Choice, Obstacle>, Error> {
    let draft = &wish.draft;
    let span = Span::between(draft.starts_at, draft.ends_at);
    let existing =
        |room: DbUuid, place: &str| Choice::Existing(Location { room, place: place.to_owned(), owns_room: false });
    let place = match &draft.venue {
        Venue::Place(place) => place,
        Venue::Room(id) => {
            let room = rooms.get(id).ok_or_else(creation::unknown_room)?;
            let is_inside = room.period().span().contains(&span);
            return Ok(if is_inside { Ok(existing(room.id, &room.place)) } else { Err(Obstacle::OutsideRoomPeriod) });
        }
    };
    if let Some(event) = wish.event
        && event.place == *place
        && draft.has_time_of(event)
    {
        let (room, place, owns_room) = (event.room_id, event.place.clone(), event.owns_room);
        return Ok(Ok(Choice::Existing(Location { room, place, owns_room })));
    }
    let key = place_key(place);
    let like = wish.like.filter(|like| !like.owns_room && like.place_key == key);
    let same = like.and_then(|like| rooms.get(&like.room_id));
    if let Some(room) = same.filter(|room| room.deleted_at.is_none() && room.period().span().contains(&span)) {
        return Ok(Ok(existing(room.id, &room.place)));
    }
    if let Some(room) = verified.iter().find(|room| room.place_key == key && room.span().contains(&span)) {
        return Ok(Ok(existing(room.id, &room.place)));
    }
    let own = match wish.event {
        Some(event) => OwnRoom::choose(conn, event, place, draft)?,
        None => OwnRoom::new(),
    };
    Ok(Ok(Choice::Own(own, place.clone())))
}

/// Creates events with the values of a draft in these rooms, and invites the members of its group.
pub fn create_all(
    conn: &mut AnyConnection,
    draft: &Draft,
    series: DbUuid,
    new: &[(i32, (DbTimestamp, DbTimestamp), Choice)],
    by: &Author,
    now: DbTimestamp,
) -> Result<Vec<DbUuid>, Error> {
    let (mut rooms, mut events) = (Vec::new(), Vec::new());
    for (number, (starts_at, ends_at), choice) in new {
        let (starts_at, ends_at) = (*starts_at, *ends_at);
        let location = match choice {
            Choice::Existing(location) => location.clone(),
            Choice::Own(own, place) => {
                let times = Draft { starts_at, ends_at, ..draft.clone() };
                rooms.push((own.room, times.own_room(place)));
                Location { room: own.room, place: place.clone(), owns_room: true }
            }
        };
        events.push(NewEvent { id: DbUuid::new(), starts_at, ends_at, location, series: Some((series, *number)) });
    }
    room_changes::insert_with_ids(conn, &rooms, by.actor, now)?;
    creation::insert(conn, draft, &events, by, now)?;
    let ids: Vec<_> = events.iter().map(|event| event.id).collect();
    invitations::invite_to_all(conn, &ids, draft.group, now)?;
    Ok(ids)
}

/// Changes an event of a series to a draft in this room, together with others, but for its tags.
pub fn change(
    conn: &mut AnyConnection,
    event: &Event,
    draft: &Draft,
    choice: Choice,
    now: DbTimestamp,
) -> Result<(), Error> {
    let location = match choice {
        Choice::Existing(location) => location,
        Choice::Own(own, place) => own.make(conn, &event.row, &place, draft, now)?,
    };
    changes::store(conn, &Change { event: &event.row, draft, location, is_by_itself: false }, now)?;
    let mut admins = draft.admins();
    admins.sort_unstable();
    if admins != event.admins {
        changes::replace_admins(conn, event.row.id, draft)?;
    }
    Ok(())
}

/// Whether an event has all the values of a draft at a place already.
pub fn is_unchanged(event: &Event, draft: &Draft) -> bool {
    draft.has_fields_of(&event.row, &event.admins)
        && matches!(&draft.venue, Venue::Place(place) if *place == event.row.place)
        && draft.has_tags(&event.tags)
}

/// Deletes events of a series because its rule has an earlier end.
pub fn delete_by_until(conn: &mut AnyConnection, ids: &[DbUuid], by: &Author, now: DbTimestamp) -> Result<(), Error> {
    deletion::delete_events(conn, ids, by, now)?;
    diesel::update(events::table.filter(events::id.eq_any(ids)))
        .set(events::deleted_by_until.eq(true))
        .execute(conn)?;
    Ok(())
}

/// When the events of a series began that somebody has deleted.
pub fn deleted_starts(conn: &mut AnyConnection, series: DbUuid) -> Result<Vec<DbTimestamp>, Error> {
    let deleted = events::table.filter(events::series_id.eq(series)).filter(events::deleted_at.is_not_null());
    Ok(deleted.filter(not(events::deleted_by_until)).select(events::starts_at).load(conn)?)
}

/// The values of an event at its place.
pub fn draft_of(event: &Event) -> Draft {
    let row = &event.row;
    Draft {
        name: row.name.clone(),
        description: row.description.clone(),
        shared: row.shared,
        starts_at: row.starts_at,
        ends_at: row.ends_at,
        venue: Venue::Place(row.place.clone()),
        group: row.group_id,
        open: row.open,
        admins: IdSet::new(event.admins.iter().map(|id| id.0)),
        tags: event.tags.iter().map(|tag| (tag.name.clone(), tag.locked)).collect(),
    }
}

/// The events of a series that are not deleted, by start.
pub fn of_series(conn: &mut AnyConnection, series: DbUuid) -> Result<Vec<Event>, Error> {
    load_page(conn, &Selection::new(Criterion::OfSeries(series)), Order::Start, &PageBounds::all())
}
