//! Parses and checks the CSV of `POST /rooms/all` (contract, booking, Operations), without the database.

use std::str;

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, TimeZone, Utc};
use chrono_tz::Tz;
use common::problem::Rule;
use csv::{ByteRecord, ReaderBuilder};

use crate::wall_clock::YEARS;

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
    /// The number of the data row, from 1; see [`parse`].
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
    /// The number of the data row, from 1; 0 is the header, or the file as a whole.
    pub row: usize,
    /// The column by its name in the contract; `None` if the error is not about one column.
    pub column: Option<String>,
    /// What is wrong, for programs.
    pub code: Rule,
    /// What is wrong, for people.
    pub message: String,
}

/// Parses a CSV file of rooms with local times in `zone`. A local time that occurs twice is the earlier instant.
///
/// Data rows are numbered from 1, without the header and blank lines. Columns are found by name, regardless of case and
/// surrounding white space. Other columns are ignored.
///
/// # Errors
/// All errors in the file, in the order of the file. After an error in the header no row is read. Rows after the first
/// [`MAX_ROWS`] are one error and are not read.
pub fn parse(bytes: &[u8], zone: Tz) -> Result<Vec<ImportedRoom>, Vec<CellError>> {
    // Spreadsheets put a byte order mark before the first column's name.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let records = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes).into_byte_records();
    let mut records = records.filter(|record| !record.as_ref().is_ok_and(is_blank));

    let header = match records.next() {
        None => return Err(vec![error(0, None, Rule::EmptyFile, "the file has no header row")]),
        Some(Err(cause)) => return Err(vec![error(0, None, Rule::Invalid, &cause.to_string())]),
        Some(Ok(header)) => Header::read(&header)?,
    };

    let mut rooms = Vec::new();
    let mut errors = Vec::new();
    for (number, record) in (1..).zip(records) {
        if number > MAX_ROWS {
            errors.push(error(number, None, Rule::TooManyRows, &format!("a file has at most {MAX_ROWS} rows")));
            break;
        }
        match record {
            Ok(record) => {
                let mut row = Row { number, record: &record, header: &header, errors: &mut errors };
                rooms.extend(row.read(zone));
            }
            Err(cause) => errors.push(error(number, None, Rule::Invalid, &cause.to_string())),
        }
    }
    if errors.is_empty() { Ok(rooms) } else { Err(errors) }
}

/// Whether a record comes from a line of only white space. A line of only separators is a row, and not valid.
fn is_blank(record: &ByteRecord) -> bool {
    record.len() == 1 && record[0].trim_ascii().is_empty()
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
    fn read(record: &ByteRecord) -> Result<Self, Vec<CellError>> {
        if record.iter().any(|name| str::from_utf8(name).is_err()) {
            return Err(vec![error(0, None, Rule::NotUtf8, "the header is not UTF-8; save the file in that encoding")]);
        }
        let is_not_separated = record.len() == 1;
        let mut errors = Vec::new();
        let positions = COLUMNS.map(|column| {
            let has_name = |name: &[u8]| name.trim_ascii().eq_ignore_ascii_case(column.as_bytes());
            let mut matches =
                record.iter().enumerate().filter(|(_, name)| has_name(name)).map(|(position, _)| position);
            let position = matches.next();
            if position.is_none() {
                let message = if is_not_separated {
                    "the header does not name this column; commas separate columns"
                } else {
                    "the header does not name this column"
                };
                errors.push(error(0, Some(column), Rule::MissingColumn, message));
            }
            if matches.next().is_some() {
                errors.push(error(0, Some(column), Rule::Duplicate, "the header names this column twice"));
            }
            position.unwrap_or_default()
        });
        if errors.is_empty() { Ok(Self { positions, width: record.len() }) } else { Err(errors) }
    }
}

/// A data row that is being parsed. Each method reports its errors and returns `None` for them.
struct Row<'a> {
    number: usize,
    record: &'a ByteRecord,
    header: &'a Header,
    errors: &'a mut Vec<CellError>,
}

impl<'a> Row<'a> {
    fn read(&mut self, zone: Tz) -> Option<ImportedRoom> {
        let errors_before = self.errors.len();
        if self.record.len() > self.header.width {
            self.report(None, Rule::TooManyCells, "the row has more cells than the header");
        }
        // The subject is ignored, but text that is not UTF-8 means that the file is damaged.
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
        let Some(bytes) = self.record.get(position) else {
            self.report(Some(column), Rule::MissingCell, "the row ends before this column");
            return None;
        };
        let text = str::from_utf8(bytes).ok();
        if text.is_none() {
            self.report(Some(column), Rule::NotUtf8, "the cell is not UTF-8; save the file in that encoding");
        }
        text
    }

    fn time(&mut self, zone: Tz, date_column: &str, time_column: &str) -> Option<DateTime<Utc>> {
        let date = self.cell(date_column).and_then(|text| {
            let date = parse_date(text.trim());
            if date.is_none() {
                self.report(Some(date_column), Rule::BadDate, "expected a date as YYYY/MM/DD");
            }
            date
        });
        let time = self.cell(time_column).and_then(|text| {
            let time = parse_time(text.trim());
            if time.is_none() {
                self.report(Some(time_column), Rule::BadTime, "expected a time as HH:MM, from 00:00 to 23:59");
            }
            time
        });
        let local = date?.and_time(time?);
        let instant = zone.from_local_datetime(&local).earliest();
        if instant.is_none() {
            let message = format!("clocks in {zone} skip this time on that day");
            self.report(Some(time_column), Rule::NonexistentTime, &message);
        }
        instant.map(|instant| instant.to_utc())
    }

    fn location(&mut self) -> Option<&'a str> {
        let location = self.cell(LOCATION)?;
        if location.trim().is_empty() {
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

fn parse_date(text: &str) -> Option<NaiveDate> {
    let date = has_shape(text, "0000/00/00").then(|| NaiveDate::parse_from_str(text, "%Y/%m/%d").ok())??;
    YEARS.contains(&date.year()).then_some(date)
}

fn parse_time(text: &str) -> Option<NaiveTime> {
    has_shape(text, "00:00").then(|| NaiveTime::parse_from_str(text, "%H:%M").ok())?
}

/// Whether `text` has a digit where `shape` has a `0` and equals it elsewhere. Without this check chrono accepts `+1/4/
/// 1`.
fn has_shape(text: &str, shape: &str) -> bool {
    let matches = |(byte, pattern): (u8, u8)| if pattern == b'0' { byte.is_ascii_digit() } else { byte == pattern };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(matches)
}

#[cfg(test)]
mod tests;
