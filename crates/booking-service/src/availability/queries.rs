//! The free times of rooms and the busy times of people, in the database.

use common::problem::Problem;
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection, PageBounds, id_in,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use crate::{
    auth::ACTIVE,
    events::queries::Schedule,
    groups::{self, EVERYONE},
    rooms::{
        overlap::Span,
        queries::{self as rooms, Room, Selection},
    },
    schema::{attendees, events, group_members, users as user_rows},
    users,
};

/// Rooms that are read together.
const CHUNK: usize = 1000;

/// People who would like to come.
#[derive(Debug, Clone)]
pub enum People {
    /// The members of a group.
    Group(DbUuid),
    /// These.
    Users(Vec<DbUuid>),
}

/// A room and the times when an event, which shares it or not, can use it.
#[derive(Debug, Clone)]
pub struct FreeRoom {
    /// The room.
    pub id: DbUuid,
    /// Its place.
    pub place: String,
    /// In order, and none touching the next.
    pub free: Vec<Span>,
}

/// The rooms of a span, with their free times, which may begin before the span and end after it. Four statements for
/// each thousand rooms.
///
/// # Errors
/// When the database fails.
pub fn free_rooms(conn: &mut AnyConnection, selection: &Selection, shared: bool) -> Result<Vec<FreeRoom>, Error> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = PageBounds { after: after.take(), rows: CHUNK.try_into().unwrap_or(i64::MAX) };
        let rooms = rooms::load_page(conn, selection, None, &page)?;
        if let Some(Room { row, .. }) = rooms.last().filter(|_| rooms.len() == CHUNK) {
            after = Some((row.starts_at, row.place.clone(), row.id));
        }
        found.extend(rooms.into_iter().map(|room| free_room(room, shared)));
        if after.is_none() {
            return Ok(found);
        }
    }
}

fn free_room(room: Room, shared: bool) -> FreeRoom {
    let free = if shared { room.shared_times } else { room.free_times };
    FreeRoom { id: room.row.id, free, place: room.row.place }
}

/// How many people these are.
///
/// # Errors
/// 400 for a group or user that does not exist, naming the parameter.
pub fn count_people(conn: &mut AnyConnection, people: &People) -> Result<usize, Error> {
    match people {
        People::Group(group) => {
            if !groups::queries::unknown(conn, &[*group])?.is_empty() {
                return Err(Problem::parameter("groupId", "unknown-group", "names no group").into());
            }
            Ok(groups::queries::member_ids(conn, *group)?.len())
        }
        People::Users(ids) => {
            if users::queries::unknown(conn, ids)?.is_empty() {
                return Ok(ids.len());
            }
            Err(Problem::parameter("userIds", "unknown-user", "names somebody who is no user").into())
        }
    }
}

/// The events that these people attend and that overlap a span: who, and when.
///
/// # Errors
/// When the database fails.
pub fn busy_times(
    conn: &mut AnyConnection,
    people: &People,
    from: DbTimestamp,
    to: DbTimestamp,
) -> Result<Vec<(DbUuid, Span)>, Error> {
    let attended = attendees::table
        .inner_join(events::table)
        .filter(attendees::schedule.eq(Schedule::Attendance))
        .filter(events::deleted_at.is_null())
        .filter(overlapping!(events, from, to))
        .select((attendees::user_id, events::starts_at, events::ends_at));
    let rows: Vec<(DbUuid, DbTimestamp, DbTimestamp)> = with_connection!(conn, c => match people {
        People::Users(ids) => attended.filter(id_in(attendees::user_id, ids)).load(c)?,
        People::Group(EVERYONE) => {
            let active = user_rows::table.filter(user_rows::state.eq(ACTIVE)).select(user_rows::id);
            attended.filter(attendees::user_id.eq_any(active)).load(c)?
        }
        People::Group(group) => {
            let members = group_members::table.filter(group_members::group_id.eq(*group));
            attended.filter(attendees::user_id.eq_any(members.select(group_members::user_id))).load(c)?
        }
    });
    let row = |(user, start, end): (DbUuid, DbTimestamp, DbTimestamp)| {
        Span::new(start.utc(), end.utc()).map(|span| (user, span))
    };
    Ok(rows.into_iter().filter_map(row).collect())
}
