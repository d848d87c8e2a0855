//! Rooms in the database.

use std::collections::HashMap;

use common::problem::Problem;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    after,
    database::{
        AnyConnection, MultiBackend, PageBounds, id_in,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use super::{
    booking::{self, RoomPeriod},
    overlap::{Occupancy, Span},
};
use crate::schema::{room_admins, rooms};

/// The columns of a room.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = rooms)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct Row {
    pub id: DbUuid,
    pub place: String,
    pub place_key: String,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub verified: bool,
    pub created_by: DbUuid,
    pub created_at: DbTimestamp,
    pub updated_at: DbTimestamp,
    pub deleted_at: Option<DbTimestamp>,
}

impl Row {
    /// Its period.
    #[must_use]
    pub fn period(&self) -> RoomPeriod<'_> {
        RoomPeriod { room: self.id, place_key: &self.place_key, starts_at: self.starts_at, ends_at: self.ends_at }
    }
}

/// A room with its administrators and the times when it is free.
#[derive(Debug, Clone)]
pub struct Room {
    /// Its columns.
    pub row: Row,
    /// By id.
    pub admins: Vec<DbUuid>,
    /// When an exclusive event can use it.
    pub free_times: Vec<Span>,
    /// When a shared event can use it.
    pub shared_times: Vec<Span>,
}

/// Which rooms.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only these, a thousand at most.
    pub ids: Option<Vec<DbUuid>>,
    /// Only periods that end after this.
    pub from: Option<DbTimestamp>,
    /// Only periods that begin before this.
    pub to: Option<DbTimestamp>,
    /// Only those on the place with this key.
    pub place_key: Option<String>,
    /// Only verified ones.
    pub only_verified: bool,
}

fn selected(selection: &Selection) -> rooms::BoxedQuery<'static, MultiBackend> {
    let mut query = rooms::table.filter(rooms::deleted_at.is_null()).into_boxed();
    if let Some(ids) = &selection.ids {
        query = query.filter(rooms::id.eq_any(ids.clone()));
    }
    if let Some(key) = &selection.place_key {
        query = query.filter(rooms::place_key.eq(key.clone()));
    }
    if selection.only_verified {
        query = query.filter(rooms::verified.eq(true));
    }
    if selection.ids.is_none() && selection.from.is_none() && selection.to.is_none() {
        query = query.filter(readable_in_list_order!(rooms));
    }
    during!(query, rooms, selection.from, selection.to)
}

/// What rooms are ordered by.
pub type Position = (DbTimestamp, String, DbUuid);

/// Rooms by start, place and id. The number of statements does not grow with the number of rooms.
///
/// # Errors
/// When the database fails.
pub fn load(conn: &mut AnyConnection, selection: &Selection, exclude: Option<DbUuid>) -> Result<Vec<Room>, Error> {
    load_page(conn, selection, exclude, &PageBounds::all())
}

/// A part of that list, small enough for one statement to name each of its rooms.
///
/// # Errors
/// When the database fails.
pub fn load_page(
    conn: &mut AnyConnection,
    selection: &Selection,
    exclude: Option<DbUuid>,
    slice: &PageBounds<Position>,
) -> Result<Vec<Room>, Error> {
    let mut query = selected(selection);
    if let Some((at, place, id)) = &slice.after {
        query = after!(query, rooms::starts_at; > *at, rooms::place; > place.clone(), rooms::id; > *id);
    }
    let query = query.select(Row::as_select()).order((rooms::starts_at, rooms::place, rooms::id));
    let rows: Vec<Row> = query.limit(slice.rows).load(conn)?;
    if rows.is_empty() { Ok(Vec::new()) } else { load_children(conn, rows, exclude) }
}

/// These rooms with their administrators and free times.
fn load_children(conn: &mut AnyConnection, rows: Vec<Row>, exclude: Option<DbUuid>) -> Result<Vec<Room>, Error> {
    let ids: Vec<DbUuid> = rows.iter().map(|row| row.id).collect();
    let mut admins: HashMap<DbUuid, Vec<DbUuid>> = HashMap::new();
    let found: Vec<(DbUuid, DbUuid)> = with_connection!(conn, c => room_admins::table
        .filter(id_in(room_admins::room_id, &ids))
        .order((room_admins::room_id, room_admins::user_id))
        .load(c)?);
    for (room, user) in found {
        admins.entry(room).or_default().push(user);
    }
    let periods: Vec<_> = rows.iter().map(Row::period).collect();
    let uses = booking::load_uses(conn, &periods, exclude)?;
    let occupancies: HashMap<String, Occupancy> =
        uses.into_iter().map(|(place_key, uses)| (place_key, uses.occupancy())).collect();
    let unused = Occupancy::default();
    let room = |row: Row| {
        let occupancy = occupancies.get(&row.place_key).unwrap_or(&unused);
        let period = row.period().span();
        Room {
            admins: admins.remove(&row.id).unwrap_or_default(),
            free_times: occupancy.free_times(row.id, period),
            shared_times: occupancy.shared_times(row.id, period),
            row,
        }
    };
    Ok(rows.into_iter().map(room).collect())
}

/// One room.
///
/// # Errors
/// 404 when there is none.
pub fn get(conn: &mut AnyConnection, id: DbUuid, exclude: Option<DbUuid>) -> Result<Room, Error> {
    let row = find(conn, id)?.ok_or_else(not_found)?;
    load_children(conn, vec![row], exclude)?.pop().ok_or_else(not_found)
}

/// These rooms, a thousand at most, by start, place and id.
///
/// # Errors
/// When the database fails.
pub fn load_listed(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<Vec<Room>, Error> {
    load(conn, &Selection { ids: Some(ids.to_vec()), ..Selection::default() }, None)
}

/// One room even if it is deleted, as its past events show it.
///
/// # Errors
/// 404 when there never was one.
pub fn get_even_deleted(conn: &mut AnyConnection, id: DbUuid) -> Result<Room, Error> {
    let row = with_connection!(conn, c => rooms::table.find(id).select(Row::as_select()).first(c)).optional()?;
    let row = row.ok_or_else(not_found)?;
    load_children(conn, vec![row], None)?.pop().ok_or_else(not_found)
}

pub(super) fn not_found() -> Error {
    Problem::not_found("room").into()
}

/// Checks that a room exists.
///
/// # Errors
/// 404 when there is none.
pub fn check_exists(conn: &mut AnyConnection, id: DbUuid) -> Result<(), Error> {
    find(conn, id)?.map(|_| ()).ok_or_else(not_found)
}

/// The columns of a room that is not deleted, if there is one.
///
/// # Errors
/// When the database fails.
pub fn find(conn: &mut AnyConnection, id: DbUuid) -> Result<Option<Row>, Error> {
    let room = rooms::table.find(id).filter(rooms::deleted_at.is_null());
    Ok(with_connection!(conn, c => room.select(Row::as_select()).first(c)).optional()?)
}

/// The columns of a room, if there is one; locks its place.
///
/// # Errors
/// [`Error::Stale`] when the room moved to another place meanwhile.
pub fn find_locked(conn: &mut AnyConnection, id: DbUuid) -> Result<Option<Row>, Error> {
    let Some(seen) = find(conn, id)? else { return Ok(None) };
    booking::lock_places(conn, vec![seen.place_key.clone()])?;
    match find(conn, id)? {
        Some(row) if row.place_key != seen.place_key => Err(Error::Stale),
        row => Ok(row),
    }
}
