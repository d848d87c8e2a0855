//! The series that an operation changes: its answer, for `If-Match`, and its fields, for the history.

use chrono_tz::Tz;
use serde_json::{Value, json};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    guard::{Target, lock_targets},
    history::{self, Action, Author},
    http::Reply,
};

use super::{
    queries::{self, Series},
    wire::{ResponseEventSeries, SkippedDate},
};
use crate::{
    auth::Caller,
    events::{self, ResponseEvent, ResponseEventDetail, several},
    objects::SERIES,
};

pub(super) fn show(conn: &mut AnyConnection, id: DbUuid, zone: Tz) -> Result<Reply, Error> {
    Reply::json(&ResponseEventSeries::new(queries::get(conn, id)?, zone))
}

fn lock_name(id: DbUuid) -> String {
    format!("series {id}")
}

/// Locks the events of a series against changes of one of them, until the end of the transaction.
pub(super) fn lock_events(conn: &mut AnyConnection, id: DbUuid) -> Result<(), Error> {
    let events = several::of_series(conn, id)?;
    lock_targets(conn, events.iter().map(|event| events::lock_name(event.row.id)).collect())
}

/// The series that an operation changes.
pub(super) fn changed(id: DbUuid, action: Action, zone: Tz) -> Target<Caller> {
    let target = Target::new(lock_name(id), move |conn: &mut AnyConnection, _: &Caller| {
        // A change of one of its events that is under way is seen.
        lock_events(conn, id)?;
        show(conn, id, zone)
    });
    target.recorded(&SERIES, id, action, move |conn| fields(&queries::get(conn, id)?, zone))
}

/// A change of an event of a series and of the later ones: whoever makes it has seen the event.
#[must_use]
pub fn later_occurrences(id: DbUuid, event: DbUuid, zone: Tz) -> Target<Caller> {
    let target = Target::new(lock_name(id), move |conn: &mut AnyConnection, _: &Caller| {
        lock_events(conn, id)?;
        Reply::json(&ResponseEventDetail::new(events::queries::get(conn, event)?, zone))
    });
    target.recorded(&SERIES, id, Action::Changed, move |conn| fields(&queries::get(conn, id)?, zone))
}

/// The series to which an operation adds an event.
pub(super) fn extended(id: DbUuid, zone: Tz) -> Target<Caller> {
    let fields = move |conn: &mut AnyConnection| fields(&queries::get(conn, id)?, zone);
    Target::parent(lock_name(id)).recorded(&SERIES, id, Action::Changed, fields)
}

/// The fields of a series that the history records.
fn fields(series: &Series, zone: Tz) -> Result<Value, Error> {
    let skipped: Vec<_> = series.skipped.iter().map(|date| SkippedDate::stored(date, zone)).collect();
    let ids: Vec<_> = series.events.iter().map(|event| event.row.id).collect();
    let own = json!({"rrule": series.row.rrule, "timeZone": series.row.time_zone, "skipped": skipped, "events": ids});
    let unchanged = series.events.iter().rev().find(|event| !event.row.changed_by_itself);
    let Some(last) = unchanged.or(series.events.last()) else { return Ok(own) };
    let clock = |at: DbTimestamp| at.utc().with_timezone(&zone).format("%H:%M").to_string();
    let times = json!({"startTime": clock(last.row.starts_at), "endTime": clock(last.row.ends_at)});
    let mut of_event = history::fields_of(&ResponseEvent::new(last.clone(), zone))?;
    if let Value::Object(fields) = &mut of_event {
        for of_one in ["eventId", "timeStart", "timeEnd", "roomId", "attendees", "seriesId", "occurrence"] {
            fields.remove(of_one);
        }
        for more in [own, times] {
            fields.extend(more.as_object().cloned().unwrap_or_default());
        }
    }
    Ok(of_event)
}

/// Records a new series and its events in the history, and returns it.
pub fn record_new_series(conn: &mut AnyConnection, id: DbUuid, by: &Author, zone: Tz) -> Result<Series, Error> {
    let series = queries::get(conn, id)?;
    events::record_created(conn, &series.events, by, zone)?;
    history::created(conn, by, &SERIES, [(id, fields(&series, zone)?)])?;
    Ok(series)
}
