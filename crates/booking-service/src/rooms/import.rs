//! The import of rooms from a CSV table, all rows or none.

use std::collections::{HashMap, HashSet};

use chrono_tz::Tz;
use common::{
    problem::{Location, Problem, Rule, Violation},
    time::Timestamp,
};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use super::{
    booking::{self, RoomPeriod, VerifiedRoom},
    changes::{self, NewRoom},
    place::place_key,
    queries::{self, Room},
    table::{self, ImportedRoom},
};
use crate::codes;

/// Creates a verified room for each row, with `by` as its administrator. A row that equals an existing verified room or
/// an earlier row gives the same room. Returns a room for each row, in the order of rows, and the ids of the new ones.
///
/// # Errors
/// 400 `bad-import` with every invalid row; a row that overlaps an earlier row on the same place is invalid. 409
/// `room-overlap` if a row overlaps a verified room in the database; 409 `room-conflict` if events would then conflict.
/// Both name the rows.
pub fn import_table(
    conn: &mut AnyConnection,
    table: &[u8],
    zone: Tz,
    by: DbUuid,
    now: DbTimestamp,
) -> Result<(Vec<Room>, HashSet<DbUuid>), Error> {
    let rows = table::parse(table, zone).map_err(|cells| {
        let violation = |cell: table::CellError| Violation {
            location: Location::Cell { row: cell.row, column: cell.column },
            code: cell.code,
            message: cell.message,
        };
        bad_import(cells.into_iter().map(violation).collect())
    })?;
    let rows = rows.into_iter().map(|row| Row::new(row, by)).collect::<Result<Vec<_>, _>>()?;
    if rows.is_empty() {
        return Ok(Default::default());
    }
    import(conn, &rows, zone, by, now)
}

/// A row of the table, and the room that it describes.
struct Row {
    number: usize,
    /// The id of the room, unless an equal room exists.
    id: DbUuid,
    place_key: String,
    room: NewRoom,
}

impl Row {
    fn new(row: ImportedRoom, by: DbUuid) -> Result<Self, Error> {
        let timestamp =
            |at| Timestamp::new(at).map(DbTimestamp).ok_or_else(|| Problem::internal("a parsed time is out of range"));
        let (starts_at, ends_at) = (timestamp(row.start)?, timestamp(row.end)?);
        let place_key = place_key(&row.place);
        let room = NewRoom { verified: true, ..NewRoom::new(row.place, starts_at, ends_at, vec![by]) };
        Ok(Self { number: row.row, id: DbUuid::new(), place_key, room })
    }

    fn violation(&self, code: Rule, message: impl Into<String>) -> Violation {
        let location = Location::Cell { row: self.number, column: None };
        Violation { location, code, message: message.into() }
    }

    fn period(&self) -> RoomPeriod<'_> {
        RoomPeriod {
            room: self.id,
            place_key: &self.place_key,
            starts_at: self.room.starts_at,
            ends_at: self.room.ends_at,
        }
    }
}

fn import(
    conn: &mut AnyConnection,
    rows: &[Row],
    zone: Tz,
    by: DbUuid,
    now: DbTimestamp,
) -> Result<(Vec<Room>, HashSet<DbUuid>), Error> {
    booking::lock_places(conn, rows.iter().map(|row| row.place_key.clone()).collect())?;
    let existing = load_existing(conn, rows)?;
    let mut overlaps: Vec<DbUuid> = Vec::new();
    let (mut violations, mut overlapping_rows) = (Vec::new(), Vec::new());
    // The room of each row, and the rows that need a new room.
    let mut ids: Vec<DbUuid> = Vec::new();
    let mut new: Vec<&Row> = Vec::new();
    let mut new_at_place: HashMap<&str, Vec<&Row>> = HashMap::new();
    for row in rows {
        let period = row.period().span();
        let existing = existing.get(row.place_key.as_str()).map_or(&[][..], Vec::as_slice);
        let earlier = new_at_place.entry(&row.place_key).or_default();
        let equal_room = existing.iter().find(|room| room.span() == period).map(|room| room.id);
        let equal_row = || earlier.iter().find(|other| other.period().span() == period).map(|other| other.id);
        if let Some(id) = equal_room.or_else(equal_row) {
            ids.push(id);
        } else {
            let overlapping = existing.iter().filter(|room| room.span().overlaps(&period)).map(|room| room.id);
            let overlaps_before = overlaps.len();
            overlaps.extend(overlapping);
            if overlaps.len() > overlaps_before {
                overlapping_rows.push(row.violation(Rule::OverlapsRoom, "overlaps a verified room on the same place"));
            }
            if let Some(other) = earlier.iter().find(|other| other.period().span().overlaps(&period)) {
                let message = format!("overlaps row {} on the same place", other.number);
                violations.push(row.violation(Rule::OverlapsRow, message));
            }
            earlier.push(row);
            ids.push(row.id);
            new.push(row);
        }
    }
    if !violations.is_empty() {
        return Err(bad_import(violations));
    }
    if !overlaps.is_empty() {
        return Err(booking::room_overlap(overlaps).violations(overlapping_rows).into());
    }
    let periods: Vec<_> = new.iter().map(|row| row.period()).collect();
    if let Some((rooms, problem)) = booking::conflicts_of_verified(conn, &periods, zone)? {
        let rows = new.iter().filter(|row| rooms.contains(&row.id));
        let conflict = |row: &&Row| row.violation(Rule::EventsConflict, "events conflict if this room is verified");
        return Err(problem.violations(rows.map(conflict).collect()).into());
    }
    let new: Vec<_> = new.into_iter().map(|row| (row.id, row.room.clone())).collect();
    changes::insert_with_ids(conn, &new, by, now)?;
    let loaded = queries::load_listed(conn, &ids)?;
    let by_id: HashMap<_, _> = loaded.into_iter().map(|room| (room.row.id, room)).collect();
    let rooms = ids.iter().filter_map(|id| by_id.get(id).cloned()).collect();
    Ok((rooms, new.into_iter().map(|(id, _)| id).collect()))
}

/// The verified rooms that overlap the time from the first row's start to the last row's end, by place.
fn load_existing(conn: &mut AnyConnection, rows: &[Row]) -> Result<HashMap<String, Vec<VerifiedRoom>>, Error> {
    let first = rows.iter().map(|row| row.room.starts_at).min();
    let last = rows.iter().map(|row| row.room.ends_at).max();
    let (Some(first), Some(last)) = (first, last) else { return Ok(HashMap::new()) };
    let mut by_place: HashMap<String, Vec<VerifiedRoom>> = HashMap::new();
    for room in booking::load_verified(conn, first, last)? {
        by_place.entry(room.place_key.clone()).or_default().push(room);
    }
    Ok(by_place)
}

fn bad_import(violations: Vec<Violation>) -> Error {
    Problem::new(codes::BAD_IMPORT).violations(violations).into()
}
