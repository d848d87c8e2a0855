//! Semesters in the database: one integer column each, ordered by time.

use common::{
    problem::Problem,
    semester::{Semester, YearWithSemester, YearWithSemesterDuration},
};
use diesel::{
    backend::Backend,
    deserialize::{self, FromSql, FromSqlRow},
    expression::AsExpression,
    serialize::{self, Output, ToSql},
    sql_types::Integer,
};
use serde::{Deserialize, Serialize};
use service_kit::error::Error;

/// A semester in a column: 2 × year for the first half of an academic year, 1 more for the second.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, AsExpression, FromSqlRow,
)]
#[diesel(sql_type = Integer)]
pub struct Half(i32);

impl From<YearWithSemester> for Half {
    fn from(semester: YearWithSemester) -> Self {
        Self(2 * semester.year() + i32::from(semester.semester().number()))
    }
}

impl Half {
    /// The semester after this one.
    pub fn next(self) -> Self {
        self.plus(1)
    }

    /// The semester so many later.
    pub fn plus(self, semesters: i32) -> Self {
        Self(self.0.saturating_add(semesters))
    }

    fn get(self) -> Option<YearWithSemester> {
        YearWithSemester::new(self.0.div_euclid(2), Semester::from_number(self.0.rem_euclid(2).into())?)
    }
}

impl<B: Backend> FromSql<Integer, B> for Half
where
    i32: FromSql<Integer, B>,
{
    fn from_sql(value: B::RawValue<'_>) -> deserialize::Result<Self> {
        let half = Self(i32::from_sql(value)?);
        half.get().map(|_| half).ok_or_else(|| "a semester is out of range".into())
    }
}

impl<B: Backend> ToSql<Integer, B> for Half
where
    i32: ToSql<Integer, B>,
{
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, B>) -> serialize::Result {
        <i32 as ToSql<Integer, B>>::to_sql(&self.0, out)
    }
}

/// The two columns `since` and `until` of a span of semesters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Columns {
    /// The first semester.
    pub since: Half,
    /// The last semester, unless the span is still going on.
    pub until: Option<Half>,
}

impl From<YearWithSemesterDuration> for Columns {
    fn from(span: YearWithSemesterDuration) -> Self {
        Self { since: span.since().into(), until: span.until().map(Into::into) }
    }
}

impl From<(Half, Option<Half>)> for Columns {
    fn from((since, until): (Half, Option<Half>)) -> Self {
        Self { since, until }
    }
}

impl Columns {
    /// Converts the columns to a span.
    pub fn span(self) -> Result<YearWithSemesterDuration, Error> {
        let until = self.until.map(|until| until.get().ok_or_else(out_of_range)).transpose()?;
        let since = self.since.get().ok_or_else(out_of_range)?;
        YearWithSemesterDuration::new(since, until).ok_or_else(out_of_range)
    }
}

fn out_of_range() -> Error {
    Problem::internal("a span of semesters is out of range").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_ordered_by_time_and_convert_without_loss() {
        let semester = |year, half| YearWithSemester::new(year, half).unwrap();
        let (first, second) = (semester(2025, Semester::Second), semester(2026, Semester::First));
        assert!(Half::from(first) < Half::from(second));
        assert_eq!(Half::from(first), Half(4051));
        for until in [None, Some(second)] {
            let span = YearWithSemesterDuration::new(first, until).unwrap();
            assert_eq!(Columns::from(span).span().unwrap(), span);
        }
        assert_eq!(Half(0).get(), None);
    }
}
