//! The periods of a day.

use std::{fmt, str::FromStr};

use chrono::NaiveTime;

use crate::wall_clock::ClockTime;

/// The periods of a day, one after another, such as `1-2 08:50,noon 12:25,18:55`: the name and the start of each, then
/// the end of the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Periods {
    /// Their names and starts, one at least.
    pub periods: Vec<(String, NaiveTime)>,
    /// The end of the last.
    pub end: NaiveTime,
}

impl FromStr for Periods {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time =
            |text: &str| text.parse::<ClockTime>().map(|time| time.0).map_err(|message| format!("{text:?} {message}"));
        let parts: Vec<_> = text.split(',').map(str::trim).collect();
        let (end, parts) = parts.split_last().ok_or("it is empty")?;
        let mut periods = Vec::new();
        for part in parts {
            let (name, start) = part.rsplit_once(' ').ok_or_else(|| format!("{part:?} has no name and start"))?;
            periods.push((name.trim().to_owned(), time(start)?));
        }
        let end = time(end)?;
        let starts: Vec<_> = periods.iter().map(|(_, start)| *start).chain([end]).collect();
        if periods.is_empty() || !starts.is_sorted_by(|a, b| a < b) {
            return Err("it needs one period at least, each later than the one before, and an end".to_owned());
        }
        Ok(Self { periods, end })
    }
}

impl fmt::Display for Periods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, start) in &self.periods {
            write!(f, "{name} {},", start.format("%H:%M"))?;
        }
        write!(f, "{}", self.end.format("%H:%M"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_read_and_written() {
        let text = "1-2 08:50,after lunch 12:25,18:55";
        assert_eq!(text.parse::<Periods>().unwrap().to_string(), text);
        for bad in ["", "18:55", "1-2 08:50", "1-2,18:55", "a 10:00,b 09:00,18:55", "a 10:00,10:00", "a 25:00,26:00"] {
            assert!(bad.parse::<Periods>().is_err(), "{bad}");
        }
    }
}
