//! The parameters of the page.

use chrono::{Datelike as _, Days, NaiveDate, NaiveTime};
use chrono_tz::Tz;
use common::{
    input::Text,
    problem::{Problem, Rule, Violations},
    time::Timestamp,
};
use deserr::Deserr;
use service_kit::{database::types::DbTimestamp, error::Error, http::Language, page::PageContext};
use url::form_urlencoded;

use crate::wall_clock::{CalendarDate, instant_or_next};

/// How many days a board shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserr, Default)]
#[deserr(error = Violations, rename_all = camelCase)]
pub enum View {
    /// One.
    #[default]
    Day,
    /// Seven, from Monday.
    Week,
}

/// The parameters of a board, all optional.
#[derive(Debug, Deserr)]
#[deserr(error = Violations, rename_all = camelCase)]
pub struct BoardQuery {
    #[deserr(default)]
    day: Option<CalendarDate>,
    #[deserr(default)]
    view: View,
    #[deserr(default)]
    place: Option<Text<1, 32>>,
}

impl BoardQuery {
    /// The board, today's unless it names another day.
    pub fn into_board(self, now: Timestamp, zone: Tz) -> Board {
        let today = now.utc().with_timezone(&zone).date_naive();
        let day = self.day.map_or(today, |day| day.0);
        Board { day, today, view: self.view, place: self.place.map(Text::into_inner) }
    }
}

/// A board to show.
#[derive(Debug, Clone)]
pub struct Board {
    /// A day that it shows.
    pub day: NaiveDate,
    /// The present day.
    pub today: NaiveDate,
    /// How many days it shows.
    pub view: View,
    /// The only place that it shows.
    pub place: Option<String>,
}

impl Board {
    /// The first day that it shows.
    pub fn first(&self) -> NaiveDate {
        match self.view {
            View::Day => self.day,
            View::Week => self.day.week(chrono::Weekday::Mon).checked_first_day().unwrap_or(self.day),
        }
    }

    /// The number of days that it shows.
    pub fn days(&self) -> u32 {
        match self.view {
            View::Day => 1,
            View::Week => 7,
        }
    }

    /// Whether its days are the rows of one table: those of one place.
    pub fn is_one_table(&self) -> bool {
        self.view == View::Week && self.place.is_some()
    }

    /// The time that it shows.
    ///
    /// # Errors
    /// 400 for a day near the end of the calendar.
    pub fn span(&self, zone: Tz) -> Result<(DbTimestamp, DbTimestamp), Error> {
        let midnight = |date| instant_or_next(date, NaiveTime::MIN, zone).map(DbTimestamp);
        let end = self.first().checked_add_days(Days::new(self.days().into()));
        let span = midnight(self.first()).zip(end.and_then(midnight));
        span.ok_or_else(|| Problem::parameter("day", Rule::Range, "must be in the years 1 to 9998").into())
    }

    /// The address of another board.
    pub fn address(day: NaiveDate, view: View, place: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("day", &day.to_string());
        if view == View::Week {
            query.append_pair("view", "week");
        }
        if let Some(place) = place {
            query.append_pair("place", place);
        }
        format!("/board?{}", query.finish())
    }

    /// The day in words, or the week.
    pub fn title(&self, page: &PageContext) -> String {
        let (first, last) = (self.first(), self.first() + Days::new(u64::from(self.days()) - 1));
        let language = page.language;
        if self.view == View::Day {
            return language.day(first);
        }
        let from = match (language, first.month() == last.month()) {
            (Language::English, true) => first.format("%-d").to_string(),
            (Language::English, false) => first.format("%-d %B").to_string(),
            (Language::Japanese, _) => language.date(first),
        };
        page.format("board-week-of", &[("from", from.into()), ("to", language.date(last).into())])
    }
}
