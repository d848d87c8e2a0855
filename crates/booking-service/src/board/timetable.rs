//! Where the rooms and events of a board stand on it. All lengths are in pixels of the drawing.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use service_kit::database::types::{DbTimestamp, DbUuid};

use super::queries::{BoardEvent, Content};
use crate::rooms::{overlap::Span, queries::Room};

/// The hours that a board shows at least.
const USUAL_HOURS: (u32, u32) = (8, 22);

/// The height of an event.
pub const EVENT_HEIGHT: u32 = 34;

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
    pub fn position(&self, at: DateTime<Utc>) -> Option<u32> {
        let span = Span::new(at, at + TimeDelta::minutes(1))?;
        self.pieces(span).first().map(|(x, _)| *x)
    }

    /// The time of a clock on the wall.
    pub fn local(&self, at: DateTime<Utc>) -> NaiveDateTime {
        at.with_timezone(&self.zone).naive_local()
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
    /// When the club has it.
    pub held: Vec<Stretch>,
    /// When it is free.
    pub free: Vec<Stretch>,
    /// Its events.
    pub bars: Vec<Bar<'a>>,
}

impl Row<'_> {
    /// The height of the row.
    pub fn height(&self) -> u32 {
        EVENT_HEIGHT * self.bars.iter().map(|bar| bar.level + 1).max().unwrap_or(1)
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
            let drawn = rows.entry(&row.place_key).or_insert_with(|| Row { place: &row.place, ..Row::default() });
            // The room of an instant event is the event's own span.
            if !instant.contains(&row.id) {
                drawn.held.extend(span(row.starts_at, row.ends_at).map(stretch));
            }
            drawn.free.extend(free_times.iter().copied().map(stretch).filter(|free| !free.pieces.is_empty()));
        }
        for event in &content.events {
            let Some(span) = span(event.starts_at, event.ends_at) else { continue };
            let row = rows.entry(&event.place_key).or_insert_with(|| Row { place: &event.place, ..Row::default() });
            // They come in the order of their starts.
            let taken: BTreeSet<u32> =
                row.bars.iter().filter(|bar| bar.event.ends_at > event.starts_at).map(|bar| bar.level).collect();
            let level = (0..).find(|level| !taken.contains(level)).unwrap_or_default();
            row.bars.push(Bar { event, level, pieces: scale.pieces(span) });
        }
        let mut rows: Vec<_> = rows.into_values().collect();
        rows.sort_by_key(|row| !row.held.iter().any(|held| held.verified));
        Self { scale, rows }
    }
}

fn span(from: DbTimestamp, to: DbTimestamp) -> Option<Span> {
    Span::new(from.utc(), to.utc())
}

/// The hours that a board has to show: from the earliest to the latest of any day.
fn hours(content: &Content, scale: &Scale) -> (u32, u32) {
    let rooms = content.rooms.iter().map(|room| (room.row.starts_at, room.row.ends_at));
    let events = content.events.iter().map(|event| (event.starts_at, event.ends_at));
    let spans = rooms.chain(events).filter_map(|(from, to)| span(from, to));
    spans.flat_map(|span| scale.pieces(span)).fold(USUAL_HOURS, |(first, last), (x, width)| {
        let start = x % scale.day_width();
        (first.min(start / 60), last.max((start + width).div_ceil(60)).min(24))
    })
}
