//! Decodes a file and splits it into the records of RFC 4180. The crate `csv` is not used, because it accepts quotation
//! marks anywhere, and a missing one then hides the rows after it.

use std::{borrow::Cow, str};

use encoding_rs::{Encoding, SHIFT_JIS};

/// The text of a file in UTF-8, UTF-16 with a byte order mark, or code page 932; `None` if it is not certain that it is
/// one of these.
pub fn decode(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling_and_without_replacement(&bytes[length..]);
    }
    if let Ok(text) = str::from_utf8(bytes) {
        return Some(Cow::Borrowed(text));
    }
    let text = SHIFT_JIS.decode_without_bom_handling_and_without_replacement(bytes)?;
    // Text in another encoding often decodes to these.
    let is_odd = |character| matches!(character, '\u{80}' | '\u{e000}'..='\u{f8ff}');
    let is_certain = has_common_character(bytes) && !text.contains(is_odd) || is_half_width_japanese(&text);
    is_certain.then_some(text)
}

/// Whether a text has letters, kana and kanji besides ASCII, among them words in half-width katakana. One such letter
/// alone is more likely a Western one.
fn is_half_width_japanese(text: &str) -> bool {
    let is_half_width = |character: &char| matches!(character, '\u{ff66}'..='\u{ff9f}');
    let mut words = text.split(|character| !is_half_width(&character)).filter(|word| !word.is_empty()).peekable();
    words.peek().is_some()
        && words.all(|word| word.chars().count() > 1)
        && text.chars().all(|character| character.is_ascii() || character.is_alphabetic())
}

/// Whether text of code page 932 has a character whose first byte is below 0xA0, as kana and most kanji have. Bytes above
/// that alone may as well be a Western encoding or EUC-JP.
fn has_common_character(bytes: &[u8]) -> bool {
    let mut bytes = bytes.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            0x81..=0x9f => return true,
            // The first of two bytes.
            0xe0..=0xfc => drop(bytes.next()),
            _ => {}
        }
    }
    false
}

/// One record.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The texts of its cells, without the quotation marks around them.
    pub cells: Vec<String>,
    /// What is wrong with its quotation marks.
    pub fault: Option<&'static str>,
}

/// The records of a text. LF, CR LF and CR end a record.
pub struct Records<'a> {
    rest: &'a str,
    delimiter: char,
}

impl<'a> Records<'a> {
    /// The records of a text with this character between cells.
    pub fn new(text: &'a str, delimiter: char) -> Self {
        Self { rest: text, delimiter }
    }

    /// Reads a cell and what ends it. Returns the cell and whether it is the last of its record.
    fn cell(&mut self, fault: &mut Option<&'static str>) -> (String, bool) {
        let mut cell = String::new();
        let mut is_quoted = false;
        if let Some(mut rest) = self.rest.strip_prefix('"') {
            is_quoted = true;
            loop {
                let Some((text, after)) = rest.split_once('"') else {
                    *fault = Some("a quotation mark is not closed");
                    self.rest = "";
                    return (cell, true);
                };
                cell.push_str(text);
                let Some(after_pair) = after.strip_prefix('"') else {
                    self.rest = after;
                    break;
                };
                cell.push('"');
                rest = after_pair;
            }
        }
        let end = self.rest.find([self.delimiter, '\n', '\r']).unwrap_or(self.rest.len());
        let (text, after) = self.rest.split_at(end);
        if is_quoted && !text.is_empty() {
            *fault =
                Some("there is text after a closing quotation mark; a quotation mark inside a cell is written twice");
        } else if text.contains('"') {
            *fault = Some("there is a quotation mark inside a cell that does not begin with one");
        }
        cell.push_str(text);
        let next_cell = after.strip_prefix(self.delimiter);
        let next_record = || after.strip_prefix("\r\n").or_else(|| after.strip_prefix(['\n', '\r']));
        self.rest = next_cell.or_else(next_record).unwrap_or_default();
        (cell, next_cell.is_none())
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if self.rest.is_empty() {
            return None;
        }
        let mut record = Record::default();
        loop {
            let (cell, is_last) = self.cell(&mut record.fault);
            record.cells.push(cell);
            if is_last {
                return Some(record);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::EUC_JP;
    use proptest::prelude::*;

    use super::*;

    fn cells(text: &str) -> Vec<Vec<String>> {
        let records = Records::new(text, ',').inspect(|record| assert_eq!(record.fault, None, "{text:?}"));
        records.map(|record| record.cells).collect()
    }

    #[test]
    fn records_of_rfc_4180() {
        assert_eq!(cells(""), Vec::<Vec<String>>::new());
        assert_eq!(cells("a,b\r\nc,d"), [["a", "b"], ["c", "d"]]);
        assert_eq!(cells("a,b,\n,\r"), [vec!["a", "b", ""], vec!["", ""]]);
        assert_eq!(cells("\"a,\r\n\"\"b\"\"\",\"\"\n\nc"), [vec!["a,\r\n\"b\"", ""], vec![""], vec!["c"]]);
    }

    #[test]
    fn misplaced_quotation_marks_are_faults_of_their_record() {
        for bad in [
            "a,\"b",
            "a,b\"",
            "a,b\"c,d",
            "a, \"b\"",
            "\"a\"b,c",
            "\"a\" ,b",
            "\"a\"\"",
            "\"",
            "\"\"\"",
            "a,\"b\"\"\"c\"",
        ] {
            let text = format!("x,y\n{bad}");
            let faults: Vec<_> = Records::new(&text, ',').map(|record| record.fault.is_some()).collect();
            assert_eq!(faults, [false, true], "{bad:?}");
        }
        let text = "a\"b\nc,d\n\"e\"f\n";
        let faults: Vec<_> = Records::new(text, ',').map(|record| record.fault.is_some()).collect();
        assert_eq!(faults, [true, false, true]);
    }

    #[test]
    fn encodings() {
        let text = "件名,501室\r\nソ表―ｱ";
        assert_eq!(decode(text.as_bytes()).unwrap(), text);
        assert_eq!(decode(format!("\u{feff}{text}").as_bytes()).unwrap(), text);
        assert_eq!(decode(&SHIFT_JIS.encode(text).0).unwrap(), text);
        for units in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes: Vec<u8> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(units).collect();
            assert_eq!(decode(&bytes).unwrap(), text);
            assert_eq!(decode(&bytes[..bytes.len() - 1]), None, "half a character");
        }
    }

    #[test]
    fn what_is_not_certain_is_not_decoded() {
        let latin: [&[u8]; 5] = [b"Caf\xe9", b"G\xe9n\xe9ral", b"\xdcbung", b"S\xe4le", b"R\xe9sidence"];
        for bytes in latin {
            assert_eq!(decode(bytes), None, "{bytes:?}");
        }
        assert_eq!(decode(b"\xef\xbb\xbf\x8d\x75"), None, "a byte order mark of UTF-8 before another encoding");
        assert_eq!(decode(b"\x83\x65\xf0\x40"), None, "a character for private use");
        for text in ["テスト", "会議室", "講義室−２"] {
            assert_eq!(decode(&EUC_JP.encode(text).0), None, "{text}");
        }
        for text in ["ﾃｽﾄ", "ﾎﾞｰﾄﾞ,501", "A-ｺｰｽ"] {
            assert_eq!(decode(text.as_bytes()).unwrap(), text);
            assert_eq!(decode(&SHIFT_JIS.encode(text).0).unwrap(), text);
        }
        assert_eq!(decode(&SHIFT_JIS.encode("ｱ").0), None, "the same byte is a Western letter");
        assert_eq!(decode(&SHIFT_JIS.encode("ﾃｽﾄ･ﾃｽﾄ").0), None, "a sign is as likely a Western one");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            records in prop::collection::vec(prop::collection::vec("[a\",;\t\r\n あ]{0,6}", 1..5), 1..6),
            delimiter in prop::sample::select(vec![',', ';', '\t']),
        ) {
            let quote = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
            let line = |cells: &Vec<String>| cells.iter().map(quote).collect::<Vec<_>>().join(&delimiter.to_string());
            let text = records.iter().map(line).collect::<Vec<_>>().join("\r\n");
            let read: Vec<_> = Records::new(&text, delimiter).collect();
            prop_assert!(read.iter().all(|record| record.fault.is_none()));
            prop_assert_eq!(read.into_iter().map(|record| record.cells).collect::<Vec<_>>(), records);
        }
    }
}
