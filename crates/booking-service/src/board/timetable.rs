//! The rows of a board and the positions of rooms and events in them. Positions are parts of a day's width, in ten
//! thousandths.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike as _};
use chrono_tz::Tz;
use common::time::Timestamp;
use service_kit::database::types::DbUuid;

use super::queries::{BoardEvent, Content};
use crate::{
    rooms::{
        overlap::{self, Span},
        queries::Room,
    },
    wall_clock::instant_or_next,
};

/// The width of a day.
pub const WIDTH: u32 = 10_000;

/// The hours of a board without rooms and events.
const HOURS_OF_EMPTY_BOARD: (u32, u32) = (8, 22);

/// The least number of hours of a board.
const LEAST_HOURS: u32 = 6;

/// The time scale of a day. It is that of the instants, so a day on which the clocks change has an hour more or less.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// The day.
    pub date: NaiveDate,
    /// All of the day.
    pub day: Span,
    /// What it shows of the day.
    pub span: Span,
    zone: Tz,
}

impl Scale {
    /// Some hours of a day: the first, and the one after the last.
    fn new(date: NaiveDate, hours: (u32, u32), zone: Tz) -> Option<Self> {
        let at = |hour| match NaiveTime::from_hms_opt(hour, 0, 0) {
            Some(time) => instant_or_next(date, time, zone),
            None => instant_or_next(date.checked_add_days(chrono::Days::new(1))?, NaiveTime::MIN, zone),
        };
        let span = |(from, to)| Span::new(at(from)?, at(to)?);
        Some(Self { date, day: span((0, 24))?, span: span(hours)?, zone })
    }

    /// The number of minutes.
    pub fn minutes(&self) -> i64 {
        (self.span.end - self.span.start).num_minutes()
    }

    /// The position of a point in time, if the scale shows it.
    pub fn position(&self, at: Timestamp) -> Option<u32> {
        (self.span.start <= at && at < self.span.end).then(|| self.x(at))
    }

    /// The part of a span that the scale shows.
    pub fn piece(&self, span: Span) -> Option<Piece> {
        let part = span.intersection(&self.span)?;
        let x = self.x(part.start);
        Some(Piece {
            x,
            width: self.x(part.end) - x,
            part,
            is_begun: part.start != span.start,
            goes_on: part.end != span.end,
        })
    }

    /// Position and instant of each full hour.
    pub fn hours(&self) -> Vec<(u32, Timestamp)> {
        let quarters = (0..self.minutes() / 15).map(|n| self.span.start.plus(TimeDelta::minutes(15 * n)));
        quarters.filter(|at| local(*at, self.zone).minute() == 0).map(|at| (self.x(at), at)).collect()
    }

    fn x(&self, at: Timestamp) -> u32 {
        u32::try_from((at - self.span.start).num_minutes() * i64::from(WIDTH) / self.minutes().max(1)).unwrap_or(0)
    }
}

/// The local time.
pub fn local(at: Timestamp, zone: Tz) -> NaiveDateTime {
    at.utc().with_timezone(&zone).naive_local()
}

/// The part of a span on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins.
    pub x: u32,
    /// Its width.
    pub width: u32,
    /// When it is.
    pub part: Span,
    /// Whether the span begins before it.
    pub is_begun: bool,
    /// Whether the span goes on after it.
    pub goes_on: bool,
}

/// The period of a room.
#[derive(Debug, Clone, Copy)]
pub struct Period {
    /// Whether a privileged user confirmed the room.
    pub verified: bool,
    /// When.
    pub span: Span,
}

/// A time at which a room is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Free {
    /// The room.
    pub room: DbUuid,
    /// Whether a privileged user confirmed the room.
    pub verified: bool,
    /// Whether only shared events can use it.
    pub only_shared: bool,
    /// When.
    pub span: Span,
}

/// A place with its rooms and events.
#[derive(Debug, Default)]
pub struct Place<'a> {
    /// As its first room or event writes it.
    pub name: &'a str,
    /// The periods of its rooms.
    pub periods: Vec<Period>,
    /// When it is free, by start.
    pub free: Vec<Free>,
    events: Vec<&'a BoardEvent>,
}

/// What a lane shows.
#[derive(Debug, Clone, Copy)]
pub enum Thing<'a> {
    /// An event.
    Event(&'a BoardEvent),
    /// A free time.
    Free(Free),
}

/// Something in a lane.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// What it is.
    pub thing: Thing<'a>,
    /// When it is.
    pub piece: Piece,
    /// Position and width of what it takes: itself, and its text beside it.
    pub space: (u32, u32),
}

/// A place on a day.
#[derive(Debug, Default)]
pub struct Row<'a> {
    /// The name of the place.
    pub place: &'a str,
    /// The periods of its rooms, and whether they are verified.
    pub periods: Vec<(Piece, bool)>,
    /// When it is free.
    pub free: Vec<(Piece, Free)>,
    /// What overlaps is in different lanes. At least one.
    pub lanes: Vec<Vec<Item<'a>>>,
}

/// A day.
#[derive(Debug)]
pub struct Day<'a> {
    /// Its time scale.
    pub scale: Scale,
    /// The places that have a room or an event.
    pub rows: Vec<Row<'a>>,
}

/// The days of a board.
#[derive(Debug, Clone, Copy)]
pub struct Days {
    /// The first one.
    pub first: NaiveDate,
    /// How many there are.
    pub number: u32,
    /// Whether they are rows of one table, which all show the same hours.
    pub is_one_table: bool,
    /// The zone of the club.
    pub zone: Tz,
    /// The present time.
    pub now: Timestamp,
}

/// The board as drawn.
#[derive(Debug)]
pub struct Timetable<'a> {
    /// The places: those with a verified room first, then by name.
    pub places: Vec<Place<'a>>,
    /// The days.
    pub days: Vec<Day<'a>>,
}

impl<'a> Timetable<'a> {
    /// Arranges the content of a board. With `text_width`, each event has at least this much space for its text,
    /// beside itself if it is narrower, and the lanes show only events.
    pub fn new(content: &'a Content, days: Days, text_width: Option<u32>) -> Self {
        let dates = (0..days.number).filter_map(|n| days.first.checked_add_days(chrono::Days::new(n.into())));
        let complete: Vec<_> = dates.filter_map(|date| Scale::new(date, (0, 24), days.zone)).collect();
        let shown = complete.first().zip(complete.last());
        let places = shown.map_or_else(Vec::new, |(first, last)| {
            places(content, Span { start: first.span.start, end: last.span.end })
        });
        let day = |scale: Scale| Day {
            scale,
            rows: places.iter().filter_map(|place| row(place, &scale, text_width)).collect(),
        };
        let hours = hours(content, &complete, days);
        let scales = complete.iter().zip(hours).filter_map(|(day, hours)| Scale::new(day.date, hours, days.zone));
        let days = scales.map(day).collect();
        Self { places, days }
    }
}

fn places(content: &Content, shown: Span) -> Vec<Place<'_>> {
    let mut places: BTreeMap<&str, Place<'_>> = BTreeMap::new();
    // The room of an instant event is the event's own span.
    let instant: BTreeSet<DbUuid> =
        content.events.iter().filter(|event| event.owns_room).map(|event| event.room_id).collect();
    for Room { row, free_times, shared_times, .. } in
        content.rooms.iter().filter(|room| !instant.contains(&room.row.id))
    {
        let place = places.entry(&row.place_key).or_insert_with(|| Place { name: &row.place, ..Place::default() });
        place.periods.push(Period { verified: row.verified, span: row.period().span() });
        let shown = |times: &[Span]| -> Vec<_> { times.iter().copied().filter(|span| span.overlaps(&shown)).collect() };
        let exclusive = shown(free_times);
        let only_shared = shown(shared_times).into_iter().flat_map(|span| overlap::gaps(span, exclusive.clone()));
        let free = |only_shared| move |span| Free { room: row.id, verified: row.verified, only_shared, span };
        place.free.extend(only_shared.map(free(true)));
        place.free.extend(exclusive.iter().copied().map(free(false)));
    }
    for event in &content.events {
        let place = places.entry(&event.place_key).or_insert_with(|| Place { name: &event.place, ..Place::default() });
        place.events.push(event);
    }
    let mut places: Vec<_> = places.into_values().collect();
    for place in &mut places {
        place.free.sort_by_key(|free| free.span);
    }
    places.sort_by_key(|place| !place.periods.iter().any(|period| period.verified));
    places
}

/// What a day shows of a place; `None` if that is nothing.
fn row<'a>(place: &Place<'a>, scale: &Scale, text_width: Option<u32>) -> Option<Row<'a>> {
    let pieces = |span| scale.piece(span);
    let periods: Vec<_> =
        place.periods.iter().filter_map(|period| Some((pieces(period.span)?, period.verified))).collect();
    let free: Vec<_> = place.free.iter().filter_map(|free| Some((pieces(free.span)?, *free))).collect();
    let events = place.events.iter().filter_map(|event| Some((pieces(event.span())?, Thing::Event(event))));
    let in_lanes = free.iter().filter(|_| text_width.is_none()).map(|(piece, free)| (*piece, Thing::Free(*free)));
    let item = |(piece, thing): (Piece, _)| Item { thing, piece, space: space(&piece, text_width) };
    let mut items: Vec<_> = events.chain(in_lanes).map(item).collect();
    items.sort_by_key(|item| item.space);
    let mut lanes: Vec<Vec<Item<'a>>> = Vec::new();
    for item in items {
        let fits =
            |lane: &&mut Vec<Item<'a>>| lane.last().is_none_or(|last| last.space.0 + last.space.1 <= item.space.0);
        match lanes.iter_mut().find(fits) {
            Some(lane) => lane.push(item),
            None => lanes.push(vec![item]),
        }
    }
    let is_empty = periods.is_empty() && lanes.is_empty();
    if lanes.is_empty() {
        lanes.push(Vec::new());
    }
    (!is_empty).then_some(Row { place: place.name, periods, free, lanes })
}

/// The space of a piece, with its text beside it if that is wider.
fn space(piece: &Piece, text_width: Option<u32>) -> (u32, u32) {
    match text_width.filter(|text| piece.width < *text) {
        None => (piece.x, piece.width),
        Some(text) if piece.x + piece.width + text <= WIDTH => (piece.x, piece.width + text),
        Some(text) => {
            let left = text.min(piece.x);
            (piece.x - left, piece.width + left)
        }
    }
}

/// The hours that each day shows: from the first hour in which a room or an event begins, on the present day not later
/// than now, to an hour after the latest. What takes a complete day says nothing about them; a day without anything else
/// shows the hours of the others.
fn hours(content: &Content, complete: &[Scale], days: Days) -> Vec<(u32, u32)> {
    let join = |(first, last): (u32, u32), (start, end): (u32, u32)| (first.min(start), last.max(end));
    let of_days: Vec<_> = complete.iter().map(|day| used_hours(content, day).reduce(join)).collect();
    let of_all = of_days.iter().flatten().copied().reduce(join);
    let present = |day: &Scale| day.position(days.now).map(|_| local(days.now, days.zone).hour());
    let present_of_all = complete.iter().find_map(present);
    let shown = complete.iter().zip(&of_days).map(|(day, of_day)| {
        let (hours, present) =
            if days.is_one_table { (of_all, present_of_all) } else { (of_day.or(of_all), present(day)) };
        let (first, last) = hours.map_or(HOURS_OF_EMPTY_BOARD, |(first, last)| (first, last + 1));
        let first = first.min(present.unwrap_or(first)).min(24 - LEAST_HOURS);
        (first, last.max(first + LEAST_HOURS).min(24))
    });
    shown.collect()
}

/// The first hour of each room and event on a day, and the one after its last.
fn used_hours(content: &Content, day: &Scale) -> impl Iterator<Item = (u32, u32)> {
    let rooms = content.rooms.iter().map(|room| room.row.period().span());
    let spans = rooms.chain(content.events.iter().map(BoardEvent::span));
    let parts = spans.filter_map(move |span| Some(day.piece(span)?.part)).filter(move |part| *part != day.span);
    parts.map(move |part| {
        let end = local(part.end, day.zone);
        let last = if part.end == day.span.end { 24 } else { end.hour() + u32::from(end.minute() > 0) };
        (local(part.start, day.zone).hour(), last)
    })
}

#[cfg(test)]
mod tests;
