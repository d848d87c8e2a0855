//! The event that an operation changes: its answer, for `If-Match`, and its fields, for the history.

use chrono_tz::Tz;
use serde_json::Value;
use service_kit::{
    database::{AnyConnection, PageBounds, types::DbUuid},
    error::Error,
    guard::Target,
    history::{self, Action, Author, Entry},
    http::Reply,
};

use super::{
    queries::{self, Event, Order},
    selection::{Criterion, Selection},
    wire::{ResponseEvent, ResponseEventDetail},
};
use crate::{auth::Caller, objects::EVENT};

pub(super) fn show(conn: &mut AnyConnection, id: DbUuid, zone: Tz) -> Result<Reply, Error> {
    Reply::json(&ResponseEventDetail::new(queries::get(conn, id)?, zone))
}

/// The name by which changes of an event exclude each other.
pub fn lock_name(id: DbUuid) -> String {
    format!("event {id}")
}

/// The event that an operation restores.
pub fn parent(id: DbUuid) -> Target<Caller> {
    Target::parent(lock_name(id))
}

/// The event that an operation changes.
pub fn target(id: DbUuid, zone: Tz) -> Target<Caller> {
    Target::new(lock_name(id), move |conn, _| show(conn, id, zone)).of_forms(&EVENT, move |conn| fields(conn, id, zone))
}

/// The same, for an operation whose change the history records.
pub fn recorded(id: DbUuid, action: Action, zone: Tz) -> Target<Caller> {
    target(id, zone).recorded(&EVENT, id, action, move |conn| fields(conn, id, zone)).revertible()
}

/// Checks that the caller may change an event.
pub fn check_may_change(conn: &mut AnyConnection, event: DbUuid, me: &Caller) -> Result<(), Error> {
    queries::find(conn, event)?;
    queries::check_admin_or_privileged(conn, event, me)
}

/// The fields of an event that the history records.
pub fn fields(conn: &mut AnyConnection, id: DbUuid, zone: Tz) -> Result<Value, Error> {
    fields_of(queries::get_without_attendees(conn, id)?, zone)
}

fn fields_of(event: Event, zone: Tz) -> Result<Value, Error> {
    history::fields_of(&ResponseEvent::new(event, zone))
}

/// Records a new event in the history, and shows it.
pub fn show_created(conn: &mut AnyConnection, id: DbUuid, by: &Author, zone: Tz) -> Result<ResponseEventDetail, Error> {
    let event = queries::get(conn, id)?;
    history::created(conn, by, &EVENT, [(id, fields_of(event.without_attendees(), zone)?)])?;
    Ok(ResponseEventDetail::new(event, zone))
}

/// Records new events in the history.
pub fn record_created(conn: &mut AnyConnection, events: &[Event], by: &Author, zone: Tz) -> Result<(), Error> {
    let fields = events.iter().map(|event| Ok((event.row.id, fields_of(event.clone(), zone)?)));
    history::created(conn, by, &EVENT, fields.collect::<Result<Vec<_>, Error>>()?)
}

/// Records new events with these ids in the history.
pub fn record_new(conn: &mut AnyConnection, ids: &[DbUuid], by: &Author, zone: Tz) -> Result<(), Error> {
    let selection = Selection::new(Criterion::These(ids.to_vec()));
    let events = queries::load_page(conn, &selection, Order::Start, &PageBounds::all())?;
    record_created(conn, &events, by, zone)
}

/// Records in the history that events have changed together. `after` may have other events besides these.
pub fn record_changes(
    conn: &mut AnyConnection,
    before: &[Event],
    after: &[Event],
    by: &Author,
    zone: Tz,
) -> Result<(), Error> {
    let mut entries = Vec::new();
    for old in before {
        let Some(new) = after.iter().find(|new| new.row.id == old.row.id) else { continue };
        let (before, after) = (fields_of(old.clone(), zone)?, fields_of(new.clone(), zone)?);
        let changes = history::difference(&EVENT, &before, &after);
        if !changes.is_empty() {
            history::began(conn, by.at, (&EVENT, old.row.id), &before)?;
            entries.push(Entry { kind: &EVENT, object: old.row.id, action: Action::Changed, changes });
        }
    }
    history::record(conn, by, &entries)
}
