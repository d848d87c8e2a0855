//! Fills the database of the booking-service. The ordinary sync adds users and groups, and the function that creates
//! all rooms adds the rooms of the plan. Events are inserted in batches, with the same rows as by the operations.

use std::sync::Arc;

use booking_service::{
    events::{queries::Schedule, search::text_key},
    groups,
    period_filter::is_long,
    rooms::{
        booking,
        changes::{self, NewRoom},
        place::place_key,
    },
    schema::{attendees, event_admins, event_tags, events, rooms, tags, users},
    tags::key,
    users::{queries::grant_privilege, sync},
};
use chrono::NaiveDate;
use club_directory::{DirectoryGroup, Snapshot};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection, Database, JobOwner,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    progress::Progress,
    with_connection,
};

use super::{
    CHUNK, Say, Size, analyze,
    booking_plan::{self as plan, INVITED, Kind, Plan, PlannedEvent, PlannedRoom, TAGS},
    directory, in_use, midnight,
};

/// The group of all active users, as the service names it by default.
const EVERYONE_GROUP: &str = "traP";

/// Rooms of one transaction, with their events. A transaction has a time limit.
const STEP: usize = 500;

/// The description of every event.
const DESCRIPTION: &str = "Bring a laptop and something to write with; whoever comes for the first time sits in front.";

/// Fills a database without users, rooms and events.
///
/// # Errors
/// 409 when the database is not empty.
pub async fn fill(db: &Database, size: Size, day: NaiveDate, progress: &Progress, say: Say<'_>) -> Result<(), Error> {
    let (plan, club) = (Plan::new(size, midnight(day)?), Arc::new(directory::snapshot(size)));
    let snapshot = club.clone();
    db.write(JobOwner::Internal, move |conn| insert_users_groups_and_tags(conn, &snapshot, plan.begin())).await?;
    say(&format!("{} users and {} groups", club.users.len(), club.groups.len()));
    progress.step("adding rooms with their events", Some(plan.rooms() as u64));
    for from in (0..plan.rooms()).step_by(STEP) {
        let (club, to) = (club.clone(), plan.rooms().min(from + STEP));
        db.write(JobOwner::Internal, move |conn| insert_rooms(conn, &plan, &club, from, to)).await?;
        progress.add((to - from) as u64);
    }
    progress.step("collecting statistics", None);
    analyze(db).await?;
    say(&format!("{} rooms", plan.rooms()));
    say(&format!("{} events around {day}", plan.events()));
    Ok(())
}

/// Inserts the users, the groups and the tags.
fn insert_users_groups_and_tags(conn: &mut AnyConnection, directory: &Snapshot, now: DbTimestamp) -> Result<(), Error> {
    let user: Option<DbUuid> = users::table.select(users::id).first(conn).optional()?;
    let room: Option<DbUuid> = rooms::table.select(rooms::id).first(conn).optional()?;
    let event: Option<DbUuid> = events::table.select(events::id).first(conn).optional()?;
    if user.or(room).or(event).is_some() {
        return Err(in_use());
    }
    groups::queries::ensure_everyone_group(conn, Some(EVERYONE_GROUP), now)?;
    sync::apply(conn, directory, false, now)?;
    if let Some(first) = directory.users.first() {
        grant_privilege(conn, &first.name, now)?;
    }
    let names = (0..TAGS).map(|number| (number, format!("tag {number}")));
    let rows: Vec<_> = names
        .map(|(number, name)| {
            (
                tags::id.eq(tag_id(now, number)),
                tags::name_key.eq(key(&name)),
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

/// Inserts some of the rooms, with their events.
fn insert_rooms(conn: &mut AnyConnection, plan: &Plan, club: &Snapshot, from: usize, to: usize) -> Result<(), Error> {
    let planned: Vec<_> = (from..to).map(|number| Usage::new(plan, number)).collect();
    booking::lock_places(conn, planned.iter().map(|usage| place_key(&usage.room.place)).collect())?;
    for usage in planned.iter().filter(|usage| !usage.room.verified) {
        let [creator, _] = usage.events[0].admins(club);
        changes::insert_with_ids(conn, &[usage.new_room(club)], creator, usage.events[0].created_at)?;
    }
    let owner = owner(club);
    let verified: Vec<_> = planned.iter().filter(|usage| usage.room.verified).collect();
    // Rooms with the same creation time are inserted together, as by an import.
    for usages in verified.chunk_by(|a, b| a.room.created_at == b.room.created_at) {
        let new: Vec<_> = usages.iter().map(|usage| usage.new_room(club)).collect();
        changes::insert_with_ids(conn, &new, owner, usages[0].room.created_at)?;
    }
    insert_events(conn, club, &planned)?;
    let events: Vec<_> = planned.iter().flat_map(|usage| &usage.events).collect();
    insert_people(conn, club, &events)?;
    insert_tags(conn, plan.begin(), &events)
}

/// The administrator of the verified rooms.
fn owner(club: &Snapshot) -> DbUuid {
    club.users.first().map_or_else(DbUuid::nil, |user| DbUuid(user.id))
}

/// A room with its events.
struct Usage {
    room: PlannedRoom,
    events: Vec<PlannedEvent>,
}

impl Usage {
    fn new(plan: &Plan, number: usize) -> Self {
        Self { room: plan.room(number), events: plan.events_of(number).collect() }
    }

    /// The room of an instant event has the administrators of the event.
    fn new_room(&self, club: &Snapshot) -> (DbUuid, NewRoom) {
        let room = &self.room;
        let admins = if room.verified { vec![owner(club)] } else { self.events[0].admins(club).to_vec() };
        let new = NewRoom::new(room.place.clone(), room.starts_at, room.ends_at, admins);
        (room.id, NewRoom { verified: room.verified, made_for_event: !room.verified, ..new })
    }
}

impl PlannedEvent {
    fn group<'a>(&self, club: &'a Snapshot) -> &'a DirectoryGroup {
        &club.groups[self.group]
    }

    /// The first is the creator.
    fn admins(&self, club: &Snapshot) -> [DbUuid; 2] {
        self.admins.map(|number| DbUuid(self.group(club).members[number]))
    }

    /// The answers of all attendees.
    fn answers(&self, club: &Snapshot) -> impl Iterator<Item = (DbUuid, Schedule)> {
        let invited = if self.has_guest { INVITED - 1 } else { INVITED };
        let members = self.group(club).members.iter().take(invited).enumerate();
        let guest = club.users.last().filter(|_| self.has_guest);
        members
            .map(|(number, member)| (DbUuid(*member), self.answer(number)))
            .chain(guest.map(|guest| (DbUuid(guest.id), Schedule::Attendance)))
    }
}

fn insert_events(conn: &mut AnyConnection, club: &Snapshot, rooms: &[Usage]) -> Result<(), Error> {
    let all = rooms.iter().flat_map(|usage| usage.events.iter().map(|event| (&usage.room, event)));
    let rows: Vec<_> = all
        .map(|(room, event)| {
            (
                (events::id.eq(event.id), events::name.eq(&event.name), events::description.eq(DESCRIPTION)),
                events::text_key.eq(text_key(&event.name, DESCRIPTION)),
                (events::starts_at.eq(event.starts_at), events::ends_at.eq(event.ends_at)),
                (events::shared.eq(event.shared), events::is_long.eq(is_long(event.starts_at, event.ends_at))),
                (events::place.eq(&room.place), events::place_key.eq(place_key(&room.place))),
                (events::room_id.eq(room.id), events::owns_room.eq(!room.verified)),
                (events::group_id.eq(DbUuid(event.group(club).id)), events::open.eq(event.open)),
                (events::sequence.eq(0), events::created_by.eq(event.admins(club)[0])),
                (events::created_at.eq(event.created_at), events::updated_at.eq(event.created_at)),
            )
        })
        .collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(events::table).values(rows).execute(c)?);
    }
    Ok(())
}

fn insert_people(conn: &mut AnyConnection, club: &Snapshot, events: &[&PlannedEvent]) -> Result<(), Error> {
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

fn insert_tags(conn: &mut AnyConnection, begin: DbTimestamp, events: &[&PlannedEvent]) -> Result<(), Error> {
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
