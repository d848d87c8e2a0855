//! The rooms and events of the generated club. Each is computed from its number, so any part can be generated alone,
//! and every run generates the same rows.
//!
//! Five rooms form a block with twenty events: four verified rooms of a day, with five, five, five and four events, and
//! the room of an instant event. A week has about 190 events, in every size but `club`.

use booking_service::events::queries::Schedule;
use chrono::TimeDelta;
use common::time::Timestamp;
use service_kit::database::types::{DbTimestamp, DbUuid};

use super::{Size, directory};

/// Consecutive rooms that together have [`EVENTS_OF_BLOCK`] events.
const BLOCK: usize = 5;

/// Events of [`BLOCK`] rooms.
const EVENTS_OF_BLOCK: usize = 20;

/// Rooms that are spread over all days. In `crowded`, more follow for the same days, at other places.
const LAYER: usize = 5_000;

/// The number, within the block, of the first event of each room; the last entry is that of the next block.
const FIRST_EVENTS: [usize; BLOCK + 1] = [0, 5, 10, 15, 19, EVENTS_OF_BLOCK];

/// Places of verified rooms. Each has at most one room a day.
const HALLS: [&str; 8] = ["S511", "S512", "S513", "S514", "S515", "S516", "W621", "Lecture Theatre 70"];

/// Places of instant events, which have no verified rooms.
const ELSEWHERE: [&str; 3] = ["Discord", "Club room", "Library"];

/// The number of tags.
pub const TAGS: usize = 40;

/// Attendees of an event. Its group has more members.
pub const INVITED: usize = 15;

/// Events in the feed of the user who is in no group.
pub const FEED: usize = 500;

/// The maximum number of days after the plan's day on which there are events.
const AHEAD: i64 = 364;

/// A room of the plan.
#[derive(Debug)]
pub struct PlannedRoom {
    pub id: DbUuid,
    pub place: String,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    /// Whether the room is verified. A room that is not was created for its single instant event.
    pub verified: bool,
    pub created_at: DbTimestamp,
}

/// An event of the plan. People are indices into the members of its group.
#[derive(Debug)]
pub struct PlannedEvent {
    pub number: usize,
    pub id: DbUuid,
    pub name: String,
    pub shared: bool,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub created_at: DbTimestamp,
    pub group: usize,
    pub open: bool,
    pub admins: [usize; 2],
    /// Numbers of tags, and whether each is locked.
    pub tags: [(usize, bool); 2],
    /// Whether the user who is in no group is the last attendee.
    pub has_guest: bool,
}

/// The plan of a size and a day.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    size: Size,
    day: Timestamp,
}

impl Plan {
    /// The plan of a size and of a day, given by its midnight.
    pub fn new(size: Size, day: Timestamp) -> Self {
        Self { size, day }
    }

    /// The number of rooms, a multiple of [`BLOCK`].
    pub fn rooms(&self) -> usize {
        match self.size {
            Size::Small | Size::Club => 500,
            Size::Large => 5_000,
            Size::Crowded => 10 * LAYER,
            Size::Huge => 250_000,
        }
    }

    /// The number of events.
    pub fn events(&self) -> usize {
        self.rooms() / BLOCK * EVENTS_OF_BLOCK
    }

    /// Days that the rooms are spread over.
    fn days(&self) -> i64 {
        match self.size {
            Size::Small => 70,
            Size::Club | Size::Large | Size::Crowded => 728,
            Size::Huge => 50 * 728,
        }
    }

    /// The creation time of users, groups and tags, before all others.
    pub fn begin(&self) -> DbTimestamp {
        self.at(self.first_day() - 500, 0)
    }

    /// The first day with rooms, counted from the day of the plan.
    fn first_day(&self) -> i64 {
        -(self.days() - AHEAD.min(self.days() / 2))
    }

    /// The day of a room, counted from the day of the plan. No two verified rooms of one place are on the same day,
    /// because every eighth room has the same place and a day has at most eight rooms.
    fn day_of(&self, room: usize) -> i64 {
        let (room, rooms) = (self.in_layer(room).1, self.in_layer(self.rooms() - 1).1 + 1);
        let (room, rooms) = (i64::try_from(room).unwrap_or(0), i64::try_from(rooms).unwrap_or(1));
        self.first_day() + room * self.days() / rooms
    }

    /// The layer of a room, and its number there.
    fn in_layer(&self, room: usize) -> (usize, usize) {
        if self.size == Size::Crowded { (room / LAYER, room % LAYER) } else { (0, room) }
    }

    fn at(&self, day: i64, minute: i64) -> DbTimestamp {
        DbTimestamp(self.day.plus(TimeDelta::days(day) + TimeDelta::minutes(minute)))
    }

    /// The day on which the room and events of a day were created: 31 or 400 days before, and before the plan's day.
    fn created_on(day: i64) -> i64 {
        if day < 30 { day - 31 } else { day - 400 }
    }

    /// One of the rooms.
    pub fn room(&self, number: usize) -> PlannedRoom {
        let (day, verified) = (self.day_of(number), number % BLOCK < BLOCK - 1);
        let created_at = self.at(Self::created_on(day), 0);
        let (place, from, to) = if verified {
            (HALLS[number % HALLS.len()], 9 * 60, 21 * 60)
        } else {
            (ELSEWHERE[number / BLOCK % ELSEWHERE.len()], 20 * 60, 22 * 60)
        };
        let place = match self.in_layer(number).0 {
            0 => place.to_owned(),
            layer => format!("{place} of building {layer}"),
        };
        let (starts_at, ends_at) = (self.at(day, from), self.at(day, to));
        PlannedRoom { id: id(created_at, Kind::Room, number), place, starts_at, ends_at, verified, created_at }
    }

    /// The events of one of the rooms.
    pub fn events_of(&self, room: usize) -> impl Iterator<Item = PlannedEvent> + use<> {
        let (plan, verified) = (*self, room % BLOCK < BLOCK - 1);
        let first = room / BLOCK * EVENTS_OF_BLOCK;
        let (from, to) = (first + FIRST_EVENTS[room % BLOCK], first + FIRST_EVENTS[room % BLOCK + 1]);
        (from..to).map(move |number| plan.event(number, room, i64::try_from(number - from).unwrap_or(0), verified))
    }

    fn event(&self, number: usize, room: usize, nth: i64, verified: bool) -> PlannedEvent {
        let day = self.day_of(room);
        // In every third room the second and the third event share it for a while.
        let shared = verified && room.is_multiple_of(3) && (nth == 1 || nth == 2);
        let from = if verified { 9 * 60 + nth * 140 - if shared && nth == 2 { 60 } else { 0 } } else { 20 * 60 };
        let created_at = self.at(Self::created_on(day), 60 * 12);
        let (tag, has_guest) = (number % TAGS, self.has_guest(number));
        PlannedEvent {
            number,
            id: id(created_at, Kind::Event, number),
            name: format!("Evening of group no. {}", number % self.size.groups()),
            shared,
            starts_at: self.at(day, from),
            ends_at: self.at(day, from + 120),
            created_at,
            group: number % self.size.groups(),
            open: has_guest || number.is_multiple_of(4),
            admins: [number % INVITED, (number + 7) % INVITED],
            tags: [(tag, number.is_multiple_of(10)), ((tag + 1 + number / TAGS % (TAGS - 1)) % TAGS, false)],
            has_guest,
        }
    }

    /// Whether an event is in the feed of the user who is in no group, who has [`FEED`] of the events that a feed
    /// shows.
    fn has_guest(&self, number: usize) -> bool {
        // A feed starts 90 days before the request. The events begin ten days later, for requests some days after the
        // seed.
        let reach = usize::try_from(-80 - self.first_day()).unwrap_or(0);
        let days = usize::try_from(self.days()).unwrap_or(1);
        let rooms = self.in_layer(self.rooms() - 1).1 + 1;
        let first = (reach * rooms / days).div_ceil(BLOCK) * EVENTS_OF_BLOCK;
        let every = (rooms / BLOCK * EVENTS_OF_BLOCK - first) / FEED;
        number >= first && (number - first).is_multiple_of(every) && (number - first) / every < FEED
    }
}

impl PlannedEvent {
    /// The answer of an attendee.
    pub fn answer(&self, invited: usize) -> Schedule {
        match (self.number * 31 + invited * 17) % 10 {
            _ if invited == self.admins[0] => Schedule::Attendance,
            0..5 => Schedule::Attendance,
            5..7 => Schedule::Absent,
            _ => Schedule::Pending,
        }
    }
}

/// The kind of row that an identifier belongs to.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Room = 1,
    Event = 2,
    Tag = 3,
}

/// The identifier of a row with this creation time.
pub fn id(created_at: DbTimestamp, kind: Kind, number: usize) -> DbUuid {
    DbUuid(directory::id(created_at.0, kind as u8, number))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use booking_service::rooms::overlap::{Span, Use, conflicts};

    use super::*;

    fn span(from: DbTimestamp, to: DbTimestamp) -> Span {
        Span { start: *from, end: *to }
    }

    #[test]
    fn no_size_has_conflicting_events() {
        let day = "2026-11-20T00:00:00Z".parse().unwrap();
        for size in [Size::Small, Size::Club, Size::Large, Size::Crowded] {
            let plan = Plan::new(size, day);
            let (mut spans, mut ids, mut events, mut guests) = (HashSet::new(), HashSet::new(), 0, 0);
            for number in 0..plan.rooms() {
                let room = plan.room(number);
                assert!(ids.insert(room.id) && room.created_at.0 < plan.day);
                assert!(!room.verified || spans.insert((room.place.clone(), room.starts_at)), "{room:?}");
                let all: Vec<_> = plan.events_of(number).collect();
                assert!(room.verified || all.len() == 1);
                for (n, event) in all.iter().enumerate() {
                    assert_eq!(event.number, events + n);
                    assert!(ids.insert(event.id) && event.created_at.0 < plan.day);
                    assert!(room.created_at < event.created_at);
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
    fn every_week_has_about_the_same_number_of_events() {
        let day = "2026-11-20T00:00:00Z".parse().unwrap();
        for (size, weeks) in [(Size::Small, -4..4), (Size::Large, -51..51), (Size::Huge, -51..51)] {
            let plan = Plan::new(size, day);
            let from = plan.rooms() - plan.rooms().min(5_200);
            let starts: Vec<_> = (from..plan.rooms()).flat_map(|room| plan.events_of(room)).collect();
            for week in weeks {
                let (from, to) = (plan.at(7 * week, 0), plan.at(7 * week + 7, 0));
                let in_week = starts.iter().filter(|event| from <= event.starts_at && event.starts_at < to).count();
                assert!((180..=205).contains(&in_week), "{size:?}, week {week}: {in_week}");
            }
        }
    }
}
