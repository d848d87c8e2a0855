//! Conversion of local times to instants, also on the days on which the clocks change.

use chrono::{MappedLocalTime, NaiveDateTime, TimeZone as _, Utc};
use chrono_tz::Tz;
use common::time::Timestamp;

use crate::{
    row::{Fault, SourceRow},
    run::Import,
};
use service_kit::database::types::{DbTimestamp, DbUuid};

/// The heading of the times that do not exist or are ambiguous.
const HEADING: &str = "times that do not exist or are ambiguous";

/// How clear a local time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clarity {
    Exact,
    /// It exists twice, because the clocks are turned back; the earlier instant is taken.
    Ambiguous,
    /// It does not exist, because the clocks are turned forward; the first instant after the gap is taken.
    Missing,
}

fn instant(local: NaiveDateTime, zone: Tz) -> Option<(Timestamp, Clarity)> {
    let (at, clarity) = match zone.from_local_datetime(&local) {
        MappedLocalTime::Single(at) => (at, Clarity::Exact),
        MappedLocalTime::Ambiguous(earlier, _) => (earlier, Clarity::Ambiguous),
        MappedLocalTime::None => {
            let minute = local.and_utc().timestamp().div_euclid(60);
            // Clocks change at whole minutes, and never by more than a day.
            let mut later =
                (1..=25 * 60).filter_map(|minutes| chrono::DateTime::<Utc>::from_timestamp((minute + minutes) * 60, 0));
            (later.find_map(|later| zone.from_local_datetime(&later.naive_utc()).earliest())?, Clarity::Missing)
        }
    };
    Some((Timestamp::new(at.to_utc())?, clarity))
}

impl Import {
    /// A time of a row, which must have one.
    pub fn time(&mut self, row: &SourceRow, table: &str, id: DbUuid, column: &str) -> Result<DbTimestamp, Fault> {
        self.optional_time(row, table, id, column)?.ok_or_else(|| format!("{column} is no time"))
    }

    /// A time of a row, if it has one.
    pub fn optional_time(
        &mut self,
        row: &SourceRow,
        table: &str,
        id: DbUuid,
        column: &str,
    ) -> Result<Option<DbTimestamp>, Fault> {
        let Some(local) = row.time(column)? else { return Ok(None) };
        let (at, clarity) = instant(local, self.zone).ok_or_else(|| format!("{column} is no time"))?;
        let what = match clarity {
            Clarity::Exact => return Ok(Some(at.into())),
            Clarity::Ambiguous => "is ambiguous, and the earlier instant is taken",
            Clarity::Missing => "does not exist, and the first instant after it is taken",
        };
        let zone = self.zone;
        self.report.note(HEADING, || format!("{table} {id}: {column} {local} {what}: {}", at.in_zone(zone)));
        Ok(Some(at.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(local: &str, zone: Tz) -> (String, Clarity) {
        let (at, clarity) = instant(local.parse().unwrap(), zone).unwrap();
        (at.in_zone(zone).to_string(), clarity)
    }

    #[test]
    fn a_local_time_is_one_instant() {
        let (tokyo, berlin) = (chrono_tz::Asia::Tokyo, chrono_tz::Europe::Berlin);
        assert_eq!(read("2026-04-01T18:00:00", tokyo), ("2026-04-01T18:00:00+09:00".to_owned(), Clarity::Exact));
        assert_eq!(read("2026-10-25T02:30:00", berlin), ("2026-10-25T02:30:00+02:00".to_owned(), Clarity::Ambiguous));
        assert_eq!(read("2026-03-29T02:30:15", berlin), ("2026-03-29T03:00:00+02:00".to_owned(), Clarity::Missing));
        let apia = read("2011-12-30T12:00:00", chrono_tz::Pacific::Apia);
        assert_eq!(apia, ("2011-12-31T00:00:00+14:00".to_owned(), Clarity::Missing));
    }
}
