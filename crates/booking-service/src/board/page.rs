//! The board as a page: the timetable, drawn in HTML and SVG, and the same as tables.

use actix_web::http::StatusCode;
use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime};
use chrono_tz::Tz;
use common::time::Timestamp;
use maud::{Markup, html};
use service_kit::http::{HtmlPage, Reply};

use super::{
    queries::{BoardEvent, Content},
    timetable::{Bar, EVENT_HEIGHT, Row, Scale, Stretch, Timetable},
    wire::{Board, View},
};

const STYLE: &str = include_str!("board.css");

/// About how wide the timetable is.
const WIDTH: u32 = 1100;

/// The same on a screen, which enlarges it to its own width.
const KIOSK_WIDTH: u32 = 760;

/// The height of the row of hours.
const HEAD_HEIGHT: u32 = 38;

/// The width that the label of an hour needs.
const HOUR_LABEL_WIDTH: u32 = 34;

/// The width from which a stretch has room for "free 18:00–21:00", and for "free".
const LABEL_WIDTHS: (u32, u32) = (110, 36);

/// How a board is shown.
#[derive(Debug, Clone, Copy)]
pub struct Show {
    /// On a screen that nobody operates: no links, no tables, and the page loads itself again.
    pub is_kiosk: bool,
    /// Whether the front end has a page for each event.
    pub has_event_pages: bool,
    /// The present time.
    pub now: Timestamp,
    /// The zone of the club.
    pub zone: Tz,
}

/// The element that loads a page again after a minute.
pub fn refresh() -> Markup {
    html! { meta http-equiv="refresh" content="60"; }
}

/// The page.
pub fn show(board: &Board, content: &Content, show: Show) -> Reply {
    let timetable = Timetable::new(
        content,
        (board.first(), board.days()),
        show.zone,
        if show.is_kiosk { KIOSK_WIDTH } else { WIDTH },
    );
    let links = if show.is_kiosk { Vec::new() } else { links(board) };
    let links: Vec<_> = links.iter().map(|(address, text)| (address.as_str(), *text)).collect();
    let body = html! {
        div.kiosk[show.is_kiosk] {
            @if !show.is_kiosk { (tools(board, &timetable)) }
            @if let Some(place) = &board.place { p { "Only " b { (place) } "." } }
            @if content.is_cut { p { "There is more than fits here. Choose a day or a place." } }
            (drawing(&timetable, board, show))
            (legend())
            @if !show.is_kiosk {
                h2 #events { "Events" }
                (event_table(content, &timetable.scale, show))
                h2 { "Free times" }
                (free_table(&timetable))
            }
        }
    };
    let head = if show.is_kiosk {
        refresh()
    } else {
        html! {}
    };
    HtmlPage { head, style: STYLE, ..HtmlPage::new(&board.title(), &links, body) }.reply(StatusCode::OK)
}

fn links(board: &Board) -> Vec<(String, &'static str)> {
    let address = |day: Option<NaiveDate>, view| day.map(|day| Board::address(day, view, board.place.as_deref()));
    let (days, other) = match board.view {
        View::Day => (Days::new(1), (View::Week, "Week")),
        View::Week => (Days::new(7), (View::Day, "Day")),
    };
    let links = [
        (address(board.day.checked_sub_days(days), board.view), "← Previous"),
        (address(Some(board.today), board.view), "Today"),
        (address(board.day.checked_add_days(days), board.view), "Next →"),
        (address(Some(board.day), other.0), other.1),
        (board.place.as_ref().map(|_| Board::address(board.day, board.view, None)), "All places"),
        (Some("#events".to_owned()), "As a table"),
        (Some("/".to_owned()), "Start"),
    ];
    links.into_iter().filter_map(|(address, text)| Some((address?, text))).collect()
}

/// Goes to a day, a place, or both.
fn tools(board: &Board, timetable: &Timetable<'_>) -> Markup {
    html! {
        form.tools action="/board" {
            label { "Day" input type="date" name="day" value=(board.day); }
            label {
                "Place"
                input type="text" name="place" list="places" maxlength="32" size="12"
                    value=(board.place.as_deref().unwrap_or_default());
            }
            datalist #places { @for row in timetable.rows.iter().take(100) { option value=(row.place); } }
            @if board.view == View::Week { input type="hidden" name="view" value="week"; }
            button { "Show" }
        }
    }
}

fn drawing(timetable: &Timetable<'_>, board: &Board, show: Show) -> Markup {
    let scale = &timetable.scale;
    let now = scale.position(show.now);
    html! {
        (patterns(scale))
        div.timetable role="region" aria-label="Timetable" tabindex=[(!show.is_kiosk).then_some("0")] {
            div.row.head {
                div.label {}
                (head(scale, now))
            }
            @for row in &timetable.rows {
                div.row {
                    div.label {
                        @if show.is_kiosk { (row.place) } @else {
                            a href=(Board::address(board.day, View::Week, Some(row.place))) { (row.place) }
                        }
                    }
                    (drawn_row(row, scale, now, show))
                }
            }
            @if timetable.rows.is_empty() { p.faint { "No room and no event." } }
        }
    }
}

/// What the rows are filled with.
fn patterns(scale: &Scale) -> Markup {
    let (day, hour) = (scale.day_width(), scale.hour_width);
    let stripes = |id: &str, kind: &str, dots: Markup| {
        html! {
            pattern id=(id) width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                rect class=(format!("{kind}-back")) width="8" height="8" {}
                line class=(format!("{kind}-line")) x1="1" y1="0" x2="1" y2="8" {}
                (dots)
            }
        }
    };
    html! {
        svg width="0" height="0" aria-hidden="true" {
            defs {
                pattern #hours width=(day) height="8" patternUnits="userSpaceOnUse" {
                    @for n in 1..scale.hours.1 - scale.hours.0 {
                        @if scale.days == 1 || (scale.hours.0 + n).is_multiple_of(6) {
                            line.line x1=(n * hour) y1="0" x2=(n * hour) y2="8" {}
                        }
                    }
                    line.strong x1="0" y1="0" x2="0" y2="8" {}
                }
                (stripes("shared", "shared", html! {}))
                pattern #instant width="7" height="7" patternUnits="userSpaceOnUse" {
                    rect.instant-back width="7" height="7" {}
                    circle.instant-dot cx="3" cy="3" r="1.3" {}
                }
                (stripes("both", "instant", html! { circle.instant-dot cx="5" cy="4" r="1.3" {} }))
            }
        }
    }
}

fn svg(scale: &Scale, height: u32, label: &str, content: &Markup) -> Markup {
    let width = scale.width();
    html! {
        svg width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="group" aria-label=(label) {
            (content)
        }
    }
}

fn head(scale: &Scale, now: Option<u32>) -> Markup {
    let step = if scale.days == 1 { 1 } else { 6 };
    let fits = |hour| (scale.hours.1 - hour) * scale.hour_width >= HOUR_LABEL_WIDTH;
    let content = html! {
        @for (n, date) in (0..).zip(scale.dates()) {
            @let left = n * scale.day_width();
            @if scale.days > 1 {
                text.day x=(left + 4) y="14" { (date.format("%a %-d %b")) }
            }
            @for hour in (scale.hours.0..scale.hours.1).filter(|hour| hour.is_multiple_of(step) && fits(*hour)) {
                text.hour x=(left + (hour - scale.hours.0) * scale.hour_width + 3) y="32" { (hour) ":00" }
            }
        }
        @if let Some(x) = now { line.now x1=(x) y1="0" x2=(x) y2=(HEAD_HEIGHT) {} }
    };
    svg(scale, HEAD_HEIGHT, "Hours", &content)
}

fn drawn_row(row: &Row<'_>, scale: &Scale, now: Option<u32>, show: Show) -> Markup {
    let height = row.height();
    let block = |class: &str, stretch: &Stretch, (x, width): (u32, u32)| {
        let class = if stretch.verified { class.to_owned() } else { format!("{class} unverified") };
        html! { rect class=(class) x=(x) y="1" width=(width) height=(height - 2) {} }
    };
    let content = html! {
        rect fill="url(#hours)" width=(scale.width()) height=(height) {}
        @for period in &row.room_periods { @for piece in &period.pieces { (block("held", period, *piece)) } }
        @for free in &row.free {
            @for piece in &free.pieces {
                (block("free", free, *piece))
                @if piece.1 >= LABEL_WIDTHS.1 {
                    text.free-text x=(piece.0 + 6) y="23" {
                        "free"
                        @if piece.1 >= LABEL_WIDTHS.0 { " " (times(free.span.start, free.span.end, scale)) }
                    }
                }
            }
        }
        @for bar in &row.bars { @for piece in &bar.pieces { (event(bar, *piece, scale, show)) } }
        @if let Some(x) = now { line.now x1=(x) y1="0" x2=(x) y2=(height) {} }
    };
    svg(scale, height, row.place, &content)
}

/// An event, as a link to its row of the table.
fn event(bar: &Bar<'_>, (x, width): (u32, u32), scale: &Scale, show: Show) -> Markup {
    let BoardEvent { id, name, group, .. } = bar.event;
    let kind = classes(bar.event);
    let label = format!("{name}, {group}, {}", event_times(bar.event, scale));
    // What does not fit is cut off by the inner drawing.
    let bar_svg = html! {
        svg x=(x) y=(bar.level * EVENT_HEIGHT + 2) width=(width) height=(EVENT_HEIGHT - 4) {
            title { (label) }
            rect class=(format!("bar{kind}")) x="1" y="1" width=(width.saturating_sub(2).max(1))
                height=(EVENT_HEIGHT - 6) rx="4" {}
            text class=(format!("on-bar{kind}")) x="6" y="15" { (name) }
            text class=(format!("on-bar small{kind}")) x="6" y="28" { (group) }
        }
    };
    if show.is_kiosk {
        bar_svg
    } else {
        html! { a href={ "#e-" (id) } aria-label=(label) { (bar_svg) } }
    }
}

fn classes(event: &BoardEvent) -> &'static str {
    match (event.shared, event.owns_room) {
        (false, false) => "",
        (true, false) => " shared",
        (false, true) => " instant",
        (true, true) => " shared instant",
    }
}

fn legend() -> Markup {
    let kinds = [
        ("free", "free"),
        ("bar", "event"),
        ("bar shared", "shared: others may use the room too"),
        ("bar instant", "at a place that is not held"),
        ("held", "held by the club"),
        ("held unverified", "not confirmed"),
    ];
    html! {
        ul.legend {
            @for (class, text) in kinds {
                li {
                    svg width="30" height="18" aria-hidden="true" {
                        rect class=(class) x="1" y="1" width="28" height="16" rx="3" {}
                    }
                    (text)
                }
            }
            li { svg width="4" height="18" aria-hidden="true" { line.now x1="2" y1="0" x2="2" y2="18" {} } "now" }
        }
    }
}

fn event_table(content: &Content, scale: &Scale, show: Show) -> Markup {
    let kind = |event: &BoardEvent| match (event.shared, event.owns_room) {
        (false, false) => None,
        (true, false) => Some("shared"),
        (false, true) => Some("place not held"),
        (true, true) => Some("shared, place not held"),
    };
    html! {
        div.table {
            table {
                thead {
                    tr {
                        th scope="col" { "Time" } th scope="col" { "Place" } th scope="col" { "Event" }
                        th scope="col" { "Group" }
                    }
                }
                tbody {
                    @for event in &content.events {
                        tr id={ "e-" (event.id) } {
                            td { (event_times(event, scale)) }
                            td { (event.place) }
                            th scope="row" {
                                @if show.has_event_pages { a href={ "/events/" (event.id) } { (event.name) } }
                                @else { (event.name) }
                                @if let Some(kind) = kind(event) { " " small { (kind) } }
                            }
                            td { (event.group) }
                        }
                    }
                    @if content.events.is_empty() { tr { td.nothing colspan="4" { "No event." } } }
                }
            }
        }
    }
}

fn free_table(timetable: &Timetable<'_>) -> Markup {
    let scale = &timetable.scale;
    html! {
        div.table {
            table {
                thead { tr { th scope="col" { "Place" } th scope="col" { "Free" } } }
                tbody {
                    @for row in timetable.rows.iter().filter(|row| !row.room_periods.is_empty()) {
                        tr {
                            th scope="row" { (row.place) }
                            td {
                                @for (n, free) in row.free.iter().enumerate() {
                                    @if n > 0 { ", " }
                                    (with_day(scale.local(free.span.start), scale))
                                    (times(free.span.start, free.span.end, scale))
                                    @if !free.verified { " (not confirmed)" }
                                }
                                @if row.free.is_empty() { "never" }
                            }
                        }
                    }
                    @if timetable.rows.iter().all(|row| row.room_periods.is_empty()) {
                        tr { td.nothing colspan="2" { "No room." } }
                    }
                }
            }
        }
    }
}

fn event_times(event: &BoardEvent, scale: &Scale) -> String {
    let (start, end) = (*event.starts_at, *event.ends_at);
    format!("{}{}", with_day(scale.local(start), scale), times(start, end, scale))
}

/// The day of a time, unless it is the only day of the board.
fn with_day(at: NaiveDateTime, scale: &Scale) -> String {
    let is_only_day = scale.days == 1 && at.date() == scale.first;
    if is_only_day { String::new() } else { at.format("%a %-d %b, ").to_string() }
}

/// Local start and end of a span, with the date of an end that is on a later day.
fn times(start: Timestamp, end: Timestamp, scale: &Scale) -> String {
    let (start, end) = (scale.local(start), scale.local(end));
    let midnight = start.date().succ_opt().map(|next| next.and_time(NaiveTime::MIN));
    let end = match (start.date() == end.date(), Some(end) == midnight) {
        (true, _) => end.format("%-H:%M").to_string(),
        (false, true) => "24:00".to_owned(),
        (false, false) => end.format("%-d %b %-H:%M").to_string(),
    };
    format!("{}–{end}", start.format("%-H:%M"))
}
