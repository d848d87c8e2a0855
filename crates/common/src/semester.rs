//! Academic half-years (contract, portfolio "Types").

use std::fmt;

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Utc};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde::{Serialize, Serializer};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr,
        schema::{Schema, Type},
    },
};

use crate::problem::{Rule, Violations};

/// Half of an academic year; on the wire 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Semester {
    /// 0: April to September.
    First,
    /// 1: October to March of the next calendar year.
    Second,
}

impl Semester {
    /// The number on the wire.
    pub fn number(self) -> u8 {
        match self {
            Self::First => 0,
            Self::Second => 1,
        }
    }

    /// The semester of a number on the wire.
    pub fn from_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::First),
            1 => Some(Self::Second),
            _ => None,
        }
    }
}

impl Serialize for Semester {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.number())
    }
}

impl PartialSchema for Semester {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some([0, 1])).into()
    }
}

impl ToSchema for Semester {}

impl Deserr<Violations> for Semester {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let number = i64::deserialize_from_value(value, at)?;
        let message = "must be 0 (April to September) or 1 (October to March)";
        Self::from_number(number).ok_or_else(|| Violations::one(at, Rule::NotAllowed, message))
    }
}

/// A semester of an academic year, ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
pub struct YearWithSemester {
    /// The calendar year in which the academic year begins, from 1970 to 9998.
    #[schema(minimum = 1970, maximum = 9998, example = 2026)]
    year: i32,
    /// Which half.
    semester: Semester,
}

impl YearWithSemester {
    /// The first academic year of the range.
    pub const FIRST_YEAR: i32 = 1970;
    /// The last academic year of the range. Its second half ends in 9999, the last year with four digits.
    pub const LAST_YEAR: i32 = 9998;

    /// A semester of an academic year, or `None` when the year is not within 1970 to 9998.
    pub fn new(year: i32, semester: Semester) -> Option<Self> {
        (Self::FIRST_YEAR..=Self::LAST_YEAR).contains(&year).then_some(Self { year, semester })
    }

    /// The semester of this year, or of the nearest year of the range.
    pub fn nearest(year: i64, semester: Semester) -> Self {
        let year = year.clamp(Self::FIRST_YEAR.into(), Self::LAST_YEAR.into());
        Self { year: i32::try_from(year).unwrap_or(Self::FIRST_YEAR), semester }
    }

    /// The semester of a local date. A date outside the academic years 1970 to 9998 belongs to the nearest semester.
    pub fn containing(date: NaiveDate) -> Self {
        let (year, semester) = match date.month() {
            1..=3 => (date.year() - 1, Semester::Second),
            4..=9 => (date.year(), Semester::First),
            _ => (date.year(), Semester::Second),
        };
        if year < Self::FIRST_YEAR {
            return Self { year: Self::FIRST_YEAR, semester: Semester::First };
        }
        if year > Self::LAST_YEAR {
            return Self { year: Self::LAST_YEAR, semester: Semester::Second };
        }
        Self { year, semester }
    }

    /// The academic year.
    pub fn year(self) -> i32 {
        self.year
    }

    /// The half.
    pub fn semester(self) -> Semester {
        self.semester
    }

    /// The first day: 1 April or 1 October.
    pub fn first_day(self) -> NaiveDate {
        let month = match self.semester {
            Semester::First => 4,
            Semester::Second => 10,
        };
        NaiveDate::from_ymd_opt(self.year, month, 1).unwrap_or_default()
    }

    /// The first day of the next semester.
    pub fn end(self) -> NaiveDate {
        let (year, month) = match self.semester {
            Semester::First => (self.year, 10),
            Semester::Second => (self.year + 1, 4),
        };
        NaiveDate::from_ymd_opt(year, month, 1).unwrap_or_default()
    }

    /// Midnight UTC of the first day.
    pub fn starts_at(self) -> DateTime<Utc> {
        self.first_day().and_time(NaiveTime::MIN).and_utc()
    }
}

impl Deserr<Violations> for YearWithSemester {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        #[derive(Deserr)]
        #[deserr(error = Violations)]
        struct Fields {
            year: Year,
            semester: Semester,
        }
        let Fields { year: Year(year), semester } = Fields::deserialize_from_value(value, at)?;
        Ok(Self { year, semester })
    }
}

/// A year of a [`YearWithSemester`].
struct Year(i32);

impl Deserr<Violations> for Year {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let (first, last) = (YearWithSemester::FIRST_YEAR, YearWithSemester::LAST_YEAR);
        let year = i32::deserialize_from_value(value, at)?;
        let message = format!("must be {first} to {last}");
        if (first..=last).contains(&year) { Ok(Self(year)) } else { Err(Violations::one(at, Rule::Range, message)) }
    }
}

impl fmt::Display for YearWithSemester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.year, self.semester.number())
    }
}

/// A span of semesters that includes both ends. Without `until` it is still going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
pub struct YearWithSemesterDuration {
    since: YearWithSemester,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    until: Option<YearWithSemester>,
}

impl YearWithSemesterDuration {
    /// The span, or `None` when `until` is before `since`.
    pub fn new(since: YearWithSemester, until: Option<YearWithSemester>) -> Option<Self> {
        until.is_none_or(|until| until >= since).then_some(Self { since, until })
    }

    /// The first semester.
    pub fn since(self) -> YearWithSemester {
        self.since
    }

    /// The last semester, unless the span is still going on.
    pub fn until(self) -> Option<YearWithSemester> {
        self.until
    }

    /// Whether the span includes the semester.
    pub fn contains(self, semester: YearWithSemester) -> bool {
        self.since <= semester && self.until.is_none_or(|until| semester <= until)
    }

    /// Whether this span includes every semester of `other`.
    pub fn contains_span(self, other: Self) -> bool {
        self.since <= other.since
            && match (self.until, other.until) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(mine), Some(theirs)) => theirs <= mine,
            }
    }

    /// The semesters that both spans include, or `None` when there are none.
    pub fn intersection(self, other: Self) -> Option<Self> {
        let until = match (self.until, other.until) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self::new(self.since.max(other.since), until)
    }

    /// This span as it is shown within an enclosing one: their intersection, or the span itself if there is none
    /// (contract, portfolio "Member spans").
    pub fn shown_within(self, enclosing: Self) -> Self {
        self.intersection(enclosing).unwrap_or(self)
    }
}

impl Deserr<Violations> for YearWithSemesterDuration {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        #[derive(Deserr)]
        #[deserr(error = Violations)]
        struct Fields {
            since: YearWithSemester,
            #[deserr(default)]
            until: Option<YearWithSemester>,
        }
        let Fields { since, until } = Fields::deserialize_from_value(value, at)?;
        Self::new(since, until).ok_or_else(|| crate::duration::out_of_order(at))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn semester() -> impl Strategy<Value = YearWithSemester> {
        (1970..1990, 0..2_i64)
            .prop_map(|(year, half)| YearWithSemester::new(year, Semester::from_number(half).unwrap()).unwrap())
    }

    fn span() -> impl Strategy<Value = YearWithSemesterDuration> {
        (semester(), prop::option::of(semester()))
            .prop_map(|(a, b)| YearWithSemesterDuration::new(b.map_or(a, |b| a.min(b)), b.map(|b| a.max(b))).unwrap())
    }

    /// Every semester that the strategies above generate, and later ones, which only open spans include.
    fn all() -> impl Iterator<Item = YearWithSemester> {
        (1970..=1990)
            .flat_map(|year| [Semester::First, Semester::Second].map(|half| YearWithSemester::new(year, half).unwrap()))
    }

    #[test]
    fn a_semester_is_six_months_and_the_second_ends_in_the_next_year() {
        let date = |y, m, d| NaiveDate::from_ymd_opt(y, m, d).unwrap();
        let second = YearWithSemester::new(2025, Semester::Second).unwrap();
        assert_eq!((second.first_day(), second.end()), (date(2025, 10, 1), date(2026, 4, 1)));
        assert_eq!(YearWithSemester::containing(date(2026, 3, 31)), second);
        assert_eq!(
            YearWithSemester::containing(date(2026, 4, 1)),
            YearWithSemester::new(2026, Semester::First).unwrap()
        );
        assert_eq!(second.starts_at().to_rfc3339(), "2025-10-01T00:00:00+00:00");
    }

    #[test]
    fn a_missing_until_is_left_out() {
        let since = YearWithSemester::new(2026, Semester::First).unwrap();
        let span = YearWithSemesterDuration::new(since, None).unwrap();
        assert_eq!(serde_json::to_value(span).unwrap(), json!({"since": {"year": 2026, "semester": 0}}));
    }

    #[test]
    fn a_violation_has_the_pointer_of_the_wrong_field() {
        let read = |body| deserr::deserialize::<YearWithSemesterDuration, serde_json::Value, Violations>(body);
        let first = json!({"year": 2026, "semester": 0});
        assert!(read(json!({"since": first, "until": first})).is_ok());
        assert!(read(json!({"since": first, "until": null})).is_ok());
        for (body, pointer) in [
            (json!({"since": first, "until": {"year": 2025, "semester": 1}}), "/until"),
            (json!({"since": {"year": 1969, "semester": 0}}), "/since/year"),
            (json!({"since": {"year": 2026, "semester": 2}}), "/since/semester"),
            (json!({"since": {"year": "2026", "semester": 0}}), "/since/year"),
            (json!({}), "/since"),
        ] {
            let found = serde_json::to_value(&read(body.clone()).unwrap_err().0).unwrap();
            assert_eq!(found[0]["pointer"], pointer, "{body}");
        }
    }

    proptest! {
        #[test]
        fn a_semester_contains_its_days_and_the_next_one_follows(day in 0..20_000_i64) {
            let date = NaiveDate::from_ymd_opt(1970, 4, 1).unwrap() + chrono::TimeDelta::days(day);
            let semester = YearWithSemester::containing(date);
            prop_assert!(semester.first_day() <= date && date < semester.end());
            prop_assert_eq!(YearWithSemester::containing(semester.end()).first_day(), semester.end());
        }

        #[test]
        fn spans_agree_with_the_set_of_their_semesters(a in span(), b in span()) {
            let in_both: Vec<_> = all().filter(|s| a.contains(*s) && b.contains(*s)).collect();
            let common: Vec<_> = all().filter(|s| a.intersection(b).is_some_and(|c| c.contains(*s))).collect();
            prop_assert_eq!(&in_both, &common);
            prop_assert_eq!(a.contains_span(b), all().all(|s| !b.contains(s) || a.contains(s)));
            let shown = b.shown_within(a);
            let inside = if in_both.is_empty() { shown == b } else { a.contains_span(shown) && b.contains_span(shown) };
            prop_assert!(inside);
        }

        #[test]
        fn semesters_are_ordered_by_time(a in semester(), b in semester()) {
            prop_assert_eq!(a.cmp(&b), a.starts_at().cmp(&b.starts_at()));
            prop_assert_eq!(YearWithSemesterDuration::new(a, Some(b)).is_some(), a <= b);
        }
    }

    #[test]
    fn year_and_semester_are_refused_together() {
        let body = json!({"year": 1969, "semester": 2});
        let violations = deserr::deserialize::<YearWithSemester, _, Violations>(body).unwrap_err().0;
        let rules: Vec<_> = violations.iter().map(|violation| violation.code).collect();
        assert_eq!(rules, [Rule::NotAllowed, Rule::Range]);
    }
}
