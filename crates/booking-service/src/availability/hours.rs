//! Computes which parts of a room's free times lie in certain hours of the day and are long enough.

use std::{collections::HashSet, str::FromStr};

use chrono::{Days, TimeDelta};
use chrono_tz::Tz;
use common::time::Timestamp;
use service_kit::database::types::DbUuid;

use crate::{
    rooms::overlap::Span,
    wall_clock::{ClockTime, instant_or_next},
};

/// Hours of the day in the club's time zone, `HH:mm-HH:mm`. An end before the start is on the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DailyHours {
    start: ClockTime,
    end: ClockTime,
}

impl FromStr for DailyHours {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let times = text.split_once('-').and_then(|(start, end)| Some((start.parse().ok()?, end.parse().ok()?)));
        let (start, end) = times.ok_or("must be two times of day, such as 18:00-21:30")?;
        if start == end { Err("must be two different times of day") } else { Ok(Self { start, end }) }
    }
}

impl DailyHours {
    /// The parts of `span` within these hours. They are ordered and maximal: no two touch.
    ///
    /// If the clocks skip the start or the end, it is the instant at which they do. If they show it twice, it is the
    /// first of the two instants.
    pub fn intervals_in(self, span: Span, zone: Tz) -> Vec<Span> {
        let date = |at: Timestamp| at.utc().with_timezone(&zone).date_naive();
        let day = Days::new(1);
        // Starts with the day before, whose hours may extend into the first day.
        let first = date(span.start).checked_sub_days(day).unwrap_or(date(span.start));
        let mut intervals: Vec<Span> = Vec::new();
        for date in first.iter_days().take_while(|day| *day <= date(span.end)) {
            let last = if self.end < self.start { date.checked_add_days(day) } else { Some(date) };
            let ends = instant_or_next(date, self.start.0, zone)
                .zip(last.and_then(|date| instant_or_next(date, self.end.0, zone)));
            let hours = ends.and_then(|(start, end)| Span::new(start, end)?.intersection(&span));
            match (intervals.last_mut(), hours) {
                (Some(last), Some(hours)) if hours.start <= last.end => last.end = last.end.max(hours.end),
                (_, hours) => intervals.extend(hours),
            }
        }
        intervals
    }
}

/// The parts of `free` inside `hours` that have at least this length. Both slices are ordered, and no two of their
/// spans touch.
pub fn long_enough(free: &[Span], hours: &[Span], length: TimeDelta) -> Vec<Span> {
    let both = free.iter().flat_map(|free| hours.iter().filter_map(|hours| free.intersection(hours)));
    both.filter(|span| span.end - span.start >= length).collect()
}

/// The number of different people who are busy at some time during a span.
pub fn busy_people(during: Span, busy: &[(DbUuid, Span)]) -> usize {
    busy.iter().filter(|(_, span)| span.overlaps(&during)).map(|(user, _)| user).collect::<HashSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use chrono::NaiveTime;
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn span(start: &str, end: &str) -> Span {
        Span::new(at(start), at(end)).unwrap()
    }

    fn hours(text: &str) -> DailyHours {
        text.parse().unwrap()
    }

    #[test]
    fn hours_are_two_different_times() {
        assert_eq!(hours("9:05-21:00"), hours("09:05-21:00"));
        for bad in
            ["", "-", "9:00", "9:00-", "9:00-9:00", "09:00-9:00", "9:00-24:00", "9:00 - 10:00", "9:00-10:00-11:00"]
        {
            assert!(bad.parse::<DailyHours>().is_err(), "{bad}");
        }
    }

    #[test]
    fn hours_may_pass_midnight() {
        let two_days = span("2026-01-01T00:30:00Z", "2026-01-02T23:00:00Z");
        let found = hours("22:00-02:00").intervals_in(two_days, Tz::UTC);
        let expected = [
            span("2026-01-01T00:30:00Z", "2026-01-01T02:00:00Z"),
            span("2026-01-01T22:00:00Z", "2026-01-02T02:00:00Z"),
            span("2026-01-02T22:00:00Z", "2026-01-02T23:00:00Z"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_clocks_change() {
        let zone = Tz::Europe__Berlin;
        let day = span("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z");
        let of_day = |text| hours(text).intervals_in(day, zone);
        assert_eq!(of_day("02:30-05:00"), [span("2026-03-29T01:00:00Z", "2026-03-29T03:00:00Z")]);
        assert_eq!(of_day("01:00-02:30"), [span("2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z")]);
        assert_eq!(of_day("02:00-03:00"), []);
        // The hours cover the whole day.
        assert_eq!(of_day("02:30-02:10"), [day]);
        let autumn = span("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");
        let found = hours("02:30-03:00").intervals_in(autumn, zone);
        assert_eq!(found, [span("2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z")]);
    }

    #[test]
    fn short_free_times_are_left_out() {
        let free = [span("2026-01-01T08:00:00Z", "2026-01-01T10:00:00Z")];
        let hours = hours("09:30-12:00").intervals_in(span("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"), Tz::UTC);
        assert_eq!(
            long_enough(&free, &hours, TimeDelta::minutes(30)),
            [span("2026-01-01T09:30:00Z", "2026-01-01T10:00:00Z")]
        );
        assert_eq!(long_enough(&free, &hours, TimeDelta::minutes(31)), []);
    }

    proptest! {
        /// Without changes of the clocks, an instant is inside the result if and only if the clock shows one of the
        /// hours.
        #[test]
        fn hours_are_those_that_the_clock_shows(
            start in 0_u32..1440, end in 0_u32..1440, from in 0_i64..3000, length in 1_i64..4000, probe in 0_i64..8000,
        ) {
            prop_assume!(start != end);
            let zone = Tz::Asia__Tokyo;
            let clock_time = |n: u32| ClockTime(NaiveTime::from_num_seconds_from_midnight_opt(n * 60, 0).unwrap());
            let hours = DailyHours { start: clock_time(start), end: clock_time(end) };
            let first = at("2026-06-01T00:00:00Z");
            let minute = |n| first.plus(TimeDelta::minutes(n));
            let span = Span::new(minute(from), minute(from + length)).unwrap();
            let found = hours.intervals_in(span, zone);
            prop_assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start));
            let probe = minute(probe);
            let shown = ClockTime(probe.utc().with_timezone(&zone).time());
            let is_within = if start < end {
                hours.start <= shown && shown < hours.end
            } else {
                hours.start <= shown || shown < hours.end
            };
            let expected = span.start <= probe && probe < span.end && is_within;
            prop_assert_eq!(found.iter().any(|interval| interval.start <= probe && probe < interval.end), expected);
        }
    }
}
