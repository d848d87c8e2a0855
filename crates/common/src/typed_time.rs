//! Dates and times of day as people type them, in forms and in the table of rooms (contract, "Time").

use std::{ops::RangeInclusive, str::FromStr};

use chrono::{Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use unicode_normalization::UnicodeNormalization;

use crate::{
    problem::Rule,
    visible::{is_space, without_invisible},
};

/// The years of local dates. Earlier ones are mistakes; from 9999 an offset could lead out of the range of RFC 3339.
pub const YEARS: RangeInclusive<i32> = 1970..=9998;

/// A rule that a text breaks, and a message.
type Fault = (Rule, &'static str);

/// The end of a day, in seconds after its beginning.
const MIDNIGHT: u32 = 24 * 3600;

/// An end of a span up to this time, in seconds after midnight, may be meant for the next day.
const LATEST_END_ON_NEXT_DAY: u32 = 6 * 3600;

/// A text with one form of each letter, digit and sign, in lower case, and with single spaces.
pub fn plain(text: &str) -> String {
    let letters: String = without_invisible(text).nfkc().flat_map(char::to_lowercase).collect();
    let words: Vec<_> = letters.split(is_space).filter(|word| !word.is_empty()).collect();
    // Japanese keyboards write the long vowel mark with the key of the hyphen.
    words.join(" ").replace(['‐', '‑', '‒', '–', '—', '―', '−', '〜', '~', 'ー'], "-")
}

/// A whole number.
pub fn typed_number(text: &str) -> Option<u32> {
    number(&plain(text), 9)
}

/// A date: `2027-05-10`, `2027/5/10`, `2027.5.10` or `2027年5月10日`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypedDate(pub NaiveDate);

impl FromStr for TypedDate {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        match date(&plain(text).replace(' ', "")) {
            Some(date) if YEARS.contains(&date.year()) => Ok(Self(date)),
            Some(_) => Err((Rule::Range, "must be in the years 1970 to 9998")),
            None => Err((Rule::BadDate, "must be a date, such as 2026-04-01")),
        }
    }
}

fn date(text: &str) -> Option<NaiveDate> {
    let parts: Vec<&str> = match text.strip_suffix('日') {
        Some(text) => text.split_once('年').map(|(year, rest)| [year].into_iter().chain(rest.split('月')).collect())?,
        None => text.split(['/', '-', '.'].into_iter().find(|separator| text.contains(*separator))?).collect(),
    };
    let [year, month, day] = parts.try_into().ok()?;
    let year = number(year, 4).filter(|_| year.len() == 4)?;
    NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, number(month, 2)?, number(day, 2)?)
}

/// A time of day from 0:00 to 24:00: `18:00`, `18:00:00`, `18`, `18時`, `18時30分`, `18時半`, `6 PM`, `6:00 p.m.`,
/// `午後6時`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypedTime(u32);

impl TypedTime {
    /// The time on a day. 24:00 is the beginning of the next day.
    pub fn on(self, day: NaiveDate) -> NaiveDateTime {
        day.and_time(NaiveTime::MIN) + TimeDelta::seconds(self.0.into())
    }

    /// The end of a span: the first such time after its start. It is on the next day only up to 6:00, because a later one
    /// is rather a mistake; then `None`.
    pub fn after(self, start: NaiveDateTime) -> Option<NaiveDateTime> {
        let end = self.on(start.date());
        let is_next = end < start && self.0 <= LATEST_END_ON_NEXT_DAY;
        Some(if is_next { end + TimeDelta::days(1) } else { end }).filter(|end| *end > start)
    }
}

impl FromStr for TypedTime {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        time(&plain(text).replace(' ', "")).ok_or((Rule::BadTime, "must be a time of day, such as 18:30"))
    }
}

/// A date and a time of day, with `T` or a space between them: `2027-05-10T18:00`.
///
/// # Errors
/// Those of the date or of the time.
pub fn typed_moment(text: &str) -> Result<NaiveDateTime, Fault> {
    let text = plain(text);
    let (date, time) = text.split_once(['t', ' ']).unwrap_or((&text, ""));
    Ok(time.parse::<TypedTime>()?.on(date.parse::<TypedDate>()?.0))
}

/// The marks of the halves of a day: before or after noon, and the hour that Japanese and English give the first one.
const HALVES: [(&str, u32, u32); 6] =
    [("午前", 0, 0), ("午後", 12, 0), ("am", 0, 12), ("pm", 12, 12), ("a.m.", 0, 12), ("p.m.", 12, 12)];

/// The half of a day that a time names, and the rest of its text.
fn half(text: &str) -> Option<((&'static str, u32, u32), &str)> {
    HALVES.into_iter().find_map(|half| {
        let rest = text.strip_prefix(half.0).or_else(|| text.strip_suffix(half.0).filter(|_| half.2 == 12))?;
        Some((half, rest))
    })
}

fn time(text: &str) -> Option<TypedTime> {
    let (half, text) = half(text).map_or((None, text), |(half, rest)| (Some(half), rest));
    let (hour, minute, second) = match (text.split_once('時'), text.split_once(':')) {
        (Some((hour, "")), _) => (hour, "00", "00"),
        (Some((hour, "半")), _) => (hour, "30", "00"),
        (Some((hour, minute)), _) => (hour, minute.strip_suffix('分')?, "00"),
        (None, Some((hour, rest))) => {
            let (minute, second) = rest.split_once(':').unwrap_or((rest, "00"));
            // `9:5` may be any of ten minutes.
            Some((hour, minute, second)).filter(|_| minute.len() == 2 && second.len() == 2)?
        }
        (None, None) => (text, "00", "00"),
    };
    let mut hour = number(hour, 2)?;
    let (minute, second) = (number(minute, 2)?, number(second, 2)?);
    if let Some((_, noon, first)) = half {
        let is_hour = if first == 0 { hour < 12 } else { (1..=12).contains(&hour) };
        hour = Some(hour % 12 + noon).filter(|_| is_hour)?;
    }
    let seconds = hour * 3600 + minute * 60 + second;
    (minute < 60 && second < 60 && seconds <= MIDNIGHT).then_some(TypedTime(seconds))
}

/// Spans of a day, separated by spaces or commas: `13:00-15:00, 18-20`.
///
/// # Errors
/// The first that cannot be read.
pub fn typed_spans(text: &str) -> Result<Vec<(TypedTime, TypedTime)>, String> {
    let mut text = plain(text);
    // What belongs together is written together.
    for (from, to) in [(" -", "-"), ("- ", "-"), ("午前 ", "午前"), ("午後 ", "午後")] {
        text = text.replace(from, to);
    }
    for half in ["am", "pm", "a.m.", "p.m."] {
        text = text.replace(&format!(" {half}"), half);
    }
    let words = text.split([' ', ',', '、', ';']).filter(|word| !word.is_empty());
    words.map(|word| span(word).ok_or_else(|| word.to_owned())).collect()
}

fn span(word: &str) -> Option<(TypedTime, TypedTime)> {
    let (start, end) = word.split_once('-')?;
    // `1-3pm` may mean either.
    let is_clear = half(start).is_some() == half(end).is_some();
    Some((time(start)?, time(end)?)).filter(|_| is_clear)
}

/// A number of at most so many digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    // `parse` also takes a plus sign.
    let is_number = (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(text: &str) -> Option<u32> {
        text.parse::<TypedTime>().ok().map(|time| time.0)
    }

    fn full_width(text: &str) -> String {
        text.chars()
            .map(|c| char::from_u32(u32::from(c) + 0xfee0).filter(|_| ('!'..='~').contains(&c)).unwrap_or(c))
            .collect()
    }

    #[test]
    fn what_is_clear_is_read() {
        for text in [
            "18:30",
            " 18：30 ",
            "１８：３０",
            "18:30:00",
            "6:30 PM",
            "6:30pm",
            "PM 6:30",
            "6:30 p.m.",
            "午後6:30",
            "午後６時３０分",
            "午後 6時半",
            "18時半",
            "18 時 30 分",
        ] {
            assert_eq!(seconds(text), Some(18 * 3600 + 30 * 60), "{text:?}");
        }
        for (text, hour) in [
            ("9", 9),
            ("24:00", 24),
            ("24時", 24),
            ("0:00", 0),
            ("12 AM", 0),
            ("12 PM", 12),
            ("午前0時", 0),
            ("午後0時", 12),
        ] {
            assert_eq!(seconds(text), Some(hour * 3600), "{text:?}");
        }
        for text in [
            "2027-05-10",
            "2027/5/10",
            "２０２７/５/１０",
            "2027年5月10日",
            "２０２７．５．１０",
            "2027－05－10",
            "2027 / 5 / 10",
            "2027ー5ー10",
        ] {
            assert_eq!(text.parse(), Ok(TypedDate(NaiveDate::from_ymd_opt(2027, 5, 10).unwrap())), "{text:?}");
        }
        assert_eq!((typed_number("１２"), typed_number("+1"), typed_number("")), (Some(12), None, None));
    }

    #[test]
    fn what_is_not_clear_is_refused() {
        for text in [
            "",
            ":",
            "24:01",
            "25:00",
            "12:60",
            "9:00:60",
            "+9:00",
            "012:00",
            "9:5",
            "0900",
            "9.30",
            "13:00 PM",
            "0 AM",
            "午後12時",
            "午前12時",
            "午後18時",
            "6時30",
            "noon",
            "9:00:00:00",
            "24:00 PM",
        ] {
            assert_eq!(seconds(text), None, "{text:?}");
        }
        for text in [
            "",
            "26/4/1",
            "4/1/2026",
            "2026/4-1",
            "2026/4",
            "2026/4/1/1",
            "2026/004/01",
            "20260401",
            "4月1日",
            "2026/13/01",
            "2026-02-30",
            "+026-04-01",
            "2026年4月1",
            "2026-01-01x",
            "1969-12-31",
            "9999-01-01",
        ] {
            assert!(text.parse::<TypedDate>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_moment_is_a_date_and_a_time() {
        let expected = NaiveDate::from_ymd_opt(2027, 5, 10).and_then(|day| day.and_hms_opt(18, 30, 0));
        for text in
            ["2027-05-10T18:30", "2027-05-10T18:30:00", "２０２７/５/１０　１８：３０", "2027年5月10日 午後6時半"]
        {
            assert_eq!(typed_moment(text).ok(), expected, "{text:?}");
        }
        for (text, rule) in [("", Rule::BadTime), ("2027-05-10", Rule::BadTime), ("10.5. 18:30", Rule::BadDate)] {
            assert_eq!(typed_moment(text).map_err(|(rule, _)| rule), Err(rule), "{text:?}");
        }
    }

    #[test]
    fn spans_are_read_one_by_one() {
        let read = |text: &str| {
            let spans = typed_spans(text);
            spans.map(|spans| spans.into_iter().map(|(start, end)| (start.0 / 3600, end.0 / 3600)).collect::<Vec<_>>())
        };
        for text in [
            "13-15 22:00-24:00",
            "13:00 - 15:00, 22:00 – 24:00",
            "１３：００～１５：００、２２：００〜２４：００",
            "1 PM - 3 PM; 22-24",
            "午後 1時ー午後3時 22時-24時",
        ] {
            assert_eq!(read(text), Ok(vec![(13, 15), (22, 24)]), "{text:?}");
        }
        assert_eq!(read(" "), Ok(vec![]));
        for (text, word) in
            [("13-15 x", "x"), ("1-3pm", "1-3pm"), ("午後1-3", "午後1-3"), ("13-15-17", "13-15-17"), ("13:00", "13:00")]
        {
            assert_eq!(read(text), Err(word.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn an_end_is_on_the_next_day_until_six() {
        let day = NaiveDate::from_ymd_opt(2026, 11, 30).unwrap();
        let at = |text: &str| text.parse::<TypedTime>().unwrap();
        for (start, end, expected) in [
            ("18:00", "20:00", Some((0, "20:00"))),
            ("18:00", "24:00", Some((1, "0:00"))),
            ("18:00", "6:00", Some((1, "6:00"))),
            ("1:00", "5:00", Some((0, "5:00"))),
            ("5:00", "4:00", Some((1, "4:00"))),
            ("5:00", "5:00", None),
            ("24:00", "1:00", Some((1, "1:00"))),
            ("18:00", "6:01", None),
            ("18:00", "17:00", None),
            ("18:00", "18:00", None),
        ] {
            let expected = expected.map(|(days, time)| at(time).on(day + chrono::Days::new(days)));
            assert_eq!(at(end).after(at(start).on(day)), expected, "{start} {end}");
        }
    }

    proptest! {
        #[test]
        fn every_date_and_time_is_read_in_every_form(
            days in 0..2_932_530_i32, second in 0..=MIDNIGHT, is_wide in any::<bool>(),
        ) {
            let write = |text: String| if is_wide { full_width(&text) } else { text };
            let day = NaiveDate::from_num_days_from_ce_opt(719_163 + days).unwrap();
            for format in ["%Y-%m-%d", "%Y/%-m/%-d", "%Y.%m.%-d", "%Y年%-m月%d日", " %Y / %m / %d "] {
                let text = write(day.format(format).to_string());
                prop_assert_eq!(text.parse(), Ok(TypedDate(day)), "{}", text);
            }
            let (hour, minute) = (second / 3600, second / 60 % 60);
            let minutes = second / 60 * 60;
            prop_assert_eq!(seconds(&write(format!("{hour}:{minute:02}:{:02}", second % 60))), Some(second));
            for text in [format!("{hour}:{minute:02}"), format!("{hour:02}時{minute}分")] {
                prop_assert_eq!(seconds(&write(text.clone())), Some(minutes), "{}", text);
            }
            if hour < 24 {
                let (mark, half) = if hour < 12 { ("AM", "午前") } else { ("PM", "午後") };
                for text in [format!("{}:{minute:02} {mark}", (hour + 11) % 12 + 1), format!("{half}{}時{minute}分", hour % 12)] {
                    prop_assert_eq!(seconds(&write(text.clone())), Some(minutes), "{}", text);
                }
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9０-９:：/.年月日時分半午前後apm ~ー-]{0,12}|.{0,12}") {
            if let Ok(time) = text.parse::<TypedTime>() {
                prop_assert!(time.0 <= MIDNIGHT);
                prop_assert_eq!(seconds(&full_width(&text)), Some(time.0));
            }
            let date = text.parse::<TypedDate>().ok();
            prop_assert_eq!(full_width(&text).parse::<TypedDate>().ok(), date);
            typed_spans(&text).ok();
        }
    }
}
