//! The recurrence rules of series (RFC 5545, section 3.3.10), and the dates that they give. Pure: no database and no
//! clock.
//!
//! A rule is expanded as dates of a calendar without time zones. Each date then gets the times of day of the first
//! occurrence in the club's zone, so that they keep their wall clock when the clocks change.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use chrono::{Datelike, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Weekday};
use chrono_tz::Tz;
use common::time::Timestamp;
use rrule::{Frequency, NWeekday, RRule, RRuleSet};

use crate::wall_clock::{instant, instant_or_next};

/// The most dates of a series.
pub const MAX_DATES: usize = 100;

/// The last date of a series is at most so long after the first.
const MAX_MONTHS: Months = Months::new(24);

/// The years in which a series may begin. So all its times can be represented.
const YEARS: RangeInclusive<i32> = 2..=9990;

/// The longest text of a rule.
pub const MAX_LENGTH: usize = 300;

/// A recurrence rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    text: String,
    frequency: Frequency,
    interval: u16,
    by_day: Vec<NWeekday>,
    by_month_day: Vec<i8>,
    by_set_pos: Vec<i32>,
    week_start: Weekday,
    end: End,
}

/// Where a rule ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Never,
    After(u32),
    /// On a day of the club's zone.
    OnDate(NaiveDate),
    /// At a time in the club's zone.
    AtLocal(NaiveDateTime),
    AtInstant(Timestamp),
}

/// What is wrong with the text of a rule.
type Invalid = String;

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Rule {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.len() > MAX_LENGTH {
            return Err(format!("must have at most {MAX_LENGTH} characters"));
        }
        let text = text.trim().to_ascii_uppercase();
        let text = text.strip_prefix("RRULE:").unwrap_or(&text);
        let mut parts: Vec<(&str, &str)> = Vec::new();
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?} has no \"=\""))?;
            if parts.iter().any(|(other, _)| *other == name) {
                return Err(format!("{name} is there twice"));
            }
            parts.push((name, value));
        }
        let mut rule = Self {
            text: text.to_owned(),
            frequency: frequency(&parts)?,
            interval: 1,
            by_day: Vec::new(),
            by_month_day: Vec::new(),
            by_set_pos: Vec::new(),
            week_start: Weekday::Mon,
            end: End::Never,
        };
        for (name, value) in parts {
            rule.set(name, value)?;
        }
        rule.check_combination()?;
        Ok(rule)
    }
}

fn frequency(parts: &[(&str, &str)]) -> Result<Frequency, Invalid> {
    match parts.iter().find(|(name, _)| *name == "FREQ").map(|(_, value)| *value) {
        Some("DAILY") => Ok(Frequency::Daily),
        Some("WEEKLY") => Ok(Frequency::Weekly),
        Some("MONTHLY") => Ok(Frequency::Monthly),
        _ => Err("FREQ must be DAILY, WEEKLY or MONTHLY".to_owned()),
    }
}

/// The days of a week.
pub const DAYS: [Weekday; 7] =
    [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri, Weekday::Sat, Weekday::Sun];

fn weekday(text: &str) -> Option<Weekday> {
    DAYS.into_iter().find(|day| day_name(*day) == text)
}

/// The two letters of a day in a rule.
pub fn day_name(day: Weekday) -> &'static str {
    match day {
        Weekday::Mon => "MO",
        Weekday::Tue => "TU",
        Weekday::Wed => "WE",
        Weekday::Thu => "TH",
        Weekday::Fri => "FR",
        Weekday::Sat => "SA",
        Weekday::Sun => "SU",
    }
}

/// A number in a range, with an optional sign, other than 0.
fn number<N: FromStr + PartialOrd + Default>(text: &str, range: &RangeInclusive<N>) -> Option<N> {
    text.parse().ok().filter(|number| range.contains(number) && *number != N::default())
}

/// The elements of a list, without those that are there twice.
fn list<T: PartialEq>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let mut found = Vec::new();
    for element in text.split(',') {
        let element = read(element)?;
        if !found.contains(&element) {
            found.push(element);
        }
    }
    Some(found)
}

/// A day such as `TU`, or in a rule by months `-1FR`.
fn day(text: &str) -> Option<NWeekday> {
    let (position, name) = text.split_at_checked(text.len().checked_sub(2)?)?;
    let day = weekday(name)?;
    if position.is_empty() {
        Some(NWeekday::Every(day))
    } else {
        Some(NWeekday::Nth(number(position, &(-4..=5))?, day))
    }
}

fn until(text: &str) -> Option<End> {
    let time = "%Y%m%dT%H%M%S";
    if let Some(text) = text.strip_suffix('Z') {
        return Timestamp::new(NaiveDateTime::parse_from_str(text, time).ok()?.and_utc()).map(End::AtInstant);
    }
    match text.len() {
        8 => NaiveDate::parse_from_str(text, "%Y%m%d").ok().map(End::OnDate),
        _ => NaiveDateTime::parse_from_str(text, time).ok().map(End::AtLocal),
    }
}

impl Rule {
    fn set(&mut self, name: &str, value: &str) -> Result<(), Invalid> {
        let refused = || format!("{name} cannot be {value:?}");
        match name {
            "FREQ" => {}
            "INTERVAL" => self.interval = number(value, &(1..=u16::MAX)).ok_or_else(refused)?,
            "BYDAY" => self.by_day = list(value, day).ok_or_else(refused)?,
            "BYMONTHDAY" => {
                self.by_month_day = list(value, |text| number(text, &(-31..=31))).ok_or_else(refused)?;
            }
            "BYSETPOS" => self.by_set_pos = list(value, |text| number(text, &(-31..=31))).ok_or_else(refused)?,
            "WKST" => self.week_start = weekday(value).ok_or_else(refused)?,
            "COUNT" | "UNTIL" if self.end != End::Never => return Err("COUNT and UNTIL exclude each other".to_owned()),
            "COUNT" => self.end = End::After(number(value, &(1..=u32::MAX)).ok_or_else(refused)?),
            "UNTIL" => self.end = until(value).ok_or_else(refused)?,
            _ => return Err(format!("{name} is not supported")),
        }
        Ok(())
    }

    fn check_combination(&self) -> Result<(), Invalid> {
        let has_numbers = self.by_day.iter().any(|day| matches!(day, NWeekday::Nth(..)));
        let is = |frequency| self.frequency == frequency;
        if has_numbers && !is(Frequency::Monthly) {
            return Err("BYDAY may have numbers only with FREQ=MONTHLY".to_owned());
        }
        if !self.by_month_day.is_empty() && is(Frequency::Weekly) {
            return Err("BYMONTHDAY cannot be combined with FREQ=WEEKLY".to_owned());
        }
        if !self.by_set_pos.is_empty() && (is(Frequency::Daily) || self.by_day.len() + self.by_month_day.len() == 0) {
            return Err("BYSETPOS needs FREQ=WEEKLY or MONTHLY, and BYDAY or BYMONTHDAY".to_owned());
        }
        Ok(())
    }

    /// The same rule with its end on this day.
    pub fn until(&self, date: NaiveDate) -> Self {
        let rest = self.text.split(';').filter(|part| !part.starts_with("COUNT=") && !part.starts_with("UNTIL="));
        let text = rest.chain([format!("UNTIL={}", date.format("%Y%m%d")).as_str()]).collect::<Vec<_>>().join(";");
        Self { text, end: End::OnDate(date), ..self.clone() }
    }

    /// Whether an occurrence on this date is not after the end of the rule.
    fn has(&self, date: NaiveDate, start: NaiveTime, zone: Tz) -> bool {
        match self.end {
            End::Never | End::After(_) => true,
            End::OnDate(end) => date <= end,
            End::AtLocal(end) => date.and_time(start) <= end,
            End::AtInstant(end) => instant_or_next(date, start, zone).is_some_and(|start| start <= end),
        }
    }

    /// The dates of the rule from the first one to the last, without regard to its end. One more than [`MAX_DATES`] at
    /// most.
    fn dates(&self, first: NaiveDate, last: NaiveDate) -> Vec<NaiveDate> {
        let (mut by_day, mut by_month_day) = (self.by_day.clone(), self.by_month_day.clone());
        // From the start of the first period: the crate counts positions (BYSETPOS) from its start.
        let from = match self.frequency {
            Frequency::Weekly => first.week(self.week_start).checked_first_day(),
            Frequency::Monthly => first.with_day(1),
            _ => Some(first),
        };
        match self.frequency {
            Frequency::Weekly if by_day.is_empty() => by_day.push(NWeekday::Every(first.weekday())),
            Frequency::Monthly if by_day.is_empty() && by_month_day.is_empty() => {
                by_month_day.extend(i8::try_from(first.day()));
            }
            _ => {}
        }
        // The crate finds no date if some days have a number and others have none.
        if by_day.iter().any(|day| matches!(day, NWeekday::Nth(..))) {
            by_day = by_day.into_iter().flat_map(with_numbers).collect();
        }
        let rule = RRule::new(self.frequency)
            .interval(self.interval)
            .week_start(self.week_start)
            .by_weekday(by_day)
            .by_month_day(by_month_day)
            .by_set_pos(self.by_set_pos.clone());
        let start = from.map(|from| rrule::Tz::UTC.from_utc_datetime(&from.and_time(NaiveTime::MIN)));
        // The text has been checked more strictly.
        let Some((start, Ok(rule))) = start.map(|start| (start, rule.validate(start))) else { return Vec::new() };
        // Limited, because a rule may have no date at all.
        let dates = RRuleSet::new(start).limit().rrule(rule);
        let dates = dates.into_iter().map(|date| date.date_naive());
        dates.skip_while(|date| *date < first).take_while(|date| *date <= last).take(MAX_DATES + 1).collect()
    }
}

/// A day of a rule by months as days with a number.
fn with_numbers(day: NWeekday) -> Vec<NWeekday> {
    match day {
        NWeekday::Every(day) => (1..=5).map(|n| NWeekday::Nth(n, day)).collect(),
        day @ NWeekday::Nth(..) => vec![day],
    }
}

/// The times of the first occurrence in the club's zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstTimes {
    /// The day on which it begins.
    pub date: NaiveDate,
    /// When it begins.
    pub start: NaiveTime,
    /// How many days later it ends.
    pub days: Days,
    /// When it ends.
    pub end: NaiveTime,
    /// The instants that were asked for, because the clocks may show a time twice.
    pub given: Option<(Timestamp, Timestamp)>,
}

impl FirstTimes {
    /// The times of an event; `None` if it does not end after it begins by the clocks on the wall.
    pub fn of(starts_at: Timestamp, ends_at: Timestamp, zone: Tz) -> Option<Self> {
        let [start, end] = [starts_at, ends_at].map(|at| at.utc().with_timezone(&zone).naive_local());
        let days = u64::try_from((end.date() - start.date()).num_days()).ok()?;
        (start < end).then_some(Self {
            date: start.date(),
            start: start.time(),
            days: Days::new(days),
            end: end.time(),
            given: Some((starts_at, ends_at)),
        })
    }

    /// The occurrence on a day with these times; the first one is as it was given.
    pub fn on(&self, date: NaiveDate, zone: Tz) -> Option<Times> {
        if let Some((starts_at, ends_at)) = self.given.filter(|_| date == self.date) {
            return Some(Times { date, starts_at, ends_at, exist: true });
        }
        let (start, end) = ((date, self.start), (date.checked_add_days(self.days)?, self.end));
        let exists = |(date, time)| instant(date, time, zone).is_some();
        let at = |(date, time)| instant_or_next(date, time, zone);
        Some(Times { date, starts_at: at(start)?, ends_at: at(end)?, exist: exists(start) && exists(end) })
    }
}

/// The times of one date of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The day on which it begins, in the club's zone.
    pub date: NaiveDate,
    /// The first instant. If the clocks skip it, the instant at which they do.
    pub starts_at: Timestamp,
    /// The first instant after it, likewise.
    pub ends_at: Timestamp,
    /// Whether the clocks show both.
    pub exist: bool,
}

/// Why a rule gives no series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The first occurrence is not a date of the rule.
    FirstIsNoDate,
    /// There are more than [`MAX_DATES`].
    TooMany,
    /// The last date is too long after the first.
    TooLong,
    /// The year of the first date is too near the ends of the calendar.
    BadYear,
    /// An occurrence ends after the next one begins.
    Overlapping,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FirstIsNoDate => "the first occurrence must be on a date of the rule",
            Self::TooMany => "must have at most 100 dates; give it a COUNT or an UNTIL",
            Self::TooLong => "must end at most 2 years after the first date",
            Self::BadYear => "must begin in a year from 2 to 9990",
            Self::Overlapping => "each occurrence must end before the next begins",
        })
    }
}

/// The occurrences of a rule, by date.
///
/// # Errors
/// [`Refusal`].
pub fn expand(rule: &Rule, first: &FirstTimes, zone: Tz) -> Result<Vec<Times>, Refusal> {
    let last = first.date.checked_add_months(MAX_MONTHS).filter(|_| YEARS.contains(&first.date.year()));
    let last = last.ok_or(Refusal::BadYear)?;
    match rule.end {
        End::Never => return Err(Refusal::TooMany),
        End::After(count) if count as usize > MAX_DATES => return Err(Refusal::TooMany),
        End::After(_) => {}
        _ if last.succ_opt().is_some_and(|next| rule.has(next, first.start, zone)) => return Err(Refusal::TooLong),
        _ => {}
    }
    let dates = rule.dates(first.date, last);
    let mut dates: Vec<_> = dates.into_iter().take_while(|date| rule.has(*date, first.start, zone)).collect();
    if let End::After(count) = rule.end {
        dates.truncate(count as usize);
    }
    if dates.first() != Some(&first.date) {
        return Err(Refusal::FirstIsNoDate);
    }
    if dates.len() > MAX_DATES {
        return Err(Refusal::TooMany);
    }
    if matches!(rule.end, End::After(count) if count as usize != dates.len()) {
        return Err(Refusal::TooLong);
    }
    let times: Option<Vec<_>> = dates.into_iter().map(|date| first.on(date, zone)).collect();
    let times = times.ok_or(Refusal::BadYear)?;
    if times.windows(2).any(|pair| pair[0].ends_at > pair[1].starts_at) {
        return Err(Refusal::Overlapping);
    }
    Ok(times)
}

#[cfg(test)]
mod tests;
