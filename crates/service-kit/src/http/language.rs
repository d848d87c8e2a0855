//! The language of a page, and dates in it.

use actix_web::{
    HttpRequest,
    http::header::{AcceptLanguage, Header as _, Quality},
};
use chrono::{Datelike as _, NaiveDate};

/// The cookie that holds the language that somebody has chosen.
pub const COOKIE: &str = "language";

/// A language that the pages have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Japanese.
    Japanese,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::English, Self::Japanese];

    /// The language that the client of a request has chosen by the cookie, else the first that it prefers
    /// (`Accept-Language`), else English.
    pub fn from_request(req: &HttpRequest) -> Self {
        let chosen = req.cookie(COOKIE).and_then(|cookie| Self::by_code(cookie.value()));
        chosen.or_else(|| Self::preferred(req)).unwrap_or_default()
    }

    fn preferred(req: &HttpRequest) -> Option<Self> {
        let mut sent = AcceptLanguage::parse(req).ok()?;
        sent.retain(|language| language.quality > Quality::ZERO);
        sent.ranked().iter().find_map(|language| Self::by_code(language.item()?.primary_language()))
    }

    /// The language with this code.
    pub fn by_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.code().eq_ignore_ascii_case(code))
    }

    /// Its code (BCP 47).
    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Japanese => "ja",
        }
    }

    /// Its name in itself.
    pub fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Japanese => "日本語",
        }
    }

    /// A day with its weekday and year: `Saturday, 4 April 2026`, `2026年4月4日(土)`.
    pub fn day(self, day: NaiveDate) -> String {
        match self {
            Self::English => day.format("%A, %-d %B %Y").to_string(),
            Self::Japanese => format!("{}({})", day.format("%Y年%-m月%-d日"), japanese_weekday(day)),
        }
    }

    /// A day with its weekday: `Sat 4 Apr`, `4月4日(土)`.
    pub fn short_day(self, day: NaiveDate) -> String {
        match self {
            Self::English => day.format("%a %-d %b").to_string(),
            Self::Japanese => format!("{}({})", day.format("%-m月%-d日"), japanese_weekday(day)),
        }
    }

    /// A day with its weekday, and with its year if that is another one than this: `Sat 4 Apr 2026`.
    pub fn day_of_year(self, day: NaiveDate, year: i32) -> String {
        match self {
            _ if day.year() == year => self.short_day(day),
            Self::English => day.format("%a %-d %b %Y").to_string(),
            Self::Japanese => self.day(day),
        }
    }

    /// A day without weekday and year: `4 Apr`, `4月4日`.
    pub fn short_date(self, day: NaiveDate) -> String {
        match self {
            Self::English => day.format("%-d %b").to_string(),
            Self::Japanese => day.format("%-m月%-d日").to_string(),
        }
    }

    /// A day without its weekday: `4 April 2026`, `2026年4月4日`.
    pub fn date(self, day: NaiveDate) -> String {
        match self {
            Self::English => day.format("%-d %B %Y").to_string(),
            Self::Japanese => day.format("%Y年%-m月%-d日").to_string(),
        }
    }

    /// A month: `April 2026`, `2026年4月`.
    pub fn month(self, day: NaiveDate) -> String {
        match self {
            Self::English => day.format("%B %Y").to_string(),
            Self::Japanese => day.format("%Y年%-m月").to_string(),
        }
    }

    /// What separates the parts of a list.
    pub fn separator(self) -> &'static str {
        match self {
            Self::English => ", ",
            Self::Japanese => "、",
        }
    }
}

fn japanese_weekday(day: NaiveDate) -> &'static str {
    ["月", "火", "水", "木", "金", "土", "日"][day.weekday().num_days_from_monday() as usize]
}

#[cfg(test)]
mod tests {
    use actix_web::{cookie::Cookie, test::TestRequest};

    use super::*;

    #[test]
    fn the_cookie_goes_before_the_header() {
        let request = |header: &str, cookie: Option<&str>| {
            let request = TestRequest::default().insert_header(("accept-language", header));
            let request = match cookie {
                Some(code) => request.cookie(Cookie::new(COOKIE, code.to_owned())),
                None => request,
            };
            Language::from_request(&request.to_http_request())
        };
        assert_eq!(request("ja,en;q=0.8", None), Language::Japanese);
        assert_eq!(request("en;q=0.8,ja-JP", None), Language::Japanese);
        assert_eq!(request("de,en-GB;q=0.9,ja;q=0.5", None), Language::English);
        assert_eq!(request("fr, *", None), Language::English);
        assert_eq!(request("", None), Language::English);
        assert_eq!(request("ja;q=0", None), Language::English);
        assert_eq!(request("en;q=0, ja;q=0.1", None), Language::Japanese);
        assert_eq!(request("ja", Some("en")), Language::English);
        assert_eq!(request("en", Some("ja")), Language::Japanese);
        assert_eq!(request("ja", Some("xx")), Language::Japanese);
    }

    #[test]
    fn dates_are_written_as_in_the_language() {
        let day = NaiveDate::from_ymd_opt(2026, 4, 4).unwrap();
        assert_eq!(Language::English.day(day), "Saturday, 4 April 2026");
        assert_eq!(Language::Japanese.day(day), "2026年4月4日(土)");
        assert_eq!(Language::English.short_day(day), "Sat 4 Apr");
        assert_eq!(Language::Japanese.short_day(day), "4月4日(土)");
        assert_eq!(Language::Japanese.month(day), "2026年4月");
    }
}
