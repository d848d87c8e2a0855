//! Single dates that are added to a series.

use chrono_tz::Tz;
use common::{
    input::IdSet,
    problem::{Problem, Rule as BrokenRule},
};
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::Action,
};

use super::{
    changes::{Also, day, lock, touch},
    creation::{Date, find_rooms},
    extension::any_overlaps,
    queries::{self, Row, skipped},
    rule::{MAX_DATES, Refusal, Times},
    target::record_change,
    wire::series_conflict,
};
use crate::{
    auth::Caller,
    events::{changes::Draft, several},
    schema::{event_series, skipped_occurrences},
};

/// Adds an event to a series, with the fields of the last one. Returns its id.
///
/// # Errors
/// 404; 403 for anybody but the administrators of the series and privileged users; 400 if the series is full; 409
/// `series-conflict`.
pub fn add(
    conn: &mut AnyConnection,
    id: DbUuid,
    (starts_at, ends_at): (DbTimestamp, DbTimestamp),
    me: &Caller,
    zone: Tz,
    now: DbTimestamp,
) -> Result<DbUuid, Error> {
    let (row, events) = lock(conn, id, &Also::default(), me)?;
    let before = queries::get(conn, id)?;
    let last = events.last().ok_or_else(|| Problem::not_found("event in the series"))?;
    if events.len() >= MAX_DATES {
        let message = format!("would be one more than the {MAX_DATES} dates that a series may have");
        return Err(Problem::invalid("/timeStart", BrokenRule::Length, message).into());
    }
    let date = day(starts_at, row.zone()?);
    let others: Vec<_> = events.iter().map(|event| (*event.row.starts_at, *event.row.ends_at)).collect();
    if any_overlaps(&[(*starts_at, *ends_at)], &others) {
        return Err(Problem::invalid("/timeStart", BrokenRule::Range, Refusal::Overlapping.to_string()).into());
    }
    let number = take_number(conn, &row, date)?;
    let admins = IdSet::new(before.admins.iter().map(|id| id.0));
    let draft = Draft { admins, ..several::draft_of(last) };
    let times = Times { date, starts_at: *starts_at, ends_at: *ends_at, exist: true };
    let (bookable, refused) = find_rooms(conn, &draft, Some(&last.row), &[Date { number, times }])?;
    if !refused.is_empty() {
        return Err(series_conflict(&refused, zone));
    }
    let ids = several::create_all(conn, &draft, id, &bookable, &me.author, now)?;
    touch(conn, id, now)?;
    let after = queries::get(conn, id)?;
    record_change(conn, Action::Changed, (&before, &after), &[], &me.author, zone)?;
    ids.first().copied().ok_or_else(|| Problem::internal("no event was added").into())
}

/// The number of a date that was skipped, which then is not any more, or else the next one.
fn take_number(conn: &mut AnyConnection, row: &Row, date: chrono::NaiveDate) -> Result<i32, Error> {
    let zone = row.zone()?;
    let again = skipped(conn, row.id)?.into_iter().find(|skipped| day(skipped.starts_at, zone) == date);
    if let Some(again) = again {
        diesel::delete(skipped_occurrences::table.find((row.id, again.occurrence))).execute(conn)?;
        return Ok(again.occurrence);
    }
    let next = event_series::next_occurrence.eq(row.next_occurrence + 1);
    diesel::update(event_series::table.find(row.id)).set(next).execute(conn)?;
    Ok(row.next_occurrence)
}
