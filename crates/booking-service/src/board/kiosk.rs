//! The board on a screen that nobody operates: as many lanes as fit on it, and after some seconds the next ones.

use common::{problem::Problem, time::Timestamp};
use maud::{Markup, html};
use service_kit::page::PageContext;

use super::{
    drawing::{Drawing, Line, Section, legend},
    positions::Positions,
    queries::Content,
    timetable::WIDTH,
};

/// The least width of an event's text.
pub const TEXT_WIDTH: u32 = WIDTH / 8;

/// The most lanes of a screen.
const LANES: usize = 7;

/// Seconds until a screen is loaded again.
const RELOAD: u32 = 60;

/// Seconds until a screen shows the next lanes.
const NEXT: i64 = 20;

/// The style of a refusal, which can be read from afar.
pub const REFUSED_STYLE: &str = "html{font-size:200%}";

/// Which of its pages a screen shows at a time, counted without end.
pub fn number(now: Timestamp) -> usize {
    usize::try_from(now.micros() / (NEXT * 1_000_000)).unwrap_or(0)
}

/// Head and body of a screen.
pub fn show(
    drawing: &Drawing<'_>,
    content: &Content,
    sections: &[Section<'_, '_>],
    number: usize,
    positions: &mut Positions,
) -> (Markup, Markup) {
    let screens: Vec<_> = sections.iter().flat_map(screens).collect();
    let number = number % screens.len().max(1);
    let body = html! {
        div.kiosk {
            (drawing.left_out(content))
            @if let Some(screen) = screens.get(number) { (drawing.section(screen, positions)) }
            footer {
                (legend(drawing.page))
                @if screens.len() > 1 { p { (drawing.page.format("board-screen", &[("n", (number + 1).into()), ("all", screens.len().into())])) } }
            }
        }
    };
    let seconds = if screens.len() > 1 { NEXT } else { RELOAD.into() };
    (refresh(seconds), body)
}

/// The parts of a section that fit on a screen.
fn screens<'t, 'a>(section: &Section<'t, 'a>) -> Vec<Section<'t, 'a>> {
    let mut screens: Vec<Vec<Line<'t, 'a>>> = vec![Vec::new()];
    let mut left = LANES;
    for line in &section.lines {
        // A row of more lanes than a screen has is continued on the next.
        let parts = if line.lanes.is_empty() { vec![line.lanes] } else { line.lanes.chunks(LANES).collect() };
        for lanes in parts {
            let needed = lanes.len().max(1);
            if needed > left {
                screens.push(Vec::new());
                left = LANES;
            }
            left -= needed;
            screens.last_mut().into_iter().for_each(|screen| screen.push(Line { lanes, ..*line }));
        }
    }
    screens.into_iter().map(|lines| Section { date: section.date, lines }).collect()
}

/// The page of a refusal, which contains nothing to copy.
pub fn refused(page: &PageContext, problem: &Problem) -> (String, Markup) {
    if matches!(problem.status(), 401 | 403) {
        let body = html! { p { (page.text("board-disconnected-about")) } };
        return (page.text("board-disconnected"), body);
    }
    (page.text("board-unavailable"), page.explain(problem))
}

/// Loads the page of a refusal again.
pub fn try_again() -> Markup {
    refresh(RELOAD.into())
}

fn refresh(seconds: i64) -> Markup {
    html! { meta http-equiv="refresh" content=(seconds); }
}
