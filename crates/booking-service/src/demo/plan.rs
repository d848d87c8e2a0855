//! The rooms and events of the example club, relative to today in the club's time zone.

use std::collections::HashMap;

use chrono::{Datelike, NaiveDate, NaiveTime, TimeDelta, TimeZone, Weekday};
use chrono_tz::Tz;
use common::time::Timestamp;
use rand::{Rng, rngs::StdRng, seq::IndexedRandom};

/// The number of days planned before today, and after today.
const DAYS_EACH_WAY: i32 = 56;

/// The place of online events.
pub const ONLINE: &str = "Discord";

/// A place whose rooms are not verified.
const HALL: &str = "Lecture Theatre 70";

/// A place without events from today on, so that a visitor can book it.
const UNUSED: &str = "S517";

/// The places of the rooms on a weekday evening, and on a day of the weekend.
const WEEKDAY: [&str; 3] = ["S511", "S516", UNUSED];
const WEEKEND: [&str; 2] = ["S516", UNUSED];

/// A kind of event that takes place several times.
#[derive(Debug)]
pub struct Series {
    pub name: &'static str,
    pub description: &'static str,
    /// The name of the group; empty for the everyone group.
    pub group: &'static str,
    pub open: bool,
    /// The name of each, and whether it is locked.
    pub tags: &'static [(&'static str, bool)],
}

const fn series(
    name: &'static str,
    group: &'static str,
    open: bool,
    tags: &'static [(&'static str, bool)],
    description: &'static str,
) -> Series {
    Series { name, description, group, open, tags }
}

const IN_ROOMS: [Series; 16] = [
    series(
        "Algorithms evening",
        "algorithms",
        false,
        &[("contest", false)],
        "One hard problem, many ways to solve it.",
    ),
    series("Virtual contest", "algorithms", true, &[("contest", true)], "Two hours, six problems, then pizza."),
    series("Game jam", "game", false, &[("game", true), ("hands-on", false)], "From a theme to something playable."),
    series("Playtest", "game", true, &[("game", true), ("beginners", false)], "Try what the others have made."),
    series("Figure drawing", "graphics", true, &[("hands-on", false)], "Bring paper; pencils are there."),
    series("Shader reading", "graphics", false, &[("lecture", false)], "Last week's best, line by line."),
    series("作曲会", "sound", false, &[("音楽", false)], "曲を持ち寄って聴き合います。"),
    series("Mixing workshop", "sound", true, &[("音楽", false), ("hands-on", false)], "イヤホンを忘れずに。"),
    series("CTF practice", "ctf", false, &[("security", true)], "Old challenges; nobody spoils the flags."),
    series("Server maintenance", "sysadmin", false, &[("infra", true)], "Updates, backups, and one restore for real."),
    series("Paper reading", "kaggle", false, &[("lecture", false)], "Read the abstract before you come."),
    series("Poster workshop", "pr", true, &[("hands-on", false)], "Next month's posters."),
    series("Rust evening", "Rust readers", true, &[("rust", true), ("beginners", false)], "Bring a laptop."),
    series("Ask anything", "Newcomers", true, &[("beginners", true)], "There are no bad questions."),
    series("Festival planning", "Festival crew", false, &[], "Who builds what, and until when."),
    series("Lightning talks", "", true, &[("lecture", true)], "Five minutes each. Just put your name on the board."),
];

const ONLINE_SERIES: [Series; 5] = [
    series("Code review", "game", false, &[("online", false), ("game", true)], ""),
    series("Contest review", "algorithms", true, &[("online", false), ("contest", false)], "Bring your accepted code."),
    series("On-call handover", "sysadmin", false, &[("online", false), ("infra", true)], ""),
    series("Mob programming", "Rust readers", true, &[("online", false), ("rust", true)], "One screen, many heads."),
    series("Listening hour", "sound", true, &[("online", false), ("音楽", false)], ""),
];

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub start: Timestamp,
    pub end: Timestamp,
}

/// A room to create.
#[derive(Debug)]
pub struct PlannedRoom {
    pub place: &'static str,
    pub period: Period,
    pub verified: bool,
    pub created_at: Timestamp,
}

/// An event.
#[derive(Debug)]
pub struct PlannedEvent {
    pub series: &'static Series,
    pub name: String,
    /// The index of the planned room; `None` for an online event.
    pub room: Option<usize>,
    pub period: Period,
    pub shared: bool,
    pub created_at: Timestamp,
    /// The share of the group's members who have answered.
    pub interest: f64,
}

/// The rooms and events to create.
#[derive(Debug)]
pub struct Plan {
    /// By day.
    pub rooms: Vec<PlannedRoom>,
    /// By start.
    pub events: Vec<PlannedEvent>,
}

/// A day of the plan.
#[derive(Clone, Copy)]
struct Day {
    date: NaiveDate,
    /// Days after today; negative before today.
    ahead: i32,
    zone: Tz,
    today: Timestamp,
}

impl Day {
    fn is_weekend(self) -> bool {
        matches!(self.date.weekday(), Weekday::Sat | Weekday::Sun)
    }

    /// The period between two local times of this day, in minutes since midnight.
    fn period(self, from: u32, to: u32) -> Option<Period> {
        Some(Period { start: instant(self.date, from, self.zone)?, end: instant(self.date, to, self.zone)? })
    }

    /// The period of the rooms on this day, in minutes since midnight.
    fn hours(self) -> (u32, u32) {
        if self.is_weekend() { (10 * 60, 18 * 60) } else { (18 * 60, 21 * 60) }
    }

    /// The time when the rooms of this day were imported. Each import is for some weeks; the last was 20 days ago.
    fn imported_at(self) -> Timestamp {
        let days = match self.ahead {
            ..-14 => 80,
            -14..28 => 40,
            28.. => 20,
        };
        self.today.plus(TimeDelta::days(-days) + TimeDelta::hours(3))
    }

    /// A random time of creation: 3 to 20 days before the event, and if that is in the future, in the last two weeks.
    fn declared_at(self, start: Timestamp, rng: &mut StdRng) -> Timestamp {
        let lead = TimeDelta::minutes(rng.random_range(3 * 1440..20 * 1440));
        let recent = TimeDelta::minutes(rng.random_range(0..14 * 1440));
        start.plus(-lead).min(self.today.plus(-recent))
    }

    fn interest(self) -> f64 {
        match self.ahead {
            ..0 => 0.9,
            0..7 => 0.7,
            7..21 => 0.45,
            21.. => 0.2,
        }
    }
}

/// The instant of a local time; an hour later if the clocks skip it.
fn instant(date: NaiveDate, minutes: u32, zone: Tz) -> Option<Timestamp> {
    let local = date.and_time(NaiveTime::MIN) + TimeDelta::minutes(minutes.into());
    let skipped = || zone.from_local_datetime(&(local + TimeDelta::hours(1))).earliest();
    let at = zone.from_local_datetime(&local).earliest().or_else(skipped)?;
    Timestamp::new(at.to_utc())
}

impl Plan {
    /// The plan for the day of `now`.
    pub fn new(now: Timestamp, zone: Tz, rng: &mut StdRng) -> Self {
        let date = now.utc().with_timezone(&zone).date_naive();
        let mut plan = Self { rooms: Vec::new(), events: Vec::new() };
        let today = instant(date, 0, zone).unwrap_or(now);
        for ahead in -DAYS_EACH_WAY..=DAYS_EACH_WAY {
            if let Some(date) = date.checked_add_signed(TimeDelta::days(ahead.into())) {
                plan.add_day(Day { date, ahead, zone, today }, rng);
            }
        }
        plan.events.sort_by_key(|event| (event.period.start, event.room));
        let mut numbers = HashMap::new();
        for event in &mut plan.events {
            let number = numbers.entry(event.series.name).or_insert(0);
            *number += 1;
            event.name = format!("{} #{number}", event.series.name);
        }
        plan
    }

    /// The places of all rooms and events, with repetitions.
    pub fn places(&self) -> impl Iterator<Item = &'static str> {
        self.rooms.iter().map(|room| room.place).chain([ONLINE])
    }

    fn add_day(&mut self, day: Day, rng: &mut StdRng) {
        let (from, to) = day.hours();
        let Some(period) = day.period(from, to) else { return };
        let places = if day.is_weekend() { &WEEKEND[..] } else { &WEEKDAY[..] };
        for place in places {
            let room = self.rooms.len();
            self.rooms.push(PlannedRoom { place, period, verified: true, created_at: day.imported_at() });
            for (from, to, shared) in uses(day, place, rng) {
                self.add_event(day, Some(room), (from, to), shared, rng);
            }
        }
        if day.ahead > 7 && day.date.weekday() == Weekday::Sat {
            let created_at = day.today.plus(TimeDelta::days(-1));
            self.rooms.push(PlannedRoom { place: HALL, period, verified: false, created_at });
        }
        if rng.random_bool(0.3) {
            let from = 20 * 60 + 30 * rng.random_range(0..3);
            self.add_event(day, None, (from, from + 90), false, rng);
        }
    }

    fn add_event(&mut self, day: Day, room: Option<usize>, (from, to): (u32, u32), shared: bool, rng: &mut StdRng) {
        let series = if room.is_some() { IN_ROOMS.choose(rng) } else { ONLINE_SERIES.choose(rng) };
        let (Some(series), Some(period)) = (series, day.period(from, to)) else { return };
        let created_at = day.declared_at(period.start, rng);
        let name = String::new();
        self.events.push(PlannedEvent { series, name, room, period, shared, created_at, interest: day.interest() });
    }
}

/// The random uses of a room on a day: start and end in minutes since midnight, and whether the room is shared. No two
/// of them conflict.
fn uses(day: Day, place: &str, rng: &mut StdRng) -> Vec<(u32, u32, bool)> {
    if place == UNUSED && day.ahead >= 0 {
        return Vec::new();
    }
    // Every other room of today has an event. The later the day, the more rooms have none.
    let idle_probability = if day.ahead == 0 { 0.0 } else { 0.16 + 0.005 * f64::from(day.ahead.max(0)) };
    if rng.random_bool(idle_probability) {
        return Vec::new();
    }
    let (from, to) = day.hours();
    let (third, half) = ((to - from) / 3, (to - from) / 2);
    match rng.random_range(0..20) {
        0..12 => vec![(from + 30 * rng.random_range(0..2), to - 30 * rng.random_range(0..2), rng.random_bool(0.1))],
        12..17 => vec![(from, from + half, false), (from + half, to, false)],
        _ => vec![(from, from + 2 * third, true), (from + third, to, true)],
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use service_kit::database::types::DbUuid;

    use super::*;
    use crate::rooms::overlap::{Span, Use, conflicts};

    fn plan(day: i64, zone: Tz) -> (Timestamp, Plan) {
        let monday: Timestamp = "2026-03-02T00:30:00Z".parse().unwrap();
        let now = monday.plus(TimeDelta::days(day));
        (now, Plan::new(now, zone, &mut StdRng::seed_from_u64(super::super::SEED)))
    }

    fn span(period: Period) -> Span {
        Span::new(period.start, period.end).unwrap()
    }

    #[test]
    fn the_plan_of_any_day_is_valid() {
        // Five weeks that include the changes of the clocks in Europe and America.
        let zones = [Tz::UTC, Tz::Asia__Tokyo, Tz::America__New_York, Tz::Europe__Berlin, Tz::Australia__Lord_Howe];
        for (day, zone) in (0..35).flat_map(|day| zones.map(|zone| (day, zone))) {
            let (now, Plan { rooms, events }) = plan(day, zone);
            assert!((270..=330).contains(&events.len()), "{} events on day {day} in {zone}", events.len());
            let is_today = |period: &Period| {
                period.start.utc().with_timezone(&zone).date_naive() == now.utc().with_timezone(&zone).date_naive()
            };
            let unused = rooms.iter().position(|room| room.place == UNUSED && is_today(&room.period)).unwrap();
            assert!(events.iter().all(|event| event.room != Some(unused)));
            assert!(events.iter().any(|event| event.room.is_some() && is_today(&event.period)), "day {day} in {zone}");
            assert!(events.iter().all(|event| event.created_at <= now && event.created_at < event.period.start));
            assert!(rooms.iter().all(|room| room.created_at <= now && room.created_at < room.period.start));
            assert!(events.iter().all(|event| event.name.chars().count() <= 32));
            for is_past in [true, false] {
                let half: Vec<_> = events.iter().filter(|event| (event.period.start < now) == is_past).collect();
                assert!(half.iter().any(|event| event.shared) && half.iter().any(|event| event.room.is_none()));
            }
            let mut all_series = IN_ROOMS.iter().chain(&ONLINE_SERIES);
            assert!(all_series.all(|series| events.iter().any(|event| event.series.name == series.name)), "day {day}");
            let overlap =
                |a: &PlannedRoom, b: &PlannedRoom| a.place == b.place && span(a.period).overlaps(&span(b.period));
            for (n, room) in rooms.iter().enumerate() {
                assert!(rooms[n + 1..].iter().all(|other| !overlap(room, other)), "{room:?}");
                let uses: Vec<_> = events.iter().filter(|event| event.room == Some(n)).collect();
                for (m, event) in uses.iter().enumerate() {
                    assert!(span(room.period).contains(&span(event.period)) && event.created_at >= room.created_at);
                    let usage = |event: &PlannedEvent| Use {
                        room: DbUuid::nil(),
                        span: span(event.period),
                        shared: event.shared,
                    };
                    assert!(
                        uses[m + 1..].iter().all(|other| !conflicts(&usage(event), &usage(other), &[])),
                        "{event:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_same_day_gives_the_same_plan_and_the_next_another() {
        let show = |(_, plan): (Timestamp, Plan)| format!("{plan:?}");
        assert_eq!(show(plan(0, Tz::UTC)), show(plan(0, Tz::UTC)));
        assert_ne!(show(plan(0, Tz::UTC)), show(plan(1, Tz::UTC)));
    }
}
