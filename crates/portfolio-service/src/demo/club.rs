//! The members and the present semester of the demo club.

use common::semester::{Semester, YearWithSemester};
use service_kit::database::types::{DbTimestamp, DbUuid};

/// The input of all demo rows.
pub(super) struct DemoClub {
    /// Names and ids, in the order in which the members joined.
    pub members: Vec<(&'static str, DbUuid)>,
    pub present: YearWithSemester,
    pub now: DbTimestamp,
}

/// The semester that is `count` semesters before this one, or the first possible one.
pub fn semester_before(semester: YearWithSemester, count: usize) -> YearWithSemester {
    let mut earlier = semester;
    for _ in 0..count {
        let (year, half) = match earlier.semester() {
            Semester::First => (earlier.year() - 1, Semester::Second),
            Semester::Second => (earlier.year(), Semester::First),
        };
        earlier = YearWithSemester::new(year, half).unwrap_or(earlier);
    }
    earlier
}
