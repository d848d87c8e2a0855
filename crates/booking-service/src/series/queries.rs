//! Series in the database.

use std::{cmp::Reverse, collections::BTreeSet};

use chrono::NaiveDate;
use chrono_tz::Tz;
use common::problem::Problem;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    retention::RESTORABLE,
    text_enum,
};

use super::rule::{FirstTimes, Rule};
use crate::{
    auth::Caller,
    events::{
        queries::{Event, Row as EventRow},
        several,
    },
    schema::{event_series, event_series_admins, events, skipped_occurrences},
};

/// The most deleted events of a series that are read.
const MAX_DELETED: i64 = 1000;

/// The columns of a series.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = event_series)]
pub struct Row {
    pub id: DbUuid,
    pub rrule: String,
    pub time_zone: String,
    pub exdates: String,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub next_occurrence: i32,
    pub created_by: Option<DbUuid>,
    pub created_at: DbTimestamp,
    pub updated_at: DbTimestamp,
}

impl Row {
    /// The zone of its wall clock.
    ///
    /// # Errors
    /// 500 for a zone that the service does not know.
    pub fn zone(&self) -> Result<Tz, Error> {
        self.time_zone.parse().map_err(|_| Problem::internal("the time zone of a series is not known").into())
    }

    /// The dates of its rule that it does not have.
    pub fn exdates(&self) -> BTreeSet<NaiveDate> {
        self.exdates.split(',').filter_map(|date| date.parse().ok()).collect()
    }

    /// Its rule, and the times of its first occurrence.
    ///
    /// # Errors
    /// 500 for a rule that cannot be read.
    pub fn rule(&self) -> Result<(Rule, FirstTimes), Error> {
        let first = FirstTimes::of(*self.starts_at, *self.ends_at, self.zone()?);
        let rule = self.rrule.parse::<Rule>().ok().zip(first);
        rule.ok_or_else(|| Problem::internal("the rule of a series cannot be read").into())
    }
}

text_enum! {
    /// Why a date was skipped.
    pub enum SkipCode {
        /// The room is taken.
        RoomConflict = "room-conflict",
        /// It is not inside the period of the room.
        OutsideRoomPeriod = "outside-room-window",
        /// The clocks skip its start or end.
        NonexistentTime = "nonexistent-time",
    }
}

/// A date that could not be booked.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = skipped_occurrences)]
pub struct Skipped {
    pub occurrence: i32,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub code: SkipCode,
}

/// A series with its events and skipped dates.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its columns.
    pub row: Row,
    /// By id.
    pub admins: Vec<DbUuid>,
    /// Those that are not deleted, by start.
    pub events: Vec<Event>,
    /// By start.
    pub skipped: Vec<Skipped>,
}

/// Dates as a column has them.
pub fn as_text(dates: &BTreeSet<NaiveDate>) -> String {
    dates.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The columns of a series.
pub fn find(conn: &mut AnyConnection, id: DbUuid) -> Result<Row, Error> {
    let row = event_series::table.find(id).select(Row::as_select()).first(conn).optional()?;
    row.ok_or_else(|| Problem::not_found("series").into())
}

/// Checks that there is a series and the caller may change it.
pub fn check_found_and_may_change(conn: &mut AnyConnection, id: DbUuid, me: &Caller) -> Result<(), Error> {
    find(conn, id)?;
    check_may_change(conn, id, me)
}

/// One series.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<Series, Error> {
    let row = find(conn, id)?;
    Ok(Series { row, admins: admins(conn, id)?, events: several::of_series(conn, id)?, skipped: skipped(conn, id)? })
}

/// The administrators of a series, by id.
pub fn admins(conn: &mut AnyConnection, id: DbUuid) -> Result<Vec<DbUuid>, Error> {
    let admins = event_series_admins::table.filter(event_series_admins::series_id.eq(id));
    Ok(admins.select(event_series_admins::user_id).order(event_series_admins::user_id).load(conn)?)
}

/// The skipped dates of a series, by start.
pub fn skipped(conn: &mut AnyConnection, id: DbUuid) -> Result<Vec<Skipped>, Error> {
    let skipped = skipped_occurrences::table.filter(skipped_occurrences::series_id.eq(id));
    let skipped = skipped.order((skipped_occurrences::starts_at, skipped_occurrences::occurrence));
    Ok(skipped.select(Skipped::as_select()).load(conn)?)
}

/// The deleted events of a series that can be restored: the last deleted ones first, those of one deletion by start.
pub fn restorable(conn: &mut AnyConnection, id: DbUuid, now: DbTimestamp) -> Result<Vec<EventRow>, Error> {
    let deleted = events::table.filter(events::series_id.eq(id)).filter(events::deleted_at.is_not_null());
    let deleted = deleted.order((events::starts_at, events::id)).limit(MAX_DELETED);
    let mut rows: Vec<EventRow> = deleted.select(EventRow::as_select()).load(conn)?;
    rows.retain(|row| row.deleted_at.is_some_and(|at| at.plus(RESTORABLE) > *now));
    rows.sort_by_key(|row| Reverse(row.deleted_at));
    Ok(rows)
}

/// Checks that the caller may change a series.
///
/// # Errors
/// 403 for anybody but its administrators and privileged users.
pub fn check_may_change(conn: &mut AnyConnection, id: DbUuid, me: &Caller) -> Result<(), Error> {
    if me.privileged || admins(conn, id)?.contains(&me.id) {
        return Ok(());
    }
    Err(Problem::forbidden("an administrator of the series, or a privileged user").into())
}
