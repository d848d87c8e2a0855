//! `--demo`: fills an empty database with an example club, which is the same for the same day and time zone.
//!
//! Members and eight groups come from the example directory by the ordinary sync. [`plan`] plans the rooms and events.
//! They are created by the functions that the operations use, so that all rules hold and members are invited.

mod plan;
mod polls;
mod series;

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;
use chrono_tz::Tz;
use club_directory::Source;
use common::{input::IdSet, time::Timestamp};
use diesel::{
    OptionalExtension,
    dsl::{exists, select},
    prelude::*,
};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use service_kit::{
    database::{
        AnyConnection, Database, JobOwner, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{Author, By},
};

use self::plan::{Period, Plan, PlannedEvent, PlannedRoom};
use crate::{
    auth::ACTIVE,
    club::Club,
    events::{
        attendance,
        changes::{self, Draft, Venue},
        queries::Schedule,
        show_created,
    },
    groups,
    rooms::{
        booking,
        changes::{self as room_changes, NewRoom},
        place::place_key,
    },
    schema::{events, groups as groups_table, rooms, users},
};

/// The seed of the random numbers.
const SEED: u64 = 516;

/// Sign-in name of the privileged member.
const PRIVILEGED_USER: &str = "alice";

/// Groups to create: name, description, whether anybody may join, and the number of members.
const GROUPS: [(&str, &str, bool, usize); 3] = [
    ("Festival crew", "Stalls, posters and the programme of the school festival", false, 12),
    ("Newcomers", "Everybody's first year: questions welcome", true, 18),
    ("Rust readers", "The book, chapter by chapter", true, 9),
];

/// Fills a database that has no rooms and no events. Deleted ones count as well, so a database that was in use is never
/// filled. Replicas that start together fill it once.
pub async fn fill(db: &Database, club: &Club, now: Timestamp) -> Result<(), Error> {
    let (zone, is_demo_directory) = (club.zone, club.directory == Some(Source::Demo));
    let counts = db.write(JobOwner::Internal, move |conn| {
        let mut rng = StdRng::seed_from_u64(SEED);
        let plan = Plan::new(now, zone, &mut rng);
        if !try_lock(conn)? || !is_empty(conn)? {
            return Ok(None);
        }
        booking::lock_places(conn, plan.places().map(place_key).collect())?;
        let Some(mut builder) = Builder::new(conn, groups_created_at(&plan, now), rng, zone)? else { return Ok(None) };
        let rooms = builder.create_rooms(conn, &plan.rooms)?;
        builder.create_events(conn, &plan.events, &rooms)?;
        let series = builder.create_series(conn, now)?;
        let polls = builder.create_polls(conn, now)?;
        if is_demo_directory {
            // Last, because a concurrent sync of another replica waits for this row lock.
            let user = users::table.filter(users::name.eq(PRIVILEGED_USER));
            diesel::update(user).set(users::privileged.eq(true)).execute(conn)?;
        }
        Ok(Some((plan.rooms.len(), plan.events.len(), series, polls)))
    });
    match counts.await? {
        Some((rooms, events, series, polls)) => {
            log::info!("demo: created {rooms} rooms, {events} events, {series} series and {polls} polls");
        }
        None => log::info!(
            "demo: the database is not filled: it is in use, another replica fills it, or there is no active user"
        ),
    }
    Ok(())
}

/// Locks the row of the everyone group, unless another replica that fills the database has locked it. Returns whether
/// it is locked.
fn try_lock(conn: &mut AnyConnection) -> Result<bool, Error> {
    let AnyConnection::Postgresql(pg) = conn else { return Ok(true) };
    // Waiting for the other replica would exceed the lock time-out. FOR NO KEY UPDATE does not block inserts that refer
    // to the row.
    let row = groups_table::table.find(groups::EVERYONE).select(groups_table::id);
    let lock: Option<DbUuid> = row.for_no_key_update().skip_locked().first(pg).optional()?;
    Ok(lock.is_some())
}

fn is_empty(conn: &mut AnyConnection) -> Result<bool, Error> {
    let has_rooms: bool = select(exists(rooms::table.select(rooms::id))).get_result(conn)?;
    let has_events: bool = select(exists(events::table.select(events::id))).get_result(conn)?;
    Ok(!has_rooms && !has_events)
}

/// What the history says about the changes of a member.
fn author(member: DbUuid, at: DbTimestamp) -> Author {
    Author { actor: Some(member), ..Author::new(By::Command, at) }
}

/// One day before the first room is created.
fn groups_created_at(plan: &Plan, now: Timestamp) -> DbTimestamp {
    let first = plan.rooms.iter().map(|room| room.created_at).min();
    DbTimestamp(first.unwrap_or(now).plus(TimeDelta::days(-1)))
}

/// Creates the planned data in the name of members of the club.
struct Builder {
    rng: StdRng,
    zone: Tz,
    /// The creator and administrator of all rooms.
    room_admin: DbUuid,
    /// The active users, by name; at least one.
    members: Vec<DbUuid>,
    /// The groups by name; the everyone group has the empty name.
    groups: HashMap<String, GroupPeople>,
}

/// The active people of a group.
#[derive(Clone)]
struct GroupPeople {
    id: DbUuid,
    members: Vec<DbUuid>,
    /// At least one.
    organizers: Vec<DbUuid>,
}

impl Builder {
    /// Loads the active users, and creates [`GROUPS`]. Returns `None` if there is no active user.
    fn new(conn: &mut AnyConnection, at: DbTimestamp, rng: StdRng, zone: Tz) -> Result<Option<Self>, Error> {
        let active = users::table.filter(users::state.eq(ACTIVE)).order((users::name, users::id));
        let active: Vec<(DbUuid, String)> = active.select((users::id, users::name)).load(conn)?;
        let privileged = active.iter().find(|(_, name)| name == PRIVILEGED_USER);
        let Some((room_admin, _)) = privileged.or(active.first()).cloned() else { return Ok(None) };
        let members = active.into_iter().map(|(id, _)| id).collect();
        let mut builder = Self { rng, zone, room_admin, members, groups: HashMap::new() };
        builder.create_groups(conn, at)?;
        let active: HashSet<_> = builder.members.iter().copied().collect();
        let only_active = |ids: Vec<DbUuid>| ids.into_iter().filter(|id| active.contains(id)).collect::<Vec<_>>();
        for group in groups::queries::list(conn, &PageBounds::all())? {
            let (members, admins) = (only_active(group.members), only_active(group.admins));
            let organizers = [&admins, &members, &builder.members].into_iter().find(|people| !people.is_empty());
            let name = if group.row.id == groups::EVERYONE { String::new() } else { group.row.name };
            let organizers = organizers.cloned().unwrap_or_default();
            builder.groups.insert(name, GroupPeople { id: group.row.id, organizers, members });
        }
        Ok(Some(builder))
    }

    fn create_groups(&mut self, conn: &mut AnyConnection, at: DbTimestamp) -> Result<(), Error> {
        for (name, description, open, size) in GROUPS {
            let members = self.members.choose_multiple(&mut self.rng, size).copied().collect::<Vec<_>>();
            let founder = members[0];
            let group = groups::changes::GroupFields {
                name: name.to_owned(),
                description: description.to_owned(),
                open,
                members: Some(IdSet::new(members.iter().map(|id| id.0))),
                admins: IdSet::new(members.iter().take(2).map(|id| id.0)),
            };
            groups::changes::create(conn, &group, founder, at)?;
        }
        Ok(())
    }

    /// Creates the rooms and returns their ids, in order. Rooms with the same time of creation are inserted together.
    fn create_rooms(&self, conn: &mut AnyConnection, planned: &[PlannedRoom]) -> Result<Vec<DbUuid>, Error> {
        let mut ids = Vec::with_capacity(planned.len());
        for batch in planned.chunk_by(|a, b| a.created_at == b.created_at) {
            let room = |room: &PlannedRoom| {
                let (starts_at, ends_at) = (DbTimestamp(room.period.start), DbTimestamp(room.period.end));
                let new = NewRoom::new(room.place.to_owned(), starts_at, ends_at, vec![self.room_admin]);
                NewRoom { verified: room.verified, ..new }
            };
            let new: Vec<_> = batch.iter().map(room).collect();
            ids.extend(room_changes::insert(conn, &new, self.room_admin, DbTimestamp(batch[0].created_at))?);
        }
        Ok(ids)
    }

    fn create_events(
        &mut self,
        conn: &mut AnyConnection,
        planned: &[PlannedEvent],
        rooms: &[DbUuid],
    ) -> Result<(), Error> {
        for event in planned {
            let group = self.group(event.series.group);
            let number = self.rng.random_range(1..=2);
            let organizers: Vec<_> = group.organizers.choose_multiple(&mut self.rng, number).copied().collect();
            let by = organizers[0];
            let Period { start, end } = event.period;
            let span = (DbTimestamp(start), DbTimestamp(end));
            let venue = event.room.map_or_else(|| Venue::Place(plan::ONLINE.to_owned()), |n| Venue::Room(rooms[n]));
            let admins = IdSet::new(organizers.iter().map(|id| id.0));
            let draft = Draft {
                description: event.series.description.to_owned(),
                shared: event.shared,
                open: event.series.open,
                tags: event.series.tags.iter().map(|&(name, locked)| (name.to_owned(), locked)).collect(),
                ..Draft::new(event.name.clone(), span, venue, group.id, admins)
            };
            let created_at = DbTimestamp(event.created_at);
            let author = author(by, created_at);
            let id = changes::create(conn, &draft, &author, self.zone, created_at)?;
            show_created(conn, id, &author, self.zone)?;
            let answers = self.answers(event, &group, by).into_iter();
            let answers: Vec<_> = answers.map(|(user, schedule)| (id, user, schedule)).collect();
            attendance::record_answers(conn, &answers, created_at)?;
        }
        Ok(())
    }

    /// The group with this name, or the everyone group.
    fn group(&self, name: &str) -> GroupPeople {
        let everyone =
            || GroupPeople { id: groups::EVERYONE, members: self.members.clone(), organizers: self.members.clone() };
        self.groups.get(name).cloned().unwrap_or_else(everyone)
    }

    /// Random answers to an event. The nearer the event, the more members answer. Some users outside the group answer
    /// an open event.
    fn answers(&mut self, event: &PlannedEvent, group: &GroupPeople, organizer: DbUuid) -> Vec<(DbUuid, Schedule)> {
        let mut answers = Vec::new();
        for member in group.members.iter().copied() {
            let roll: f64 = self.rng.random();
            if member == organizer || roll < event.interest * 0.65 {
                answers.push((member, Schedule::Attendance));
            } else if roll < event.interest {
                answers.push((member, Schedule::Absent));
            }
        }
        if event.series.open {
            for _ in 0..self.rng.random_range(0..=4) {
                let guest = self.members.choose(&mut self.rng).copied();
                let guest = guest.filter(|guest| !group.members.contains(guest));
                answers.extend(guest.map(|guest| (guest, Schedule::Attendance)));
            }
            answers.sort_unstable_by_key(|(user, _)| *user);
            answers.dedup_by_key(|(user, _)| *user);
        }
        answers
    }
}
