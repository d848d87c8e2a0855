//! The positions of rooms and events on a board. All lengths are in pixels of the drawing.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Days, NaiveDate, NaiveDateTime, TimeDelta};
use chrono_tz::Tz;
use common::time::Timestamp;
use service_kit::database::types::{DbTimestamp, DbUuid};

use super::queries::{BoardEvent, Content};
use crate::rooms::{overlap::Span, queries::Room};

/// The hours of a board without rooms and events.
const HOURS_OF_EMPTY_BOARD: (u32, u32) = (8, 22);

/// The least number of hours of a board.
const LEAST_HOURS: u32 = 6;

/// The height of an event.
pub const EVENT_HEIGHT: u32 = 38;

/// The least width of an event.
const MIN_WIDTH: u32 = 3;

/// The time scale: the same hours of each day, side by side.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// The first day.
    pub first: NaiveDate,
    /// The number of days.
    pub days: u32,
    /// The first hour of each day, and the hour after the last.
    pub hours: (u32, u32),
    /// The width of an hour.
    pub hour_width: u32,
    zone: Tz,
}

impl Scale {
    /// The width of a day.
    pub fn day_width(&self) -> u32 {
        (self.hours.1 - self.hours.0) * self.hour_width
    }

    /// The width of all days.
    pub fn width(&self) -> u32 {
        self.days * self.day_width()
    }

    /// The days.
    pub fn dates(&self) -> impl Iterator<Item = NaiveDate> + use<> {
        let first = self.first;
        (0..self.days).filter_map(move |n| first.checked_add_days(Days::new(n.into())))
    }

    /// Position and width of the parts of a span, one for each day.
    pub fn pieces(&self, span: Span) -> Vec<(u32, u32)> {
        let (start, end) = (self.local(span.start), self.local(span.end));
        let on_day = |(n, date): (u32, NaiveDate)| {
            let midnight = date.and_time(chrono::NaiveTime::MIN);
            let from = start.max(midnight + TimeDelta::hours(self.hours.0.into()));
            let to = end.min(midnight + TimeDelta::hours(self.hours.1.into()));
            let minute = |at: NaiveDateTime| u32::try_from((at - midnight).num_minutes()).unwrap_or(0);
            let x = |at| n * self.day_width() + (minute(at) - self.hours.0 * 60) * self.hour_width / 60;
            (from < to).then(|| (x(from), (x(to) - x(from)).max(MIN_WIDTH)))
        };
        (0..).zip(self.dates()).filter_map(on_day).collect()
    }

    /// The position of a point in time, if the board shows it.
    pub fn position(&self, at: Timestamp) -> Option<u32> {
        let span = Span::new(at, at.plus(TimeDelta::minutes(1)))?;
        self.pieces(span).first().map(|(x, _)| *x)
    }

    /// The local time.
    pub fn local(&self, at: Timestamp) -> NaiveDateTime {
        at.utc().with_timezone(&self.zone).naive_local()
    }
}

/// An event in the row of its place.
#[derive(Debug)]
pub struct Bar<'a> {
    /// The event.
    pub event: &'a BoardEvent,
    /// Events that overlap have different levels.
    pub level: u32,
    /// Position and width of its parts.
    pub pieces: Vec<(u32, u32)>,
}

/// A time at a place.
#[derive(Debug)]
pub struct Stretch {
    /// Whether a privileged user confirmed the room.
    pub verified: bool,
    /// When.
    pub span: Span,
    /// Position and width of its parts.
    pub pieces: Vec<(u32, u32)>,
}

/// A place.
#[derive(Debug, Default)]
pub struct Row<'a> {
    /// As its first room or event writes it.
    pub place: &'a str,
    /// The periods of its rooms.
    pub room_periods: Vec<Stretch>,
    /// When it is free.
    pub free: Vec<Stretch>,
    /// Its events.
    pub bars: Vec<Bar<'a>>,
    /// The end of the last event on each level.
    ends: Vec<DbTimestamp>,
}

impl Row<'_> {
    /// The height of the row.
    pub fn height(&self) -> u32 {
        EVENT_HEIGHT * u32::try_from(self.ends.len().max(1)).unwrap_or(1)
    }
}

/// The board as drawn.
#[derive(Debug)]
pub struct Timetable<'a> {
    /// The time scale.
    pub scale: Scale,
    /// The places: those with a verified room first, then by name.
    pub rows: Vec<Row<'a>>,
}

impl<'a> Timetable<'a> {
    /// Arranges a board of some days on about this width.
    pub fn new(content: &'a Content, (first, days): (NaiveDate, u32), zone: Tz, width: u32) -> Self {
        let whole_days = Scale { first, days, hours: (0, 24), hour_width: 60, zone };
        let hours = hours(content, &whole_days);
        let hour_width = (width / (days * (hours.1 - hours.0))).max(10);
        let scale = Scale { hours, hour_width, ..whole_days };
        let mut rows: BTreeMap<&str, Row<'a>> = BTreeMap::new();
        let instant: BTreeSet<DbUuid> =
            content.events.iter().filter(|event| event.owns_room).map(|event| event.room_id).collect();
        for Room { row, free_times, .. } in &content.rooms {
            let stretch = |span: Span| Stretch { verified: row.verified, span, pieces: scale.pieces(span) };
            let place_row = rows.entry(&row.place_key).or_insert_with(|| Row { place: &row.place, ..Row::default() });
            // The room of an instant event is the event's own span.
            if !instant.contains(&row.id) {
                place_row.room_periods.extend(span(row.starts_at, row.ends_at).map(stretch));
            }
            place_row.free.extend(free_times.iter().copied().map(stretch).filter(|free| !free.pieces.is_empty()));
        }
        for event in &content.events {
            let Some(span) = span(event.starts_at, event.ends_at) else { continue };
            let row = rows.entry(&event.place_key).or_insert_with(|| Row { place: &event.place, ..Row::default() });
            // They come in the order of their starts.
            let level = row.ends.iter().position(|end| *end <= event.starts_at).unwrap_or(row.ends.len());
            match row.ends.get_mut(level) {
                Some(end) => *end = event.ends_at,
                None => row.ends.push(event.ends_at),
            }
            let level = u32::try_from(level).unwrap_or(u32::MAX);
            row.bars.push(Bar { event, level, pieces: scale.pieces(span) });
        }
        let mut rows: Vec<_> = rows.into_values().collect();
        rows.sort_by_key(|row| !row.room_periods.iter().any(|period| period.verified));
        Self { scale, rows }
    }
}

fn span(from: DbTimestamp, to: DbTimestamp) -> Option<Span> {
    Span::new(*from, *to)
}

/// The hours that a board shows: from an hour before the earliest room or event of any day to an hour after the latest.
fn hours(content: &Content, scale: &Scale) -> (u32, u32) {
    let rooms = content.rooms.iter().map(|room| (room.row.starts_at, room.row.ends_at));
    let events = content.events.iter().map(|event| (event.starts_at, event.ends_at));
    let spans = rooms.chain(events).filter_map(|(from, to)| span(from, to));
    let used = spans.flat_map(|span| scale.pieces(span)).map(|(x, width)| {
        let start = x % scale.day_width();
        (start / 60, (start + width).div_ceil(60))
    });
    let Some((first, last)) = used.reduce(|(first, last), (start, end)| (first.min(start), last.max(end))) else {
        return HOURS_OF_EMPTY_BOARD;
    };
    let first = first.saturating_sub(1).min(24 - LEAST_HOURS);
    (first, (last + 1).max(first + LEAST_HOURS).min(24))
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    const ZONE: Tz = Tz::Europe__Berlin;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn at(text: &str) -> Timestamp {
        let local = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap();
        Timestamp::new(ZONE.from_local_datetime(&local).earliest().unwrap().to_utc()).unwrap()
    }

    fn event(place: &str, from: &str, to: &str) -> BoardEvent {
        let time = |text| DbTimestamp(at(text));
        BoardEvent {
            id: DbUuid::new(),
            name: "Rust".to_owned(),
            shared: true,
            starts_at: time(from),
            ends_at: time(to),
            place: place.to_owned(),
            place_key: place.to_lowercase(),
            room_id: DbUuid::new(),
            owns_room: false,
            group: "all".to_owned(),
        }
    }

    fn content(events: Vec<BoardEvent>) -> Content {
        Content { rooms: Vec::new(), events, is_cut: false }
    }

    #[test]
    fn events_that_overlap_stand_on_levels_of_their_own() {
        let content = content(vec![
            event("S1", "2026-04-04 09:00", "2026-04-04 12:00"),
            event("S1", "2026-04-04 10:00", "2026-04-04 11:00"),
            event("s1", "2026-04-04 11:00", "2026-04-04 13:00"),
            event("S1", "2026-04-04 12:00", "2026-04-04 13:00"),
            event("S0", "2026-04-04 12:00", "2026-04-04 13:00"),
        ]);
        let timetable = Timetable::new(&content, (date("2026-04-04"), 1), ZONE, 600);
        let rows: Vec<_> = timetable
            .rows
            .iter()
            .map(|row| (row.place, row.bars.iter().map(|bar| bar.level).collect::<Vec<_>>(), row.height()))
            .collect();
        assert_eq!(rows, [("S0", vec![0], EVENT_HEIGHT), ("S1", vec![0, 1, 1, 0], 2 * EVENT_HEIGHT)]);
        assert_eq!((timetable.scale.hours, timetable.scale.hour_width), ((8, 14), 100));
        assert_eq!(timetable.rows[1].bars[0].pieces, [(100, 300)]);
        assert_eq!(timetable.scale.position(at("2026-04-04 08:30")), Some(50));
        assert_eq!(timetable.scale.position(at("2026-04-04 07:30")), None);
        assert_eq!(timetable.scale.position(at("2026-04-05 08:30")), None);
    }

    #[test]
    fn an_event_has_a_part_on_each_day_that_shows_it() {
        // The clocks change in the night to Sunday, 29 March.
        let content = content(vec![event("S1", "2026-03-27 21:00", "2026-03-29 09:30")]);
        let timetable = Timetable::new(&content, (date("2026-03-28"), 7), ZONE, 168 * 10);
        assert_eq!(timetable.scale.hours, (0, 24));
        assert_eq!(timetable.rows[0].bars[0].pieces, [(0, 240), (240, 95)]);
        assert_eq!(timetable.scale.dates().last(), Some(date("2026-04-03")));
        let short = event("S1", "2026-03-28 09:00", "2026-03-28 09:01");
        let short = span(short.starts_at, short.ends_at).unwrap();
        assert_eq!(timetable.scale.pieces(short), [(90, MIN_WIDTH)]);
    }

    #[test]
    fn a_day_shows_the_hours_that_it_needs() {
        let hours = |from, to| {
            let content = content(vec![event("S1", from, to)]);
            Timetable::new(&content, (date("2026-04-04"), 1), ZONE, 1000).scale.hours
        };
        assert_eq!(hours("2026-04-04 10:00", "2026-04-04 11:00"), (9, 15));
        assert_eq!(hours("2026-04-04 06:40", "2026-04-04 22:10"), (5, 24));
        assert_eq!(hours("2026-04-03 23:00", "2026-04-04 00:30"), (0, 6));
        assert_eq!(hours("2026-04-04 21:00", "2026-04-05 01:00"), (18, 24));
        assert_eq!(hours("2026-04-05 21:00", "2026-04-05 22:00"), (8, 22));
    }
}
