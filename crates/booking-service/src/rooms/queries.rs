//! Rooms in the database.

use std::collections::HashMap;

use chrono::TimeDelta;
use common::problem::Problem;
use diesel::{OptionalExtension, connection::DefaultLoadingMode, dsl::not, prelude::*};
use service_kit::{
    after,
    database::{
        AnyConnection, MultiBackend, PageBounds, id_in, sifted,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use super::{
    booking::{self, Conflict},
    overlap::{Span, Use},
};
use crate::schema::{events, room_admins, rooms};

/// Longer than this is "long": see the migration on `is_long`.
const REACH: TimeDelta = TimeDelta::hours(24);

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
    /// The time for which the club holds it.
    #[must_use]
    pub fn window(&self) -> Span {
        Span { start: self.starts_at.utc(), end: self.ends_at.utc() }
    }
}

/// A room with its administrators and the uses that count in it.
#[derive(Debug, Clone)]
pub struct Room {
    /// Its columns.
    pub row: Row,
    /// By id.
    pub admins: Vec<DbUuid>,
    /// Events in this room, and those on the same place that exclude it.
    pub uses: Vec<Use>,
}

impl Room {
    /// The time for which the club holds it.
    #[must_use]
    pub fn window(&self) -> Span {
        self.row.window()
    }
}

/// Which rooms.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only these, a thousand at most.
    pub ids: Option<Vec<DbUuid>>,
    /// Only windows that end after this.
    pub from: Option<DbTimestamp>,
    /// Only windows that begin before this.
    pub to: Option<DbTimestamp>,
    /// Only verified ones.
    pub only_verified: bool,
}

/// Whether a span is long.
#[must_use]
pub fn is_long(starts_at: DbTimestamp, ends_at: DbTimestamp) -> bool {
    ends_at.utc() - starts_at.utc() > REACH
}

/// The instant before which nothing starts that is not long and is going on at `at`. Nothing starts before the first
/// time there is either, so there it may be less than a day.
#[must_use]
pub fn reach(at: DbTimestamp) -> DbTimestamp {
    DbTimestamp(at.plus(-REACH))
}

fn selected(selection: &Selection) -> rooms::BoxedQuery<'static, MultiBackend> {
    let mut query = rooms::table.filter(rooms::deleted_at.is_null()).into_boxed();
    if let Some(ids) = &selection.ids {
        query = query.filter(rooms::id.eq_any(ids.clone()));
    }
    if selection.only_verified {
        query = query.filter(rooms::verified.eq(true));
    }
    if selection.ids.is_none() && selection.from.is_none() && selection.to.is_none() {
        // Always true, and what the index `rooms_list` asks for: see the migration.
        query = query.filter(rooms::starts_at.lt(rooms::ends_at));
    }
    during!(query, rooms, selection.from, selection.to)
}

/// What rooms are ordered by.
pub type Position = (DbTimestamp, String, DbUuid);

/// Rooms by start, place and id, in four statements whatever their number.
///
/// # Errors
/// When the database fails.
pub fn load(conn: &mut AnyConnection, selection: &Selection, exclude: Option<DbUuid>) -> Result<Vec<Room>, Error> {
    load_slice(conn, selection, exclude, &PageBounds::all())
}

/// Part of the same list: so few that a statement can name them all.
///
/// # Errors
/// When the database fails.
pub fn load_slice(
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
    if rows.is_empty() { Ok(Vec::new()) } else { whole(conn, rows, exclude) }
}

/// These rooms with their administrators and uses.
fn whole(conn: &mut AnyConnection, rows: Vec<Row>, exclude: Option<DbUuid>) -> Result<Vec<Room>, Error> {
    let ids: Vec<DbUuid> = rows.iter().map(|row| row.id).collect();
    let mut admins: HashMap<DbUuid, Vec<DbUuid>> = HashMap::new();
    let found: Vec<(DbUuid, DbUuid)> = with_connection!(conn, c => room_admins::table
        .filter(id_in(room_admins::room_id, &ids))
        .order((room_admins::room_id, room_admins::user_id))
        .load(c)?);
    for (room, user) in found {
        admins.entry(room).or_default().push(user);
    }
    let mut uses: HashMap<DbUuid, Vec<Use>> = HashMap::new();
    for long in [false, true] {
        for (room, conflict) in uses_of(conn, &ids, long, exclude)? {
            uses.entry(room).or_default().push(conflict.usage());
        }
    }
    let room = |row: Row| Room {
        admins: admins.remove(&row.id).unwrap_or_default(),
        uses: uses.remove(&row.id).unwrap_or_default(),
        row,
    };
    Ok(rows.into_iter().map(room).collect())
}

/// The events that count in each of these rooms: those in it, and those on its place if one of the two is verified.
fn uses_of(
    conn: &mut AnyConnection,
    ids: &[DbUuid],
    long: bool,
    exclude: Option<DbUuid>,
) -> Result<Vec<(DbUuid, Conflict)>, Error> {
    // Asked of what was found: as a condition of the join it would make PostgreSQL, which takes that for thousands, read
    // all rooms.
    let held = diesel::alias!(rooms as held);
    let is_verified = held.filter(held.field(rooms::id).eq(events::room_id)).select(held.field(rooms::verified));
    let counts = rooms::verified.or(events::room_id.eq(rooms::id)).or(is_verified.single_value().assume_not_null());
    // An event's own room is not verified, and such events may be many on one place at once.
    let may_count = rooms::verified.or(events::room_id.eq(rooms::id)).or(not(events::owns_room));
    let uses = rooms::table
        .inner_join(
            events::table.on(events::place_key
                .eq(rooms::place_key)
                .and(events::starts_at.lt(rooms::ends_at))
                .and(events::ends_at.gt(rooms::starts_at))),
        )
        .filter(id_in(rooms::id, ids))
        .filter(events::deleted_at.is_null())
        .filter(may_count)
        .select((counts, rooms::id, (events::id, events::starts_at, events::ends_at, events::shared)));
    let which = |row: QueryResult<(bool, DbUuid, Conflict)>| match row {
        Ok((counts, room, conflict)) => counts.then_some(Ok((room, conflict))),
        Err(error) => Some(Err(error)),
    };
    let found: QueryResult<Vec<(DbUuid, Conflict)>> = with_connection!(conn, c => {
        let mut uses = uses.into_boxed();
        // Which events are long is asked in words about the room: else SQLite begins the join with all events that are not,
        // and looks for the room of each; and PostgreSQL would plan anew for each value.
        uses = if long {
            uses.filter(events::is_long.eq(rooms::is_long.eq(rooms::is_long)))
        } else {
            let is_long = rooms::is_long.ne(rooms::is_long);
            uses.filter(events::is_long.eq(is_long)).filter(events::starts_at.ge(rooms::reach_from))
        };
        if let Some(event) = exclude {
            uses = uses.filter(events::id.ne(event));
        }
        sifted(uses).load_iter::<_, DefaultLoadingMode>(c)?.filter_map(which).collect()
    });
    Ok(found?)
}

/// One room.
///
/// # Errors
/// 404 when there is none.
pub fn get(conn: &mut AnyConnection, id: DbUuid, exclude: Option<DbUuid>) -> Result<Room, Error> {
    let row = find(conn, id)?.ok_or_else(not_found)?;
    whole(conn, vec![row], exclude)?.pop().ok_or_else(not_found)
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
    whole(conn, vec![row], None)?.pop().ok_or_else(not_found)
}

pub(super) fn not_found() -> Error {
    Problem::not_found("room").into()
}

/// Refuses an id that names no room.
///
/// # Errors
/// 404.
pub fn need(conn: &mut AnyConnection, id: DbUuid) -> Result<(), Error> {
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

/// The columns of a room, its place being locked from here on.
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
