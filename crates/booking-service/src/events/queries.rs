//! Loads events from the database. A list takes four statements, whatever its length.

use std::collections::HashMap;

use common::problem::Problem;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    after,
    database::{
        AnyConnection, PageBounds, id_in,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

pub use super::schedule::Schedule;
use super::selection::Selection;
use crate::{
    auth::Caller,
    schema::{attendees, event_admins, event_tags, events, tags},
};

/// The columns of an event.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = events)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct Row {
    pub id: DbUuid,
    pub name: String,
    pub description: String,
    pub shared: bool,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub place: String,
    pub place_key: String,
    pub room_id: DbUuid,
    pub owns_room: bool,
    pub group_id: DbUuid,
    pub open: bool,
    pub sequence: i32,
    pub created_by: DbUuid,
    pub created_at: DbTimestamp,
    pub updated_at: DbTimestamp,
    pub deleted_at: Option<DbTimestamp>,
}

/// A tag on an event.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct EventTag {
    pub id: DbUuid,
    pub name: String,
    pub locked: bool,
}

/// An event with its administrators, tags and attendees.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its columns.
    pub row: Row,
    /// By id.
    pub admins: Vec<DbUuid>,
    /// By name.
    pub tags: Vec<EventTag>,
    /// Each user once, by id.
    pub attendees: Vec<(DbUuid, Schedule)>,
}

/// The order of a list; events with equal times are ordered by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By start.
    Start,
    /// The newest change first.
    Change,
}

impl Order {
    /// The sort key of a row in a list with this order.
    #[must_use]
    pub fn position(self, row: &Row) -> (DbTimestamp, DbUuid) {
        match self {
            Self::Start => (row.starts_at, row.id),
            Self::Change => (row.updated_at, row.id),
        }
    }
}

/// One page of the selected events.
///
/// # Errors
/// When the database fails.
pub fn load_page(
    conn: &mut AnyConnection,
    selection: &Selection,
    order: Order,
    bounds: &PageBounds<(DbTimestamp, DbUuid)>,
) -> Result<Vec<Event>, Error> {
    let mut rows = selection.query();
    if let Some((at, id)) = bounds.after {
        rows = match order {
            Order::Start => after!(rows, events::starts_at; > at, events::id; > id),
            Order::Change => after!(rows, events::updated_at; < at, events::id; > id),
        };
    }
    let rows = rows.select(Row::as_select()).limit(bounds.rows);
    let rows: Vec<Row> = match order {
        Order::Start => rows.order((events::starts_at, events::id)).load(conn)?,
        Order::Change => rows.order((events::updated_at.desc(), events::id)).load(conn)?,
    };
    if rows.is_empty() { Ok(Vec::new()) } else { load_children(conn, rows) }
}

/// Loads the administrators, tags and attendees of events.
fn load_children(conn: &mut AnyConnection, rows: Vec<Row>) -> Result<Vec<Event>, Error> {
    let ids: Vec<DbUuid> = rows.iter().map(|row| row.id).collect();
    let admins: Vec<(DbUuid, DbUuid)> = with_connection!(conn, c => event_admins::table
        .filter(id_in(event_admins::event_id, &ids))
        .order((event_admins::event_id, event_admins::user_id))
        .load(c)?);
    let tags: Vec<(DbUuid, DbUuid, String, bool)> = with_connection!(conn, c => event_tags::table
        .inner_join(tags::table)
        .filter(id_in(event_tags::event_id, &ids))
        .select((event_tags::event_id, tags::id, tags::name, event_tags::locked))
        .order((tags::name, tags::id))
        .load(c)?);
    let answers: Vec<(DbUuid, DbUuid, Schedule)> = with_connection!(conn, c => attendees::table
        .filter(id_in(attendees::event_id, &ids))
        .select((attendees::event_id, attendees::user_id, attendees::schedule))
        .order((attendees::event_id, attendees::user_id))
        .load(c)?);
    let mut admins = by_event(admins.into_iter());
    let mut tags = by_event(tags.into_iter().map(|(event, id, name, locked)| (event, EventTag { id, name, locked })));
    let mut answers = by_event(answers.into_iter().map(|(event, user, schedule)| (event, (user, schedule))));
    let event = |row: Row| Event {
        admins: admins.remove(&row.id).unwrap_or_default(),
        tags: tags.remove(&row.id).unwrap_or_default(),
        attendees: answers.remove(&row.id).unwrap_or_default(),
        row,
    };
    Ok(rows.into_iter().map(event).collect())
}

fn by_event<T>(rows: impl Iterator<Item = (DbUuid, T)>) -> HashMap<DbUuid, Vec<T>> {
    let mut found: HashMap<DbUuid, Vec<T>> = HashMap::new();
    for (event, row) in rows {
        found.entry(event).or_default().push(row);
    }
    found
}

/// One event.
///
/// # Errors
/// 404 when there is none, or it is deleted.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<Event, Error> {
    let row = find(conn, id)?;
    load_children(conn, vec![row])?.pop().ok_or_else(not_found)
}

/// The columns of one event.
///
/// # Errors
/// 404 when there is none, or it is deleted.
pub fn find(conn: &mut AnyConnection, id: DbUuid) -> Result<Row, Error> {
    let event = events::table.find(id).filter(events::deleted_at.is_null());
    let row = with_connection!(conn, c => event.select(Row::as_select()).first(c)).optional()?;
    row.ok_or_else(not_found)
}

pub(super) fn not_found() -> Error {
    Problem::not_found("event").into()
}

/// Checks that the caller is an administrator of an event or privileged.
///
/// # Errors
/// 403.
pub fn check_admin_or_privileged(conn: &mut AnyConnection, event: DbUuid, me: &Caller) -> Result<(), Error> {
    let is_admin = || event_admins::table.find((event, me.id)).select(event_admins::user_id);
    if me.privileged || is_admin().first::<DbUuid>(conn).optional()?.is_some() {
        return Ok(());
    }
    Err(Problem::forbidden("an administrator of the event, or a privileged user").into())
}
