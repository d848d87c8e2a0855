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
    rooms::queries::{self as rooms, Room, Selection as Rooms},
    schema::{events, groups},
};

/// The most rooms of a board.
pub const MAX_ROOMS: usize = 1000;

/// The most events of a board.
pub const MAX_EVENTS: usize = 2000;

/// An event on a board.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = events)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
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

/// The rooms and events of a span of time.
#[derive(Debug, Clone)]
pub struct Content {
    /// By start, place and id.
    pub rooms: Vec<Room>,
    /// By start and id.
    pub events: Vec<BoardEvent>,
    /// Whether there are more of them.
    pub is_cut: bool,
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
    let mut query = Events::new(Criterion::All).between((Some(from), Some(to))).query();
    if let Some(key) = place_key {
        query = query.filter(events::place_key.eq(key.to_owned()));
    }
    let mut events: Vec<BoardEvent> = query
        .inner_join(groups::table)
        .order((events::starts_at, events::id))
        .limit(first::<()>(MAX_EVENTS + 1).rows)
        .select(BoardEvent::as_select())
        .load(conn)?;
    let is_cut = rooms.len() > MAX_ROOMS || events.len() > MAX_EVENTS;
    rooms.truncate(MAX_ROOMS);
    events.truncate(MAX_EVENTS);
    Ok(Content { rooms, events, is_cut })
}

fn first<P>(rows: usize) -> PageBounds<P> {
    PageBounds { after: None, rows: i64::try_from(rows).unwrap_or(i64::MAX) }
}
