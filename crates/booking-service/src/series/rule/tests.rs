use chrono::TimeDelta;
use proptest::prelude::*;

use super::*;

const ZONES: [Tz; 5] =
    [Tz::Asia__Tokyo, Tz::Europe__Berlin, Tz::America__New_York, Tz::Australia__Lord_Howe, Tz::America__Santiago];

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// The first occurrence on a date, from 18:00 to 20:00.
fn evening(first: &str) -> FirstTimes {
    let time = |hour| NaiveTime::from_hms_opt(hour, 0, 0).unwrap();
    FirstTimes { date: date(first), start: time(18), days: Days::new(0), end: time(20), given: None }
}

fn dates_in(zone: Tz, first: &str, rule: &str) -> Result<Vec<String>, Refusal> {
    let times = expand(&rule.parse().unwrap(), &evening(first), zone)?;
    Ok(times.into_iter().map(|times| times.date.to_string()).collect())
}

fn dates(first: &str, rule: &str) -> Result<Vec<String>, Refusal> {
    dates_in(Tz::Europe__Berlin, first, rule)
}

#[test]
fn examples() {
    assert_eq!(dates("2026-11-24", "FREQ=WEEKLY;COUNT=1").unwrap(), ["2026-11-24"]);
    let months = dates("2026-01-31", "FREQ=MONTHLY;COUNT=4").unwrap();
    assert_eq!(months, ["2026-01-31", "2026-03-31", "2026-05-31", "2026-07-31"], "months without a 31st have none");
    let last_fridays = dates("2026-01-30", "FREQ=MONTHLY;BYDAY=-1FR;COUNT=3").unwrap();
    assert_eq!(last_fridays, ["2026-01-30", "2026-02-27", "2026-03-27"]);
    let last_workdays = dates("2026-01-30", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=3").unwrap();
    assert_eq!(last_workdays, ["2026-01-30", "2026-02-27", "2026-03-31"]);
    let leap = dates("2028-02-29", "FREQ=MONTHLY;INTERVAL=12;COUNT=1").unwrap();
    assert_eq!(leap, ["2028-02-29"]);
    assert_eq!(dates("2028-02-29", "FREQ=MONTHLY;INTERVAL=12;COUNT=2"), Err(Refusal::TooLong), "none until 2032");
    let every_other = dates("2026-03-17", "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,TH;COUNT=5").unwrap();
    assert_eq!(every_other, ["2026-03-17", "2026-03-19", "2026-03-31", "2026-04-02", "2026-04-14"]);
    // RFC 5545: the week begins on another day.
    let weeks =
        |start| dates("1997-08-05", &format!("FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST={start}")).unwrap();
    assert_eq!(weeks("MO"), ["1997-08-05", "1997-08-10", "1997-08-19", "1997-08-24"]);
    assert_eq!(weeks("SU"), ["1997-08-05", "1997-08-17", "1997-08-19", "1997-08-31"]);
}

#[test]
fn until_is_inclusive() {
    let two = ["2026-11-24", "2026-12-01"];
    let until = |until: &str| dates("2026-11-24", &format!("rrule:freq=weekly;until={until};")).unwrap();
    // 18:00 in Berlin is 17:00 UTC.
    for exactly in ["20261201T170000Z", "20261201T180000", "20261201", "20261207T235959Z", "20261208T175959"] {
        assert_eq!(until(exactly), two, "{exactly}");
    }
    for earlier in ["20261201T165959Z", "20261201T175959", "20261130", "20261124T170000Z"] {
        assert_eq!(until(earlier), two[..1], "{earlier}");
    }
    let until = |until: &str| dates("2026-11-24", &format!("FREQ=WEEKLY;UNTIL={until}"));
    assert_eq!(until("20261124T165959Z"), Err(Refusal::FirstIsNoDate));
    let rule: Rule = "FREQ=WEEKLY;COUNT=9;BYDAY=TU".parse().unwrap();
    let rule = rule.until(date("2026-12-01"));
    assert_eq!(rule.to_string(), "FREQ=WEEKLY;BYDAY=TU;UNTIL=20261201");
    assert_eq!(rule, rule.to_string().parse().unwrap());
}

#[test]
fn bounds() {
    assert_eq!(dates("2026-01-01", "FREQ=DAILY;COUNT=100").unwrap().len(), 100);
    for rule in ["FREQ=DAILY;COUNT=101", "FREQ=DAILY;COUNT=1000000000", "FREQ=DAILY", "FREQ=DAILY;UNTIL=20260411"] {
        assert_eq!(dates("2026-01-01", rule), Err(Refusal::TooMany), "{rule}");
    }
    assert_eq!(dates("2026-01-01", "FREQ=MONTHLY;COUNT=25").unwrap().len(), 25);
    assert_eq!(dates("2026-01-01", "FREQ=MONTHLY;UNTIL=20280101").unwrap().len(), 25);
    for rule in ["FREQ=MONTHLY;COUNT=26", "FREQ=MONTHLY;UNTIL=20280102", "FREQ=DAILY;INTERVAL=65535;COUNT=2"] {
        assert_eq!(dates("2026-01-01", rule), Err(Refusal::TooLong), "{rule}");
    }
    for rule in ["FREQ=WEEKLY;BYDAY=FR;COUNT=2", "FREQ=WEEKLY;BYDAY=TH;BYSETPOS=2;COUNT=2"] {
        assert_eq!(dates("2026-01-01", rule), Err(Refusal::FirstIsNoDate), "{rule}");
    }
    for year in ["0001-06-01", "9991-01-01", "9999-12-31"] {
        assert_eq!(dates(year, "FREQ=DAILY;COUNT=1"), Err(Refusal::BadYear), "{year}");
    }
    let long = FirstTimes { days: Days::new(7), ..evening("2026-01-01") };
    let weekly =
        |interval| expand(&format!("FREQ=WEEKLY;COUNT=2;INTERVAL={interval}").parse().unwrap(), &long, Tz::UTC);
    assert_eq!(weekly(1), Err(Refusal::Overlapping));
    assert_eq!(weekly(2).unwrap().len(), 2);
}

#[test]
fn refused_texts() {
    let bad = [
        "",
        "WEEKLY",
        "FREQ=YEARLY;COUNT=2",
        "FREQ=HOURLY;COUNT=2",
        "FREQ=DAILY;COUNT=0",
        "FREQ=DAILY;COUNT=-1",
        "FREQ=DAILY;COUNT=10000000000",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;INTERVAL=65536",
        "FREQ=DAILY;COUNT=2;UNTIL=20260101",
        "FREQ=DAILY;COUNT=2;COUNT=2",
        "FREQ=DAILY;UNTIL=2026-01-01",
        "FREQ=DAILY;UNTIL=20260231",
        "FREQ=WEEKLY;BYDAY=1TU;COUNT=2",
        "FREQ=WEEKLY;BYDAY=;COUNT=2",
        "FREQ=WEEKLY;BYDAY=XX;COUNT=2",
        "FREQ=WEEKLY;BYDAY=é;COUNT=2",
        "FREQ=WEEKLY;BYDAY=xTU;COUNT=2",
        "FREQ=WEEKLY;BYMONTHDAY=1;COUNT=2",
        "FREQ=MONTHLY;BYDAY=6TU;COUNT=2",
        "FREQ=MONTHLY;BYDAY=-5TU;COUNT=2",
        "FREQ=MONTHLY;BYMONTHDAY=32;COUNT=2",
        "FREQ=MONTHLY;BYMONTHDAY=0;COUNT=2",
        "FREQ=MONTHLY;BYSETPOS=1;COUNT=2",
        "FREQ=DAILY;BYDAY=TU;BYSETPOS=1;COUNT=2",
        "FREQ=DAILY;BYMONTH=1;COUNT=2",
        "FREQ=DAILY;BYHOUR=1;COUNT=2",
        "FREQ=DAILY;X=1",
        "FREQ=WEEKLY;WKST=1MO;COUNT=2",
    ];
    for text in bad {
        assert!(text.parse::<Rule>().is_err(), "{text}");
    }
    assert!(format!("FREQ=DAILY;COUNT=2{}", ";".repeat(MAX_LENGTH)).parse::<Rule>().is_err());
}

#[test]
fn the_clocks_change() {
    let first = |start: (u32, u32), end: (u32, u32)| FirstTimes {
        date: date("2026-03-22"),
        start: NaiveTime::from_hms_opt(start.0, start.1, 0).unwrap(),
        days: Days::new(0),
        end: NaiveTime::from_hms_opt(end.0, end.1, 0).unwrap(),
        given: None,
    };
    let weekly: Rule = "FREQ=WEEKLY;COUNT=2".parse().unwrap();
    let second = |first| expand(&weekly, &first, Tz::Europe__Berlin).unwrap()[1];
    let skipped = second(first((2, 30), (4, 0)));
    assert!(!skipped.exist);
    assert_eq!(
        (skipped.starts_at.to_string(), skipped.ends_at.to_string()),
        ("2026-03-29T01:00:00Z".to_owned(), "2026-03-29T02:00:00Z".to_owned())
    );
    assert!(!second(first((1, 0), (2, 30))).exist);
    let kept = second(first((18, 0), (20, 0)));
    assert_eq!((kept.exist, kept.starts_at.to_string()), (true, "2026-03-29T16:00:00Z".to_owned()));
    // By the clocks on the wall, this event ends before it begins.
    let [starts_at, ends_at] = ["2026-10-25T00:30:00Z", "2026-10-25T01:15:00Z"].map(|at| at.parse().unwrap());
    assert_eq!(FirstTimes::of(starts_at, ends_at, Tz::Europe__Berlin), None);
    // The first date stays as it was given: both are the second 2:30.
    for given in [["2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"], ["2026-10-24T22:00:00Z", "2026-10-25T01:30:00Z"]] {
        let [starts_at, ends_at] = given.map(|at| at.parse().unwrap());
        let first = FirstTimes::of(starts_at, ends_at, Tz::Europe__Berlin).unwrap();
        let times = expand(&weekly, &first, Tz::Europe__Berlin).unwrap();
        assert_eq!([times[0].starts_at, times[0].ends_at], [starts_at, ends_at]);
    }
}

/// A rule for the brute-force calendar.
#[derive(Debug, Clone)]
struct Plain {
    frequency: &'static str,
    interval: u16,
    by_day: Vec<(i8, Weekday)>,
    by_month_day: Vec<i8>,
    by_set_pos: Vec<i8>,
    week_start: Weekday,
}

fn join(values: impl IntoIterator<Item = String>) -> String {
    values.into_iter().collect::<Vec<_>>().join(",")
}

impl Plain {
    fn text(&self, end: &str) -> String {
        let mut parts = vec![format!("FREQ={}", self.frequency), format!("INTERVAL={}", self.interval)];
        let day = |(n, day): &(i8, Weekday)| {
            if *n == 0 { day_name(*day).to_owned() } else { format!("{n}{}", day_name(*day)) }
        };
        let mut add = |name: &str, list: String| {
            if !list.is_empty() {
                parts.push(format!("{name}={list}"));
            }
        };
        add("BYDAY", join(self.by_day.iter().map(day)));
        add("BYMONTHDAY", join(self.by_month_day.iter().map(ToString::to_string)));
        add("BYSETPOS", join(self.by_set_pos.iter().map(ToString::to_string)));
        add("WKST", day_name(self.week_start).to_owned());
        parts.push(end.to_owned());
        parts.join(";")
    }

    /// The number of the period of a day: days, weeks or months since a fixed one.
    fn period(&self, day: NaiveDate) -> i64 {
        let days = day.signed_duration_since(NaiveDate::MIN).num_days();
        match self.frequency {
            "DAILY" => days,
            "WEEKLY" => day.week(self.week_start).first_day().signed_duration_since(NaiveDate::MIN).num_days() / 7,
            _ => i64::from(day.year()) * 12 + i64::from(day.month()),
        }
    }

    /// Whether a day of a period is one by `BYDAY` and `BYMONTHDAY`.
    fn matches(&self, day: NaiveDate, first: NaiveDate) -> bool {
        let length = day.num_days_in_month();
        let from_start = i8::try_from(day.day()).unwrap();
        let from_end = from_start - i8::try_from(length).unwrap() - 1;
        let nth = |n: i8| n == 0 || n == (from_start - 1) / 7 + 1 || n == (from_end + 1) / 7 - 1;
        let by_day = self.by_day.iter().any(|(n, weekday)| *weekday == day.weekday() && nth(*n));
        let by_month_day = self.by_month_day.iter().any(|n| *n == from_start || *n == from_end);
        match (self.frequency, self.by_day.is_empty(), self.by_month_day.is_empty()) {
            ("DAILY", true, true) => true,
            ("WEEKLY", true, _) => day.weekday() == first.weekday(),
            (_, true, true) => day.day() == first.day(),
            (_, no_day, no_month_day) => (no_day || by_day) && (no_month_day || by_month_day),
        }
    }

    /// Every day of two years and a month, checked one by one.
    fn dates(&self, first: NaiveDate) -> Vec<NaiveDate> {
        // From the start of the period of the first one, because positions count from there.
        let days: Vec<_> = (first - TimeDelta::days(31)).iter_days().take(31 + 731 + 31).collect();
        let mut found = Vec::new();
        for period in days.chunk_by(|a, b| self.period(*a) == self.period(*b)) {
            let number = self.period(period[0]) - self.period(first);
            if number < 0 || number % i64::from(self.interval) != 0 {
                continue;
            }
            let matching: Vec<_> = period.iter().filter(|day| self.matches(**day, first)).copied().collect();
            let length = i8::try_from(matching.len()).unwrap();
            let is_chosen =
                |n: i8| self.by_set_pos.is_empty() || self.by_set_pos.iter().any(|p| *p == n + 1 || *p == n - length);
            let chosen = matching.iter().zip(0..).filter(|(_, n)| is_chosen(*n)).map(|(day, _)| *day);
            found.extend(chosen.filter(|day| *day >= first));
        }
        let last = first.checked_add_months(MAX_MONTHS).unwrap();
        found.retain(|day| *day <= last);
        found
    }
}

fn weekdays() -> impl Strategy<Value = Weekday> {
    (0..7_u8).prop_map(|n| Weekday::try_from(n).unwrap())
}

fn plain() -> impl Strategy<Value = Plain> {
    let days = prop::collection::vec((prop_oneof![3 => Just(0_i8), 2 => 1..=5_i8, 2 => -4..=-1_i8], weekdays()), 0..4);
    let month_days = prop::collection::vec(prop_oneof![1..=31_i8, -31..=-1_i8, Just(31), Just(-1)], 0..4);
    let positions = prop::collection::vec(prop_oneof![1..=4_i8, -4..=-1_i8], 0..3);
    let frequency = prop::sample::select(vec!["DAILY", "WEEKLY", "MONTHLY"]);
    (frequency, 1..=13_u16, days, month_days, positions, weekdays(), any::<[bool; 2]>()).prop_map(
        |(frequency, interval, mut by_day, mut by_month_day, mut by_set_pos, week_start, [with_days, with_numbers])| {
            if !with_days {
                by_day.clear();
            }
            if frequency != "MONTHLY" || !with_numbers {
                for (n, _) in &mut by_day {
                    *n = 0;
                }
            }
            if frequency == "WEEKLY" {
                by_month_day.clear();
            }
            if frequency == "DAILY" || by_day.len() + by_month_day.len() == 0 {
                by_set_pos.clear();
            }
            Plain { frequency, interval, by_day, by_month_day, by_set_pos, week_start }
        },
    )
}

fn any_date() -> impl Strategy<Value = NaiveDate> {
    prop_oneof![
        (2020..2040_i32, 1..=366_u32).prop_filter_map("a day", |(year, day)| NaiveDate::from_yo_opt(year, day)),
        prop::sample::select(vec![date("2028-02-29"), date("2026-03-29"), date("2026-10-25"), date("2026-01-31")]),
    ]
}

/// Rules with a first date, and all their dates.
fn with_dates() -> impl Strategy<Value = (Plain, Vec<NaiveDate>)> {
    (plain(), any_date()).prop_filter_map("a date of the rule", |(plain, from)| {
        // The first date decides about periods, and about rules without days.
        let first = *plain.dates(from).first()?;
        let dates = plain.dates(first);
        (dates.first() == Some(&first)).then_some((plain, dates))
    })
}

fn any_time() -> impl Strategy<Value = NaiveTime> {
    let seconds = prop_oneof![0..86_400_u32, (0..16_u32).prop_map(|quarter| quarter * 900)];
    seconds.prop_map(|seconds| NaiveTime::from_num_seconds_from_midnight_opt(seconds, 0).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn dates_are_those_of_a_calendar(
        (plain, dates) in with_dates(), zone in prop::sample::select(ZONES.to_vec()), start in any_time(),
        minutes in 1..1440_i64, count in 1..=MAX_DATES, how in 0..4_u8,
    ) {
        let first = dates[0];
        let end_of = first.and_time(start) + TimeDelta::minutes(minutes);
        let days = Days::new(u64::try_from((end_of.date() - first).num_days()).unwrap());
        let times = FirstTimes { date: first, start, days, end: end_of.time(), given: None };
        let expected = &dates[..count.min(dates.len())];
        let last = *expected.last().unwrap();
        let end = match how {
            0 => format!("COUNT={}", expected.len()),
            1 => format!("UNTIL={}", last.format("%Y%m%d")),
            2 => format!("UNTIL={}", last.and_time(start).format("%Y%m%dT%H%M%S")),
            // Exactly at a start.
            _ => format!("UNTIL={}", instant_or_next(last, start, zone).unwrap().utc().format("%Y%m%dT%H%M%SZ")),
        };
        let rule: Rule = plain.text(&end).parse().unwrap();
        let found = match expand(&rule, &times, zone) {
            Err(Refusal::Overlapping) => {
                prop_assert!(end_of.date() > first);
                return Ok(());
            }
            found => found.unwrap(),
        };
        prop_assert_eq!(found.iter().map(|times| times.date).collect::<Vec<_>>(), expected, "{}", rule);
        for (times, date) in found.iter().zip(expected) {
            let local = |at: Timestamp| at.utc().with_timezone(&zone).naive_local();
            let wanted = (date.and_time(start), (*date + days).and_time(end_of.time()));
            prop_assert_eq!(times.exist, (local(times.starts_at), local(times.ends_at)) == wanted);
            prop_assert!(times.starts_at < times.ends_at || !times.exist);
            if times.exist {
                // Not the second of two.
                for hours in 1..=3 {
                    prop_assert_ne!(local(times.starts_at.plus(TimeDelta::minutes(-30 * hours))), wanted.0);
                    prop_assert_ne!(local(times.ends_at.plus(TimeDelta::minutes(-30 * hours))), wanted.1);
                }
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[A-Z=;,0-9é-]{0,60}", first in any_date()) {
        if let Ok(rule) = text.parse::<Rule>() {
            let _ = expand(&rule, &FirstTimes { date: first, ..evening("2026-01-01") }, Tz::UTC);
        }
    }
}
