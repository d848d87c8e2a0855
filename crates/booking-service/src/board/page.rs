//! The board as a page: the timetable, and the same as tables.

use std::collections::BTreeSet;

use actix_web::http::StatusCode;
use chrono::{Days, NaiveDate};
use chrono_tz::Tz;
use common::time::Timestamp;
use maud::{Markup, html};
use service_kit::http::{HtmlPage, Reply};

use super::{
    drawing::{self, Drawing, Positions},
    kiosk,
    queries::{BoardEvent, Content},
    times::Times,
    timetable::Timetable,
    wire::{Board, View},
};

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

/// The page.
pub fn show(board: &Board, content: &Content, show: Show) -> Reply {
    let is_kiosk = show.kiosk.is_some();
    let days = (board.first(), board.days());
    let timetable = Timetable::new(content, days, show.zone, is_kiosk.then_some(kiosk::TEXT_WIDTH));
    let times = Times { zone: show.zone, first: board.first(), is_only_day: board.view == View::Day };
    let drawing = Drawing { board, times, now: show.now, is_kiosk };
    let mut positions = Positions::default();
    let sections = drawing::sections(&timetable, board);
    let (head, body) = if let Some(number) = show.kiosk {
        kiosk::show(&drawing, content, &sections, number, &mut positions)
    } else {
        let body = html! {
            (tools(board, &timetable))
            @if let Some(place) = &board.place { p { "Only " b { (place) } "." } }
            (drawing.left_out(content))
            @for section in &sections { (drawing.section(section, &mut positions)) }
            (drawing::legend())
            h2 #events { "Events" }
            (event_table(content, times))
            h2 { "Free times" }
            (free_table(&timetable, times))
        };
        (html! {}, body)
    };
    let links = if is_kiosk { Vec::new() } else { links(board) };
    let links: Vec<_> = links.iter().map(|(address, text)| (address.as_str(), *text)).collect();
    let style = format!("{STYLE}{positions}");
    HtmlPage { head, style: &style, ..HtmlPage::new(&board.title(), &links, body) }.reply(StatusCode::OK)
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
    let names: BTreeSet<_> = timetable.places.iter().map(|place| place.name).collect();
    html! {
        form.tools action="/board" {
            label { "Day" input type="date" name="day" value=(board.day); }
            label {
                "Place"
                input type="text" name="place" list="places" maxlength="32" size="12"
                    value=(board.place.as_deref().unwrap_or_default());
            }
            datalist #places { @for name in names { option value=(name); } }
            @if board.view == View::Week { input type="hidden" name="view" value="week"; }
            button { "Show" }
        }
    }
}

fn event_table(content: &Content, times: Times) -> Markup {
    let kind = |event: &BoardEvent| match (event.shared, event.owns_room) {
        (false, false) => None,
        (true, false) => Some("shared"),
        (false, true) => Some("place not held"),
        (true, true) => Some("shared, place not held"),
    };
    html! {
        div.table role="region" aria-label="Events" tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Time" } th scope="col" { "Place" } th scope="col" { "Event" }
                        th scope="col" { "Group" }
                    }
                }
                tbody {
                    @for event in &content.events {
                        tr {
                            td { (times.dated(event.span())) }
                            td { (event.place) }
                            th scope="row" {
                                a href=(drawing::event_address(event)) { (event.name) }
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

fn free_table(timetable: &Timetable<'_>, times: Times) -> Markup {
    let rooms = || timetable.places.iter().filter(|place| !place.periods.is_empty());
    html! {
        div.table role="region" aria-label="Free times" tabindex="0" {
            table {
                thead { tr { th scope="col" { "Place" } th scope="col" { "Free" } } }
                tbody {
                    @for place in rooms() {
                        tr {
                            th scope="row" { (place.name) }
                            td {
                                @for (n, free) in place.free.iter().enumerate() {
                                    @if n > 0 { ", " }
                                    (times.dated(free.span))
                                    @if free.only_shared { " (shared events only)" }
                                    @if !free.verified { " (not confirmed)" }
                                }
                                @if place.free.is_empty() { "fully booked" }
                            }
                        }
                    }
                    @if rooms().next().is_none() { tr { td.nothing colspan="2" { "No room." } } }
                }
            }
        }
    }
}
