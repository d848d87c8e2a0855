//! The free times of rooms and the busy times of people, in the database.

use common::problem::{Problem, Rule};
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
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

/// Rooms that are loaded together.
const CHUNK: usize = 1000;

/// The people who are counted at each free time.
#[derive(Debug, Clone)]
pub enum People {
    /// The active members of a group.
    Group(DbUuid),
    /// These users.
    Users(Vec<DbUuid>),
}

/// A room and its free times, either for exclusive or for shared events.
#[derive(Debug, Clone)]
pub struct FreeRoom {
    /// The room.
    pub id: DbUuid,
    /// Its place.
    pub place: String,
    /// Ordered and maximal: no two touch.
    pub free: Vec<Span>,
}

/// The selected rooms with their free times, which may begin before the selection's span and end after it. Takes four
/// to six statements for each thousand rooms.
pub fn free_rooms(conn: &mut AnyConnection, selection: &Selection, shared: bool) -> Result<Vec<FreeRoom>, Error> {
    let mut result = Vec::new();
    let mut page = PageBounds { after: None, rows: CHUNK.try_into().unwrap_or(i64::MAX) };
    loop {
        let rooms = rooms::load_page(conn, selection, None, &page)?;
        let last = rooms.last().filter(|_| rooms.len() == CHUNK);
        page.after = last.map(|room| room.row.position());
        result.extend(rooms.into_iter().map(|room| free_room(room, shared)));
        if page.after.is_none() {
            return Ok(result);
        }
    }
}

fn free_room(room: Room, shared: bool) -> FreeRoom {
    let free = if shared { room.shared_times } else { room.free_times };
    FreeRoom { id: room.row.id, free, place: room.row.place }
}

/// The number of these people.
///
/// # Errors
/// 400 for a group or user that does not exist, with the name of the parameter.
pub fn count_people(conn: &mut AnyConnection, people: &People) -> Result<usize, Error> {
    match people {
        People::Group(group) => {
            if !groups::queries::unknown_indexes(conn, &[*group])?.is_empty() {
                return Err(Problem::parameter("groupId", Rule::UnknownGroup, "names no group").into());
            }
            Ok(groups::queries::members_of_all(conn, &[*group])?.len())
        }
        People::Users(ids) => {
            if users::queries::unknown_indexes(conn, ids)?.is_empty() {
                return Ok(ids.len());
            }
            Err(Problem::parameter("userIds", Rule::UnknownUser, "names an id that is no user's").into())
        }
    }
}

/// The spans of the events that these people attend and that overlap `[from, to)`, each with the user.
pub fn busy_times(
    conn: &mut AnyConnection,
    people: &People,
    from: DbTimestamp,
    to: DbTimestamp,
) -> Result<Vec<(DbUuid, Span)>, Error> {
    let attendances = attendees::table
        .inner_join(events::table)
        .filter(attendees::schedule.eq(Schedule::Attendance))
        .filter(events::deleted_at.is_null())
        .filter(overlapping!(events, from, to))
        .select((attendees::user_id, events::starts_at, events::ends_at));
    let rows: Vec<(DbUuid, DbTimestamp, DbTimestamp)> = with_connection!(conn, c => match people {
        People::Users(ids) => attendances.filter(attendees::user_id.eq_any(ids)).load(c)?,
        People::Group(EVERYONE) => {
            let active = user_rows::table.filter(user_rows::state.eq(ACTIVE)).select(user_rows::id);
            attendances.filter(attendees::user_id.eq_any(active)).load(c)?
        }
        People::Group(group) => {
            let active = user_rows::table.on(user_rows::id.eq(group_members::user_id));
            let members = group_members::table.inner_join(active).filter(user_rows::state.eq(ACTIVE));
            let members = members.filter(group_members::group_id.eq(*group));
            attendances.filter(attendees::user_id.eq_any(members.select(group_members::user_id))).load(c)?
        }
    });
    Ok(rows.into_iter().map(|(user, starts_at, ends_at)| (user, Span::between(starts_at, ends_at))).collect())
}
