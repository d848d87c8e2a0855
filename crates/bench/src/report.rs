//! The results as Markdown tables and as JSON, and whether they keep their bounds.

use std::{fmt::Write, fs, path::Path};

use serde::Serialize;

use crate::{
    Cli, Result,
    database::option_value,
    results::{BuildOrStart, Contended, MAX_BOOKING_TIME, Memory, SceneResult, SeedTime},
    scenes::Bound,
};

/// All results of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    command: String,
    size: String,
    grown: String,
    is_quick: bool,
    scenes: Vec<Row>,
    #[serde(rename = "seeded")]
    pub seeds: Vec<SeedTime>,
    pub contended: Vec<Contended>,
    pub memory: Vec<Memory>,
    #[serde(rename = "took")]
    pub times: Vec<BuildOrStart>,
}

#[derive(Debug, Serialize)]
struct Row {
    measured: SceneResult,
    verdicts: Vec<Verdict>,
}

/// Whether a bound holds.
#[derive(Debug, Serialize)]
struct Verdict {
    text: String,
    holds: bool,
}

fn verdict(text: String, holds: bool) -> Verdict {
    Verdict { text, holds }
}

fn mark(holds: bool) -> &'static str {
    if holds { "yes" } else { "**no**" }
}

/// How many times the processor time a request may take with more data.
const GROWTH: f64 = 1.1;

/// The statements that a week view may take, `BEGIN` and `COMMIT` included.
const WEEK_STATEMENTS: f64 = 5.0;

/// The most bytes of a page for people.
const PAGE_BYTES: usize = 60_000;

/// The most milliseconds of processor time that a page may take.
const PAGE_MS: f64 = 50.0;

impl SceneResult {
    /// Whether the result keeps the bounds of `docs/performance.md`, in its order.
    fn verdicts(&self, bound: Bound) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let Some(load) = self.comparable_load() else { return verdicts };
        if bound == Bound::Spread {
            let spread = load.p99_ms / load.p50_ms;
            verdicts.push(verdict(format!("p99 {spread:.1} × p50, at most 5"), spread <= 5.0));
        }
        if bound == Bound::Page {
            let (length, processor_ms) = (self.length, load.processor_ms);
            verdicts.push(verdict(format!("{length} bytes, at most {PAGE_BYTES}"), length <= PAGE_BYTES));
            let text = format!("{processor_ms:.1} ms of processor time, at most {PAGE_MS}");
            verdicts.push(verdict(text, processor_ms <= PAGE_MS));
        }
        if let Some(grown) = self.grown {
            let factor = grown.processor_ms / load.processor_ms;
            let difference = grown.length.abs_diff(self.length);
            // Only answers of about the same size are comparable.
            if difference * 10 <= self.length {
                let text = format!("{factor:.2} × the processor time with more data, at most {GROWTH}");
                verdicts.push(verdict(text, factor <= GROWTH));
            }
        }
        if self.scene == "week" {
            let holds = self.statements <= WEEK_STATEMENTS + 0.5;
            verdicts.push(verdict(format!("{:.1} statements, at most {WEEK_STATEMENTS}", self.statements), holds));
        }
        verdicts
    }
}

impl Report {
    pub fn new(cli: &Cli) -> Self {
        let arguments: Vec<_> = std::env::args().skip(1).collect();
        Self {
            command: format!("scripts/bench {}", arguments.join(" ")),
            size: option_value(cli.size),
            grown: option_value(cli.grown),
            is_quick: cli.quick,
            scenes: Vec::new(),
            seeds: Vec::new(),
            contended: Vec::new(),
            memory: Vec::new(),
            times: Vec::new(),
        }
    }

    pub fn add(&mut self, bound: Bound, measured: SceneResult) {
        self.scenes.push(Row { verdicts: measured.verdicts(bound), measured });
    }

    pub fn write(&self, file: &Path) -> Result<()> {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(fs::write(file, serde_json::to_vec_pretty(self)?)?)
    }

    /// The tables.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.tables(&mut text);
        text
    }

    fn tables(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "Created by `{}` with data of the size `{}`, and `{}` for the growth.",
            self.command.trim(),
            self.size,
            self.grown
        )?;
        if self.is_quick {
            writeln!(out, "\n**`--quick`: these numbers only show that everything runs.**")?;
        }
        if !self.scenes.is_empty() {
            self.scenes(out)?;
            self.bounds(out)?;
        }
        if !self.contended.is_empty() {
            self.contended(out)?;
        }
        if !self.memory.is_empty() {
            writeln!(out, "\n| peak of memory | database | MB | at most | holds |\n|---|---|---:|---:|---|")?;
        }
        for Memory { what, database, peak, bound } in &self.memory {
            let holds = mark(peak <= bound);
            writeln!(out, "| {what} | {database} | {} | {} | {holds} |", peak >> 20, bound >> 20)?;
        }
        if !self.times.is_empty() {
            writeln!(out, "\n| time | s | at most | holds |\n|---|---:|---:|---|")?;
        }
        for BuildOrStart { what, seconds, bound } in &self.times {
            writeln!(out, "| {what} | {seconds:.3} | {bound} | {} |", mark(seconds <= bound))?;
        }
        writeln!(out, "\n| seed | database | size | s |\n|---|---|---|---:|")?;
        for SeedTime { service, database, size, seconds } in &self.seeds {
            writeln!(out, "| {service} | {database} | {size} | {seconds:.1} |")?;
        }
        Ok(())
    }

    fn scenes(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "\n| scene | database | connections | requests/s | p50 ms | p99 ms | processor ms | other build | \
             peak MB | statements | rows |"
        )?;
        writeln!(out, "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")?;
        for SceneResult { scene, database, loads, statements, rows, .. } in self.scenes.iter().map(|row| &row.measured)
        {
            for load in loads {
                let rows = rows.map_or_else(|| "–".to_owned(), |rows| format!("{rows:.0}"));
                let other = load
                    .other_processor_ms
                    .map_or_else(|| "–".to_owned(), |other| format!("{other:.3} ({:.2} ×)", load.processor_ms / other));
                writeln!(
                    out,
                    "| {scene} | {database} | {} | {:.0} | {:.2} | {:.2} | {:.3} | {other} | {} | {statements:.1} | \
                     {rows} |",
                    load.connections,
                    load.per_second,
                    load.p50_ms,
                    load.p99_ms,
                    load.processor_ms,
                    load.peak >> 20
                )?;
            }
        }
        Ok(())
    }

    fn bounds(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "\n| scene | database | bytes | processor time grown | bounds | hold |")?;
        writeln!(out, "|---|---|---:|---:|---|---|")?;
        for Row { measured, verdicts } in &self.scenes {
            let Some(load) = measured.comparable_load() else { continue };
            let grown = measured.grown.map_or_else(
                || "–".to_owned(),
                |grown| format!("{:.2} × ({} bytes)", grown.processor_ms / load.processor_ms, grown.length),
            );
            let bounds: Vec<_> = verdicts.iter().map(|verdict| verdict.text.as_str()).collect();
            let hold = if verdicts.is_empty() { "–" } else { mark(verdicts.iter().all(|verdict| verdict.holds)) };
            writeln!(
                out,
                "| {} | {} | {} | {grown} | {} | {hold} |",
                measured.scene,
                measured.database,
                measured.length,
                bounds.join("; ")
            )?;
        }
        Ok(())
    }

    fn contended(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "\n| contended place | booked | refused | a second | slowest ms | fewest to a client | most | elsewhere \
             p50 alone ms | meanwhile | holds |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---|"
        )?;
        for row in &self.contended {
            let is_in_time = row.slowest_ms <= MAX_BOOKING_TIME.as_secs_f64() * 1000.0;
            let is_unaffected = row.elsewhere_meanwhile_ms <= row.elsewhere_alone_ms * 1.5;
            let holds = row.per_second >= 200.0 && is_in_time && row.fewest * 4 >= row.most && is_unaffected;
            writeln!(
                out,
                "| {} | {} | {} | {:.0} | {:.0} | {} | {} | {:.2} | {:.2} | {} |",
                row.database,
                row.booked,
                row.refused,
                row.per_second,
                row.slowest_ms,
                row.fewest,
                row.most,
                row.elsewhere_alone_ms,
                row.elsewhere_meanwhile_ms,
                mark(holds)
            )?;
        }
        Ok(())
    }
}
