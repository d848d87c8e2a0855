//! The import of rooms from a table: all rows or none.

use std::collections::HashMap;

use chrono_tz::Tz;
use common::{
    problem::{Location, Problem, Violation},
    time::Timestamp,
};
use diesel::{Connection, prelude::*, result::Error as DieselError};
use serde_json::json;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use super::{
    booking,
    changes::{self, NewRoom},
    place::place_key,
    queries::{self, Room, Row},
    table::{self, ImportedRoom},
};
use crate::{codes, schema::rooms};

/// Makes verified rooms of the rows, with `by` as their administrator; a row that is a verified room already stands
/// for that one. Returns a room for each row, in their order. A dry run does the same and takes it back.
///
/// # Errors
/// 400 `bad-import` with every bad row, among them those that overlap an earlier row on the same place; 409
/// `room-overlap` when a row overlaps a verified room in the database.
pub fn import_table(
    conn: &mut AnyConnection,
    table: &[u8],
    zone: Tz,
    by: DbUuid,
    dry_run: bool,
    now: DbTimestamp,
) -> Result<Vec<Room>, Error> {
    let rows = table::parse(table, zone).map_err(|cells| {
        let violation = |cell: table::CellError| Violation {
            location: Location::Cell { row: cell.row, column: cell.column },
            code: cell.code,
            message: cell.message,
        };
        bad_import(cells.into_iter().map(violation).collect())
    })?;
    let wanted = rows.into_iter().map(|row| Wanted::new(row, by)).collect::<Result<Vec<_>, _>>()?;
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    if !dry_run {
        return import(conn, &wanted, by, now);
    }
    let mut result = Ok(Vec::new());
    let rolled_back = conn.transaction(|conn| -> Result<(), DieselError> {
        result = import(conn, &wanted, by, now);
        Err(DieselError::RollbackTransaction)
    });
    match rolled_back {
        Err(DieselError::RollbackTransaction) | Ok(()) => result,
        Err(error) => Err(error.into()),
    }
}

struct Wanted {
    row: usize,
    key: String,
    room: NewRoom,
}

impl Wanted {
    fn new(row: ImportedRoom, by: DbUuid) -> Result<Self, Error> {
        let at =
            |at| Timestamp::new(at).map(DbTimestamp).ok_or_else(|| Problem::internal("a parsed time is out of range"));
        let (starts_at, ends_at) = (at(row.start)?, at(row.end)?);
        let key = place_key(&row.place);
        let room = NewRoom { place: row.place, starts_at, ends_at, verified: true, admins: vec![by] };
        Ok(Self { row: row.row, key, room })
    }

    fn is(&self, key: &str, starts_at: DbTimestamp, ends_at: DbTimestamp) -> bool {
        self.key == key && self.room.starts_at == starts_at && self.room.ends_at == ends_at
    }
}

fn import(conn: &mut AnyConnection, wanted: &[Wanted], by: DbUuid, now: DbTimestamp) -> Result<Vec<Room>, Error> {
    booking::lock_places(conn, wanted.iter().map(|wanted| wanted.key.clone()).collect())?;
    let existing = existing(conn, wanted)?;
    let mut overlaps: Vec<DbUuid> = Vec::new();
    let mut violations = Vec::new();
    // Where each row's room comes from: one that exists, or the n-th new one.
    let mut sources: Vec<Result<DbUuid, usize>> = Vec::new();
    let mut new: Vec<&Wanted> = Vec::new();
    let mut by_place: HashMap<&str, Vec<usize>> = HashMap::new();
    for row in wanted {
        let on_place = existing.get(row.key.as_str()).map_or(&[][..], Vec::as_slice);
        let earlier = by_place.entry(&row.key).or_default();
        if let Some(same) = on_place.iter().find(|room| row.is(&room.place_key, room.starts_at, room.ends_at)) {
            sources.push(Ok(same.id));
        } else if let Some(same) =
            earlier.iter().find(|n| row.is(&new[**n].key, new[**n].room.starts_at, new[**n].room.ends_at))
        {
            sources.push(Err(*same));
        } else {
            let overlaps_row =
                |starts: DbTimestamp, ends: DbTimestamp| starts < row.room.ends_at && row.room.starts_at < ends;
            overlaps
                .extend(on_place.iter().filter(|room| overlaps_row(room.starts_at, room.ends_at)).map(|room| room.id));
            if let Some(other) = earlier.iter().find(|n| overlaps_row(new[**n].room.starts_at, new[**n].room.ends_at)) {
                violations.push(Violation {
                    location: Location::Cell { row: row.row, column: None },
                    code: "overlaps-row",
                    message: format!("overlaps row {} on the same place", new[*other].row),
                });
            }
            earlier.push(new.len());
            sources.push(Err(new.len()));
            new.push(row);
        }
    }
    if !violations.is_empty() {
        return Err(bad_import(violations));
    }
    if !overlaps.is_empty() {
        overlaps.sort_unstable();
        overlaps.dedup();
        return Err(Problem::new(codes::ROOM_OVERLAP).member("rooms", json!(overlaps)).into());
    }
    let new: Vec<_> = new.into_iter().map(|wanted| wanted.room.clone()).collect();
    let made = changes::insert(conn, &new, by, now)?;
    let ids: Vec<_> = sources.into_iter().map(|source| source.unwrap_or_else(|n| made[n])).collect();
    let loaded = queries::load_listed(conn, &ids)?;
    let by_id: HashMap<_, _> = loaded.into_iter().map(|room| (room.row.id, room)).collect();
    Ok(ids.iter().filter_map(|id| by_id.get(id).cloned()).collect())
}

/// The verified rooms near the wanted ones, by place.
fn existing(conn: &mut AnyConnection, wanted: &[Wanted]) -> Result<HashMap<String, Vec<Row>>, Error> {
    let keys: Vec<_> = wanted.iter().map(|wanted| &wanted.key).collect();
    let first = wanted.iter().map(|wanted| wanted.room.starts_at).min();
    let last = wanted.iter().map(|wanted| wanted.room.ends_at).max();
    let (Some(first), Some(last)) = (first, last) else { return Ok(HashMap::new()) };
    let rows: Vec<Row> = rooms::table
        .filter(rooms::place_key.eq_any(keys))
        .filter(rooms::verified.eq(true))
        .filter(rooms::deleted_at.is_null())
        .filter(rooms::ends_at.gt(first))
        .filter(rooms::starts_at.lt(last))
        .select(Row::as_select())
        .load(conn)?;
    let mut by_place: HashMap<String, Vec<Row>> = HashMap::new();
    for row in rows {
        by_place.entry(row.place_key.clone()).or_default().push(row);
    }
    Ok(by_place)
}

fn bad_import(violations: Vec<Violation>) -> Error {
    Problem::new(codes::BAD_IMPORT).violations(violations).into()
}
