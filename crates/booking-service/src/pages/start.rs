//! The page at `/`: what a member has to do with this week.

use chrono::Days;
use maud::{Markup, html};
use service_kit::{
    database::{AnyConnection, PageBounds, types::DbTimestamp},
    error::{Error, Failure},
    http::Reply,
    page::button,
};

use super::{polls, queries, visit::Visit};
use crate::{
    auth::{Caller, SignedIn},
    availability::queries::free_rooms,
    events::{
        queries::{Event, Order, Row, Schedule, load_page},
        selection::{Criterion, Relation, Selection},
    },
    rooms::queries::Selection as Rooms,
    users,
};

/// The most events and free rooms on the page.
const MAX_ROWS: usize = 30;

/// More events than a week usually has.
const MANY_EVENTS: i64 = 300;

/// The page. A caller with a bad credential sees what everybody sees.
pub async fn show(visit: Visit, who: Option<SignedIn>) -> Result<Reply, Failure> {
    let anonymous = for_nobody(&visit);
    let Some(who) = who else { return Ok(anonymous) };
    let page = who.read(move |conn, me| for_member(conn, me, &visit));
    match page.await {
        Err(failure) if failure.0.status() < 500 => Ok(anonymous),
        result => result,
    }
}

fn for_nobody(visit: &Visit) -> Reply {
    let body = html! {
        p { (visit.text("about")) }
        @if let Some(sign_in) = visit.sign_in_address() {
            p { a.button href=(sign_in) { (visit.text("sign-in")) } }
        }
    };
    let name = &visit.state().club_name;
    visit.reply(if name.is_empty() { "booking-service" } else { name }, body)
}

fn for_member(conn: &mut AnyConnection, me: &Caller, visit: &Visit) -> Result<Reply, Error> {
    let user = users::queries::get(conn, me.id)?;
    let today = visit.today();
    let week = visit.midnight(today.checked_add_days(Days::new(7)).unwrap_or(today));
    let by_span = queries::administers_more_than(conn, me.id, MANY_EVENTS)?;
    let relation = Relation::BelongsOrAdmins;
    let selection = Selection::new(Criterion::OfUser { user: me.id, relation, is_active: true, by_span });
    let selection = selection.between((Some(visit.now), Some(week)));
    let events = load_page(conn, &selection, Order::Start, &first(MAX_ROWS))?;
    let ids: Vec<_> = events.iter().map(|event| event.row.id).collect();
    let answers = queries::answers_of(conn, me.id, &ids)?;
    let polls = polls::waiting_for(conn, me.id, visit.now)?;
    let body = html! {
        p.actions {
            a.button href="/events/new" { (visit.text("book-a-room")) }
            a href="/board" { (visit.text("board")) }
        }
        h2 { (visit.text("this-week")) }
        @if events.is_empty() { p { (visit.text("no-events")) } }
        ul.list {
            @for event in &events { (event_with_answer(event, answers.get(&event.row.id).copied(), visit)) }
        }
        @if !polls.is_empty() {
            h2 { (visit.text("polls-waiting")) }
            (polls::rows(&polls, visit))
        }
        h2 { (visit.text("free-today")) }
        (free_today(conn, visit)?)
    };
    let title = visit.format("hello", &[("name", user.display_name.as_str().into())]);
    Ok(visit.reply(&title, body))
}

fn first<P>(rows: usize) -> PageBounds<P> {
    PageBounds { after: None, rows: i64::try_from(rows).unwrap_or(i64::MAX) }
}

fn event_with_answer(event: &Event, answer: Option<Schedule>, visit: &Visit) -> Markup {
    let row = &event.row;
    html! {
        li {
            a href={ "/events/" (row.id) } { b { (row.name) } }
            small { (visit.span(row.starts_at, row.ends_at)) ", " (row.place) }
            (answer_form(row, answer, "/", visit, false))
        }
    }
}

/// The answers to an event as buttons, of which the present one is pressed; or those to it and the later ones of its
/// series.
pub fn answer_form(row: &Row, answer: Option<Schedule>, to: &str, visit: &Visit, of_series: bool) -> Markup {
    let label = visit.text(if of_series { "answer-later" } else { "my-answer" });
    let answers = [(Schedule::Attendance, "attendance"), (Schedule::Pending, "pending"), (Schedule::Absent, "absent")];
    // An invitation is pending until somebody answers it.
    let waits = !of_series && answer == Some(Schedule::Pending) && row.ends_at > visit.now;
    let is_pressed = |schedule| schedule != Schedule::Pending && answer == Some(schedule);
    let is_possible = |schedule| schedule == Schedule::Absent || row.ends_at > visit.now;
    html! {
        div.actions role="group" aria-label=(label) {
            @if waits { span.badge { (visit.text("not-answered-yet")) } }
            @for (schedule, value) in answers.into_iter().filter(|(schedule, _)| is_possible(*schedule)) {
                (button(&format!("/events/{}/answer", row.id), &[("schedule", value), ("to", to), ("series", if of_series { "true" } else { "" })],
                    &visit.text(&format!("answer-{value}")), (!of_series).then_some(is_pressed(schedule))))
            }
        }
    }
}

/// The free times of confirmed rooms in the rest of the day, each with a link to book it.
fn free_today(conn: &mut AnyConnection, visit: &Visit) -> Result<Markup, Error> {
    let today = visit.today();
    let end = visit.midnight(today.succ_opt().unwrap_or(today));
    let selection = Rooms { from: Some(visit.now), to: Some(end), only_verified: true, ..Rooms::default() };
    let mut free = Vec::new();
    for room in free_rooms(conn, &selection, false)? {
        for span in room.free {
            let (start, end) = (DbTimestamp(span.start).max(visit.now), DbTimestamp(span.end).min(end));
            if start < end {
                free.push((start, end, room.place.clone(), room.id));
            }
        }
    }
    free.sort_unstable();
    Ok(html! {
        @if free.is_empty() { p { (visit.text("nothing-free")) } }
        ul.list {
            @for (start, end, place, room) in free.iter().take(MAX_ROWS) {
                li {
                    b { (place) } " " (visit.hours(*start, *end)) " "
                    a href=(super::event_form::address(visit, *start, *end, Some(*room)))
                        aria-label={ (visit.text("book")) " " (place) " " (visit.hours(*start, *end)) } {
                        (visit.text("book"))
                    }
                }
            }
        }
        @if free.len() > MAX_ROWS { p { a href="/board" { (visit.count("and-more", free.len() - MAX_ROWS)) } } }
    })
}
