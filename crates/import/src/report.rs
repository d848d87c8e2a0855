//! The report of an import: counts by table, and the rows that need attention.

use std::{fmt::Display, ops::RangeInclusive};

use crate::row::SourceRow;
use serde_json::json;
use service_kit::{database::types::DbUuid, history::Changes};

/// The most notes that are printed below a heading. The rest is counted.
const MOST_NOTES: usize = 10_000;

/// The heading of rows that cannot be imported.
const LEFT_OUT: &str = "left out";

/// The heading of values that cannot be kept.
const CHANGED: &str = "values that were changed";

/// The heading of rows that exceed a limit of this service.
const OVER_LIMIT: &str = "imported although they exceed a limit";

/// The counts of a table's rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows read from the source.
    pub read: u64,
    /// Rows added.
    pub added: u64,
    /// Rows updated, because the source changed since an earlier import.
    pub updated: u64,
    /// Rows that are equal already.
    pub same: u64,
    /// Rows that differ from the source and were not changed.
    pub kept: u64,
    /// Rows that cannot be imported.
    pub left_out: u64,
    /// Rows imported although they exceed a limit.
    pub over_limit: u64,
}

/// The report of an import.
#[derive(Debug, Default)]
pub struct Report {
    head: Vec<String>,
    counts: Vec<(&'static str, Counts)>,
    notes: Vec<(&'static str, Vec<String>, usize)>,
}

impl Report {
    pub(crate) fn new(head: Vec<String>) -> Self {
        Self { head, ..Self::default() }
    }

    /// The counts of a table. Tables are printed in the order of their first use.
    pub fn count(&mut self, table: &'static str) -> &mut Counts {
        let index = self.counts.iter().position(|(name, _)| *name == table).unwrap_or_else(|| {
            self.counts.push((table, Counts::default()));
            self.counts.len() - 1
        });
        &mut self.counts[index].1
    }

    /// The numbers of rows that were added and changed in each table, for the history.
    pub fn changes(&self) -> Changes {
        let changed = self.counts.iter().filter(|(_, counts)| counts.added + counts.updated > 0);
        let change = |(table, counts): &(&str, Counts)| {
            ((*table).to_owned(), json!({"added": counts.added, "changed": counts.updated}))
        };
        changed.map(change).collect()
    }

    /// Adds a line below a heading.
    pub fn note(&mut self, heading: &'static str, line: impl FnOnce() -> String) {
        let index = self.notes.iter().position(|(other, ..)| *other == heading).unwrap_or_else(|| {
            self.notes.push((heading, Vec::new(), 0));
            self.notes.len() - 1
        });
        let (_, lines, more) = &mut self.notes[index];
        if lines.len() < MOST_NOTES {
            lines.push(line());
        } else {
            *more += 1;
        }
    }

    /// Reports a row that cannot be imported, with the reason.
    pub fn left_out(&mut self, table: &'static str, row: &str, why: &str) {
        self.count(table).left_out += 1;
        self.note(LEFT_OUT, || format!("{table} {row}: {why}"));
    }

    /// Reports a value that cannot be kept, and the one that is imported instead.
    pub fn changed(&mut self, row: &SourceRow, column: &str, new: impl Display) {
        self.note(CHANGED, || format!("{} {}: {column} {} → {new}", row.table(), row.label(), row.shown(column)));
    }

    /// The report as lines: the counts as columns between tabs, then the notes below their headings.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.head.clone();
        lines.push("table\tread\tadded\tupdated\tsame\tkept\tleft out\tover a limit".to_owned());
        for (table, counts) in &self.counts {
            let Counts { read, added, updated, same, kept, left_out, over_limit } = counts;
            lines.push(format!("{table}\t{read}\t{added}\t{updated}\t{same}\t{kept}\t{left_out}\t{over_limit}"));
        }
        for (heading, notes, more) in &self.notes {
            lines.push(format!("{heading}: {}", notes.len() + more));
            lines.extend(notes.iter().map(|note| format!("  {}", note.replace(['\n', '\r'], " "))));
            if *more > 0 {
                lines.push(format!("  and {more} more"));
            }
        }
        lines
    }

    /// Reports the texts of a row that are longer than their limits, in characters. They are imported unchanged.
    pub fn check_limits(&mut self, table: &'static str, id: DbUuid, texts: &[(&str, &str, RangeInclusive<usize>)]) {
        let is_over = |(_, text, limit): &&(&str, &str, RangeInclusive<usize>)| {
            !limit.contains(&text.chars().count()) || (*limit.start() > 0 && text.trim().is_empty())
        };
        let over: Vec<_> = texts.iter().filter(is_over).collect();
        if over.is_empty() {
            return;
        }
        self.count(table).over_limit += 1;
        for (column, text, limit) in over {
            let length = text.chars().count();
            let (least, most) = (limit.start(), limit.end());
            self.note(OVER_LIMIT, || match text.trim() {
                "" => format!("{table} {id}: {column} is empty"),
                _ => format!("{table} {id}: {column} has {length} characters, not {least} to {most}"),
            });
        }
    }
}
