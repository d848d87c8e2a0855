//! Dates and times of day in requests, and their conversion from local time to instants.

use std::str::FromStr;

use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone};
use chrono_tz::Tz;
use common::time::Timestamp;
use service_kit::http::language::Language;

/// A date, `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalendarDate(pub NaiveDate);

impl FromStr for CalendarDate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits =
            text.bytes().enumerate().all(|(n, c)| if matches!(n, 4 | 7) { c == b'-' } else { c.is_ascii_digit() });
        let date = Some(text).filter(|text| text.len() == 10 && digits);
        let date = date.and_then(|text| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok());
        date.map(Self).ok_or("must be a date, such as 2026-04-01")
    }
}

/// A time of day to the minute, `HH:mm`. The hour may have one digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockTime(pub NaiveTime);

impl FromStr for ClockTime {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |part: &str| part.bytes().all(|c| c.is_ascii_digit()).then(|| part.parse().ok()).flatten();
        let parts = text.split_once(':').filter(|(hour, minute)| matches!(hour.len(), 1 | 2) && minute.len() == 2);
        let time = parts.and_then(|(hour, minute)| NaiveTime::from_hms_opt(number(hour)?, number(minute)?, 0));
        time.map(Self).ok_or("must be a time of day, such as 18:30")
    }
}

/// Deserializes types by their `FromStr`.
macro_rules! read_from_text {
    ($($type:ident)+) => { $(
        impl deserr::Deserr<common::problem::Violations> for $type {
            fn deserialize_from_value<V: deserr::IntoValue>(
                value: deserr::Value<V>,
                at: deserr::ValuePointerRef<'_>,
            ) -> Result<Self, common::problem::Violations> {
                common::input::parse_text(value, at, common::problem::Rule::Invalid)
            }
        }
    )+ };
}
pub(crate) use read_from_text;
read_from_text! { CalendarDate ClockTime }

/// The instant of a local time; `None` if the clocks skip it. Of two instants it is the earlier.
pub fn instant(date: NaiveDate, time: NaiveTime, zone: Tz) -> Option<Timestamp> {
    Timestamp::new(zone.from_local_datetime(&date.and_time(time)).earliest()?.to_utc())
}

/// The first instant of a local time after another instant; `None` if there is none.
pub fn instant_after(after: Timestamp, date: NaiveDate, time: NaiveTime, zone: Tz) -> Option<Timestamp> {
    let found = zone.from_local_datetime(&date.and_time(time));
    let found = [found.earliest()?, found.latest()?].map(|at| Timestamp::new(at.to_utc()));
    found.into_iter().flatten().find(|at| *at > after)
}

/// The instant of a local time; if the clocks skip it, the instant at which they do. Of two instants it is the earlier.
pub fn instant_or_next(date: NaiveDate, time: NaiveTime, zone: Tz) -> Option<Timestamp> {
    // Clocks skip whole minutes, and a day at most.
    (0..=24 * 60).find_map(|minutes| {
        let local: NaiveDateTime = date.and_time(time).checked_add_signed(TimeDelta::minutes(minutes))?;
        instant(local.date(), local.time(), zone)
    })
}

/// A span without its day: `18:00–20:00`, or with the day of its end if that is another one.
pub fn hours(language: Language, zone: Tz, start: Timestamp, end: Timestamp) -> String {
    let [start, end] = [start, end].map(|at| at.utc().with_timezone(&zone).naive_local());
    let midnight = start.date().succ_opt().map(|next| next.and_time(NaiveTime::MIN));
    let end = match (start.date() == end.date(), Some(end) == midnight) {
        (true, _) => end.format("%H:%M").to_string(),
        (false, true) => "24:00".to_owned(),
        (false, false) => format!("{}, {}", language.short_day(end.date()), end.format("%H:%M")),
    };
    format!("{}–{end}", start.format("%H:%M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> NaiveDate {
        text.parse::<CalendarDate>().unwrap().0
    }

    fn time(text: &str) -> NaiveTime {
        text.parse::<ClockTime>().unwrap().0
    }

    #[test]
    fn dates_and_times_have_one_form() {
        assert_eq!(time("9:05"), time("09:05"));
        assert_eq!(time("23:59"), NaiveTime::from_hms_opt(23, 59, 0).unwrap());
        for bad in ["", ":", "9", "9:5", "24:00", "12:60", "012:00", "+9:05", "9:05:00", " 9:05", "９:05", "9:+5"] {
            assert!(bad.parse::<ClockTime>().is_err(), "{bad}");
        }
        for bad in ["", "2026-4-1", "2026-02-30", "2026/04/01", "20260-4-01", "+026-04-01", "2026-04-01 ", "２026-04"]
        {
            assert!(bad.parse::<CalendarDate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_clocks_change() {
        let zone = Tz::Europe__Berlin;
        let at = |day, text| instant(date(day), time(text), zone).map(|at| at.to_string());
        assert_eq!(at("2026-03-29", "01:59").unwrap(), "2026-03-29T00:59:00Z");
        assert_eq!(at("2026-03-29", "02:30"), None);
        assert_eq!(at("2026-03-29", "03:00").unwrap(), "2026-03-29T01:00:00Z");
        // The earlier of two.
        assert_eq!(at("2026-10-25", "02:30").unwrap(), "2026-10-25T00:30:00Z");
        let next = |day, text, zone| instant_or_next(date(day), time(text), zone).unwrap().to_string();
        assert_eq!(next("2026-03-29", "02:30", zone), "2026-03-29T01:00:00Z");
        // Samoa had no 30 December 2011.
        assert_eq!(next("2011-12-30", "12:00", Tz::Pacific__Apia), "2011-12-30T10:00:00Z");
    }
}
