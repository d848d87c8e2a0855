//! Times on a board, as text.

use chrono::{Datelike as _, MappedLocalTime, NaiveDate, NaiveTime, TimeZone as _};
use chrono_tz::Tz;
use common::time::Timestamp;
use service_kit::http::Language;

use super::timetable::local;
use crate::rooms::overlap::Span;

/// How a board writes times.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The zone of the club.
    pub zone: Tz,
    /// The language of the days.
    pub language: Language,
    /// The first day of the board. Only days of other years are written with their year.
    pub first: NaiveDate,
    /// Whether that is its only day, which need not be written.
    pub is_only_day: bool,
}

impl Times {
    /// A time of day. Of the two times to which the clocks are set back, each has the name of its offset.
    pub fn clock(self, at: Timestamp) -> String {
        let is_ambiguous =
            matches!(self.zone.from_local_datetime(&local(at, self.zone)), MappedLocalTime::Ambiguous(..));
        let format = if is_ambiguous { "%-H:%M %Z" } else { "%-H:%M" };
        at.utc().with_timezone(&self.zone).format(format).to_string()
    }

    /// Start and end, with the date of an end that is on a later day.
    pub fn span(self, span: Span) -> String {
        let (start, end) = (local(span.start, self.zone), local(span.end, self.zone));
        let next_midnight = start.date().succ_opt().map(|next| next.and_time(NaiveTime::MIN));
        let end = match (start.date() == end.date(), Some(end) == next_midnight) {
            (true, _) => self.clock(span.end),
            (false, true) => "24:00".to_owned(),
            (false, false) => format!("{} {}", self.date(end.date(), false), self.clock(span.end)),
        };
        format!("{}–{end}", self.clock(span.start))
    }

    /// The same with the day of the start, unless it is the only day of the board.
    pub fn dated(self, span: Span) -> String {
        let date = local(span.start, self.zone).date();
        if self.is_only_day && date == self.first {
            return self.span(span);
        }
        format!("{}, {}", self.date(date, true), self.span(span))
    }

    /// A day, with its year if that is not the year of the board.
    pub fn date(self, date: NaiveDate, has_weekday: bool) -> String {
        let day = if has_weekday { self.language.short_day(date) } else { self.language.short_date(date) };
        match (date.year() == self.first.year(), self.language) {
            (true, _) => day,
            (false, Language::English) => format!("{day} {}", date.year()),
            (false, Language::Japanese) => format!("{}年{day}", date.year()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: &str, to: &str) -> Span {
        Span::new(from.parse().unwrap(), to.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_day_and_a_year_are_written_where_they_change() {
        let first = NaiveDate::from_ymd_opt(2026, 12, 30).unwrap();
        let times = Times { zone: Tz::UTC, language: Language::English, first, is_only_day: true };
        let dated = |from, to| times.dated(span(from, to));
        assert_eq!(dated("2026-12-30T10:00:00Z", "2026-12-30T11:05:00Z"), "10:00–11:05");
        assert_eq!(dated("2026-12-30T10:00:00Z", "2026-12-31T00:00:00Z"), "10:00–24:00");
        assert_eq!(dated("2026-12-29T10:00:00Z", "2026-12-30T01:00:00Z"), "Tue 29 Dec, 10:00–30 Dec 1:00");
        assert_eq!(dated("2026-12-30T10:00:00Z", "2027-01-02T01:00:00Z"), "10:00–2 Jan 2027 1:00");
        assert_eq!(dated("2025-12-30T10:00:00Z", "2026-12-30T01:00:00Z"), "Tue 30 Dec 2025, 10:00–30 Dec 1:00");
        let week = Times { is_only_day: false, ..times };
        assert_eq!(week.dated(span("2026-12-30T10:00:00Z", "2026-12-30T11:00:00Z")), "Wed 30 Dec, 10:00–11:00");
        let japanese = Times { language: Language::Japanese, ..week };
        assert_eq!(
            japanese.dated(span("2025-12-30T10:00:00Z", "2026-12-31T01:00:00Z")),
            "2025年12月30日(火), 10:00–12月31日 1:00"
        );
    }

    #[test]
    fn the_doubled_hour_is_told_apart() {
        let first = NaiveDate::from_ymd_opt(2026, 10, 25).unwrap();
        let times = Times { zone: Tz::Europe__Berlin, language: Language::English, first, is_only_day: true };
        let text = |from, to| times.span(span(from, to));
        assert_eq!(text("2026-10-25T00:30:00Z", "2026-10-25T01:15:00Z"), "2:30 CEST–2:15 CET");
        assert_eq!(text("2026-10-24T23:59:00Z", "2026-10-25T02:00:00Z"), "1:59–3:00");
    }
}
