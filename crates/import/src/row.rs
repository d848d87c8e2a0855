//! A table of the source, and a row of it, column by column.

use chrono::{NaiveDate, NaiveDateTime};
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
}

/// What is wrong with a row, to be read after "left out: ".
pub type Fault = String;

/// One row.
#[derive(Debug)]
pub struct SourceRow {
    columns: &'static [&'static str],
    values: Vec<Value>,
}

impl SourceRow {
    pub(crate) fn new(table: &SourceTable, values: Vec<Value>) -> Self {
        Self { columns: table.columns, values }
    }

    /// A column as text; empty for NULL.
    pub fn text(&self, column: &str) -> Result<String, Fault> {
        match self.value(column) {
            Value::NULL => Ok(String::new()),
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if text.contains('\0') => Err(format!("{column} has U+0000")),
                Ok(text) => Ok(text.to_owned()),
                Err(_) => Err(format!("{column} is not UTF-8")),
            },
            other => Ok(other.as_sql(true).trim_matches('\'').to_owned()),
        }
    }

    /// An id.
    pub fn id(&self, column: &str) -> Result<DbUuid, Fault> {
        let id = self.text(column)?.parse::<Uuid>().ok().filter(|id| !id.is_nil());
        id.map(DbUuid).ok_or_else(|| format!("{column} is no id"))
    }

    /// A number.
    pub fn number(&self, column: &str) -> Result<i64, Fault> {
        let number = match self.value(column) {
            Value::Int(number) => Some(*number),
            Value::UInt(number) => i64::try_from(*number).ok(),
            _ => None,
        };
        number.ok_or_else(|| format!("{column} is no whole number"))
    }

    /// A number that stands for yes or no; NULL is no.
    pub fn flag(&self, column: &str) -> Result<bool, Fault> {
        if *self.value(column) == Value::NULL { Ok(false) } else { Ok(self.number(column)? != 0) }
    }

    /// A local time, without a zone. None for NULL and for the zero times of MySQL and Go.
    pub fn time(&self, column: &str) -> Result<Option<NaiveDateTime>, Fault> {
        match *self.value(column) {
            Value::NULL => Ok(None),
            Value::Date(year, ..) if year <= 1 => Ok(None),
            Value::Date(year, month, day, hour, minute, second, micros) => {
                let date = NaiveDate::from_ymd_opt(year.into(), month.into(), day.into());
                let at =
                    date.and_then(|date| date.and_hms_micro_opt(hour.into(), minute.into(), second.into(), micros));
                at.map(Some).ok_or_else(|| format!("{column} is no time"))
            }
            _ => Err(format!("{column} is no time")),
        }
    }

    fn value(&self, column: &str) -> &Value {
        let index = self.columns.iter().position(|other| *other == column);
        index.and_then(|index| self.values.get(index)).unwrap_or(&Value::NULL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: SourceTable = SourceTable { name: "t", columns: &["a"] };

    fn row(value: Value) -> SourceRow {
        SourceRow::new(&TABLE, vec![value])
    }

    #[test]
    fn values_are_read_as_what_they_stand_for() {
        assert_eq!(row("x".into()).text("a").unwrap(), "x");
        assert_eq!(row(Value::NULL).text("a").unwrap(), "");
        assert!(row("x\0".into()).text("a").is_err() && row(Value::Bytes(vec![255])).text("a").is_err());
        assert!(row("11111111-1111-1111-1111-111111111111".into()).id("a").is_ok());
        assert!(row("".into()).id("a").is_err() && row(Uuid::nil().to_string().into()).id("a").is_err());
        assert!(row(1.into()).flag("a").unwrap() && !row(Value::NULL).flag("a").unwrap());
        assert!(row("x".into()).number("a").is_err());
        let at = |year| row(Value::Date(year, 4, 1, 18, 0, 0, 7)).time("a").unwrap();
        assert_eq!(at(2026).unwrap().to_string(), "2026-04-01 18:00:00.000007");
        assert_eq!((at(0), at(1)), (None, None));
        assert!(row("x".into()).time("a").is_err());
    }
}
