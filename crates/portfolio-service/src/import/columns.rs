//! Columns that several tables of the source have.

use common::semester::{Semester, YearWithSemester};
use import::row::{Fault, SourceRow};

use crate::{link::is_web_address, span::Half};

/// A link in a row: an http or https address, or empty.
pub fn link(row: &SourceRow, column: &str) -> Result<String, Fault> {
    let link = row.text(column)?;
    if link.is_empty() || is_web_address(&link) {
        Ok(link)
    } else {
        Err(format!("{column} is no http or https address"))
    }
}

/// The span of semesters in the four columns of a row.
pub fn span(row: &SourceRow) -> Result<(Half, Option<Half>), Fault> {
    let half = |year: &str, semester: &str| {
        let number = Semester::from_number(row.number(semester)?);
        let year = i32::try_from(row.number(year)?).ok();
        let semester = year.zip(number).and_then(|(year, number)| YearWithSemester::new(year, number));
        semester.map(Half::from).ok_or_else(|| "has a semester that does not exist".to_owned())
    };
    let since = half("since_year", "since_semester")?;
    let until = if row.number("until_year")? == 0 { None } else { Some(half("until_year", "until_semester")?) };
    if until.is_some_and(|until| until < since) {
        return Err("ends before it starts".to_owned());
    }
    Ok((since, until))
}
