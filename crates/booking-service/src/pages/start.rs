//! The page at `/`: what a member has to do with this week.

use chrono::Days;
use maud::{Markup, html};
use service_kit::{
    database::{AnyConnection, PageBounds, types::DbTimestamp},
    error::{Error, Failure},
    http::Reply,
    page::{Icon, button, icon},
};

use super::{
    events::{answer_badge, by_day, what},
    polls, queries,
    visit::Visit,
};
use crate::{
    auth::{Caller, SignedIn},
    availability::queries::free_rooms,
    events::{
        queries::{Order, Row, Schedule, load_page},
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
        p.lead { (visit.text("about")) }
        @if let Some(sign_in) = visit.sign_in_address() {
            p { a.button.primary href=(sign_in) { (visit.text("sign-in")) } }
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
    let rows: Vec<_> = events.iter().map(|event| &event.row).collect();
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    let answers = queries::answers_of(conn, me.id, &ids)?;
    let answer_to = |row: &Row| answers.get(&row.id).copied();
    // An invitation is pending until somebody answers it.
    let (waiting, others): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| answer_to(row) == Some(Schedule::Pending) && row.ends_at > visit.now);
    let others = others.into_iter().map(|row| (row, answer_badge(answer_to(row), visit))).collect::<Vec<_>>();
    let polls = polls::waiting_for(conn, me.id, visit.now)?;
    let body = html! {
        @if !waiting.is_empty() {
            section.card.todo {
                h2 { (visit.text("my-answer")) " " span.badge.accent { (visit.count("to-answer", waiting.len())) } }
                ul.rows { @for row in &waiting {
                    li {
                        (when(row, visit))
                        (what(row))
                        (answer_form(row, answer_to(row), "/", visit, false))
                    }
                } }
            }
        }
        h2 { (visit.text("free-today")) }
        (free_today(conn, visit)?)
        div.split {
            section {
                h2 { (visit.text("this-week")) }
                @if others.is_empty() { p.empty { (visit.text("no-events")) } }
                @else { (by_day(&others, visit)) }
            }
            aside {
                @if !polls.is_empty() {
                    h2 { (visit.text("polls-waiting")) }
                    (polls::rows(&polls, visit))
                }
                h2 { (visit.text("calendar-feed")) }
                p.mute { (visit.text("calendar-about")) " " a href="/me#calendar" { (visit.text("subscribe")) } }
            }
        }
    };
    let actions = html! {
        a.button.primary href="/events/new" { (icon(Icon::Plus)) (visit.text("book-a-room")) }
    };
    let title = visit.format("hello", &[("name", user.display_name.as_str().into())]);
    Ok(visit.reply_with_actions(&title, actions, body))
}

fn first<P>(rows: usize) -> PageBounds<P> {
    PageBounds { after: None, rows: i64::try_from(rows).unwrap_or(i64::MAX) }
}

/// The day and the time of an event in a row.
fn when(row: &Row, visit: &Visit) -> Markup {
    html! {
        div { b.nowrap { (visit.time(visit.local(row.starts_at).date())) } br; time { (visit.hours(row.starts_at, row.ends_at)) } }
    }
}

/// The answers to an event as buttons, of which the present one is pressed; or those to it and the later ones of its
/// series.
pub fn answer_form(row: &Row, answer: Option<Schedule>, to: &str, visit: &Visit, of_series: bool) -> Markup {
    let answers = [(Schedule::Attendance, "attendance"), (Schedule::Pending, "pending"), (Schedule::Absent, "absent")];
    let is_pressed = |schedule| schedule != Schedule::Pending && answer == Some(schedule);
    let is_possible = |schedule| schedule == Schedule::Absent || row.ends_at > visit.now;
    let answers = answers.into_iter().filter(|(schedule, _)| is_possible(*schedule));
    let series = if of_series { "true" } else { "" };
    let action = format!("/events/{}/answer", row.id);
    html! {
        div.seg role="group" aria-label=(visit.text(if of_series { "answer-later" } else { "my-answer" })) {
            @for (schedule, value) in answers {
                (button(&action, &[("schedule", value), ("to", to), ("series", series)],
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
        @if free.is_empty() { p.mute { (visit.text("nothing-free")) } } @else {
            ul.chips {
                @for (start, end, place, room) in free.iter().take(MAX_ROWS) {
                    li {
                        a.button.small href=(super::event_form::address(visit, *start, *end, Some(*room)))
                            aria-label={ (visit.text("book")) " " (place) " " (visit.hours(*start, *end)) } {
                            (place) " " small { (visit.hours(*start, *end)) }
                        }
                    }
                }
            }
        }
        p { a href="/board" {
            @if free.len() > MAX_ROWS { (visit.count("and-more", free.len() - MAX_ROWS)) } @else { (visit.text("whole-board")) }
        } }
    })
}
