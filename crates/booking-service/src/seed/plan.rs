//! What the seeded club does, by arithmetic: every room and event follows from its number, so that any part of them can
//! be made alone and the same is made every time.
//!
//! Five rooms at a time have twenty events: four rooms that the club holds for a day, with five, five, five and four
//! events in them, and the room of an event that only named a place. A week has about 190 events, in every size but
//! `club`.

use chrono::TimeDelta;
use common::time::Timestamp;
use service_kit::{
    database::types::{DbTimestamp, DbUuid},
    directory::seed::{self, Size},
};

use crate::events::queries::Schedule;

/// Rooms in a row that together have [`EVENTS_OF_BLOCK`] events.
const BLOCK: usize = 5;

/// Events of [`BLOCK`] rooms.
const EVENTS_OF_BLOCK: usize = 20;

/// The number, within its block, of the first event of each room; and where the next block begins.
const FIRST_EVENTS: [usize; BLOCK + 1] = [0, 5, 10, 15, 19, EVENTS_OF_BLOCK];

/// Places of which the club holds one a day, each at most once.
const HALLS: [&str; 8] = ["S511", "S512", "S513", "S514", "S515", "S516", "W621", "Lecture Theatre 70"];

/// Places that nobody confirms, where events never conflict.
const ELSEWHERE: [&str; 3] = ["Discord", "Club room", "Library"];

/// Tags in all, and of an event.
pub const TAGS: usize = 40;

/// People invited to an event: those who were in its group when it was made, who are fewer than are in it now.
pub const INVITED: usize = 15;

/// Events in the feed of the user who is in no group.
pub const FEED: usize = 500;

/// Days ahead for which there are events, at most.
const AHEAD: i64 = 364;

/// A room as its number says.
#[derive(Debug)]
pub struct PlannedRoom {
    pub id: DbUuid,
    pub place: &'static str,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    /// The club holds it; else it was made for its one event.
    pub held: bool,
    pub made_at: DbTimestamp,
}

/// An event as its number says. People are numbers too, of members of its group.
#[derive(Debug)]
pub struct PlannedEvent {
    pub number: usize,
    pub id: DbUuid,
    pub name: String,
    pub shared: bool,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub made_at: DbTimestamp,
    pub group: usize,
    pub open: bool,
    pub admins: [usize; 2],
    /// Number, and whether it is locked.
    pub tags: [(usize, bool); 2],
    /// Whether the user who is in no group comes, in place of the last one invited.
    pub has_guest: bool,
}

/// A size around a day.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    size: Size,
    day: Timestamp,
}

impl Plan {
    /// The plan of a size for a day, by its midnight.
    pub fn new(size: Size, day: Timestamp) -> Self {
        Self { size, day }
    }

    /// Rooms in all, a multiple of [`BLOCK`].
    pub fn rooms(&self) -> usize {
        match self.size {
            Size::Small | Size::Club => 500,
            Size::Large => 5_000,
            Size::Huge => 250_000,
        }
    }

    /// Events in all.
    pub fn events(&self) -> usize {
        self.rooms() / BLOCK * EVENTS_OF_BLOCK
    }

    /// Days that the rooms are spread over.
    fn days(&self) -> i64 {
        match self.size {
            Size::Small => 70,
            Size::Club | Size::Large => 728,
            Size::Huge => 50 * 728,
        }
    }

    /// When everything begins, before which the club was made.
    pub fn begin(&self) -> DbTimestamp {
        self.at(self.first_day() - 500, 0)
    }

    /// The first day with rooms, counted from the day of the plan.
    fn first_day(&self) -> i64 {
        -(self.days() - AHEAD.min(self.days() / 2))
    }

    /// The day of a room, counted likewise. No two held rooms of one place are on one day: a place comes round every
    /// eighth room, and a day has seven and a bit at most.
    fn day_of(&self, room: usize) -> i64 {
        let (room, rooms) = (i64::try_from(room).unwrap_or(0), i64::try_from(self.rooms()).unwrap_or(1));
        self.first_day() + room * self.days() / rooms
    }

    fn at(&self, day: i64, minute: i64) -> DbTimestamp {
        DbTimestamp(self.day.plus(TimeDelta::days(day) + TimeDelta::minutes(minute)))
    }

    /// When something on a day was asked for: a month before, or long before, but never later than the plan's day.
    fn made_on(day: i64) -> i64 {
        if day < 30 { day - 31 } else { day - 400 }
    }

    /// One of the rooms.
    pub fn room(&self, number: usize) -> PlannedRoom {
        let (day, held) = (self.day_of(number), number % BLOCK < BLOCK - 1);
        let made_at = self.at(Self::made_on(day), 0);
        let (place, from, to) = if held {
            (HALLS[number % HALLS.len()], 9 * 60, 21 * 60)
        } else {
            (ELSEWHERE[number / BLOCK % ELSEWHERE.len()], 20 * 60, 22 * 60)
        };
        let (starts_at, ends_at) = (self.at(day, from), self.at(day, to));
        PlannedRoom { id: id(made_at, Kind::Room, number), place, starts_at, ends_at, held, made_at }
    }

    /// The events of one of the rooms.
    pub fn events_of(&self, room: usize) -> impl Iterator<Item = PlannedEvent> + use<> {
        let (plan, held) = (*self, room % BLOCK < BLOCK - 1);
        let first = room / BLOCK * EVENTS_OF_BLOCK;
        let (from, to) = (first + FIRST_EVENTS[room % BLOCK], first + FIRST_EVENTS[room % BLOCK + 1]);
        (from..to).map(move |number| plan.event(number, room, i64::try_from(number - from).unwrap_or(0), held))
    }

    fn event(&self, number: usize, room: usize, nth: i64, held: bool) -> PlannedEvent {
        let day = self.day_of(room);
        // In every third room the second and the third event share it for a while.
        let shared = held && room.is_multiple_of(3) && (nth == 1 || nth == 2);
        let from = if held { 9 * 60 + nth * 140 - if shared && nth == 2 { 60 } else { 0 } } else { 20 * 60 };
        let made_at = self.at(Self::made_on(day), 60 * 12);
        let (tag, has_guest) = (number % TAGS, self.has_guest(number));
        PlannedEvent {
            number,
            id: id(made_at, Kind::Event, number),
            name: format!("Evening of group no. {}", number % self.size.groups()),
            shared,
            starts_at: self.at(day, from),
            ends_at: self.at(day, from + 120),
            made_at,
            group: number % self.size.groups(),
            open: has_guest || number.is_multiple_of(4),
            admins: [number % INVITED, (number + 7) % INVITED],
            tags: [(tag, number.is_multiple_of(10)), ((tag + 1 + number / TAGS % (TAGS - 1)) % TAGS, false)],
            has_guest,
        }
    }

    /// Whether an event is in the feed of the user who is in no group: [`FEED`] of those that a feed reaches back to.
    fn has_guest(&self, number: usize) -> bool {
        // A feed goes 90 days back from whenever it is asked for.
        let reach = usize::try_from(-80 - self.first_day()).unwrap_or(0);
        let days = usize::try_from(self.days()).unwrap_or(1);
        let first = (reach * self.rooms() / days).div_ceil(BLOCK) * EVENTS_OF_BLOCK;
        let every = (self.events() - first) / FEED;
        number >= first && (number - first).is_multiple_of(every) && (number - first) / every < FEED
    }
}

impl PlannedEvent {
    /// What somebody invited says.
    pub fn answer(&self, invited: usize) -> Schedule {
        match (self.number * 31 + invited * 17) % 10 {
            _ if invited == self.admins[0] => Schedule::Attendance,
            0..5 => Schedule::Attendance,
            5..7 => Schedule::Absent,
            _ => Schedule::Pending,
        }
    }
}

/// What an identifier is of.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Room = 1,
    Event = 2,
    Tag = 3,
}

/// The identifier of something made at a time.
pub fn id(made_at: DbTimestamp, kind: Kind, number: usize) -> DbUuid {
    DbUuid(seed::id(made_at.0, kind as u8, number))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::rooms::overlap::{Span, Use, conflicts};

    fn span(from: DbTimestamp, to: DbTimestamp) -> Span {
        Span { start: from.utc(), end: to.utc() }
    }

    #[test]
    fn every_size_is_a_club_without_conflicts() {
        let day = "2026-11-20T00:00:00Z".parse().unwrap();
        for size in [Size::Small, Size::Club, Size::Large] {
            let plan = Plan::new(size, day);
            let (mut held, mut ids, mut events, mut guests) = (HashSet::new(), HashSet::new(), 0, 0);
            for number in 0..plan.rooms() {
                let room = plan.room(number);
                assert!(ids.insert(room.id) && room.made_at.0 < plan.day);
                assert!(!room.held || held.insert((room.place, room.starts_at)), "{room:?}");
                let all: Vec<_> = plan.events_of(number).collect();
                assert!(room.held || all.len() == 1);
                for (n, event) in all.iter().enumerate() {
                    assert_eq!(event.number, events + n);
                    assert!(ids.insert(event.id) && room.made_at < event.made_at && event.made_at.0 < plan.day);
                    assert!(room.starts_at <= event.starts_at && event.ends_at <= room.ends_at, "{event:?}");
                    assert_ne!(event.admins[0], event.admins[1]);
                    assert_ne!(event.tags[0].0, event.tags[1].0);
                    let usage = |event: &PlannedEvent| Use {
                        room: DbUuid::nil(),
                        span: span(event.starts_at, event.ends_at),
                        shared: event.shared,
                    };
                    assert!(
                        all[n + 1..].iter().all(|other| !conflicts(&usage(event), &usage(other), &[])),
                        "{event:?}"
                    );
                    guests += usize::from(event.has_guest);
                }
                events += all.len();
            }
            assert_eq!((events, guests), (plan.events(), FEED));
        }
    }

    #[test]
    fn a_week_of_any_time_is_as_full_as_the_present_one() {
        let day = "2026-11-20T00:00:00Z".parse().unwrap();
        for (size, weeks) in [(Size::Small, -4..4), (Size::Large, -51..51), (Size::Huge, -51..51)] {
            let plan = Plan::new(size, day);
            let from = plan.rooms() - plan.rooms().min(5_200);
            let starts: Vec<_> = (from..plan.rooms()).flat_map(|room| plan.events_of(room)).collect();
            for week in weeks {
                let (from, to) = (plan.at(7 * week, 0), plan.at(7 * week + 7, 0));
                let found = starts.iter().filter(|event| from <= event.starts_at && event.starts_at < to).count();
                assert!((180..=205).contains(&found), "{size:?}, week {week}: {found}");
            }
        }
    }
}
