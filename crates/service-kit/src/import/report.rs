//! What an import did, table by table, and every row that a person should know of.

use std::ops::RangeInclusive;

use crate::database::types::DbUuid;

/// Notes below one heading that are printed; of others there is only the number.
const MOST_NOTES: usize = 10_000;

/// Heading of the rows that cannot be here.
const LEFT_OUT: &str = "left out";

/// Heading of the rows that pass a limit of ours.
const OVER_LIMIT: &str = "imported although they pass a limit";

/// What became of the rows of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows of the source.
    pub read: u64,
    /// New here.
    pub added: u64,
    /// Changed there since an earlier import, and brought over.
    pub updated: u64,
    /// As they are there.
    pub same: u64,
    /// Left as they are here, although they are otherwise there.
    pub kept: u64,
    /// Cannot be here.
    pub left_out: u64,
    /// Imported as they are, although they pass a limit.
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
    pub(super) fn new(head: Vec<String>) -> Self {
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

    /// A row that cannot be here, and why.
    pub fn left_out(&mut self, table: &'static str, row: &str, why: &str) {
        self.count(table).left_out += 1;
        self.note(LEFT_OUT, || format!("{table} {row}: {why}"));
    }

    /// The report as lines: the counts as columns between tabs, then the notes below their headings.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.head.clone();
        lines.push("table\tread\tadded\tupdated\tsame\tkept\tleft out\tover a limit".to_owned());
        for (table, it) in &self.counts {
            let Counts { read, added, updated, same, kept, left_out, over_limit } = it;
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

    /// Notes the limits that a row passes: texts with the number of characters that each may have. They are imported as
    /// they are.
    pub fn check_limits(&mut self, table: &'static str, id: DbUuid, texts: &[(&str, &str, RangeInclusive<usize>)]) {
        let is_over = |(_, text, limit): &&(&str, &str, RangeInclusive<usize>)| !limit.contains(&text.chars().count());
        let over: Vec<_> = texts.iter().filter(is_over).collect();
        if over.is_empty() {
            return;
        }
        self.count(table).over_limit += 1;
        for (column, text, limit) in over {
            let length = text.chars().count();
            let (least, most) = (limit.start(), limit.end());
            self.note(OVER_LIMIT, || format!("{table} {id}: {column} has {length} characters, not {least} to {most}"));
        }
    }
}
