//! Columns that several tables of the source have.

use std::collections::HashMap;

use common::semester::{Semester, YearWithSemester};
use import::columns::Columns;
use service_kit::database::types::DbUuid;

use crate::{link::nearest_web_address, span::Half};

/// A link: the nearest http or https address, or empty.
pub fn link(columns: &mut Columns<'_>, column: &str) -> String {
    let text = columns.text(column);
    let link = nearest_web_address(&text).unwrap_or_default();
    if link != text {
        columns.changed(column, &format!("{link:?}"));
    }
    link
}

/// The span of semesters in the four columns of a row. Semesters in the wrong order change places.
pub fn span(columns: &mut Columns<'_>) -> (Half, Option<Half>) {
    let since = semester(columns, "since_year", "since_semester");
    let is_over = columns.row.number("until_year").is_some_and(|year| year != 0);
    let until = is_over.then(|| semester(columns, "until_year", "until_semester"));
    match until {
        Some(until) if until < since => {
            columns.changed("since_year", &until.to_string());
            columns.changed("until_year", &since.to_string());
            (until.into(), Some(since.into()))
        }
        until => (since.into(), until.map(Half::from)),
    }
}

/// The nearest semester that this service knows.
fn semester(columns: &mut Columns<'_>, year_column: &str, half_column: &str) -> YearWithSemester {
    let (year, half) = (columns.row.number(year_column), columns.row.number(half_column));
    let half_of_year = if half.is_some_and(|half| half > 0) { Semester::Second } else { Semester::First };
    let nearest = YearWithSemester::nearest(year.unwrap_or_default(), half_of_year);
    if year != Some(nearest.year().into()) {
        columns.changed(year_column, &nearest.year().to_string());
    }
    if half != Some(half_of_year.number().into()) {
        columns.changed(half_column, &half_of_year.number().to_string());
    }
    nearest
}

/// A name that no other row has: the first free one of `name`, `name (2)`, `name (3)` and so on.
pub fn unique_name(columns: &mut Columns<'_>, id: DbUuid, taken: &mut HashMap<String, DbUuid>) -> String {
    let name = columns.text("name");
    let mut unique = name.clone();
    let mut number = 1;
    while *taken.entry(unique.clone()).or_insert(id) != id {
        number += 1;
        unique = format!("{name} ({number})");
    }
    if number > 1 {
        columns.changed("name", &format!("{unique:?}"));
    }
    unique
}
