//! The rows of a timetable in HTML. The positions of what they contain are classes, because the policy of the page
//! allows no style outside its style sheet.

use chrono::NaiveDate;
use common::time::Timestamp;
use maud::{Markup, html};
use service_kit::page::PageContext;
use url::form_urlencoded;

use super::{
    positions::Positions,
    queries::{BoardEvent, Content},
    times::Times,
    timetable::{Day, Free, Item, Piece, Row, Scale, Thing, Timetable, local},
    wire::{Board, View},
};
use crate::rooms::overlap::Span;

/// The most bytes of the lines of a week, so that its page stays within 60 kB.
const WEEK_BYTES: usize = 32_000;

/// The lines of a board that stand below one heading.
pub struct Section<'t, 'a> {
    /// The day, if the board has several.
    pub date: Option<NaiveDate>,
    /// The lines.
    pub lines: Vec<Line<'t, 'a>>,
}

/// A row, or some of its lanes.
#[derive(Clone, Copy)]
pub struct Line<'t, 'a> {
    /// The day.
    pub scale: &'t Scale,
    /// The row. A week of one place has days without one.
    pub row: Option<&'t Row<'a>>,
    /// Its lanes.
    pub lanes: &'t [Vec<Item<'a>>],
}

/// One section for each day, or a single one for the days of one place.
pub fn sections<'t, 'a>(timetable: &'t Timetable<'a>, board: &Board) -> Vec<Section<'t, 'a>> {
    let line = |day: &'t Day<'a>, row: &'t Row<'a>| Line { scale: &day.scale, row: Some(row), lanes: &row.lanes };
    let rows = |day: &'t Day<'a>| day.rows.iter().map(move |row| line(day, row));
    if board.is_one_table() {
        let row = |day: &'t Day<'a>| rows(day).next().unwrap_or(Line { scale: &day.scale, row: None, lanes: &[] });
        return vec![Section { date: None, lines: timetable.days.iter().map(row).collect() }];
    }
    let date = |day: &Day<'_>| (board.view == View::Week).then_some(day.scale.date);
    timetable.days.iter().map(|day| Section { date: date(day), lines: rows(day).collect() }).collect()
}

/// How the rows are drawn.
#[derive(Clone, Copy)]
pub struct Drawing<'b> {
    /// The language of its texts.
    pub page: &'b PageContext,
    /// The board.
    pub board: &'b Board,
    /// How it writes times.
    pub times: Times,
    /// Where the line at the present time is.
    pub now: Timestamp,
    /// Whether it is on a screen that nobody operates.
    pub is_kiosk: bool,
}

impl Drawing<'_> {
    /// How much a board leaves out, and how to see it.
    pub fn left_out(&self, content: &Content) -> Markup {
        let (board, page) = (self.board, self.page);
        let parts = [
            ("board-some-rooms", content.rooms.len(), content.all_rooms),
            ("board-some-events", content.events.len(), content.all_events),
        ];
        let parts = parts.into_iter().filter(|(_, shown, all)| shown < all);
        let parts: Vec<_> =
            parts.map(|(key, shown, all)| page.format(key, &[("n", shown.into()), ("all", all.into())])).collect();
        html! {
            @if !parts.is_empty() {
                p.left-out {
                    (page.format("board-left-out", &[("what", parts.join(&page.text("board-and")).into())]))
                    @if board.view == View::Week {
                        " " a href=(Board::address(board.day, View::Day, board.place.as_deref())) { (page.text("board-one-day")) }
                    }
                }
            }
        }
    }

    /// A section with its heading. The lines of a week that do not fit are left out.
    pub fn section(&self, section: &Section<'_, '_>, positions: &mut Positions) -> Markup {
        let day = section.date.map(|date| self.page.language.day(date));
        let label = day.as_ref().map_or_else(
            || self.page.text("board-timetable"),
            |day| self.page.format("board-timetable-of", &[("day", day.as_str().into())]),
        );
        let (lines, left_out) = self.lines(section, positions);
        html! {
            @if let Some(day) = day { h2.day { (day) } }
            @if section.lines.is_empty() { p.mute { (self.page.text("board-nothing")) } } @else {
                div.timetable role="region" aria-label=(label) tabindex=[(!self.is_kiosk).then_some("0")] {
                    @for line in &lines { (line) }
                }
            }
            @if let Some(line) = left_out.first() {
                p {
                    a href=(Board::address(line.scale.date, View::Day, self.board.place.as_deref())) {
                        (self.page.count("and-more", left_out.len()))
                    }
                }
            }
        }
    }

    /// The lines of a section that fit, with the hours above them, and those that do not.
    fn lines<'s, 't, 'a>(
        &self,
        section: &'s Section<'t, 'a>,
        positions: &mut Positions,
    ) -> (Vec<Markup>, &'s [Line<'t, 'a>]) {
        let sections = if section.date.is_some() { 7 } else { 1 };
        let is_bounded = self.board.view == View::Week && !self.is_kiosk;
        let mut bytes_left = if is_bounded { WEEK_BYTES / sections } else { usize::MAX };
        let mut above: Option<(NaiveDate, Vec<(u32, String)>)> = None;
        let mut lines = Vec::new();
        for line in &section.lines {
            let mut of_line = Positions::default();
            let shown = html! {
                @if above.as_ref().is_none_or(|(date, _)| *date != line.scale.date) {
                    @let hours = self.hours(line.scale);
                    // Again where the clocks change.
                    @if above.as_ref().is_none_or(|(_, above)| *above != hours) {
                        (self.head(line.scale, &hours, &mut of_line))
                    }
                    @let _ = above.insert((line.scale.date, hours));
                }
                (self.line(line, &mut of_line))
            };
            match bytes_left.checked_sub(shown.0.len()) {
                Some(left) => bytes_left = left,
                None => break,
            }
            positions.append(of_line);
            lines.push(shown);
        }
        let shown = lines.len();
        (lines, section.lines.get(shown..).unwrap_or_default())
    }

    fn hours(&self, scale: &Scale) -> Vec<(u32, String)> {
        scale.hours().into_iter().map(|(x, at)| (x, self.times.clock(at))).collect()
    }

    fn head(&self, scale: &Scale, hours: &[(u32, String)], positions: &mut Positions) -> Markup {
        html! {
            div.row.hours.(positions.minutes(scale)) {
                div.label {}
                div.track {
                    @for (x, hour) in hours { span.hour.(positions.x(*x)) { (hour) } }
                    (self.now_line(scale, positions))
                }
            }
        }
    }

    fn now_line(&self, scale: &Scale, positions: &mut Positions) -> Markup {
        html! { @if let Some(x) = scale.position(self.now) { i.now.(positions.x(x)) {} } }
    }

    fn line(&self, line: &Line<'_, '_>, positions: &mut Positions) -> Markup {
        let lanes = line.lanes.len().max(1);
        let background = |class: &str, piece: &Piece, verified: bool, positions: &mut Positions| {
            html! { i class={ (class) (unverified(verified)) " " (positions.at(piece.x, piece.width)) } {} }
        };
        html! {
            div.row.(positions.minutes(line.scale)).{ "lanes-" (lanes) } {
                div.label { (self.label(line)) }
                div.track {
                    @if let Some(row) = line.row {
                        @for (piece, verified) in &row.periods { (background("held", piece, *verified, positions)) }
                        @if self.is_kiosk {
                            @for (piece, free) in &row.free { (background(free_class(free), piece, free.verified, positions)) }
                        }
                    }
                    @for lane in line.lanes {
                        div.lane { @for item in lane { (self.item(item, line, positions)) } }
                    }
                    @if line.lanes.is_empty() { div.lane {} }
                    (self.now_line(line.scale, positions))
                }
            }
        }
    }

    fn label(&self, line: &Line<'_, '_>) -> Markup {
        let place = line.row.map(|row| row.place);
        let (address, text) = if self.board.is_one_table() {
            let date = line.scale.date;
            (Board::address(date, View::Day, self.board.place.as_deref()), self.page.language.short_day(date))
        } else {
            (Board::address(self.board.day, View::Week, place), place.unwrap_or_default().to_owned())
        };
        html! {
            @if self.is_kiosk {
                (text)
                @if let Some(next) = line.row.and_then(|row| self.next_free(row, line.scale)) { small { (next) } }
            } @else {
                a href=(address) { (text) }
            }
        }
    }

    /// When a room is free next on a day, in words; `None` for a place without one.
    fn next_free(&self, row: &Row<'_>, scale: &Scale) -> Option<String> {
        let last = row.periods.iter().map(|(piece, _)| piece.part.end).max()?;
        let next = |only_shared| {
            let free = row.free.iter().filter(|(_, free)| free.only_shared == only_shared);
            free.filter_map(|(_, free)| free.span.intersection(&scale.day)).find(|part| part.end > self.now)
        };
        let words = |kind: &str, part: Span| {
            let (key, at) = if part.start > self.now {
                ("from", self.times.clock(part.start))
            } else if part.end == scale.day.end {
                ("until", "24:00".to_owned())
            } else {
                ("until", self.times.clock(part.end))
            };
            self.page.format(&format!("board-{kind}-{key}"), &[("at", at.into())])
        };
        Some(match (next(false), next(true)) {
            (Some(part), _) => words("free", part),
            (None, Some(part)) => words("shared", part),
            (None, None) if last <= self.now => self.page.text("board-over"),
            (None, None) => self.page.text("board-full"),
        })
    }

    fn item(&self, item: &Item<'_>, line: &Line<'_, '_>, positions: &mut Positions) -> Markup {
        match item.thing {
            Thing::Event(event) => self.event(event, item, line, positions),
            Thing::Free(free) => self.free(&free, &item.piece, line, positions),
        }
    }

    /// An event. On a kiosk, the text of a bar that is too narrow stands beside it.
    fn event(&self, event: &BoardEvent, item: &Item<'_>, line: &Line<'_, '_>, positions: &mut Positions) -> Markup {
        let Item { piece, space: (x, width), .. } = *item;
        let BoardEvent { name, group, place, .. } = event;
        let times = self.times_on(line.scale).dated(event.span());
        let text = html! { b { (name) } " " small { (times) " · " (group) } };
        let class = format!("bar{}{} {}", kind(event), edges(&piece), positions.at(piece.x, piece.width));
        html! {
            @if !self.is_kiosk {
                a href=(event_address(event)) class=(class) title={ (name) ", " (times) ", " (place) ", " (group) } { (text) }
            } @else if piece.width == width {
                div class=(class) { (text) }
            } @else {
                div class=(class) {}
                @let (side, x) = if x < piece.x { ("left ", x) } else { ("", piece.x + piece.width) };
                div class={ "beside " (side) (positions.at(x, width - piece.width)) } { (text) }
            }
        }
    }

    /// How times are written below the heading of a day.
    fn times_on(&self, scale: &Scale) -> Times {
        Times { first: scale.date, is_only_day: true, ..self.times }
    }

    /// A free time, as a link to its booking unless it is over.
    fn free(&self, free: &Free, piece: &Piece, line: &Line<'_, '_>, positions: &mut Positions) -> Markup {
        let class = format!(
            "bar {}{}{} {}",
            free_class(free),
            unverified(free.verified),
            edges(piece),
            positions.at(piece.x, piece.width)
        );
        let place = line.row.map_or("", |row| row.place);
        let what = self.page.text(if free.only_shared { "board-free-for-shared" } else { "board-free" });
        let times = self.times_on(line.scale).dated(free.span);
        let text = html! { b { (what) } " " small { (times) } };
        html! {
            @if let Some(part) = self.bookable(free, line.scale) {
                a href=(self.booking_address(part, free, line.scale)) class=(class)
                    title={
                        (self.page.text("book")) " " (place) ", " (what) " " (self.times.dated(free.span))
                        @if !free.verified { " " (self.page.text("not-confirmed")) }
                    } { (text) }
            } @else {
                div class=(class) { (text) }
            }
        }
    }

    /// What is left of a free time on a day.
    fn bookable(&self, free: &Free, scale: &Scale) -> Option<Span> {
        let part = free.span.intersection(&scale.day)?;
        Span::new(part.start.max(self.now), part.end)
    }

    /// The form of a new event at this time in a room.
    fn booking_address(&self, part: Span, free: &Free, scale: &Scale) -> String {
        let clock = |at| local(at, self.times.zone).format("%H:%M").to_string();
        let (date, room) = (scale.date.to_string(), free.room.to_string());
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("date", &date).append_pair("from", &clock(part.start)).append_pair("until", &clock(part.end));
        query.append_pair("room", &room);
        if free.only_shared {
            query.append_pair("sharedRoom", "true");
        }
        format!("/events/new?{}", query.finish())
    }
}

/// What the colours mean.
pub fn legend(page: &PageContext) -> Markup {
    let kinds = [
        ("bar free", "board-free"),
        ("bar free shared-only", "board-free-for-shared"),
        ("bar", "board-event"),
        ("bar shared", "board-is-shared"),
        ("bar instant", "board-not-held"),
        ("held", "board-held"),
        ("held unverified", "board-not-confirmed"),
        ("now", "board-now"),
    ];
    html! {
        ul.legend { @for (class, key) in kinds { li { span.swatch { i class=(class) {} } (page.text(key)) } } }
    }
}

/// The page of an event.
pub fn event_address(event: &BoardEvent) -> String {
    format!("/events/{}", event.id)
}

fn kind(event: &BoardEvent) -> &'static str {
    match (event.shared, event.owns_room) {
        (false, false) => "",
        (true, false) => " shared",
        (false, true) => " instant",
        (true, true) => " shared instant",
    }
}

fn free_class(free: &Free) -> &'static str {
    if free.only_shared { "free shared-only" } else { "free" }
}

fn unverified(verified: bool) -> &'static str {
    if verified { "" } else { " unverified" }
}

/// The classes of a part whose whole reaches over the edges of the day.
fn edges(piece: &Piece) -> &'static str {
    match (piece.is_begun, piece.goes_on) {
        (false, false) => "",
        (true, false) => " is-begun",
        (false, true) => " goes-on",
        (true, true) => " is-begun goes-on",
    }
}
