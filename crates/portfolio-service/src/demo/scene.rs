//! The members and the present semester of the made-up club.

use common::semester::{Semester, YearWithSemester};
use service_kit::database::types::{DbTimestamp, DbUuid};

/// What the demonstration data is made of.
pub(super) struct Scene {
    /// In the order in which they joined.
    pub members: Vec<(&'static str, DbUuid)>,
    pub present: YearWithSemester,
    pub now: DbTimestamp,
}

/// The semester `count` semesters before this one.
#[must_use]
pub fn before(semester: YearWithSemester, count: usize) -> YearWithSemester {
    let mut found = semester;
    for _ in 0..count {
        let (year, half) = match found.semester() {
            Semester::First => (found.year() - 1, Semester::Second),
            Semester::Second => (found.year(), Semester::First),
        };
        found = YearWithSemester::new(year, half).unwrap_or(found);
    }
    found
}
