//! The values of a row. A value that cannot be kept becomes the nearest one, and the report lists both.

use std::{collections::HashSet, hash::BuildHasher};

use chrono::TimeDelta;
use chrono_tz::Tz;
use common::time::Timestamp;

use crate::{
    local_time::{Clarity, instant},
    report::Report,
    row::{Fault, SourceRow},
    run::Import,
};
use service_kit::database::types::{DbTimestamp, DbUuid};

/// The heading of the times that do not exist or are ambiguous.
const UNCLEAR: &str = "times that do not exist or are ambiguous";

/// The shortest period between two times of a row.
const SHORTEST: TimeDelta = TimeDelta::minutes(1);

/// Reads the columns of a row.
pub struct Columns<'a> {
    /// The row, with the values as they are.
    pub row: &'a SourceRow,
    report: &'a mut Report,
    zone: Tz,
}

impl Import {
    /// The columns of a row.
    pub fn columns<'a>(&'a mut self, row: &'a SourceRow) -> Columns<'a> {
        Columns { row, report: &mut self.report, zone: self.zone }
    }
}

impl Columns<'_> {
    /// Reports that a column gets this value instead of its own.
    pub fn changed(&mut self, column: &str, new: &str) {
        self.report.changed(self.row, column, new);
    }

    /// A text; empty for NULL.
    pub fn text(&mut self, column: &str) -> String {
        let (text, is_exact) = self.row.text(column);
        if !is_exact {
            self.report.changed(self.row, column, format_args!("{text:?}"));
        }
        text
    }

    /// Yes or no; no for NULL and for what is no number.
    pub fn flag(&mut self, column: &str) -> bool {
        self.row.number(column).is_some_and(|number| number != 0)
    }

    /// The user in the column `user_id`.
    ///
    /// # Errors
    /// When that is none of these users.
    pub fn member<S: BuildHasher>(&self, users: &HashSet<DbUuid, S>) -> Result<DbUuid, Fault> {
        let user = self.row.id("user_id")?;
        if users.contains(&user) { Ok(user) } else { Err(format!("user_id {user} is no user")) }
    }

    /// The creator: the first of these columns that is not empty. None when it is no user.
    pub fn creator<S: BuildHasher>(&mut self, columns: &[&str], users: &HashSet<DbUuid, S>) -> Option<DbUuid> {
        let column = columns.iter().find(|column| !self.row.text(column).0.trim().is_empty())?;
        let creator = self.row.id(column).ok().filter(|user| users.contains(user));
        if creator.is_none() {
            self.changed(column, "nobody");
        }
        creator
    }

    /// A time, if there is one.
    pub fn time(&mut self, column: &str) -> Option<DbTimestamp> {
        let Self { row, zone, .. } = *self;
        let (local, is_exact) = row.time(column)?;
        let (at, clarity) = instant(local, zone);
        let what = match clarity {
            Clarity::Exact | Clarity::OutOfRange => "",
            Clarity::Ambiguous => "is ambiguous, and the earlier instant is taken",
            Clarity::Missing => "does not exist, and the first instant after it is taken",
        };
        if !what.is_empty() {
            let (table, id) = (row.table(), row.label());
            self.report.note(UNCLEAR, || format!("{table} {id}: {column} {local} {what}: {}", at.in_zone(zone)));
        }
        if !is_exact || clarity == Clarity::OutOfRange {
            self.report.changed(row, column, at.in_zone(zone));
        }
        Some(at.into())
    }

    /// A time, or another one instead.
    pub fn time_or(&mut self, column: &str, otherwise: DbTimestamp) -> DbTimestamp {
        self.time(column).unwrap_or_else(|| {
            self.report.changed(self.row, column, otherwise.in_zone(self.zone));
            otherwise
        })
    }

    /// `created_at` and `updated_at`. Where one of them is missing it is the other one, and where both are, 1970.
    pub fn created_and_updated(&mut self) -> (DbTimestamp, DbTimestamp) {
        let known = ["updated_at", "created_at"].into_iter().find(|column| self.row.time(column).is_some());
        // Reported below, where the column itself is read.
        let otherwise = known.and_then(|column| self.row.time(column)).map(|(local, _)| instant(local, self.zone).0);
        let otherwise = otherwise.unwrap_or(Timestamp::EPOCH).into();
        (self.time_or("created_at", otherwise), self.time_or("updated_at", otherwise))
    }

    /// A period that ends after it starts. Times in the wrong order change places, and an end that is missing or equal
    /// to the start is a minute later. `otherwise` is taken if both are missing.
    pub fn period(
        &mut self,
        [start, end]: [&str; 2],
        otherwise: (DbTimestamp, DbTimestamp),
    ) -> (DbTimestamp, DbTimestamp) {
        let read = (self.time(start), self.time(end));
        let (from, to) = match read {
            (Some(from), Some(to)) => (from.min(to), from.max(to)),
            (Some(at), None) | (None, Some(at)) => (at, at),
            (None, None) => otherwise,
        };
        let later = DbTimestamp(from.plus(SHORTEST));
        let period = match to {
            to if from < to => (from, to),
            _ if from < later => (from, later),
            // The last minute of the year 9999.
            _ => (DbTimestamp(from.plus(-SHORTEST)), from),
        };
        for (column, old, new) in [(start, read.0, period.0), (end, read.1, period.1)] {
            if old != Some(new) {
                self.report.changed(self.row, column, new.in_zone(self.zone));
            }
        }
        period
    }
}

#[cfg(test)]
mod tests {
    use mysql::Value;
    use proptest::prelude::*;

    use super::*;
    use crate::row::SourceTable;

    const TABLE: SourceTable = SourceTable::new("t", &["id", "created_at", "updated_at"]);

    fn any_time() -> impl Strategy<Value = Value> {
        let date = (any::<u16>(), 0_u8..14, 0_u8..33, 0_u8..24, 0_u8..60, 0_u8..60, 0_u32..1_000_000);
        prop_oneof![
            Just(Value::NULL),
            Just(Value::Date(0, 0, 0, 0, 0, 0, 0)),
            Just(Value::Date(9999, 12, 31, 23, 59, 59, 999_999)),
            date.prop_map(|(year, a, b, c, d, e, f)| Value::Date(year % 10_000, a, b, c, d, e, f)),
        ]
    }

    proptest! {
        #[test]
        fn every_period_ends_after_it_starts_and_every_row_has_times(
            (from, to) in (any_time(), any_time()), zone in prop::sample::select(&chrono_tz::TZ_VARIANTS[..]),
        ) {
            let row = SourceRow::new(&TABLE, vec!["x".into(), from.clone(), to.clone()]);
            let mut report = Report::default();
            let mut columns = Columns { row: &row, report: &mut report, zone };
            let otherwise = (Timestamp::EPOCH.into(), Timestamp::EPOCH.into());
            let (start, end) = columns.period(["created_at", "updated_at"], otherwise);
            prop_assert!(start < end);
            let (created, updated) = columns.created_and_updated();
            if columns.time("created_at").is_none() {
                prop_assert_eq!(created, updated);
            }
        }
    }
}
