//! Reading the CSV of `POST /rooms/all` (contract, booking, Operations): parsing and checking, no database.

use std::str;

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, TimeZone, Utc};
use chrono_tz::Tz;
use csv::{ByteRecord, ReaderBuilder};

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

/// The columns each file must have. Nothing reads the subject, but files without it are of some other kind.
const COLUMNS: [&str; 6] = [SUBJECT, START_DATE, END_DATE, START_TIME, END_TIME, LOCATION];

/// One data row, checked: `start < end`, a location that is not blank and at most [`MAX_LOCATION`] long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedRoom {
    /// The number of the data row, from 1; see [`parse`].
    pub row: usize,
    /// The location as written.
    pub place: String,
    /// The first instant inside the window.
    pub start: DateTime<Utc>,
    /// The first instant after the window.
    pub end: DateTime<Utc>,
}

/// One thing wrong with the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellError {
    /// The number of the data row, from 1; 0 is the header, or the file as a whole.
    pub row: usize,
    /// The column by its name in the contract; none when the error is not about one column.
    pub column: Option<String>,
    /// What is wrong, for programs: kebab-case, and stable.
    ///
    /// Header: `empty-file`, `missing-column`, `duplicate-column`. Row: `too-many-rows`, `too-many-cells`,
    /// `end-not-after-start`. Cell: `missing-cell`, `not-utf-8`, `bad-date`, `bad-time`, `no-such-local-time`,
    /// `blank`, `too-long`, `control-character`. Anything else in the way of reading: `not-csv`.
    pub code: &'static str,
    /// What is wrong, for people.
    pub message: String,
}

/// Reads `bytes` as a CSV file of rooms, with local times in `zone`; a local time that occurs twice is the earlier.
///
/// Data rows count from 1. Neither the header nor blank lines count, so a quoted line break does not shift the
/// numbers. Columns are found by name, without regard to case or white space around it; further ones are ignored.
///
/// # Errors
/// Everything wrong with the file at once, in the order of the file. Without a usable header no row is read; rows
/// after the first [`MAX_ROWS`] are reported once and not read.
pub fn parse(bytes: &[u8], zone: Tz) -> Result<Vec<ImportedRoom>, Vec<CellError>> {
    // Spreadsheets put a byte order mark before the first column's name.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let records = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes).into_byte_records();
    let mut records = records.filter(|record| !record.as_ref().is_ok_and(is_blank));

    let header = match records.next() {
        None => return Err(vec![error(0, None, "empty-file", "the file has no header row")]),
        Some(Err(cause)) => return Err(vec![error(0, None, "not-csv", &cause.to_string())]),
        Some(Ok(header)) => Header::read(&header)?,
    };

    let mut rooms = Vec::new();
    let mut errors = Vec::new();
    for (number, record) in (1..).zip(records) {
        if number > MAX_ROWS {
            errors.push(error(number, None, "too-many-rows", &format!("a file has at most {MAX_ROWS} rows")));
            break;
        }
        match record {
            Ok(record) => {
                let mut row = Row { number, record: &record, header: &header, errors: &mut errors };
                rooms.extend(row.read(zone));
            }
            Err(cause) => errors.push(error(number, None, "not-csv", &cause.to_string())),
        }
    }
    if errors.is_empty() { Ok(rooms) } else { Err(errors) }
}

/// Whether a record comes from a line of nothing but white space. Lone separators make a row, and a bad one.
fn is_blank(record: &ByteRecord) -> bool {
    record.len() == 1 && record[0].trim_ascii().is_empty()
}

fn error(row: usize, column: Option<&str>, code: &'static str, message: &str) -> CellError {
    CellError { row, column: column.map(str::to_owned), code, message: message.to_owned() }
}

/// Where each of [`COLUMNS`] stands, and how many cells a row has.
struct Header {
    positions: [usize; COLUMNS.len()],
    width: usize,
}

impl Header {
    fn read(record: &ByteRecord) -> Result<Self, Vec<CellError>> {
        let mut errors = Vec::new();
        let positions = COLUMNS.map(|column| {
            let is_it = |name: &[u8]| name.trim_ascii().eq_ignore_ascii_case(column.as_bytes());
            let mut found = record.iter().enumerate().filter(|(_, name)| is_it(name)).map(|(position, _)| position);
            let position = found.next();
            if position.is_none() {
                errors.push(error(0, Some(column), "missing-column", "the header does not name this column"));
            }
            if found.next().is_some() {
                errors.push(error(0, Some(column), "duplicate-column", "the header names this column twice"));
            }
            position.unwrap_or_default()
        });
        if errors.is_empty() { Ok(Self { positions, width: record.len() }) } else { Err(errors) }
    }
}

/// One data row while it is read; every method reports what is wrong and answers `None` for it.
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
            self.report(None, "too-many-cells", "the row has more cells than the header");
        }
        // Nothing uses the subject, but a file that is UTF-8 in part only is damaged.
        self.cell(SUBJECT);
        let start = self.time(zone, START_DATE, START_TIME);
        let end = self.time(zone, END_DATE, END_TIME);
        let place = self.location();
        if start.zip(end).is_some_and(|(start, end)| start >= end) {
            self.report(Some(END_TIME), "end-not-after-start", "the end must be later than the start");
        }
        if self.errors.len() > errors_before {
            return None;
        }
        Some(ImportedRoom { row: self.number, place: place?.to_owned(), start: start?, end: end? })
    }

    fn report(&mut self, column: Option<&str>, code: &'static str, message: &str) {
        self.errors.push(error(self.number, column, code, message));
    }

    fn cell(&mut self, column: &str) -> Option<&'a str> {
        let position = COLUMNS.iter().zip(self.header.positions).find(|(name, _)| **name == column)?.1;
        let Some(bytes) = self.record.get(position) else {
            self.report(Some(column), "missing-cell", "the row ends before this column");
            return None;
        };
        let text = str::from_utf8(bytes).ok();
        if text.is_none() {
            self.report(Some(column), "not-utf-8", "the cell is not UTF-8; save the file in that encoding");
        }
        text
    }

    fn time(&mut self, zone: Tz, date_column: &str, time_column: &str) -> Option<DateTime<Utc>> {
        let date = self.cell(date_column).and_then(|text| {
            let date = parse_date(text.trim());
            if date.is_none() {
                self.report(Some(date_column), "bad-date", "expected a date as YYYY/MM/DD");
            }
            date
        });
        let time = self.cell(time_column).and_then(|text| {
            let time = parse_time(text.trim());
            if time.is_none() {
                self.report(Some(time_column), "bad-time", "expected a time as HH:MM, from 00:00 to 23:59");
            }
            time
        });
        let local = date?.and_time(time?);
        let instant = zone.from_local_datetime(&local).earliest();
        if instant.is_none() {
            let message = format!("clocks in {zone} skip this time on that day");
            self.report(Some(time_column), "no-such-local-time", &message);
        }
        instant.map(|it| it.to_utc())
    }

    fn location(&mut self) -> Option<&'a str> {
        let location = self.cell(LOCATION)?;
        if location.trim().is_empty() {
            self.report(Some(LOCATION), "blank", "the location must not be blank");
        }
        if location.chars().count() > MAX_LOCATION {
            let message = format!("the location has at most {MAX_LOCATION} characters");
            self.report(Some(LOCATION), "too-long", &message);
        }
        if location.chars().any(char::is_control) {
            self.report(Some(LOCATION), "control-character", "the location must not hold control characters");
        }
        Some(location)
    }
}

fn parse_date(text: &str) -> Option<NaiveDate> {
    let date = has_shape(text, "0000/00/00").then(|| NaiveDate::parse_from_str(text, "%Y/%m/%d").ok())??;
    // In the first and the last years an offset could move the instant out of what RFC 3339 can say.
    (1..=9998).contains(&date.year()).then_some(date)
}

fn parse_time(text: &str) -> Option<NaiveTime> {
    has_shape(text, "00:00").then(|| NaiveTime::parse_from_str(text, "%H:%M").ok())?
}

/// Whether `text` has a digit where `shape` has a `0` and equals it elsewhere; chrono alone takes `+1/4/ 1` too.
fn has_shape(text: &str, shape: &str) -> bool {
    let fits = |(byte, wanted): (u8, u8)| if wanted == b'0' { byte.is_ascii_digit() } else { byte == wanted };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = "Subject,Start date,End date,Start time,End time,Location";

    fn tokyo(text: &str) -> Result<Vec<ImportedRoom>, Vec<CellError>> {
        parse(text.as_bytes(), Tz::Asia__Tokyo)
    }

    fn rows(rows: &str) -> Result<Vec<ImportedRoom>, Vec<CellError>> {
        tokyo(&format!("{HEADER}\n{rows}"))
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("RFC 3339")
    }

    fn room(row: usize, place: &str, start: &str, end: &str) -> ImportedRoom {
        ImportedRoom { row, place: place.to_owned(), start: at(start), end: at(end) }
    }

    /// The errors as (row, column, code).
    fn codes<T: std::fmt::Debug>(result: Result<T, Vec<CellError>>) -> Vec<(usize, String, &'static str)> {
        let errors = result.expect_err("errors");
        errors.into_iter().map(|it| (it.row, it.column.unwrap_or_default(), it.code)).collect()
    }

    fn only(row: usize, column: &str, code: &'static str) -> Vec<(usize, String, &'static str)> {
        vec![(row, column.to_owned(), code)]
    }

    #[test]
    fn times_are_local_to_the_zone() {
        assert_eq!(
            rows(
                "進捗部屋,2026/04/01,2026/04/01,09:00,21:30,S516\n講習会,2026/04/01,2026/04/02,23:00,01:00,\"W9,324\"\n"
            ),
            Ok(vec![
                room(1, "S516", "2026-04-01T00:00:00Z", "2026-04-01T12:30:00Z"),
                room(2, "W9,324", "2026-04-01T14:00:00Z", "2026-04-01T16:00:00Z"),
            ])
        );
    }

    #[test]
    fn columns_come_in_any_order_with_others_between() {
        let text = "\u{feff}Location,Note, END TIME ,Start time,End date,Start date,Subject\r\n\
                    S516,x,10:00, 09:00 ,2026/04/01,2026/04/01,\r\n";
        assert_eq!(tokyo(text), Ok(vec![room(1, "S516", "2026-04-01T00:00:00Z", "2026-04-01T01:00:00Z")]));
    }

    #[test]
    fn the_location_stays_as_written() {
        let rooms = rows("x,2026/04/01,2026/04/01,09:00,10:00, Ｓ５１６ ").expect("a room");
        assert_eq!(rooms[0].place, " Ｓ５１６ ");
    }

    #[test]
    fn a_file_may_have_no_rows() {
        assert_eq!(tokyo(HEADER), Ok(vec![]));
        assert_eq!(tokyo(&format!("{HEADER}\r\n\r\n")), Ok(vec![]));
    }

    #[test]
    fn blank_lines_neither_matter_nor_count() {
        let text = format!("\n \n{HEADER}\r\n\r\n  \r\nx,2026/04/01,2026/04/01,09:00,10:00,S516\r\n\r\nx\r\n");
        let missing = ["Start date", "Start time", "End date", "End time", "Location"];
        let expected: Vec<_> = missing.iter().map(|name| (2, (*name).to_owned(), "missing-cell")).collect();
        assert_eq!(codes(tokyo(&text)), expected);
    }

    #[test]
    fn a_file_needs_a_header() {
        for text in ["", "\u{feff}", "\r\n\r\n", "  "] {
            assert_eq!(codes(tokyo(text)), only(0, "", "empty-file"), "{text:?}");
        }
        let codes_of_data = codes(tokyo("x,2026/04/01,2026/04/01,09:00,10:00,S516\n"));
        assert_eq!(codes_of_data.len(), 6);
        assert!(codes_of_data.iter().all(|(row, _, code)| *row == 0 && *code == "missing-column"));
    }

    #[test]
    fn the_header_names_each_column_once() {
        assert_eq!(
            codes(tokyo("Subject,Start date,Location,location,Start time,End time,Note,Note\nx\n")),
            [(0, "End date".to_owned(), "missing-column"), (0, "Location".to_owned(), "duplicate-column")]
        );
    }

    #[test]
    fn every_bad_cell_is_reported() {
        let location = "あ".repeat(33);
        let text = format!(
            "x,2026-04-01,2026/02/30,9:00,24:00,\n\
             x,2026/04/01,2026/04/01,09:00,10:00,S516\n\
             x,2026/4/1,2026/04/01,09:00,10:00,{location}\n"
        );
        assert_eq!(
            codes(rows(&text)),
            [
                (1, "Start date".to_owned(), "bad-date"),
                (1, "Start time".to_owned(), "bad-time"),
                (1, "End date".to_owned(), "bad-date"),
                (1, "End time".to_owned(), "bad-time"),
                (1, "Location".to_owned(), "blank"),
                (3, "Start date".to_owned(), "bad-date"),
                (3, "Location".to_owned(), "too-long"),
            ]
        );
    }

    #[test]
    fn dates_and_times_have_one_spelling() {
        for text in
            ["2026/04/1 ", "+026/04/01", "2026/ 4/ 1", "２０２６/04/01", "2026/13/01", "0000/01/01", "9999/12/31", ""]
        {
            assert_eq!(parse_date(text), None, "{text:?}");
        }
        for text in ["9:00", "09:60", "24:00", "09:00:00", " 9:00", "+9:00", "0900", ""] {
            assert_eq!(parse_time(text), None, "{text:?}");
        }
        assert_eq!(parse_date("2028/02/29"), NaiveDate::from_ymd_opt(2028, 2, 29));
        assert_eq!(parse_time("23:59"), NaiveTime::from_hms_opt(23, 59, 0));
    }

    #[test]
    fn a_location_is_checked_in_characters() {
        let with = |location: &str| rows(&format!("x,2026/04/01,2026/04/01,09:00,10:00,\"{location}\"\n"));
        assert!(with(&"あ".repeat(32)).is_ok());
        assert_eq!(codes(with("\u{3000} ")), only(1, "Location", "blank"));
        assert_eq!(codes(with("S\u{0}516")), only(1, "Location", "control-character"));
        assert_eq!(codes(with("S\r\n516")), only(1, "Location", "control-character"));
    }

    #[test]
    fn the_start_is_before_the_end() {
        let expected = only(1, "End time", "end-not-after-start");
        assert_eq!(codes(rows("x,2026/04/01,2026/04/01,09:00,09:00,S516")), expected);
        assert_eq!(codes(rows("x,2026/04/02,2026/04/01,09:00,10:00,S516")), expected);
    }

    #[test]
    fn a_row_has_the_cells_of_the_header() {
        assert_eq!(
            codes(rows("x,2026/04/01,2026/04/01,09:00,10:00\nx,2026/04/01,2026/04/01,09:00,10:00,S516,more\n")),
            [(1, "Location".to_owned(), "missing-cell"), (2, String::new(), "too-many-cells")]
        );
    }

    #[test]
    fn a_skipped_local_time_is_an_error_and_a_repeated_one_the_earlier() {
        let berlin = |row: &str| parse(format!("{HEADER}\n{row}\n").as_bytes(), Tz::Europe__Berlin);
        assert_eq!(
            codes(berlin("x,2026/03/29,2026/03/29,02:00,02:59,S516")),
            [(1, "Start time".to_owned(), "no-such-local-time"), (1, "End time".to_owned(), "no-such-local-time"),]
        );
        assert_eq!(
            berlin("x,2026/10/25,2026/10/25,02:30,03:00,S516"),
            Ok(vec![room(1, "S516", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z")])
        );
    }

    #[test]
    fn other_encodings_are_reported_by_cell() {
        let mut bytes = format!("{HEADER}\n").into_bytes();
        bytes.extend_from_slice(b"\x8d\x75,2026/04/01,2026/04/01,09:00,10:00,\x8d\x75\n");
        assert_eq!(
            codes(parse(&bytes, Tz::UTC)),
            [(1, "Subject".to_owned(), "not-utf-8"), (1, "Location".to_owned(), "not-utf-8")]
        );

        let utf_16: Vec<u8> = format!("\u{feff}{HEADER}\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(codes(parse(&utf_16, Tz::UTC)).len(), COLUMNS.len());
    }

    #[test]
    fn a_thousand_rows_and_no_more() {
        let row = "x,2026/04/01,2026/04/01,09:00,10:00,S516\n";
        assert_eq!(rows(&row.repeat(MAX_ROWS)).expect("rooms").len(), MAX_ROWS);
        assert_eq!(codes(rows(&row.repeat(MAX_ROWS + 5))), only(MAX_ROWS + 1, "", "too-many-rows"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200), with_header in any::<bool>()) {
            let mut file = if with_header { format!("{HEADER}\n").into_bytes() } else { Vec::new() };
            file.extend(bytes);
            if let Err(errors) = parse(&file, Tz::Asia__Tokyo) {
                prop_assert!(!errors.is_empty());
                prop_assert!(errors.is_sorted_by_key(|it| it.row));
            }
        }

        #[test]
        fn a_written_file_reads_back(
            windows in prop::collection::vec(("[ -~ぁ-ん]{0,30}[!-~]", 0_i64..40_000_000, 1_i64..10_000), 0..20),
        ) {
            let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
            writer.write_record(COLUMNS).expect("in memory");
            let mut expected = Vec::new();
            for (row, (place, start, length)) in (1..).zip(windows) {
                let instant = |minute: i64| DateTime::from_timestamp(minute * 60, 0).expect("in range");
                let (start, end) = (instant(start), instant(start + length));
                let local = |time: DateTime<Utc>, format: &str| {
                    time.with_timezone(&Tz::Asia__Tokyo).format(format).to_string()
                };
                writer.write_record([
                    "x",
                    &local(start, "%Y/%m/%d"),
                    &local(end, "%Y/%m/%d"),
                    &local(start, "%H:%M"),
                    &local(end, "%H:%M"),
                    &place,
                ]).expect("in memory");
                expected.push(ImportedRoom { row, place, start, end });
            }
            let file = writer.into_inner().expect("in memory");
            prop_assert_eq!(parse(&file, Tz::Asia__Tokyo), Ok(expected));
        }
    }
}
