//! Time lines of semesters: one SVG for the axis, and one for each row of bars. All widths are percentages, so that a
//! page has no text that shrinks with its width.

use common::semester::{YearWithSemester, YearWithSemesterDuration};
use maud::{Markup, html};

/// The style of a time line, with the colours of every page.
pub const STYLE: &str = include_str!("timeline.css");

/// The most years that the axis names, so that their names fit on a telephone.
const MAX_LABELS: i32 = 8;

/// The semesters of a time line: whole academic years, from 1 April to 31 March.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeline {
    first_year: i32,
    /// At least 1.
    years: i32,
    /// The present semester, in which spans without an end are cut off.
    present: YearWithSemester,
}

impl Timeline {
    /// From the first semester of the spans to the last one, at least to the present one.
    pub fn new(spans: impl Iterator<Item = YearWithSemesterDuration>, present: YearWithSemester) -> Self {
        let (first, last) = spans.fold((present, present), |(first, last), span| {
            (first.min(span.since()), last.max(span.until().unwrap_or(span.since())))
        });
        Self { first_year: first.year(), years: last.year() - first.year() + 1, present }
    }

    /// The names of the years and the lines between them, which every row repeats.
    pub fn axis(self) -> Markup {
        let step = (self.years + MAX_LABELS - 1) / MAX_LABELS;
        let starts = || (0..self.years).step_by(usize::try_from(step).unwrap_or(1));
        html! {
            li {
                i {}
                svg.axis aria-hidden="true" {
                    g #years { @for year in starts() { (line(&self.percent(2 * year))) } }
                    @for year in starts() {
                        text x=(self.percent(2 * year)) dx="4" y="14" { (self.first_year + year) }
                    }
                }
            }
        }
    }

    /// A row: the enclosing span as a frame, if it is another one, and the span itself as a filled bar.
    pub fn row(self, span: YearWithSemesterDuration, enclosing: YearWithSemesterDuration) -> Markup {
        html! {
            svg aria-hidden="true" {
                use href="#years" {}
                @if enclosing != span { (self.bar("frame", enclosing)) }
                (self.bar("fill", span))
            }
        }
    }

    fn bar(self, class: &str, span: YearWithSemesterDuration) -> Markup {
        let since = self.index(span.since());
        let until = self.index(span.until().unwrap_or(self.present)).max(since);
        html! {
            rect class=(class) x=(self.percent(since)) width=(self.percent(until + 1 - since))
                y="4" height="12" rx="3" {}
        }
    }

    /// The number of semesters before this one on the time line.
    fn index(self, semester: YearWithSemester) -> i32 {
        2 * (semester.year() - self.first_year) + i32::from(semester.semester().number())
    }

    /// The width of this many semesters.
    fn percent(self, semesters: i32) -> String {
        format!("{:.2}%", f64::from(semesters) * 50.0 / f64::from(self.years))
    }
}

fn line(x: &str) -> Markup {
    html! { line x1=(x) x2=(x) y1="0" y2="100%" {} }
}

#[cfg(test)]
mod tests {
    use common::semester::Semester;

    use super::*;

    fn semester(year: i32, half: i64) -> YearWithSemester {
        YearWithSemester::new(year, Semester::from_number(half).unwrap()).unwrap()
    }

    fn span(since: (i32, i64), until: Option<(i32, i64)>) -> YearWithSemesterDuration {
        let until = until.map(|(year, half)| semester(year, half));
        YearWithSemesterDuration::new(semester(since.0, since.1), until).unwrap()
    }

    #[test]
    fn bars_begin_and_end_with_their_semesters() {
        let (over, open) = (span((2024, 1), Some((2025, 0))), span((2025, 1), None));
        let timeline = Timeline::new([over, open].into_iter(), semester(2027, 0));
        assert_eq!((timeline.first_year, timeline.years), (2024, 4));
        let bar = |span| timeline.bar("fill", span).into_string();
        assert!(bar(over).contains(r#"x="12.50%" width="25.00%""#), "{}", bar(over));
        assert!(bar(open).contains(r#"x="37.50%" width="50.00%""#), "{}", bar(open));
        // What begins later than now and has no end is one semester long.
        let later = span((2027, 1), None);
        assert!(bar(later).contains(r#"x="87.50%" width="12.50%""#), "{}", bar(later));
    }

    #[test]
    fn a_long_time_line_names_few_years() {
        for (until, least) in [(1970, 1), (1977, 8), (1978, 5), (9998, 8)] {
            let all = span((1970, 0), Some((until, 1)));
            let axis = Timeline::new([all].into_iter(), semester(1970, 0)).axis().into_string();
            let labels = axis.matches("<text").count();
            assert!((least..=8).contains(&labels), "{until}: {labels}");
        }
        let nothing = Timeline::new([].into_iter(), semester(2026, 1));
        assert_eq!((nothing.first_year, nothing.years), (2026, 1));
    }
}
