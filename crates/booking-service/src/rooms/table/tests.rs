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
fn codes<T: std::fmt::Debug>(result: Result<T, Vec<CellError>>) -> Vec<(usize, String, Rule)> {
    let errors = result.expect_err("errors");
    errors.into_iter().map(|error| (error.row, error.column.unwrap_or_default(), error.code)).collect()
}

fn one_error(row: usize, column: &str, code: Rule) -> Vec<(usize, String, Rule)> {
    vec![(row, column.to_owned(), code)]
}

#[test]
fn times_are_local_to_the_zone() {
    assert_eq!(
        rows("進捗部屋,2026/04/01,2026/04/01,09:00,21:30,S516\n講習会,2026/04/01,2026/04/02,23:00,01:00,\"W9,324\"\n"),
        Ok(vec![
            room(2, "S516", "2026-04-01T00:00:00Z", "2026-04-01T12:30:00Z"),
            room(3, "W9,324", "2026-04-01T14:00:00Z", "2026-04-01T16:00:00Z"),
        ])
    );
}

#[test]
fn columns_come_in_any_order_with_others_between() {
    let text = "\u{feff}Location,Note, END TIME ,Start time,End date,Start date,Subject\r\n\
                S516,x,10:00, 09:00 ,2026/04/01,2026/04/01,\r\n";
    assert_eq!(tokyo(text), Ok(vec![room(2, "S516", "2026-04-01T00:00:00Z", "2026-04-01T01:00:00Z")]));
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
fn blank_lines_do_not_matter() {
    let text = format!("\n \n{HEADER}\r\n\r\n  \r\nx,2026/04/01,2026/04/01,09:00,10:00,S516\r\n\r\nx\r\n");
    let missing = ["Start date", "Start time", "End date", "End time", "Location"];
    let expected: Vec<_> = missing.iter().map(|name| (8, (*name).to_owned(), Rule::MissingCell)).collect();
    assert_eq!(codes(tokyo(&text)), expected);
}

#[test]
fn a_file_needs_a_header() {
    for text in ["", "\u{feff}", "\r\n\r\n", "  "] {
        assert_eq!(codes(tokyo(text)), one_error(0, "", Rule::EmptyFile), "{text:?}");
    }
    let utf_16: Vec<u8> = HEADER.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(codes(parse(&utf_16, Tz::Asia__Tokyo)), one_error(0, "", Rule::UnknownEncoding), "no byte order mark");
    let codes_of_data = codes(tokyo("x,2026/04/01,2026/04/01,09:00,10:00,S516\n"));
    assert_eq!(codes_of_data.len(), 6);
    assert!(codes_of_data.iter().all(|(row, _, code)| *row == 1 && *code == Rule::MissingColumn));
}

#[test]
fn the_header_row_decides_what_separates_cells() {
    let text = format!("{HEADER}\nx,2026/04/01,2026/04/01,9:00,10:00,\"a,b;c\td\"\n");
    for delimiter in [",", "\t", ";"] {
        let mut parts = text.splitn(11, ',');
        let text = parts.by_ref().collect::<Vec<_>>().join(delimiter);
        let expected = room(2, "a,b;c\td", "2026-04-01T00:00:00Z", "2026-04-01T01:00:00Z");
        if delimiter == "," {
            assert_eq!(codes(tokyo(&text)), one_error(2, "Location", Rule::ControlCharacter));
        }
        assert_eq!(
            tokyo(&text.replace("c\td", "c d")),
            Ok(vec![ImportedRoom { place: "a,b;c d".to_owned(), ..expected }])
        );
    }
    let mixed = tokyo(&format!("{}\nx\n", HEADER.replacen(',', ";", 2)));
    assert!(codes(mixed).iter().all(|(row, _, code)| *row == 1 && *code == Rule::MissingColumn));
}

#[test]
fn a_quotation_mark_out_of_place_is_an_error_of_its_row() {
    let header = format!("{HEADER},Note");
    let good = "x,2026/04/01,2026/04/01,09:00,10:00,S516,projector";
    let bad_rows = [
        format!("{good}\""),
        good.replace("projector", "\"projector"),
        good.replace("projector", "5\" screen"),
        good.replace("projector", "\"projector\" "),
        good.replace("S516", "S\"516\""),
        good.replacen('x', "\"x\"y", 1),
    ];
    for bad in bad_rows {
        let text = format!("{header}\n{good}\n{bad}\n");
        assert_eq!(codes(tokyo(&text)), one_error(3, "", Rule::BadQuotes), "{bad}");
    }
    let unclosed = good.replace("projector", "\"projector");
    let first = codes(tokyo(&format!("{header}\n{unclosed}\n{good}\n{good}\n")));
    assert_eq!(first, one_error(2, "", Rule::BadQuotes), "the other rows are not lost");
    let closed_later = codes(tokyo(&format!("{header}\n{unclosed}\n{good}\n{good}\"\n")));
    assert_eq!(closed_later, one_error(2, "", Rule::BadQuotes));
    let note = good.replace("projector", "\"two\r\nlines\"");
    assert_eq!(tokyo(&format!("{header}\n{note}\n{good}")).unwrap().len(), 2);
    assert_eq!(codes(tokyo(&format!("\"{header}\n{good}"))), one_error(1, "", Rule::BadQuotes));
}

#[test]
fn rows_of_blank_cells_are_ignored() {
    let text =
        format!(",,\n{HEADER}\n,,,,,\nx,2026/04/01,2026/04/01,09:00,10:00,S516\n\"\", ,\u{3000},,,,,\n,,,,,S516\n");
    let errors = codes(tokyo(&text));
    assert!(errors.iter().all(|(row, ..)| *row == 6) && errors.len() == 4, "{errors:?}");
}

#[test]
fn the_header_names_each_column_once() {
    assert_eq!(
        codes(tokyo("Subject,Start date,Location,location,Start time,End time,Note,Note\nx\n")),
        [(1, "End date".to_owned(), Rule::MissingColumn), (1, "Location".to_owned(), Rule::Duplicate)]
    );
}

#[test]
fn every_bad_cell_is_reported() {
    let location = "あ".repeat(33);
    let text = format!(
        "x,2026/04,2026/02/30,9.00,24:01,\n\
         x,2026/04/01,2026/04/01,09:00,10:00,S516\n\
         x,26/4/1,2026/04/01,09:00,10:00,{location}\n"
    );
    assert_eq!(
        codes(rows(&text)),
        [
            (2, "Start date".to_owned(), Rule::BadDate),
            (2, "Start time".to_owned(), Rule::BadTime),
            (2, "End date".to_owned(), Rule::BadDate),
            (2, "End time".to_owned(), Rule::BadTime),
            (2, "Location".to_owned(), Rule::Blank),
            (4, "Start date".to_owned(), Rule::BadDate),
            (4, "Location".to_owned(), Rule::Length),
        ]
    );
}

#[test]
fn dates_and_times_are_read_as_in_forms() {
    let read = rows("x,２０２６年4月1日,2026.4.1,午前9:00,24:00,S516");
    assert_eq!(read, Ok(vec![room(2, "S516", "2026-04-01T00:00:00Z", "2026-04-01T15:00:00Z")]));
    for date in ["1969/12/31", "9999/01/01", "0000/01/01", "26/4/1", "4月1日"] {
        assert_eq!(
            codes(rows(&format!("x,{date},2026/04/01,09:00,10:00,S516"))),
            one_error(2, "Start date", Rule::BadDate)
        );
    }
    assert_eq!(codes(rows("x,2026/04/01,2026/04/01,0900,10:00,S516")), one_error(2, "Start time", Rule::BadTime));
}

#[test]
fn a_location_is_checked_in_characters() {
    let with = |location: &str| rows(&format!("x,2026/04/01,2026/04/01,09:00,10:00,\"{location}\"\n"));
    assert!(with(&"あ".repeat(32)).is_ok());
    for blank in ["\u{3000} ", "\u{200b}\u{2800}"] {
        assert_eq!(codes(with(blank)), one_error(2, "Location", Rule::Blank));
    }
    assert_eq!(codes(with("S\u{0}516")), one_error(2, "Location", Rule::ControlCharacter));
    assert_eq!(codes(with("S\r\n516")), one_error(2, "Location", Rule::ControlCharacter));
}

#[test]
fn the_start_is_before_the_end() {
    let expected = one_error(2, "End time", Rule::OutOfOrder);
    assert_eq!(codes(rows("x,2026/04/01,2026/04/01,09:00,09:00,S516")), expected);
    assert_eq!(codes(rows("x,2026/04/02,2026/04/01,09:00,10:00,S516")), expected);
}

#[test]
fn a_row_has_the_cells_of_the_header() {
    assert_eq!(
        codes(rows("x,2026/04/01,2026/04/01,09:00,10:00\nx,2026/04/01,2026/04/01,09:00,10:00,S516,more\n")),
        [(2, "Location".to_owned(), Rule::MissingCell), (3, String::new(), Rule::TooManyCells)]
    );
}

#[test]
fn a_skipped_local_time_is_an_error_and_a_repeated_one_the_earlier() {
    let berlin = |row: &str| parse(format!("{HEADER}\n{row}\n").as_bytes(), Tz::Europe__Berlin);
    assert_eq!(
        codes(berlin("x,2026/03/29,2026/03/29,02:00,02:59,S516")),
        [(2, "Start time".to_owned(), Rule::NonexistentTime), (2, "End time".to_owned(), Rule::NonexistentTime),]
    );
    assert_eq!(
        berlin("x,2026/10/25,2026/10/25,02:30,03:00,S516"),
        Ok(vec![room(2, "S516", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z")])
    );
}

#[test]
fn files_of_spreadsheets_in_japan_are_read() {
    let text = format!("{HEADER}\r\n講習会,2026/4/1,2026-04-01,9:00,10:00:00,講義室−２\r\n,,,,,\r\n");
    let expected = |place: &str| Ok(vec![room(2, place, "2026-04-01T00:00:00Z", "2026-04-01T01:00:00Z")]);
    let utf_16: Vec<u8> =
        format!("\u{feff}{}", text.replace(',', "\t")).encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(parse(&utf_16, Tz::Asia__Tokyo), expected("講義室−２"));
    let (code_page_932, ..) = encoding_rs::SHIFT_JIS.encode(&text);
    assert_eq!(parse(&code_page_932, Tz::Asia__Tokyo), expected("講義室－２"), "the minus sign of that encoding");
    let (euc_jp, ..) = encoding_rs::EUC_JP.encode(&text);
    assert_eq!(codes(parse(&euc_jp, Tz::Asia__Tokyo)), one_error(0, "", Rule::UnknownEncoding));
}

#[test]
fn a_thousand_rows_and_no_more() {
    let row = "x,2026/04/01,2026/04/01,09:00,10:00,S516\n";
    assert_eq!(rows(&row.repeat(MAX_ROWS)).expect("rooms").len(), MAX_ROWS);
    assert_eq!(codes(rows(&row.repeat(MAX_ROWS + 5))), one_error(MAX_ROWS + 2, "", Rule::TooManyRows));
}

proptest! {
    #[test]
    fn any_bytes_give_rows_or_sorted_errors(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        with_header in any::<bool>(),
    ) {
        let mut file = if with_header { format!("{HEADER}\n").into_bytes() } else { Vec::new() };
        file.extend(bytes);
        if let Err(errors) = parse(&file, Tz::Asia__Tokyo) {
            prop_assert!(!errors.is_empty());
            prop_assert!(errors.is_sorted_by_key(|error| error.row));
        }
    }

    #[test]
    fn a_written_file_reads_back(
        periods in prop::collection::vec(("[ -~ぁ-ん]{0,30}[!-~]", 0_i64..40_000_000, 1_i64..10_000), 0..20),
    ) {
        let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        writer.write_record(COLUMNS).expect("in memory");
        let mut expected = Vec::new();
        for (row, (place, start, length)) in (2..).zip(periods) {
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
