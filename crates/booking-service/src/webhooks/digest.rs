//! The message of a day: its rooms in a table of periods and places, and its events.

use chrono::{NaiveDate, NaiveTime};
use service_kit::{
    database::{AnyConnection, types::DbTimestamp},
    error::Error,
};

use super::{kinds::Format, messages::Writer};
use crate::{
    board::queries::{Content, load},
    config::Periods,
    wall_clock::instant_or_next,
};

/// A row of the table: its name, its start and end, and whether it is there without a room.
struct Row {
    name: String,
    start: DbTimestamp,
    end: DbTimestamp,
    is_always_there: bool,
}

/// The spans of a place in a row.
#[derive(Debug, PartialEq, Eq)]
enum Cell {
    Whole,
    Parts(Vec<(Option<DbTimestamp>, Option<DbTimestamp>)>),
}

/// What the spans of a place, which are in order and do not overlap, are within a row.
fn cell(spans: &[(DbTimestamp, DbTimestamp)], row: (DbTimestamp, DbTimestamp)) -> Cell {
    let mut parts: Vec<(DbTimestamp, DbTimestamp)> = Vec::new();
    for (start, end) in spans {
        let (start, end) = (*start.max(&row.0), *end.min(&row.1));
        if start >= end {
            continue;
        }
        match parts.last_mut() {
            Some(last) if last.1 >= start => last.1 = end.max(last.1),
            _ => parts.push((start, end)),
        }
    }
    if parts == [row] {
        return Cell::Whole;
    }
    let inner = |(start, end): (DbTimestamp, DbTimestamp)| {
        (Some(start).filter(|start| *start > row.0), Some(end).filter(|end| *end < row.1))
    };
    Cell::Parts(parts.into_iter().map(inner).collect())
}

/// Writes the message of a day.
pub fn digest(
    writer: &Writer<'_>,
    conn: &mut AnyConnection,
    day: NaiveDate,
    periods: &Periods,
) -> Result<String, Error> {
    let zone = writer.club.zone;
    let at = |day: NaiveDate, time| instant_or_next(day, time, zone).map_or(writer.now, DbTimestamp);
    let (from, to) = (at(day, NaiveTime::MIN), at(day.succ_opt().unwrap_or(day), NaiveTime::MIN));
    let content = load(conn, (from, to), None)?;
    let (mut draft, markup) = (writer.draft(), writer.markup);
    let shown_day = writer.language.short_day(day);
    draft.line(&markup.heading(&writer.text("digest-rooms", &[("day", shown_day.clone().into())])));
    let mut rows = vec![Row {
        name: writer.text("digest-before", &[]),
        start: from,
        end: at(day, periods.periods[0].1),
        is_always_there: false,
    }];
    let ends = periods.periods.iter().skip(1).map(|(_, start)| *start).chain([periods.end]);
    for ((name, start), end) in periods.periods.iter().zip(ends) {
        let (start, end) = (at(day, *start), at(day, end));
        rows.push(Row { name: markup.text(name), start, end, is_always_there: true });
    }
    let (name, start) = (writer.text("digest-after", &[]), at(day, periods.end));
    rows.push(Row { name, start, end: to, is_always_there: false });
    let places = places(&content);
    if places.is_empty() {
        draft.line(&writer.text("digest-no-rooms", &[]));
    } else {
        for line in table(writer, &rows, &places) {
            draft.line(&line);
        }
    }
    draft.line(&format!("\n{}", markup.heading(&writer.text("digest-events", &[("day", shown_day.into())]))));
    if content.events.is_empty() {
        draft.line(&writer.text("digest-no-events", &[]));
    }
    for event in &content.events {
        let link = markup.link(&markup.text(&event.name), &writer.address("events", event.id));
        let shared = if event.shared { format!(" {}", writer.text("digest-shared", &[])) } else { String::new() };
        let (time, place) = (writer.span(event.starts_at, event.ends_at), markup.text(&event.place));
        draft.line(&markup.item(&format!("{link} {time} {place}{shared}")));
    }
    Ok(draft.finish(&format!("{}/board", writer.club.origin)))
}

/// A place and its verified spans, in order.
type Place = (String, Vec<(DbTimestamp, DbTimestamp)>);

/// The places with verified rooms, each once, in the order of their first rooms.
fn places(content: &Content) -> Vec<Place> {
    let mut places: Vec<(&str, Place)> = Vec::new();
    for room in content.rooms.iter().filter(|room| room.row.verified) {
        let span = (room.row.starts_at, room.row.ends_at);
        match places.iter_mut().find(|(key, _)| *key == room.row.place_key) {
            Some((_, (_, spans))) => spans.push(span),
            None => places.push((&room.row.place_key, (room.row.place.clone(), vec![span]))),
        }
    }
    places.into_iter().map(|(_, place)| place).collect()
}

/// The lines of the table. Slack and Discord have no tables, so each row is a line there.
fn table(writer: &Writer<'_>, rows: &[Row], places: &[Place]) -> Vec<String> {
    let markup = writer.markup;
    let names: Vec<_> = places.iter().map(|(name, _)| markup.text(name)).collect();
    let mut lines = Vec::new();
    if markup.0 == Format::Traq {
        lines.push(format!("| {} | {} |", writer.text("digest-time", &[]), names.join(" | ")));
        lines.push(format!("|{}", " :---: |".repeat(places.len() + 1)));
    }
    for row in rows {
        let cells: Vec<_> = places.iter().map(|(_, spans)| shown(writer, &cell(spans, (row.start, row.end)))).collect();
        if !row.is_always_there && cells.iter().all(String::is_empty) {
            continue;
        }
        lines.push(if markup.0 == Format::Traq {
            format!("| {} | {} |", row.name, cells.join(" | "))
        } else {
            let used = names.iter().zip(&cells).filter(|(_, cell)| !cell.is_empty());
            let used: Vec<_> = used.map(|(name, cell)| format!("{name} {cell}")).collect();
            let used = if used.is_empty() { "–".to_owned() } else { used.join(writer.language.separator()) };
            markup.item(&format!("{}: {used}", row.name))
        });
    }
    // What follows is not a row of the table.
    if markup.0 == Format::Traq {
        lines.push(String::new());
    }
    lines
}

fn shown(writer: &Writer<'_>, cell: &Cell) -> String {
    let clock = |at: &Option<DbTimestamp>| {
        at.map_or_else(String::new, |at| at.utc().with_timezone(&writer.club.zone).format("%H:%M").to_string())
    };
    match cell {
        Cell::Whole => "○".to_owned(),
        Cell::Parts(parts) => {
            let parts: Vec<_> = parts.iter().map(|(start, end)| format!("{}–{}", clock(start), clock(end))).collect();
            parts.join(writer.language.separator())
        }
    }
}

#[cfg(test)]
mod tests {
    use common::time::Timestamp;

    use super::*;

    fn at(minutes: i64) -> DbTimestamp {
        DbTimestamp(Timestamp::from_micros(minutes * 60_000_000).unwrap())
    }

    #[test]
    fn a_cell_says_which_part_of_a_period_a_room_is_held() {
        let cell = |spans: &[(i64, i64)]| {
            let spans: Vec<_> = spans.iter().map(|(start, end)| (at(*start), at(*end))).collect();
            super::cell(&spans, (at(10), at(20)))
        };
        let none = Vec::new;
        assert_eq!(cell(&[]), Cell::Parts(none()));
        assert_eq!(cell(&[(0, 10), (20, 30)]), Cell::Parts(none()));
        assert_eq!(cell(&[(0, 30)]), Cell::Whole);
        assert_eq!(cell(&[(0, 15), (15, 20)]), Cell::Whole);
        assert_eq!(cell(&[(12, 30)]), Cell::Parts(vec![(Some(at(12)), None)]));
        assert_eq!(cell(&[(0, 12), (13, 15)]), Cell::Parts(vec![(None, Some(at(12))), (Some(at(13)), Some(at(15)))]));
    }
}
