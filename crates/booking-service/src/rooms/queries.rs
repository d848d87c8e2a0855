//! Rooms in the database.

use std::collections::HashMap;

use common::problem::Problem;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    after,
    database::{
        AnyConnection, MultiBackend, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use super::{
    booking::{self, RoomPeriod},
    overlap::{Occupancy, Span},
};
use crate::{
    auth::Caller,
    expressions::{IdList, folded_ids},
    period_filter::{Lengths, load_page_of_span},
    schema::{room_admins, rooms},
};

/// The columns of a room.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = rooms)]
pub struct Row {
    pub id: DbUuid,
    pub place: String,
    pub place_key: String,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub verified: bool,
    /// `None` for an imported room whose creator is not known.
    pub created_by: Option<DbUuid>,
    pub created_at: DbTimestamp,
    pub updated_at: DbTimestamp,
    pub deleted_at: Option<DbTimestamp>,
    pub made_for_event: bool,
}

impl Row {
    /// Its sort key in lists.
    pub fn position(&self) -> Position {
        (self.starts_at, self.place.clone(), self.id)
    }

    /// Its period.
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

/// A selection of rooms that are not deleted.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only these, at most a thousand.
    pub ids: Option<Vec<DbUuid>>,
    /// Only periods that end after this.
    pub from: Option<DbTimestamp>,
    /// Only periods that begin before this.
    pub to: Option<DbTimestamp>,
    /// Only rooms at the place with this key.
    pub place_key: Option<String>,
    /// Only verified rooms.
    pub only_verified: bool,
    /// Only rooms with periods of these lengths.
    pub lengths: Lengths,
}

impl Selection {
    /// The rooms with these ids, at most a thousand.
    pub fn these(ids: Vec<DbUuid>) -> Self {
        Self { ids: Some(ids), ..Self::default() }
    }

    fn query(&self) -> rooms::BoxedQuery<'static, MultiBackend> {
        let mut query = rooms::table.filter(rooms::deleted_at.is_null()).into_boxed();
        if let Some(ids) = &self.ids {
            query = query.filter(rooms::id.eq_any(ids.clone()));
        }
        if let Some(key) = &self.place_key {
            query = query.filter(rooms::place_key.eq(key.clone()));
        }
        if self.only_verified {
            query = query.filter(rooms::verified.eq(true));
        }
        if self.ids.is_none() && self.from.is_none() && self.to.is_none() {
            query = query.filter(readable_in_list_order!(rooms));
        }
        during!(query, rooms, self.from, self.to, self.lengths)
    }
}

/// The sort key of lists of rooms.
pub type Position = (DbTimestamp, String, DbUuid);

/// A column of a query on `rooms`: the ids of the administrators of each room.
macro_rules! folded_admins {
    () => {
        room_admins::table
            .filter(room_admins::room_id.eq(rooms::id))
            .select(folded_ids(room_admins::user_id))
            .single_value()
    };
}

/// The selected rooms, by start, place and id. The event `exclude` does not count as a use of a room. The number of
/// statements does not depend on the number of rooms.
pub fn load(conn: &mut AnyConnection, selection: &Selection, exclude: Option<DbUuid>) -> Result<Vec<Room>, Error> {
    load_first(conn, selection, exclude, &PageBounds::all())
}

/// The first part of that list, which is usually all of it.
pub fn load_first(
    conn: &mut AnyConnection,
    selection: &Selection,
    exclude: Option<DbUuid>,
    bounds: &PageBounds<Position>,
) -> Result<Vec<Room>, Error> {
    let rows = load_rows(conn, selection, bounds)?;
    load_times(conn, rows, exclude)
}

/// One page of that list.
pub fn load_page(
    conn: &mut AnyConnection,
    selection: &Selection,
    exclude: Option<DbUuid>,
    bounds: &PageBounds<Position>,
) -> Result<Vec<Room>, Error> {
    let rows = load_page_rows(conn, selection, bounds)?;
    load_times(conn, rows, exclude)
}

/// The columns of one page of that list, with the administrators.
pub fn load_page_rows(
    conn: &mut AnyConnection,
    selection: &Selection,
    bounds: &PageBounds<Position>,
) -> Result<Vec<(Row, Vec<DbUuid>)>, Error> {
    if selection.from.is_none() && selection.to.is_none() {
        return load_rows(conn, selection, bounds);
    }
    load_page_of_span(
        bounds,
        |(at, ..)| *at,
        |(row, _): &(Row, _)| row.position(),
        |lengths| load_rows(conn, &Selection { lengths, ..selection.clone() }, bounds),
    )
}

/// The columns of a part of that list, with the administrators.
fn load_rows(
    conn: &mut AnyConnection,
    selection: &Selection,
    bounds: &PageBounds<Position>,
) -> Result<Vec<(Row, Vec<DbUuid>)>, Error> {
    let query = ordered(selection, bounds).select((Row::as_select(), folded_admins!()));
    let rows: Vec<(Row, Option<IdList>)> = query.load(conn)?;
    Ok(rows.into_iter().map(|(row, admins)| (row, admins.unwrap_or_default().0)).collect())
}

/// The ids of a part of that list.
pub fn load_ids(
    conn: &mut AnyConnection,
    selection: &Selection,
    bounds: &PageBounds<Position>,
) -> Result<Vec<DbUuid>, Error> {
    Ok(ordered(selection, bounds).select(rooms::id).load(conn)?)
}

/// The number of rooms in that list.
pub fn count(conn: &mut AnyConnection, selection: &Selection) -> Result<i64, Error> {
    Ok(selection.query().count().get_result(conn)?)
}

fn ordered(selection: &Selection, bounds: &PageBounds<Position>) -> rooms::BoxedQuery<'static, MultiBackend> {
    let mut query = selection.query().order((rooms::starts_at, rooms::place, rooms::id)).limit(bounds.rows);
    if let Some((at, place, id)) = &bounds.after {
        query = after!(query, rooms::starts_at; > *at, rooms::place; > place.clone(), rooms::id; > *id);
    }
    query
}

/// Rooms with these administrators and their free times. Takes as many statements as [`booking::load_uses`].
pub fn load_times(
    conn: &mut AnyConnection,
    rooms: Vec<(Row, Vec<DbUuid>)>,
    exclude: Option<DbUuid>,
) -> Result<Vec<Room>, Error> {
    let periods: Vec<_> = rooms.iter().map(|(row, _)| row.period()).collect();
    let uses = booking::load_uses(conn, &periods, exclude)?;
    let occupancies: HashMap<String, Occupancy> =
        uses.into_iter().map(|(place_key, uses)| (place_key, uses.occupancy())).collect();
    let no_uses = Occupancy::default();
    let room = |(row, admins): (Row, Vec<DbUuid>)| {
        let occupancy = occupancies.get(&row.place_key).unwrap_or(&no_uses);
        let period = row.period().span();
        Room {
            free_times: occupancy.free_times(row.id, period),
            shared_times: occupancy.shared_times(row.id, period),
            row,
            admins,
        }
    };
    Ok(rooms.into_iter().map(room).collect())
}

/// One room. The event `exclude` does not count as a use of it.
pub fn get(conn: &mut AnyConnection, id: DbUuid, exclude: Option<DbUuid>) -> Result<Room, Error> {
    let room = rooms::table.find(id).filter(rooms::deleted_at.is_null());
    let row: Option<(Row, Option<IdList>)> = with_connection!(conn, c => room
        .select((Row::as_select(), folded_admins!()))
        .first(c))
    .optional()?;
    let (row, admins) = row.ok_or_else(not_found)?;
    load_times(conn, vec![(row, admins.unwrap_or_default().0)], exclude)?.pop().ok_or_else(not_found)
}

/// The rooms with these ids, at most a thousand, by start, place and id.
pub fn load_listed(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<Vec<Room>, Error> {
    load(conn, &Selection::these(ids.to_vec()), None)
}

/// The columns of these rooms, deleted or not.
pub fn find_all(conn: &mut AnyConnection, mut ids: Vec<DbUuid>) -> Result<HashMap<DbUuid, Row>, Error> {
    ids.sort_unstable();
    ids.dedup();
    let mut found = HashMap::new();
    for ids in ids.chunks(1000) {
        let rows: Vec<Row> = rooms::table.filter(rooms::id.eq_any(ids)).select(Row::as_select()).load(conn)?;
        found.extend(rows.into_iter().map(|row| (row.id, row)));
    }
    Ok(found)
}

/// The columns of a room even if it is deleted, as its past events show it.
///
/// # Errors
/// 404 when there never was one.
pub fn find_even_deleted(conn: &mut AnyConnection, id: DbUuid) -> Result<Row, Error> {
    let row = with_connection!(conn, c => rooms::table.find(id).select(Row::as_select()).first(c)).optional()?;
    row.ok_or_else(not_found)
}

pub(super) fn not_found() -> Error {
    Problem::not_found("room").into()
}

/// Checks that a room exists.
pub fn check_exists(conn: &mut AnyConnection, id: DbUuid) -> Result<(), Error> {
    find(conn, id)?.map(|_| ()).ok_or_else(not_found)
}

/// The columns of a room that is not deleted, if there is one.
pub fn find(conn: &mut AnyConnection, id: DbUuid) -> Result<Option<Row>, Error> {
    let room = rooms::table.find(id).filter(rooms::deleted_at.is_null());
    Ok(with_connection!(conn, c => room.select(Row::as_select()).first(c)).optional()?)
}

/// Locks the place of a room and returns the room's columns, if the room exists and is not deleted.
///
/// # Errors
/// [`Error::Stale`] if the room has moved to another place before the lock.
pub fn find_locked(conn: &mut AnyConnection, id: DbUuid) -> Result<Option<Row>, Error> {
    let Some(before) = find(conn, id)? else { return Ok(None) };
    booking::lock_places(conn, vec![before.place_key.clone()])?;
    match find(conn, id)? {
        Some(row) if row.place_key != before.place_key => Err(Error::Stale),
        row => Ok(row),
    }
}

/// Locks the place of a room, and returns the room's columns even if it is deleted.
///
/// # Errors
/// 404; [`Error::Stale`] if the room has moved to another place before the lock.
pub fn find_locked_even_deleted(conn: &mut AnyConnection, id: DbUuid) -> Result<Row, Error> {
    let before = find_even_deleted(conn, id)?;
    booking::lock_places(conn, vec![before.place_key.clone()])?;
    let row = find_even_deleted(conn, id)?;
    if row.place_key == before.place_key { Ok(row) } else { Err(Error::Stale) }
}

/// Checks that the caller is an administrator of a room or privileged.
pub fn check_admin_or_privileged(conn: &mut AnyConnection, room: DbUuid, me: &Caller) -> Result<(), Error> {
    let is_admin = || room_admins::table.find((room, me.id)).select(room_admins::user_id);
    if me.privileged || is_admin().first::<DbUuid>(conn).optional()?.is_some() {
        return Ok(());
    }
    Err(Problem::forbidden("an administrator of the room, or a privileged user").into())
}

/// Checks that the caller may change a room, deleted or not.
pub fn check_editor(conn: &mut AnyConnection, room: DbUuid, me: &Caller) -> Result<(), Error> {
    find_even_deleted(conn, room)?;
    check_admin_or_privileged(conn, room, me)
}
