//! `seed`: a club of a given size in an empty database, for measuring. The same every time for the same day.
//!
//! Users and groups come from a made-up directory by the ordinary sync, rooms by the function that makes all rooms, and
//! [`plan`] says the rest. Events are written in batches, where the operations write them one by one: the rows are what
//! those would have made.

mod plan;

use std::sync::Arc;

use chrono::{NaiveDate, NaiveTime};
use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use diesel::{OptionalExtension, prelude::*, sql_query};
use service_kit::{
    database::{
        AnyConnection, Database,
        types::{DbTimestamp, DbUuid},
    },
    directory::{
        DirectoryGroup, Snapshot,
        seed::{Size, snapshot},
    },
    error::Error,
    with_connection,
};

use self::plan::{INVITED, Kind, Plan, PlannedEvent, PlannedRoom, TAGS};
use crate::{
    events::queries::Schedule,
    groups,
    overlapping::is_long,
    rooms::{
        booking,
        changes::{self, NewRoom},
        place::place_key,
    },
    schema::{attendees, event_admins, event_tags, events, rooms, tags, users},
    users::{queries::grant_privilege, sync},
};

/// Rooms of one transaction, with their events: few enough to be done well before the limit for one.
const STEP: usize = 500;

/// Rows of one statement: databases limit the number of values.
const CHUNK: usize = 1000;

/// Lines about rooms and events.
const LINES: usize = 10;

/// What an event says of itself.
const DESCRIPTION: &str = "Bring a laptop and something to write with; whoever comes for the first time sits in front.";

/// Fills a database that has no users, rooms or events, and tells each step to `say`.
///
/// # Errors
/// 409 when the database is in use; when it fails.
pub async fn fill(
    db: &Database,
    everyone_group: &str,
    size: Size,
    day: NaiveDate,
    mut say: impl FnMut(&str),
) -> Result<(), Error> {
    let midnight = Timestamp::new(day.and_time(NaiveTime::MIN).and_utc());
    let midnight =
        midnight.ok_or_else(|| Problem::parameter("day", "out-of-range", "must be in the years 1 to 9999"))?;
    let (plan, club) = (Plan::new(size, midnight), Arc::new(snapshot(size)));
    let (directory, name) = (club.clone(), everyone_group.to_owned());
    db.write(move |conn| introduce(conn, &directory, &name, plan.begin())).await?;
    say(&format!("{} users and {} groups", club.users.len(), club.groups.len()));
    for from in (0..plan.rooms()).step_by(STEP) {
        let (club, to) = (club.clone(), plan.rooms().min(from + STEP));
        db.write(move |conn| make(conn, &plan, &club, from, to)).await?;
        if to * LINES / plan.rooms() > from * LINES / plan.rooms() {
            say(&format!("{to} of {} rooms with their events", plan.rooms()));
        }
    }
    db.write(|conn| {
        // What the server would find out by itself within minutes; plans are bad until then.
        if let AnyConnection::Postgresql(pg) = conn {
            sql_query("ANALYZE").execute(pg)?;
        }
        Ok(())
    })
    .await?;
    say(&format!("{} events around {day}", plan.events()));
    Ok(())
}

/// The users, the groups and the tags.
fn introduce(conn: &mut AnyConnection, directory: &Snapshot, everyone: &str, now: DbTimestamp) -> Result<(), Error> {
    let user: Option<DbUuid> = users::table.select(users::id).first(conn).optional()?;
    let room: Option<DbUuid> = rooms::table.select(rooms::id).first(conn).optional()?;
    let event: Option<DbUuid> = events::table.select(events::id).first(conn).optional()?;
    if user.or(room).or(event).is_some() {
        let detail = "The database is in use: only one without users, rooms and events can be seeded.";
        return Err(Problem::new(code::CONFLICT).detail(detail).into());
    }
    groups::queries::ensure_everyone_group(conn, everyone, now)?;
    sync::apply(conn, directory, now)?;
    if let Some(first) = directory.users.first() {
        grant_privilege(conn, &first.name)?;
    }
    let names = (0..TAGS).map(|number| (number, format!("tag {number}")));
    let rows: Vec<_> = names
        .map(|(number, name)| {
            (
                tags::id.eq(tag_id(now, number)),
                tags::name_key.eq(crate::tags::key(&name)),
                tags::name.eq(name),
                tags::created_at.eq(now),
                tags::updated_at.eq(now),
            )
        })
        .collect();
    with_connection!(conn, c => diesel::insert_into(tags::table).values(&rows).execute(c)?);
    Ok(())
}

fn tag_id(begin: DbTimestamp, number: usize) -> DbUuid {
    plan::id(begin, Kind::Tag, number)
}

/// Some of the rooms, with their events.
fn make(conn: &mut AnyConnection, plan: &Plan, club: &Snapshot, from: usize, to: usize) -> Result<(), Error> {
    let planned: Vec<_> = (from..to).map(|number| Held::new(plan, number)).collect();
    booking::lock_places(conn, planned.iter().map(|held| place_key(held.room.place)).collect())?;
    for held in planned.iter().filter(|held| !held.room.held) {
        let [maker, _] = held.events[0].admins(club);
        changes::insert_with_ids(conn, &[held.new_room(club)], maker, held.events[0].made_at)?;
    }
    let keeper = keeper(club);
    let imported: Vec<_> = planned.iter().filter(|held| held.room.held).collect();
    // Those made at the same time are made together, as an import does.
    for held in imported.chunk_by(|a, b| a.room.made_at == b.room.made_at) {
        let new: Vec<_> = held.iter().map(|held| held.new_room(club)).collect();
        changes::insert_with_ids(conn, &new, keeper, held[0].room.made_at)?;
    }
    put_events(conn, club, &planned)?;
    let events: Vec<_> = planned.iter().flat_map(|held| &held.events).collect();
    put_people(conn, club, &events)?;
    put_tags(conn, plan.begin(), &events)
}

/// Who holds the rooms.
fn keeper(club: &Snapshot) -> DbUuid {
    club.users.first().map_or_else(DbUuid::nil, |user| DbUuid(user.id))
}

/// A room with its events.
struct Held {
    room: PlannedRoom,
    events: Vec<PlannedEvent>,
}

impl Held {
    fn new(plan: &Plan, number: usize) -> Self {
        Self { room: plan.room(number), events: plan.events_of(number).collect() }
    }

    /// A room that is held is its keeper's; one that was made for an event has its administrators.
    fn new_room(&self, club: &Snapshot) -> (DbUuid, NewRoom) {
        let room = &self.room;
        let new = NewRoom {
            place: room.place.to_owned(),
            starts_at: room.starts_at,
            ends_at: room.ends_at,
            verified: room.held,
            made_for_event: !room.held,
            admins: if room.held { vec![keeper(club)] } else { self.events[0].admins(club).to_vec() },
        };
        (room.id, new)
    }
}

impl PlannedEvent {
    fn group<'a>(&self, club: &'a Snapshot) -> &'a DirectoryGroup {
        &club.groups[self.group]
    }

    /// The first one made it.
    fn admins(&self, club: &Snapshot) -> [DbUuid; 2] {
        self.admins.map(|number| DbUuid(self.group(club).members[number]))
    }

    /// Everybody invited, and the guest.
    fn answers(&self, club: &Snapshot) -> impl Iterator<Item = (DbUuid, Schedule)> {
        let invited = if self.has_guest { INVITED - 1 } else { INVITED };
        let members = self.group(club).members.iter().take(invited).enumerate();
        let guest = club.users.last().filter(|_| self.has_guest);
        members
            .map(|(number, member)| (DbUuid(*member), self.answer(number)))
            .chain(guest.map(|guest| (DbUuid(guest.id), Schedule::Attendance)))
    }
}

fn put_events(conn: &mut AnyConnection, club: &Snapshot, rooms: &[Held]) -> Result<(), Error> {
    let all = rooms.iter().flat_map(|held| held.events.iter().map(|event| (&held.room, event)));
    let rows: Vec<_> = all
        .map(|(room, event)| {
            (
                (events::id.eq(event.id), events::name.eq(&event.name), events::description.eq(DESCRIPTION)),
                (events::starts_at.eq(event.starts_at), events::ends_at.eq(event.ends_at)),
                (events::shared.eq(event.shared), events::is_long.eq(is_long(event.starts_at, event.ends_at))),
                (events::place.eq(room.place), events::place_key.eq(place_key(room.place))),
                (events::room_id.eq(room.id), events::owns_room.eq(!room.held)),
                (events::group_id.eq(DbUuid(event.group(club).id)), events::open.eq(event.open)),
                (events::sequence.eq(0), events::created_by.eq(event.admins(club)[0])),
                (events::created_at.eq(event.made_at), events::updated_at.eq(event.made_at)),
            )
        })
        .collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(events::table).values(rows).execute(c)?);
    }
    Ok(())
}

fn put_people(conn: &mut AnyConnection, club: &Snapshot, events: &[&PlannedEvent]) -> Result<(), Error> {
    let admins = events.iter().flat_map(|event| event.admins(club).map(|user| (event.id, user)));
    let admins: Vec<_> =
        admins.map(|(event, user)| (event_admins::event_id.eq(event), event_admins::user_id.eq(user))).collect();
    for rows in admins.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(event_admins::table).values(rows).execute(c)?);
    }
    let answers = events.iter().flat_map(|event| event.answers(club).map(|answer| (event.id, answer)));
    let answers: Vec<_> = answers
        .map(|(event, (user, schedule))| {
            (attendees::event_id.eq(event), attendees::user_id.eq(user), attendees::schedule.eq(schedule))
        })
        .collect();
    for rows in answers.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(attendees::table).values(rows).execute(c)?);
    }
    Ok(())
}

fn put_tags(conn: &mut AnyConnection, begin: DbTimestamp, events: &[&PlannedEvent]) -> Result<(), Error> {
    let tags = events.iter().flat_map(|event| event.tags.map(|tag| (event.id, tag)));
    let rows: Vec<_> = tags
        .map(|(event, (tag, locked))| {
            (event_tags::event_id.eq(event), event_tags::tag_id.eq(tag_id(begin, tag)), event_tags::locked.eq(locked))
        })
        .collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(event_tags::table).values(rows).execute(c)?);
    }
    Ok(())
}
