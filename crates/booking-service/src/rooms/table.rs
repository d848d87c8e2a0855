//! Parses and checks the CSV of `POST /rooms/all` (contract, booking, Operations), without the database.

use chrono::{DateTime, TimeZone, Utc};
use chrono_tz::Tz;
use common::{
    problem::Rule,
    typed_time::{TypedDate, TypedTime},
    visible::is_blank,
};

use super::csv::{Record, Records, decode};

/// The most data rows one file may have.
pub const MAX_ROWS: usize = 1000;

/// The longest location, in Unicode scalar values.
pub const MAX_LOCATION: usize = 32;

const SUBJECT: &str = "Subject";
const START_DATE: &str = "Start date";
const END_DATE: &str = "End date";
const START_TIME: &str = "Start time";
const END_TIME: &str = "End time";
const LOCATION: &str = "Location";

/// The required columns. The subject is ignored, but a file without it is not a table of rooms.
const COLUMNS: [&str; 6] = [SUBJECT, START_DATE, END_DATE, START_TIME, END_TIME, LOCATION];

/// A valid data row: `start < end`, a location that is not blank and has at most [`MAX_LOCATION`] characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedRoom {
    /// The number of the row; see [`parse`].
    pub row: usize,
    /// The location as written.
    pub place: String,
    /// The first instant inside the period.
    pub start: DateTime<Utc>,
    /// The first instant after the period.
    pub end: DateTime<Utc>,
}

/// One error in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellError {
    /// The number of the row; 0 is the file as a whole.
    pub row: usize,
    /// The column by its name in the contract; `None` if the error is not about one column.
    pub column: Option<String>,
    /// What is wrong, for programs.
    pub code: Rule,
    /// What is wrong, for people.
    pub message: String,
}

/// Between cells. If the header row fits none better, it is the last of these.
const DELIMITERS: [char; 3] = [';', '\t', ','];

/// Parses a CSV file of rooms with local times in `zone`. A local time that occurs twice is the earlier instant.
///
/// Rows have the numbers that a spreadsheet shows, from 1, also the header and rows of blank cells. Columns are found by
/// name, regardless of case and surrounding white space. Other columns are ignored.
///
/// # Errors
/// All errors in the file, in the order of the file. After an error in the header no row is read. Rows after the first
/// [`MAX_ROWS`] are one error and are not read.
pub fn parse(bytes: &[u8], zone: Tz) -> Result<Vec<ImportedRoom>, Vec<CellError>> {
    let of_file = |code, message| Err(vec![error(0, None, code, message)]);
    let unknown_encoding = || of_file(Rule::UnknownEncoding, "the encoding is not certain; save the file as UTF-8");
    let Some(text) = decode(bytes) else { return unknown_encoding() };
    let count_columns = |delimiter: &char| {
        let (_, header) = records(&text, *delimiter).next().unwrap_or_default();
        COLUMNS.iter().filter(|column| header.cells.iter().any(|cell| is_name(cell, column))).count()
    };
    let delimiter = DELIMITERS.into_iter().max_by_key(count_columns).unwrap_or(',');
    let mut records = records(&text, delimiter);
    let header = match records.next() {
        None => return of_file(Rule::EmptyFile, "the file has no header row"),
        Some((number, Record { fault: Some(fault), .. })) => {
            return Err(vec![error(number, None, Rule::BadQuotes, fault)]);
        }
        // UTF-16 without a byte order mark.
        Some((_, header)) if header.cells.iter().any(|cell| cell.contains('\0')) => return unknown_encoding(),
        Some((number, header)) => Header::read(number, &header)?,
    };

    let mut rooms = Vec::new();
    let mut errors = Vec::new();
    for (count, (number, record)) in (1..).zip(records) {
        if count > MAX_ROWS {
            errors.push(error(number, None, Rule::TooManyRows, &format!("a file has at most {MAX_ROWS} rows")));
            break;
        }
        if let Some(fault) = record.fault.or_else(|| hidden_row(&record, header.width, delimiter)) {
            errors.push(error(number, None, Rule::BadQuotes, fault));
            continue;
        }
        let mut row = Row { number, record: &record, header: &header, errors: &mut errors };
        rooms.extend(row.read(zone));
    }
    if errors.is_empty() { Ok(rooms) } else { Err(errors) }
}

/// The records that are not blank, with their numbers.
fn records(text: &str, delimiter: char) -> impl Iterator<Item = (usize, Record)> {
    let numbered = (1..).zip(Records::new(text, delimiter));
    numbered.filter(|(_, record)| record.fault.is_some() || !record.cells.iter().all(|cell| is_blank(cell)))
}

/// If a missing quotation mark has one in a later row that fits it, what is between them is one cell with line breaks.
fn hidden_row(record: &Record, width: usize, delimiter: char) -> Option<&'static str> {
    let is_row = |line: &str| line.matches(delimiter).count() + 1 >= width;
    let has_row = |cell: &String| cell.contains(['\n', '\r']) && cell.split(['\n', '\r']).any(is_row);
    record.cells.iter().any(has_row).then_some("a cell has line breaks and what looks like another row")
}

fn is_name(cell: &str, column: &str) -> bool {
    cell.trim().eq_ignore_ascii_case(column)
}

fn error(row: usize, column: Option<&str>, code: Rule, message: &str) -> CellError {
    CellError { row, column: column.map(str::to_owned), code, message: message.to_owned() }
}

/// The position of each of [`COLUMNS`], and the number of cells in a row.
struct Header {
    positions: [usize; COLUMNS.len()],
    width: usize,
}

impl Header {
    fn read(number: usize, record: &Record) -> Result<Self, Vec<CellError>> {
        let mut errors = Vec::new();
        let positions = COLUMNS.map(|column| {
            let cells = record.cells.iter().enumerate();
            let mut matches = cells.filter(|(_, name)| is_name(name, column)).map(|(position, _)| position);
            let position = matches.next();
            if position.is_none() {
                errors.push(error(number, Some(column), Rule::MissingColumn, "the header does not name this column"));
            }
            if matches.next().is_some() {
                errors.push(error(number, Some(column), Rule::Duplicate, "the header names this column twice"));
            }
            position.unwrap_or_default()
        });
        if errors.is_empty() { Ok(Self { positions, width: record.cells.len() }) } else { Err(errors) }
    }
}

/// A data row that is being parsed. Each method reports its errors and returns `None` for them.
struct Row<'a> {
    number: usize,
    record: &'a Record,
    header: &'a Header,
    errors: &'a mut Vec<CellError>,
}

impl<'a> Row<'a> {
    fn read(&mut self, zone: Tz) -> Option<ImportedRoom> {
        let errors_before = self.errors.len();
        if self.record.cells.len() > self.header.width {
            self.report(None, Rule::TooManyCells, "the row has more cells than the header");
        }
        self.cell(SUBJECT);
        let start = self.time(zone, START_DATE, START_TIME);
        let end = self.time(zone, END_DATE, END_TIME);
        let place = self.location();
        if start.zip(end).is_some_and(|(start, end)| start >= end) {
            self.report(Some(END_TIME), Rule::OutOfOrder, "the end must be later than the start");
        }
        if self.errors.len() > errors_before {
            return None;
        }
        Some(ImportedRoom { row: self.number, place: place?.to_owned(), start: start?, end: end? })
    }

    fn report(&mut self, column: Option<&str>, code: Rule, message: &str) {
        self.errors.push(error(self.number, column, code, message));
    }

    fn cell(&mut self, column: &str) -> Option<&'a str> {
        let position = COLUMNS.iter().zip(self.header.positions).find(|(name, _)| **name == column)?.1;
        let text = self.record.cells.get(position);
        if text.is_none() {
            self.report(Some(column), Rule::MissingCell, "the row ends before this column");
        }
        text.map(String::as_str)
    }

    fn time(&mut self, zone: Tz, date_column: &str, time_column: &str) -> Option<DateTime<Utc>> {
        let date = self.cell(date_column).and_then(|text| {
            let date = text.parse::<TypedDate>().ok().map(|date| date.0);
            if date.is_none() {
                let message = "expected a date as YYYY/MM/DD or YYYY-MM-DD, from 1970 to 9998";
                self.report(Some(date_column), Rule::BadDate, message);
            }
            date
        });
        let time = self.cell(time_column).and_then(|text| {
            let time = text.parse::<TypedTime>().ok();
            if time.is_none() {
                self.report(Some(time_column), Rule::BadTime, "expected a time as HH:MM, from 00:00 to 24:00");
            }
            time
        });
        let local = time?.on(date?);
        let instant = zone.from_local_datetime(&local).earliest();
        if instant.is_none() {
            let message = format!("clocks in {zone} skip this time on that day");
            self.report(Some(time_column), Rule::NonexistentTime, &message);
        }
        instant.map(|instant| instant.to_utc())
    }

    fn location(&mut self) -> Option<&'a str> {
        let location = self.cell(LOCATION)?;
        if is_blank(location) {
            self.report(Some(LOCATION), Rule::Blank, "the location must not be blank");
        }
        if location.chars().count() > MAX_LOCATION {
            let message = format!("the location has at most {MAX_LOCATION} characters");
            self.report(Some(LOCATION), Rule::Length, &message);
        }
        if location.chars().any(char::is_control) {
            self.report(Some(LOCATION), Rule::ControlCharacter, "the location must not hold control characters");
        }
        Some(location)
    }
}

#[cfg(test)]
mod tests;
