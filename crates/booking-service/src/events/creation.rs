//! New events. Their places are locked before conflicts are searched (see [`rooms::booking`](crate::rooms::booking)).

use std::collections::{BTreeMap, BTreeSet};

use chrono_tz::Tz;
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
    history::Author,
    with_connection,
};

use super::{attendance, event_tags::EventTag, queries::Row, search::text_key};
use crate::{
    codes, groups, invitations,
    period_filter::is_long,
    rooms::{
        booking::{self, Booking, RoomPeriod},
        changes::{self as room_changes, NewRoom},
        place::place_key,
        queries as room_queries,
    },
    schema::{event_admins, events},
    tags, users,
};

/// Where an event takes place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

    /// The draft with these fields as the event has them.
    pub fn keeping(&self, fields: &[&str], event: &Row) -> Self {
        let mut draft = self.clone();
        for field in fields {
            match *field {
                "name" => draft.name.clone_from(&event.name),
                "description" => draft.description.clone_from(&event.description),
                _ => draft.venue = Venue::Place(event.place.clone()),
            }
        }
        draft
    }

    pub fn has_time_of(&self, event: &Row) -> bool {
        (self.starts_at, self.ends_at) == (event.starts_at, event.ends_at)
    }

    /// Whether an event with these administrators has all these values, but for its room, place and tags.
    pub fn has_fields_of(&self, event: &Row, admins: &[DbUuid]) -> bool {
        let Self { name, description, shared, starts_at: _, ends_at: _, venue: _, group, open, admins: _, tags: _ } =
            self;
        self.has_time_of(event)
            && (name, description) == (&event.name, &event.description)
            && (*shared, *open, *group) == (event.shared, event.open, event.group_id)
            && self.admins().into_iter().collect::<BTreeSet<_>>() == admins.iter().copied().collect()
    }

    /// Whether these are the tags of an event.
    pub fn has_tags(&self, present: &[EventTag]) -> bool {
        let of_event = present.iter().map(|tag| (tags::key(&tag.name), tag.locked));
        let of_draft = self.tags.iter().rev().map(|(name, locked)| (tags::key(name), *locked));
        of_event.collect::<BTreeMap<_, _>>() == of_draft.collect()
    }

    /// Whether it takes the same room for the same time as before. Then conflicts, which only an import leaves, keep
    /// nobody from changing the rest.
    pub fn books_like(&self, event: &Row) -> bool {
        self.has_time_of(event) && self.shared == event.shared
    }

    pub fn admins(&self) -> Vec<DbUuid> {
        self.admins.iter().map(|(_, id)| DbUuid(id)).collect()
    }

    pub fn own_room(&self, place: &str) -> NewRoom {
        let room = NewRoom::new(place.to_owned(), self.starts_at, self.ends_at, self.admins());
        NewRoom { made_for_event: true, ..room }
    }

    pub fn booking<'a>(&self, room: RoomPeriod<'a>, except: Option<DbUuid>) -> Booking<'a> {
        Booking { room, starts_at: self.starts_at, ends_at: self.ends_at, shared: self.shared, except }
    }
}

/// The room that an event is in after its creation or a change.
#[derive(Debug, Clone)]
pub struct Location {
    pub room: DbUuid,
    pub place: String,
    pub owns_room: bool,
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
    let (id, starts_at, ends_at) = (DbUuid::new(), draft.starts_at, draft.ends_at);
    insert(conn, draft, &[NewEvent { id, starts_at, ends_at, location, series: None }], by, now)?;
    invitations::invite(conn, id, draft.group, now)?;
    Ok(id)
}

/// An event that is about to be inserted; the rest is in its [`Draft`].
#[derive(Debug, Clone)]
pub struct NewEvent {
    pub id: DbUuid,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub location: Location,
    /// The series, and the number of the date in it.
    pub series: Option<(DbUuid, i32)>,
}

/// Inserts events with the values of a draft, but for their times and rooms. Their places must be locked, and the rooms
/// that are made for them must exist. Nobody is invited yet.
pub fn insert(
    conn: &mut AnyConnection,
    draft: &Draft,
    new: &[NewEvent],
    by: &Author,
    now: DbTimestamp,
) -> Result<(), Error> {
    let text_key = text_key(&draft.name, &draft.description);
    let row = |event: &NewEvent| {
        (
            (events::id.eq(event.id), events::name.eq(&draft.name), events::description.eq(&draft.description)),
            events::text_key.eq(&text_key),
            (events::shared.eq(draft.shared), events::starts_at.eq(event.starts_at), events::ends_at.eq(event.ends_at)),
            events::is_long.eq(is_long(event.starts_at, event.ends_at)),
            events::place_key.eq(place_key(&event.location.place)),
            events::place.eq(event.location.place.clone()),
            (events::room_id.eq(event.location.room), events::owns_room.eq(event.location.owns_room)),
            (events::group_id.eq(draft.group), events::open.eq(draft.open), events::sequence.eq(0)),
            (events::created_by.eq(by.actor), events::created_at.eq(now), events::updated_at.eq(now)),
            events::series_id.eq(event.series.map(|(series, _)| series)),
            events::occurrence.eq(event.series.map(|(_, number)| number)),
        )
    };
    if let [event] = new {
        // Stays prepared.
        diesel::insert_into(events::table).values(row(event)).execute(conn)?;
    } else {
        for new in new.chunks(1000) {
            let rows: Vec<_> = new.iter().map(row).collect();
            with_connection!(conn, c => diesel::insert_into(events::table).values(rows).execute(c)?);
        }
    }
    let ids: Vec<_> = new.iter().map(|event| event.id).collect();
    insert_admins(conn, &ids, &draft.admins())?;
    attendance::add_tags(conn, &ids, &draft.tags, by, now).map(|_| ())
}

/// The administrators of an event.
pub fn admins_of(conn: &mut AnyConnection, event: DbUuid) -> Result<Vec<DbUuid>, Error> {
    let admins = event_admins::table.filter(event_admins::event_id.eq(event));
    Ok(admins.select(event_admins::user_id).load(conn)?)
}

/// Refuses conflicts of an event in a room with the same span.
pub fn refuse_conflicts_at_place(
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
pub fn refuse_conflicts_in_room(
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
pub fn check_references(conn: &mut AnyConnection, draft: &Draft, event: Option<&Row>) -> Result<(), Error> {
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

/// 400 for a room that does not exist.
pub fn unknown_room() -> Error {
    Problem::invalid("/roomId", Rule::UnknownRoom, "names no room").into()
}

/// Makes users administrators of events that have none.
pub fn insert_admins(conn: &mut AnyConnection, new: &[DbUuid], admins: &[DbUuid]) -> Result<(), Error> {
    let row = |event: DbUuid, user: DbUuid| (event_admins::event_id.eq(event), event_admins::user_id.eq(user));
    let rows: Vec<_> = new.iter().flat_map(|event| admins.iter().map(move |user| row(*event, *user))).collect();
    for rows in rows.chunks(1000) {
        with_connection!(conn, c => diesel::insert_into(event_admins::table).values(rows).execute(c)?);
    }
    Ok(())
}
