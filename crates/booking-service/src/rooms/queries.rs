//! Rooms in the database.

use std::collections::HashMap;

use chrono::TimeDelta;
use common::problem::Problem;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    db::{
        AnyConnection, MultiBackend,
        sql::{Moment, Uid},
        within,
    },
    error::Error,
    on_each,
};

use super::{
    booking::{self, Conflict},
    overlap::{self, Span, Use},
    place::place_key,
};
use crate::{
    auth::Caller,
    codes,
    schema::{events, room_admins, rooms},
};

/// Longer than this is "long": see the migration on `is_long`.
const REACH: TimeDelta = TimeDelta::hours(24);

/// Rows inserted by one statement: well below the bind limits of both databases.
const CHUNK: usize = 1000;

/// The columns of a room.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = rooms)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct Row {
    pub id: Uid,
    pub place: String,
    pub place_key: String,
    pub starts_at: Moment,
    pub ends_at: Moment,
    pub verified: bool,
    pub created_by: Uid,
    pub created_at: Moment,
    pub updated_at: Moment,
    pub deleted_at: Option<Moment>,
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
    pub admins: Vec<Uid>,
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
    pub ids: Option<Vec<Uid>>,
    /// Only windows that end after this.
    pub from: Option<Moment>,
    /// Only windows that begin before this.
    pub to: Option<Moment>,
    /// Only verified ones.
    pub only_verified: bool,
    /// Also deleted ones, which past events still show.
    pub deleted_too: bool,
}

/// Whether a span is long.
#[must_use]
pub fn is_long(starts_at: Moment, ends_at: Moment) -> bool {
    ends_at.utc() - starts_at.utc() > REACH
}

/// The instant before which nothing starts that is not long and is going on at `at`. Nothing starts before the first
/// time there is either, so there it may be less than a day.
#[must_use]
pub fn reach(at: Moment) -> Moment {
    Moment(at.plus(-REACH))
}

fn selected(selection: &Selection) -> rooms::BoxedQuery<'static, MultiBackend> {
    let mut query = rooms::table.into_boxed();
    if let Some(ids) = &selection.ids {
        query = query.filter(rooms::id.eq_any(ids.clone()));
    }
    if !selection.deleted_too {
        query = query.filter(rooms::deleted_at.is_null());
    }
    if selection.only_verified {
        query = query.filter(rooms::verified.eq(true));
    }
    during!(query, rooms, selection.from, selection.to)
}

/// Rooms by start, place and id, in four statements whatever their number.
///
/// # Errors
/// When the database fails.
pub fn load(conn: &mut AnyConnection, selection: &Selection, exclude: Option<Uid>) -> Result<Vec<Room>, Error> {
    let rows: Vec<Row> =
        selected(selection).select(Row::as_select()).order((rooms::starts_at, rooms::place, rooms::id)).load(conn)?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let ids = || selected(selection).select(rooms::id);
    let mut admins: HashMap<Uid, Vec<Uid>> = HashMap::new();
    let found: Vec<(Uid, Uid)> = room_admins::table
        .filter(within(room_admins::room_id, ids()))
        .order((room_admins::room_id, room_admins::user_id))
        .load(conn)?;
    for (room, user) in found {
        admins.entry(room).or_default().push(user);
    }
    let mut uses: HashMap<Uid, Vec<Use>> = HashMap::new();
    for long in [false, true] {
        for (room, conflict) in uses_of(conn, ids(), long, exclude)? {
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

type Ids = diesel::dsl::Select<rooms::BoxedQuery<'static, MultiBackend>, rooms::id>;

/// The events that count in each of these rooms: those in it, and those on its place if one of the two is verified.
fn uses_of(
    conn: &mut AnyConnection,
    ids: Ids,
    long: bool,
    exclude: Option<Uid>,
) -> Result<Vec<(Uid, Conflict)>, Error> {
    let held = diesel::alias!(rooms as held);
    // Which events are long is asked of them in words about the room, always true: else SQLite begins the join with all
    // events that are not, and looks for the room of each.
    let is_long = rooms::is_long.eq(rooms::is_long).eq(long);
    let mut query = rooms::table
        .inner_join(
            events::table.on(events::place_key
                .eq(rooms::place_key)
                .and(events::is_long.eq(is_long))
                .and(events::starts_at.lt(rooms::ends_at))
                .and(events::ends_at.gt(rooms::starts_at))),
        )
        .inner_join(held.on(held.field(rooms::id).eq(events::room_id)))
        .filter(within(rooms::id, ids))
        .filter(events::deleted_at.is_null())
        .filter(rooms::verified.or(held.field(rooms::verified)).or(events::room_id.eq(rooms::id)))
        .select((rooms::id, (events::id, events::starts_at, events::ends_at, events::shared)))
        .into_boxed();
    if !long {
        query = query.filter(events::starts_at.ge(rooms::reach_from));
    }
    if let Some(event) = exclude {
        query = query.filter(events::id.ne(event));
    }
    Ok(query.load(conn)?)
}

/// One room.
///
/// # Errors
/// 404 when there is none.
pub fn get(conn: &mut AnyConnection, id: Uid, exclude: Option<Uid>) -> Result<Room, Error> {
    let selection = Selection { ids: Some(vec![id]), ..Selection::default() };
    load(conn, &selection, exclude)?.pop().ok_or_else(not_found)
}

/// These rooms, a thousand at most, by start, place and id.
///
/// # Errors
/// When the database fails.
pub fn load_listed(conn: &mut AnyConnection, ids: &[Uid]) -> Result<Vec<Room>, Error> {
    load(conn, &Selection { ids: Some(ids.to_vec()), ..Selection::default() }, None)
}

/// One room even if it is deleted, as its past events show it.
///
/// # Errors
/// 404 when there never was one.
pub fn get_even_deleted(conn: &mut AnyConnection, id: Uid) -> Result<Room, Error> {
    let selection = Selection { ids: Some(vec![id]), deleted_too: true, ..Selection::default() };
    load(conn, &selection, None)?.pop().ok_or_else(not_found)
}

fn not_found() -> Error {
    Problem::not_found("room").into()
}

/// Refuses an id that names no room.
///
/// # Errors
/// 404.
pub fn need(conn: &mut AnyConnection, id: Uid) -> Result<(), Error> {
    find(conn, id)?.map(|_| ()).ok_or_else(not_found)
}

/// The columns of a room that is not deleted, if there is one.
///
/// # Errors
/// When the database fails.
pub fn find(conn: &mut AnyConnection, id: Uid) -> Result<Option<Row>, Error> {
    let selection = Selection { ids: Some(vec![id]), ..Selection::default() };
    Ok(selected(&selection).select(Row::as_select()).first(conn).optional()?)
}

/// The columns of a room, its place being locked from here on.
///
/// # Errors
/// [`Error::Stale`] when the room moved to another place meanwhile.
pub fn find_locked(conn: &mut AnyConnection, id: Uid) -> Result<Option<Row>, Error> {
    let Some(seen) = find(conn, id)? else { return Ok(None) };
    booking::lock_places(conn, vec![seen.place_key.clone()])?;
    match find(conn, id)? {
        Some(row) if row.place_key != seen.place_key => Err(Error::Stale),
        row => Ok(row),
    }
}

/// A room to be made.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct NewRoom {
    pub place: String,
    pub starts_at: Moment,
    pub ends_at: Moment,
    pub verified: bool,
    pub admins: Vec<Uid>,
}

/// Makes rooms; their places must have rows, which [`booking::lock_places`] sees to.
///
/// # Errors
/// When the database fails.
pub fn insert(conn: &mut AnyConnection, new: &[NewRoom], by: Uid, now: Moment) -> Result<Vec<Uid>, Error> {
    let ids: Vec<_> = new.iter().map(|_| Uid::new()).collect();
    let rows: Vec<_> = new
        .iter()
        .zip(&ids)
        .map(|(room, id)| {
            (
                rooms::id.eq(*id),
                rooms::place.eq(&room.place),
                rooms::place_key.eq(place_key(&room.place)),
                rooms::starts_at.eq(room.starts_at),
                rooms::ends_at.eq(room.ends_at),
                rooms::is_long.eq(is_long(room.starts_at, room.ends_at)),
                rooms::reach_from.eq(reach(room.starts_at)),
                rooms::verified.eq(room.verified),
                rooms::created_by.eq(by),
                rooms::created_at.eq(now),
                rooms::updated_at.eq(now),
            )
        })
        .collect();
    for rows in rows.chunks(CHUNK) {
        on_each!(conn, c => diesel::insert_into(rooms::table).values(rows).execute(c)?);
    }
    let admins: Vec<_> =
        new.iter().zip(&ids).flat_map(|(room, id)| room.admins.iter().map(|user| (*id, *user))).collect();
    insert_admins(conn, &admins)?;
    Ok(ids)
}

fn insert_admins(conn: &mut AnyConnection, admins: &[(Uid, Uid)]) -> Result<(), Error> {
    let rows: Vec<_> =
        admins.iter().map(|(room, user)| (room_admins::room_id.eq(*room), room_admins::user_id.eq(*user))).collect();
    for rows in rows.chunks(CHUNK) {
        on_each!(conn, c => diesel::insert_into(room_admins::table).values(rows).execute(c)?);
    }
    Ok(())
}

/// Changes place, window and administrators of a room that belongs to one event. Its place must be locked.
///
/// # Errors
/// When the database fails.
pub fn move_to(conn: &mut AnyConnection, id: Uid, to: &NewRoom, now: Moment) -> Result<(), Error> {
    diesel::update(rooms::table.find(id))
        .set((
            rooms::place.eq(&to.place),
            rooms::place_key.eq(place_key(&to.place)),
            rooms::starts_at.eq(to.starts_at),
            rooms::ends_at.eq(to.ends_at),
            rooms::is_long.eq(is_long(to.starts_at, to.ends_at)),
            rooms::reach_from.eq(reach(to.starts_at)),
            rooms::updated_at.eq(now),
        ))
        .execute(conn)?;
    diesel::delete(room_admins::table.filter(room_admins::room_id.eq(id))).execute(conn)?;
    insert_admins(conn, &to.admins.iter().map(|user| (id, *user)).collect::<Vec<_>>())
}

/// Marks a room as deleted.
///
/// # Errors
/// When the database fails.
pub fn bury(conn: &mut AnyConnection, id: Uid, now: Moment) -> Result<(), Error> {
    diesel::update(rooms::table.find(id)).set((rooms::deleted_at.eq(now), rooms::updated_at.eq(now))).execute(conn)?;
    Ok(())
}

/// Makes one unverified room.
///
/// # Errors
/// When the database fails.
pub fn create(conn: &mut AnyConnection, new: NewRoom, by: Uid, now: Moment) -> Result<Room, Error> {
    booking::lock_places(conn, vec![place_key(&new.place)])?;
    let ids = insert(conn, &[new], by, now)?;
    get(conn, ids[0], None)
}

/// Deletes a room and returns it as it was.
///
/// # Errors
/// 404; 403 for anybody but its administrators and privileged users; 409 listing the events in it that have not ended,
/// unless they are to be deleted with it.
pub fn delete(conn: &mut AnyConnection, id: Uid, me: &Caller, force: bool, now: Moment) -> Result<Room, Error> {
    let room = find_locked(conn, id)?.ok_or_else(not_found)?;
    let room = get(conn, room.id, None)?;
    if !me.privileged && !room.admins.contains(&me.id) {
        return Err(Problem::forbidden("an administrator of the room, or a privileged user").into());
    }
    let to_come = || {
        events::table
            .filter(events::room_id.eq(id))
            .filter(events::deleted_at.is_null())
            .filter(events::ends_at.gt(now))
    };
    let listed: Vec<Uid> = to_come().select(events::id).order((events::starts_at, events::id)).load(conn)?;
    if !listed.is_empty() && !force {
        return Err(Problem::new(codes::EVENTS_TO_COME).member("events", serde_json::json!(listed)).into());
    }
    // An id in a subquery of the table that is being changed: fine on both databases.
    diesel::update(to_come())
        .set((events::deleted_at.eq(now), events::updated_at.eq(now), events::sequence.eq(events::sequence + 1)))
        .execute(conn)?;
    bury(conn, id, now)?;
    Ok(room)
}

/// Confirms that the club may use a room, or takes that back.
///
/// A confirmed room no longer belongs to the event it was made for: that event's administrators may not move what a
/// privileged user has confirmed.
///
/// # Errors
/// 404; 409 when another verified room on the place overlaps it, or its events would then conflict with others.
pub fn verify(
    conn: &mut AnyConnection,
    id: Uid,
    verified: bool,
    zone: chrono_tz::Tz,
    now: Moment,
) -> Result<(), Error> {
    let room = find_locked(conn, id)?.ok_or_else(not_found)?;
    if room.verified == verified {
        return Ok(());
    }
    if verified {
        let others: Vec<Uid> = rooms::table
            .filter(rooms::place_key.eq(&room.place_key))
            .filter(rooms::verified.eq(true))
            .filter(rooms::deleted_at.is_null())
            .filter(rooms::ends_at.gt(room.starts_at))
            .filter(rooms::starts_at.lt(room.ends_at))
            .select(rooms::id)
            .order(rooms::id)
            .load(conn)?;
        if !others.is_empty() {
            return Err(Problem::new(codes::ROOM_OVERLAP).member("rooms", serde_json::json!(others)).into());
        }
        refuse_conflicts(conn, &room, zone)?;
        diesel::update(events::table.filter(events::room_id.eq(id))).set(events::owns_room.eq(false)).execute(conn)?;
    }
    diesel::update(rooms::table.find(id))
        .set((rooms::verified.eq(verified), rooms::updated_at.eq(now)))
        .execute(conn)?;
    Ok(())
}

/// Refuses to verify a room one of whose events overlaps an event elsewhere on its place.
fn refuse_conflicts(conn: &mut AnyConnection, room: &Row, zone: chrono_tz::Tz) -> Result<(), Error> {
    let found: Vec<(Uid, Conflict)> = events::table
        .filter(events::place_key.eq(&room.place_key))
        .filter(events::deleted_at.is_null())
        .filter(overlapping!(events, room.starts_at, room.ends_at))
        .select((events::room_id, (events::id, events::starts_at, events::ends_at, events::shared)))
        .order((events::starts_at, events::id))
        .load(conn)?;
    let (inside, elsewhere): (Vec<_>, Vec<_>) = found.into_iter().partition(|(held_in, _)| *held_in == room.id);
    let in_the_way: Vec<_> = elsewhere
        .iter()
        .map(|(_, conflict)| *conflict)
        .filter(|theirs| inside.iter().any(|(_, ours)| overlap::conflicts(&ours.usage(), &theirs.usage())))
        .collect();
    if in_the_way.is_empty() {
        return Ok(());
    }
    let uses: Vec<_> = inside.into_iter().chain(elsewhere).map(|(_, conflict)| conflict).collect();
    let free = booking::free_between(room.window(), &uses);
    Err(booking::conflict(&in_the_way, free, zone).into())
}
