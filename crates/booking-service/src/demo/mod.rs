//! `--demo`: a believable club in an empty database, the same for everybody on the same day.
//!
//! Members and eight groups come from the made-up directory by the ordinary sync. The rest is planned by [`plan`] and
//! made by the same functions as the operations use, so that rules hold and invitations go out as everywhere else.

mod plan;
mod polls;

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;
use chrono_tz::Tz;
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
    directory::Source,
    error::Error,
};

use self::plan::{Period, Plan, PlannedEvent, PlannedRoom};
use crate::{
    auth::ACTIVE,
    club::Club,
    events::{
        attendance,
        changes::{self, Draft, Where},
        queries::Schedule,
    },
    groups,
    rooms::{
        booking,
        changes::{self as room_changes, NewRoom},
        place::place_key,
    },
    schema::{events, groups as groups_table, rooms, users},
};

/// Another seed, another club.
const SEED: u64 = 516;

/// Sign-in name of the member to try things as, whom the demo makes privileged.
const PROTAGONIST: &str = "alice";

/// Groups made here: name, description, whether anybody may join, and how many of the members did.
const GROUPS: [(&str, &str, bool, usize); 3] = [
    ("Festival crew", "Stalls, posters and the programme of the school festival", false, 12),
    ("Newcomers", "Everybody's first year: questions welcome", true, 18),
    ("Rust readers", "The book, chapter by chapter", true, 9),
];

/// Fills a database that has no rooms and no events, and no other: one that was in use and emptied keeps their traces.
/// Replicas that start together fill it once.
///
/// # Errors
/// When the database fails.
pub async fn fill(db: &Database, club: &Club, now: Timestamp) -> Result<(), Error> {
    let (zone, is_made_up) = (club.zone, club.directory == Some(Source::Demo));
    let made = db.write(JobOwner::Internal, move |conn| {
        let mut rng = StdRng::seed_from_u64(SEED);
        let plan = Plan::new(now, zone, &mut rng);
        if !is_ours_to_fill(conn)? || !is_empty(conn)? {
            return Ok(None);
        }
        booking::lock_places(conn, plan.places().map(place_key).collect())?;
        let Some(mut hand) = Hand::new(conn, before_all(&plan, now), rng, zone)? else { return Ok(None) };
        let rooms = hand.make_rooms(conn, &plan.rooms)?;
        hand.make_events(conn, &plan.events, &rooms)?;
        let polls = hand.make_polls(conn, now)?;
        if is_made_up {
            // Last, because a replica that copies the directory meanwhile waits for it.
            let protagonist = users::table.filter(users::name.eq(PROTAGONIST));
            diesel::update(protagonist).set(users::privileged.eq(true)).execute(conn)?;
        }
        Ok(Some((plan.rooms.len(), plan.events.len(), polls)))
    });
    match made.await? {
        Some((rooms, events, polls)) => log::info!("demo: made {rooms} rooms, {events} events and {polls} polls"),
        None => log::info!("demo: the database is in use, being filled, or without active users, and stays as it is"),
    }
    Ok(())
}

/// Whether no other replica is filling the database at this moment: then this one holds the everyone group's row.
fn is_ours_to_fill(conn: &mut AnyConnection) -> Result<bool, Error> {
    let AnyConnection::Postgresql(pg) = conn else { return Ok(true) };
    // Waiting for the other one would take longer than waiting for a lock may. Events refer to the row all the same.
    let row = groups_table::table.find(groups::EVERYONE).select(groups_table::id);
    let lock: Option<DbUuid> = row.for_no_key_update().skip_locked().first(pg).optional()?;
    Ok(lock.is_some())
}

fn is_empty(conn: &mut AnyConnection) -> Result<bool, Error> {
    let has_rooms: bool = select(exists(rooms::table.select(rooms::id))).get_result(conn)?;
    let has_events: bool = select(exists(events::table.select(events::id))).get_result(conn)?;
    Ok(!has_rooms && !has_events)
}

/// A day before the first room was made.
fn before_all(plan: &Plan, now: Timestamp) -> DbTimestamp {
    let first = plan.rooms.iter().map(|room| room.made_at).min();
    DbTimestamp(first.unwrap_or(now).plus(TimeDelta::days(-1)))
}

/// Makes what is planned, as members of the club.
struct Hand {
    rng: StdRng,
    zone: Tz,
    /// Who holds the rooms.
    keeper: DbUuid,
    /// Active ones, by name; there is at least one.
    members: Vec<DbUuid>,
    /// By name; the everyone group by the empty name.
    groups: HashMap<String, Band>,
}

/// A group, as far as its events need it: active people only.
#[derive(Clone)]
struct Band {
    id: DbUuid,
    members: Vec<DbUuid>,
    /// At least one.
    organizers: Vec<DbUuid>,
}

impl Hand {
    /// Looks who there is, and makes the groups that do not come from a directory; none when there is nobody.
    fn new(conn: &mut AnyConnection, at: DbTimestamp, rng: StdRng, zone: Tz) -> Result<Option<Self>, Error> {
        let active = users::table.filter(users::state.eq(ACTIVE)).order((users::name, users::id));
        let active: Vec<(DbUuid, String)> = active.select((users::id, users::name)).load(conn)?;
        let protagonist = active.iter().find(|(_, name)| name == PROTAGONIST);
        let Some((keeper, _)) = protagonist.or(active.first()).cloned() else { return Ok(None) };
        let members = active.into_iter().map(|(id, _)| id).collect();
        let mut hand = Self { rng, zone, keeper, members, groups: HashMap::new() };
        hand.make_groups(conn, at)?;
        let active: HashSet<_> = hand.members.iter().copied().collect();
        let only_active = |ids: Vec<DbUuid>| ids.into_iter().filter(|id| active.contains(id)).collect::<Vec<_>>();
        for group in groups::queries::list(conn, &PageBounds::all())? {
            let (members, admins) = (only_active(group.members), only_active(group.admins));
            let organizers = [&admins, &members, &hand.members].into_iter().find(|people| !people.is_empty());
            let band = Band { id: group.row.id, organizers: organizers.cloned().unwrap_or_default(), members };
            let name = if band.id == groups::EVERYONE { String::new() } else { group.row.name };
            hand.groups.insert(name, band);
        }
        Ok(Some(hand))
    }

    fn make_groups(&mut self, conn: &mut AnyConnection, at: DbTimestamp) -> Result<(), Error> {
        for (name, description, open, size) in GROUPS {
            let members = self.members.choose_multiple(&mut self.rng, size).copied().collect::<Vec<_>>();
            let founder = members[0];
            let group = groups::changes::Edit {
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

    /// Ids of the rooms, in their order; those made at the same time are made together, as an import does.
    fn make_rooms(&self, conn: &mut AnyConnection, planned: &[PlannedRoom]) -> Result<Vec<DbUuid>, Error> {
        let mut ids = Vec::with_capacity(planned.len());
        for batch in planned.chunk_by(|a, b| a.made_at == b.made_at) {
            let room = |room: &PlannedRoom| {
                let (starts_at, ends_at) = (DbTimestamp(room.period.start), DbTimestamp(room.period.end));
                let new = NewRoom::new(room.place.to_owned(), starts_at, ends_at, vec![self.keeper]);
                NewRoom { verified: room.verified, ..new }
            };
            let new: Vec<_> = batch.iter().map(room).collect();
            ids.extend(room_changes::insert(conn, &new, self.keeper, DbTimestamp(batch[0].made_at))?);
        }
        Ok(ids)
    }

    fn make_events(
        &mut self,
        conn: &mut AnyConnection,
        planned: &[PlannedEvent],
        rooms: &[DbUuid],
    ) -> Result<(), Error> {
        let mut answers = Vec::new();
        for event in planned {
            let band = self.band(event.series.group);
            let number = self.rng.random_range(1..=2);
            let organizers: Vec<_> = band.organizers.choose_multiple(&mut self.rng, number).copied().collect();
            let by = organizers[0];
            let Period { start, end } = event.period;
            let draft = Draft {
                name: event.name.clone(),
                description: event.series.description.to_owned(),
                shared: event.shared,
                starts_at: DbTimestamp(start),
                ends_at: DbTimestamp(end),
                at: event.room.map_or_else(|| Where::Place(plan::ONLINE.to_owned()), |n| Where::Room(rooms[n])),
                group: band.id,
                open: event.series.open,
                admins: IdSet::new(organizers.iter().map(|id| id.0)),
                tags: event.series.tags.iter().map(|&(name, locked)| (name.to_owned(), locked)).collect(),
            };
            let id = changes::create(conn, &draft, by, self.zone, DbTimestamp(event.made_at))?;
            answers.extend(self.answers(event, &band, by).into_iter().map(|(user, schedule)| (id, user, schedule)));
        }
        attendance::record_answers(conn, &answers)
    }

    /// The group of this name, or everyone.
    fn band(&self, name: &str) -> Band {
        let everyone =
            || Band { id: groups::EVERYONE, members: self.members.clone(), organizers: self.members.clone() };
        self.groups.get(name).cloned().unwrap_or_else(everyone)
    }

    /// What people say: more of them the nearer the event is. To an open one some come from outside the group.
    fn answers(&mut self, event: &PlannedEvent, band: &Band, organizer: DbUuid) -> Vec<(DbUuid, Schedule)> {
        let mut answers = Vec::new();
        for member in band.members.iter().copied() {
            let luck: f64 = self.rng.random();
            if member == organizer || luck < event.interest * 0.65 {
                answers.push((member, Schedule::Attendance));
            } else if luck < event.interest {
                answers.push((member, Schedule::Absent));
            }
        }
        if event.series.open {
            for _ in 0..self.rng.random_range(0..=4) {
                let guest = self.members.choose(&mut self.rng).copied();
                answers
                    .extend(guest.filter(|guest| !band.members.contains(guest)).map(|it| (it, Schedule::Attendance)));
            }
            answers.sort_unstable_by_key(|(user, _)| *user);
            answers.dedup_by_key(|(user, _)| *user);
        }
        answers
    }
}
