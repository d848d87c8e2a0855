//! The poll that an operation changes: its answer, for `If-Match`, and its fields, for the history.

use chrono_tz::Tz;
use serde_json::Value;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    guard::Target,
    history::{self, Action, Author},
    http::Reply,
};

use super::{queries, wire::ResponseDraftEventDetail};
use crate::{auth::Caller, objects::POLL};

pub(super) fn show(conn: &mut AnyConnection, id: DbUuid, now: DbTimestamp, zone: Tz) -> Result<Reply, Error> {
    Reply::json(&ResponseDraftEventDetail::new(queries::get_detail(conn, id)?, now, zone))
}

pub(super) fn lock_name(id: DbUuid) -> String {
    format!("poll {id}")
}

/// The poll that an operation changes.
pub fn target(id: DbUuid, now: DbTimestamp, zone: Tz) -> Target<Caller> {
    Target::new(lock_name(id), move |conn, _| show(conn, id, now, zone))
        .of_forms(&POLL, move |conn| fields_of(conn, id, now, zone))
}

/// The same, for an operation whose change the history records.
pub fn changed(id: DbUuid, now: DbTimestamp, zone: Tz) -> Target<Caller> {
    recorded(target(id, now, zone), id, Action::Changed, now, zone)
}

/// A target whose change the history records.
fn recorded(target: Target<Caller>, id: DbUuid, action: Action, now: DbTimestamp, zone: Tz) -> Target<Caller> {
    target.recorded(&POLL, id, action, move |conn| fields_of(conn, id, now, zone))
}

pub(super) fn fields_of(conn: &mut AnyConnection, id: DbUuid, now: DbTimestamp, zone: Tz) -> Result<Value, Error> {
    history::fields_of(&ResponseDraftEventDetail::new(queries::get_detail(conn, id)?, now, zone))
}

/// The poll of an operation that makes one of its slots an event.
pub fn confirmed(id: DbUuid, now: DbTimestamp, zone: Tz) -> Target<Caller> {
    recorded(Target::parent(lock_name(id)), id, Action::Confirmed, now, zone)
}

/// Records a new poll in the history.
pub fn record_created(
    conn: &mut AnyConnection,
    id: DbUuid,
    by: &Author,
    now: DbTimestamp,
    zone: Tz,
) -> Result<(), Error> {
    let fields = fields_of(conn, id, now, zone)?;
    history::created(conn, by, &POLL, [(id, fields)])
}
