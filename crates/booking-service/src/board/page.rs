//! The board as a page: the timetable; of a day, the same as tables.

use std::collections::BTreeSet;

use actix_web::http::{StatusCode, header};
use chrono::NaiveDate;
use chrono_tz::Tz;
use common::time::Timestamp;
use maud::{Markup, html};
use service_kit::{
    http::{HtmlPage, Reply},
    page::PageContext,
};

use super::{
    drawing::{self, Drawing},
    kiosk,
    positions::Positions,
    queries::{BoardEvent, Content},
    times::Times,
    timetable::{Days, Timetable},
    wire::{Board, View},
};

/// The most places that the field of the place suggests.
const MAX_NAMES: usize = 50;

const STYLE: &str = include_str!("board.css");

/// How a board is shown.
#[derive(Debug, Clone, Copy)]
pub struct Show {
    /// On a screen that nobody operates, which of its pages: no links, no tables, and it loads itself again.
    pub kiosk: Option<usize>,
    /// Where the line at the present time is.
    pub now: Timestamp,
    /// The zone of the club.
    pub zone: Tz,
}

pub fn show(page: &PageContext, board: &Board, content: &Content, show: Show) -> Reply {
    let is_kiosk = show.kiosk.is_some();
    let days = Days {
        first: board.first(),
        number: board.days(),
        is_one_table: board.is_one_table(),
        zone: show.zone,
        now: show.now,
    };
    let timetable = Timetable::new(content, days, is_kiosk.then_some(kiosk::TEXT_WIDTH));
    let times =
        Times { zone: show.zone, language: page.language, first: board.first(), is_only_day: board.view == View::Day };
    let drawing = Drawing { page, board, times, now: show.now, is_kiosk };
    let mut positions = Positions::default();
    let sections = drawing::sections(&timetable, board);
    let (head, body) = if let Some(number) = show.kiosk {
        kiosk::show(&drawing, content, &sections, number, &mut positions)
    } else {
        let body = html! {
            (tools(page, board, &timetable))
            @if let Some(place) = &board.place {
                p { (page.format("board-only", &[("place", place.as_str().into())])) }
            }
            (drawing.left_out(content))
            @for section in &sections { (drawing.section(section, &mut positions)) }
            (drawing::legend(page))
            @if board.view == View::Day {
                h2 #events { (page.text("events")) }
                (event_table(page, content, times))
                h2 { (page.text("board-free-times")) }
                (free_table(page, &timetable, times))
            }
        };
        (html! {}, body)
    };
    let (style, title) = (format!("{STYLE}{positions}"), board.title(page));
    let html = if is_kiosk {
        HtmlPage { language: page.language, ..HtmlPage::new(&title, body) }
    } else {
        HtmlPage { actions: links(page, board), ..page.page(&title, body) }
    };
    HtmlPage { head, style: &style, ..html }.reply(StatusCode::OK).with(header::VARY, "Accept-Language")
}

/// Other days, and the other view.
fn links(page: &PageContext, board: &Board) -> Markup {
    let address = |day: Option<NaiveDate>, view| day.map(|day| Board::address(day, view, board.place.as_deref()));
    let days = chrono::Days::new(if board.view == View::Day { 1 } else { 7 });
    let others = [
        (address(board.day.checked_sub_days(days), board.view), "board-previous"),
        (address(Some(board.today), board.view), "today"),
        (address(board.day.checked_add_days(days), board.view), "board-next"),
    ];
    let views = [(View::Day, "board-day"), (View::Week, "board-week")];
    html! {
        nav.seg.small aria-label=(page.text("board")) {
            @for (view, key) in views {
                a href=[address(Some(board.day), view)] aria-current=[(view == board.view).then_some("page")] { (page.text(key)) }
            }
        }
        nav.seg.small aria-label=(page.text("board-other-days")) {
            @for (address, key) in others { @if let Some(address) = address { a href=(address) { (page.text(key)) } } }
        }
    }
}

/// Goes to a day, a place, or both.
fn tools(page: &PageContext, board: &Board, timetable: &Timetable<'_>) -> Markup {
    let names: BTreeSet<_> = timetable.places.iter().map(|place| place.name).collect();
    html! {
        form.actions.tools action="/board" {
            label { (page.text("board-day")) input type="date" name="day" value=(board.day); }
            label {
                (page.text("board-place"))
                input type="text" name="place" list="places" maxlength="32" size="12"
                    value=(board.place.as_deref().unwrap_or_default());
            }
            datalist #places { @for name in names.iter().take(MAX_NAMES) { option value=(name); } }
            @if board.view == View::Week { input type="hidden" name="view" value="week"; }
            button { (page.text("board-show")) }
            @if board.place.is_some() { a href=(Board::address(board.day, board.view, None)) { (page.text("board-all-places")) } }
            @if board.view == View::Day { a href="#events" { (page.text("board-as-table")) } }
        }
    }
}

fn event_table(page: &PageContext, content: &Content, times: Times) -> Markup {
    let kind = |event: &BoardEvent| match (event.shared, event.owns_room) {
        (false, false) => None,
        (true, false) => Some("board-shared"),
        (false, true) => Some("board-place-not-held"),
        (true, true) => Some("board-shared-not-held"),
    };
    html! {
        div.table role="region" aria-label=(page.text("events")) tabindex="0" {
            table {
                thead {
                    tr {
                        @for key in ["time", "board-place", "board-event-column", "group"] { th scope="col" { (page.text(key)) } }
                    }
                }
                tbody {
                    @for event in &content.events {
                        tr {
                            td { (times.dated(event.span())) }
                            td { (event.place) }
                            th scope="row" {
                                a href=(drawing::event_address(event)) { (event.name) }
                                @if let Some(kind) = kind(event) { " " small { (page.text(kind)) } }
                            }
                            td { (event.group) }
                        }
                    }
                    @if content.events.is_empty() { tr { td.nothing colspan="4" { (page.text("no-events")) } } }
                }
            }
        }
    }
}

fn free_table(page: &PageContext, timetable: &Timetable<'_>, times: Times) -> Markup {
    let rooms = || timetable.places.iter().filter(|place| !place.periods.is_empty());
    html! {
        div.table role="region" aria-label=(page.text("board-free-times")) tabindex="0" {
            table {
                thead { tr { th scope="col" { (page.text("board-place")) } th scope="col" { (page.text("free-times")) } } }
                tbody {
                    @for place in rooms() {
                        tr {
                            th scope="row" { (place.name) }
                            td {
                                @for (n, free) in place.free.iter().enumerate() {
                                    @if n > 0 { (page.language.separator()) }
                                    (times.dated(free.span))
                                    @if free.only_shared { " " (page.text("board-only-shared")) }
                                    @if !free.verified { " " (page.text("not-confirmed")) }
                                }
                                @if place.free.is_empty() { (page.text("board-full")) }
                            }
                        }
                    }
                    @if rooms().next().is_none() { tr { td.nothing colspan="2" { (page.text("no-rooms")) } } }
                }
            }
        }
    }
}
