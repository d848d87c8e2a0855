//! Conversion of local times to instants, also on the days on which the clocks change.

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, TimeZone as _, Utc};
use chrono_tz::Tz;
use common::time::Timestamp;

/// How clear a local time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clarity {
    Exact,
    /// It is outside the years 1 to 9999; the nearest instant within them is taken.
    OutOfRange,
    /// It exists twice, because the clocks are turned back; the earlier instant is taken.
    Ambiguous,
    /// It does not exist, because the clocks are turned forward; the first instant after the gap is taken.
    Missing,
}

/// The instant of a local time.
pub(crate) fn instant(local: NaiveDateTime, zone: Tz) -> (Timestamp, Clarity) {
    let (at, clarity) = match zone.from_local_datetime(&local) {
        MappedLocalTime::Single(at) => (at, Clarity::Exact),
        MappedLocalTime::Ambiguous(earlier, _) => (earlier, Clarity::Ambiguous),
        MappedLocalTime::None => {
            let minute = local.and_utc().timestamp().div_euclid(60);
            // Clocks change at whole minutes, and never by more than a day.
            let mut later =
                (1..=25 * 60).filter_map(|minutes| DateTime::<Utc>::from_timestamp((minute + minutes) * 60, 0));
            let after = later.find_map(|later| zone.from_local_datetime(&later.naive_utc()).earliest());
            (after.unwrap_or_else(|| zone.from_utc_datetime(&local)), Clarity::Missing)
        }
    };
    match Timestamp::new(at.to_utc()) {
        Some(at) => (at, clarity),
        None => (Timestamp::EPOCH.plus(at.to_utc() - DateTime::UNIX_EPOCH), Clarity::OutOfRange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(local: &str, zone: Tz) -> (String, Clarity) {
        let (at, clarity) = instant(local.parse().unwrap(), zone);
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
        let (last, clarity) = instant("9999-12-31T23:00:00".parse().unwrap(), chrono_tz::America::New_York);
        assert_eq!((last.to_string().as_str(), clarity), ("9999-12-31T23:59:59.999999Z", Clarity::OutOfRange));
    }
}
