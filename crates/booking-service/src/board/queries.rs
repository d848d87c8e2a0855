//! What a board shows, in the database.

use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use crate::{
    events::selection::{Criterion, Selection as Events},
    rooms::{
        overlap::Span,
        queries::{self as rooms, Room, Selection as Rooms},
    },
    schema::{events, groups},
};

/// The most rooms of a board.
pub const MAX_ROOMS: usize = 1000;

/// The most events of a board.
pub const MAX_EVENTS: usize = 2000;

/// An event on a board.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = events)]
pub struct BoardEvent {
    pub id: DbUuid,
    pub name: String,
    pub shared: bool,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub place: String,
    pub place_key: String,
    pub room_id: DbUuid,
    pub owns_room: bool,
    #[diesel(select_expression = groups::name)]
    pub group: String,
}

impl BoardEvent {
    /// When it takes place.
    pub fn span(&self) -> Span {
        Span::between(self.starts_at, self.ends_at)
    }
}

/// The rooms and events of a span of time.
#[derive(Debug, Clone)]
pub struct Content {
    /// By start, place and id.
    pub rooms: Vec<Room>,
    /// By start and id.
    pub events: Vec<BoardEvent>,
    /// How many rooms there are.
    pub all_rooms: usize,
    /// How many events there are.
    pub all_events: usize,
}

/// What overlaps a span, at all places or at one.
pub fn load(
    conn: &mut AnyConnection,
    (from, to): (DbTimestamp, DbTimestamp),
    place_key: Option<&str>,
) -> Result<Content, Error> {
    let selection =
        Rooms { from: Some(from), to: Some(to), place_key: place_key.map(str::to_owned), ..Rooms::default() };
    let mut rooms = rooms::load_page(conn, &selection, None, &first(MAX_ROOMS + 1))?;
    let events = || {
        let query = Events::new(Criterion::All).between((Some(from), Some(to))).query();
        match place_key {
            Some(key) => query.filter(events::place_key.eq(key.to_owned())),
            None => query,
        }
    };
    let mut shown: Vec<BoardEvent> = events()
        .inner_join(groups::table)
        .order((events::starts_at, events::id))
        .limit(first::<()>(MAX_EVENTS + 1).rows)
        .select(BoardEvent::as_select())
        .load(conn)?;
    let number = |rows: i64| usize::try_from(rows).unwrap_or(usize::MAX);
    let all_rooms = if rooms.len() > MAX_ROOMS { number(rooms::count(conn, &selection)?) } else { rooms.len() };
    let all_events = if shown.len() > MAX_EVENTS { number(events().count().get_result(conn)?) } else { shown.len() };
    rooms.truncate(MAX_ROOMS);
    shown.truncate(MAX_EVENTS);
    Ok(Content { rooms, events: shown, all_rooms, all_events })
}

fn first<P>(rows: usize) -> PageBounds<P> {
    PageBounds { after: None, rows: i64::try_from(rows).unwrap_or(i64::MAX) }
}
