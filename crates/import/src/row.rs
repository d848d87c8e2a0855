//! A table of the source, and a row of it. [`columns`](crate::columns) reads the values.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use encoding_rs::WINDOWS_1252;
use mysql::Value;
use uuid::Uuid;

use service_kit::database::types::DbUuid;

/// A table that is read.
#[derive(Debug, Clone, Copy)]
pub struct SourceTable {
    /// Its name.
    pub name: &'static str,
    /// The columns that are read.
    pub columns: &'static [&'static str],
    /// Those of them that only some versions of the source have; NULL elsewhere.
    pub optional: &'static [&'static str],
}

impl SourceTable {
    /// A table with these columns.
    pub const fn new(name: &'static str, columns: &'static [&'static str]) -> Self {
        Self { name, columns, optional: &[] }
    }

    /// The table, of whose columns these may be missing.
    pub const fn with_optional(self, optional: &'static [&'static str]) -> Self {
        Self { optional, ..self }
    }
}

/// Why a row cannot be imported, to be read after "left out: ".
pub type Fault = String;

/// The longest text of a value in a message, in characters.
const LONGEST_SHOWN: usize = 100;

/// One row, with the values as they are.
#[derive(Debug)]
pub struct SourceRow {
    table: SourceTable,
    values: Vec<Value>,
}

impl SourceRow {
    pub(crate) fn new(table: &SourceTable, values: Vec<Value>) -> Self {
        Self { table: *table, values }
    }

    /// The name of the table.
    pub fn table(&self) -> &'static str {
        self.table.name
    }

    /// The row in a message: its id, or the ids of what it links.
    pub fn label(&self) -> String {
        let ids = match self.table.columns {
            ["id", ..] => &["id"],
            columns => columns,
        };
        let ids = ids.iter().filter(|column| column.ends_with("id"));
        ids.map(|column| self.text(column).0).collect::<Vec<_>>().join(" ")
    }

    /// A column as text that can be stored, and whether it is exactly what the source has. NULL is empty; bytes that
    /// are not UTF-8 are read as Windows-1252, which MySQL calls latin1; control characters other than tabs and line
    /// breaks are removed.
    pub fn text(&self, column: &str) -> (String, bool) {
        match self.value(column) {
            Value::NULL => (String::new(), true),
            Value::Bytes(bytes) => {
                let decoded = decode(bytes);
                let is_kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
                let text: String = decoded.chars().filter(is_kept).collect();
                let is_exact = text.as_bytes() == bytes;
                (text, is_exact)
            }
            other => (other.as_sql(true).trim_matches('\'').to_owned(), true),
        }
    }

    /// An id.
    pub fn id(&self, column: &str) -> Result<DbUuid, Fault> {
        let id = self.text(column).0.trim().parse::<Uuid>().ok().filter(|id| !id.is_nil());
        id.map(DbUuid).ok_or_else(|| format!("{column} is no id"))
    }

    /// A whole number, if it is one.
    pub fn number(&self, column: &str) -> Option<i64> {
        match self.value(column) {
            Value::Int(number) => Some(*number),
            Value::UInt(number) => Some(i64::try_from(*number).unwrap_or(i64::MAX)),
            // A column of the type BIT.
            Value::Bytes(bytes) if matches!(bytes[..], [0 | 1]) => bytes.first().map(|bit| i64::from(*bit)),
            Value::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.trim().parse().ok(),
            _ => None,
        }
    }

    /// A local time, without a zone, and whether it is exactly what the source has: a date that does not exist is read
    /// as the nearest. None for NULL, for the zero times of MySQL and Go, and for what is no time.
    pub fn time(&self, column: &str) -> Option<(NaiveDateTime, bool)> {
        match self.value(column) {
            Value::Date(year, ..) if *year <= 1 => None,
            Value::Date(year, month, day, hour, minute, second, micros) => {
                let (first, last) = (u32::from(*month).clamp(1, 12), u32::from(*day).clamp(1, 31));
                let date = (1..=last).rev().find_map(|day| NaiveDate::from_ymd_opt((*year).into(), first, day))?;
                let time = NaiveTime::from_hms_micro_opt((*hour).into(), (*minute).into(), (*second).into(), *micros)?;
                let is_exact = date.format("%m %d").to_string() == format!("{month:02} {day:02}");
                Some((date.and_time(time), is_exact))
            }
            _ => None,
        }
    }

    /// Whether the row is deleted there.
    pub fn is_deleted(&self) -> bool {
        self.time("deleted_at").is_some()
    }

    /// A value in a message.
    pub fn shown(&self, column: &str) -> String {
        let text = match self.value(column) {
            Value::NULL => return "NULL".to_owned(),
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => return other.as_sql(true).trim_matches('\'').to_owned(),
        };
        let shown: String = text.chars().take(LONGEST_SHOWN).collect();
        let more = if shown.len() < text.len() { "…" } else { "" };
        format!("{shown:?}{more}")
    }

    pub(crate) fn value(&self, column: &str) -> &Value {
        let index = self.table.columns.iter().position(|other| *other == column);
        index.and_then(|index| self.values.get(index)).unwrap_or(&Value::NULL)
    }
}

fn decode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.push_str(&WINDOWS_1252.decode_without_bom_handling(chunk.invalid()).0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: SourceTable = SourceTable::new("t", &["a"]);

    fn row(value: Value) -> SourceRow {
        SourceRow::new(&TABLE, vec![value])
    }

    #[test]
    fn values_are_read_as_what_they_stand_for() {
        assert_eq!(row("x".into()).text("a"), ("x".to_owned(), true));
        assert_eq!(row(Value::NULL).text("a"), (String::new(), true));
        assert_eq!(row("a\0b\u{7}\n\tc\u{200b}".into()).text("a"), ("ab\n\tc\u{200b}".to_owned(), false));
        assert_eq!(row(Value::Bytes(b"caf\xe9 \xe6\x97\xa5".to_vec())).text("a"), ("café 日".to_owned(), false));
        assert!(row(" 11111111-1111-1111-1111-11111111111A ".into()).id("a").is_ok());
        assert!(row("".into()).id("a").is_err() && row(Uuid::nil().to_string().into()).id("a").is_err());
        for (value, number) in [
            (1.into(), Some(1)),
            (u64::MAX.into(), Some(i64::MAX)),
            ("7".into(), Some(7)),
            (Value::Bytes(vec![1]), Some(1)),
            (Value::Bytes(vec![0]), Some(0)),
            ("x".into(), None),
            (Value::NULL, None),
        ] {
            assert_eq!(row(value).number("a"), number);
        }
        let at = |year, month, day| {
            row(Value::Date(year, month, day, 18, 0, 0, 7)).time("a").map(|(at, exact)| (at.to_string(), exact))
        };
        assert_eq!(at(2026, 4, 1), Some(("2026-04-01 18:00:00.000007".to_owned(), true)));
        assert_eq!(at(2026, 2, 31), Some(("2026-02-28 18:00:00.000007".to_owned(), false)));
        assert_eq!(at(2026, 0, 0), Some(("2026-01-01 18:00:00.000007".to_owned(), false)));
        assert_eq!((at(0, 0, 0), at(1, 1, 1)), (None, None));
        assert_eq!(row("x".into()).time("a"), None);
    }

    #[test]
    fn a_message_shows_values_on_one_line() {
        assert_eq!(row("a\n\u{1b}[31m".into()).shown("a"), r#""a\n\u{1b}[31m""#);
        assert_eq!(row(Value::NULL).shown("a"), "NULL");
        assert_eq!(row(Value::Date(0, 0, 0, 0, 0, 0, 0)).shown("a"), "0000-00-00");
        assert_eq!(row("x".repeat(101).into()).shown("a"), format!("\"{}\"…", "x".repeat(100)));
    }
}
