//! The series that an operation changes: its answer, for `If-Match`, and its fields, for the history.

use chrono_tz::Tz;
use serde_json::{Map, Value, json};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    guard::{Target, lock_targets},
    history::{self, Action, Author, Changes, Entry},
    http::Reply,
};

use super::{
    queries::{self, Row, Series},
    wire::{ResponseEventSeries, SkippedDate},
};
use crate::{
    auth::Caller,
    deletion::LATEST,
    events::{self, ResponseEvent, ResponseEventDetail, queries::Event, several},
    objects::{EVENT, SERIES},
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
pub(super) fn target(id: DbUuid, zone: Tz) -> Target<Caller> {
    let target = Target::new(lock_name(id), move |conn: &mut AnyConnection, _: &Caller| {
        // A change of one of its events that is under way is seen.
        lock_events(conn, id)?;
        show(conn, id, zone)
    });
    target.exclusive()
}

/// A change or deletion of an event of a series and of the later ones: whoever makes it has seen the event.
pub fn later_occurrences(id: DbUuid, event: DbUuid, zone: Tz) -> Target<Caller> {
    let target = Target::new(lock_name(id), move |conn: &mut AnyConnection, _: &Caller| {
        lock_events(conn, id)?;
        Reply::json(&ResponseEventDetail::new(events::queries::get(conn, event)?, zone))
    });
    let target = target.of_forms(&EVENT, move |conn| {
        lock_events(conn, id)?;
        events::fields(conn, event, zone)
    });
    target.exclusive()
}

/// A change of which events a series has: whoever makes it has seen which those are.
pub fn all_occurrences(id: DbUuid, zone: Tz) -> Target<Caller> {
    let target = Target::new(lock_name(id), move |conn: &mut AnyConnection, _: &Caller| {
        Reply::json(&own_fields(&queries::get(conn, id)?, zone))
    });
    target.exclusive()
}

/// The series to which an operation adds events, new ones or deleted ones.
pub fn extended(id: DbUuid) -> Target<Caller> {
    Target::parent(lock_name(id)).exclusive()
}

/// The fields of a series itself that the history records.
fn own_fields(series: &Series, zone: Tz) -> Value {
    let Row { rrule, time_zone, .. } = &series.row;
    let skipped: Vec<_> = series.skipped.iter().map(|date| SkippedDate::stored(date, zone)).collect();
    let ids: Vec<_> = series.events.iter().map(|event| event.row.id).collect();
    json!({"rrule": rrule, "timeZone": time_zone, "admins": series.admins, "skipped": skipped, "events": ids})
}

/// The fields of an event that the history of its series records, with its times of day.
fn event_fields(event: &Event, zone: Tz) -> Result<Map<String, Value>, Error> {
    let Value::Object(mut fields) = history::fields_of(&ResponseEvent::new(event.clone(), zone))? else {
        return Ok(Map::new());
    };
    for of_one in ["eventId", "timeStart", "timeEnd", "roomId", "attendees", "seriesId", "occurrence", "admins"] {
        fields.remove(of_one);
    }
    let clock = |at: DbTimestamp| at.utc().with_timezone(&zone).format("%H:%M").to_string();
    fields.insert("startTime".to_owned(), json!(clock(event.row.starts_at)));
    fields.insert("endTime".to_owned(), json!(clock(event.row.ends_at)));
    Ok(fields)
}

/// Records a new series and its events in the history, and returns it.
pub fn record_new_series(conn: &mut AnyConnection, id: DbUuid, by: &Author, zone: Tz) -> Result<Series, Error> {
    let series = queries::get(conn, id)?;
    events::record_created(conn, &series.events, by, zone)?;
    let mut fields = own_fields(&series, zone);
    if let (Value::Object(fields), Some(event)) = (&mut fields, series.events.last()) {
        fields.extend(event_fields(event, zone)?);
    }
    // Its events count for the daily limit.
    history::created(conn, &by.uncounted(), &SERIES, [(id, fields)])?;
    Ok(series)
}

/// Records in the history what has changed of a series itself, of these events, as they were, and by another last event.
/// Returns whether anything has.
pub fn record_change(
    conn: &mut AnyConnection,
    action: Action,
    (before, after): (&Series, &Series),
    events: &[Event],
    by: &Author,
    zone: Tz,
) -> Result<bool, Error> {
    let mut changes = history::difference(&SERIES, &own_fields(before, zone), &own_fields(after, zone));
    let mut is_changed = !changes.is_empty();
    let same = events.iter().filter_map(|old| Some((old, after.events.iter().find(|new| new.row.id == old.row.id)?)));
    let same: Vec<_> = same.collect();
    is_changed |= !same.is_empty();
    for (old, new) in same.into_iter().chain(before.events.last().zip(after.events.last())) {
        let [old, new] = [event_fields(old, zone)?, event_fields(new, zone)?].map(Value::Object);
        changes.extend(history::difference(&SERIES, &old, &new));
    }
    continue_rows(conn, before.row.id, &mut changes)?;
    if !changes.is_empty() {
        let entry = Entry { kind: &SERIES, object: before.row.id, action, changes };
        history::record(conn, &by.uncounted(), &[entry])?;
    }
    Ok(is_changed)
}

/// Makes the old values those that the rows of a series have left: operations on single events change the last one too,
/// without a row of the series.
fn continue_rows(conn: &mut AnyConnection, id: DbUuid, changes: &mut Changes) -> Result<(), Error> {
    let rows = history::load(conn, id, &PageBounds { after: None, rows: LATEST })?;
    let rows: Vec<Changes> = rows.iter().filter_map(|row| serde_json::from_str(&row.changes).ok()).collect();
    for (field, change) in &mut *changes {
        if let (Value::Array(pair), Some(Value::Array(last))) = (change, rows.iter().find_map(|row| row.get(field))) {
            pair[0] = last[1].clone();
        }
    }
    changes.retain(|_, change| !change.is_array() || change[0] != change[1]);
    Ok(())
}
