//! The page of an event, and the answers to it.

use actix_web::{
    http::{StatusCode, header},
    web::Path,
};
use common::input::Id;
use maud::{Markup, html};
use serde_json::json;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::{Error, Failure},
    history::Action,
    http::{Form, Reply, form::request},
    page::{FormPage, Icon, Input, address, is_local, labelled_icon, see_deleted_from_part, see_other},
};

use super::{
    history::{self, Subject},
    people::People,
    queries, repetition,
    start::answer_form,
    visit::{Visit, or_form_again},
};
use crate::{
    auth::{Caller, SignedIn},
    club::Club,
    events::{
        self, RequestEventTag, RequestSchedule, attendance, changes,
        queries::{EventDetail, Row, Schedule, check_admin_or_privileged, find, get},
    },
    groups::EVERYONE,
    ical,
};

pub async fn show(visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| {
        let shown = page(conn, me, &visit, id, &Form::default(), None);
        history::or_deleted(shown, conn, me, &visit, (Subject::Event, id))
    })
    .await
}

fn page(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    id: DbUuid,
    typed: &Form,
    problem: Option<&common::problem::Problem>,
) -> Result<Reply, Error> {
    let event = get(conn, id)?;
    let may_change = check_admin_or_privileged(conn, id, me).is_ok();
    let people = event.answers.iter().map(|(user, _)| *user).chain(event.admins.iter().copied());
    let people = People::load(conn, people.chain(event.row.created_by))?;
    let mine = event.answers.iter().find(|(user, _)| *user == me.id).map(|(_, schedule)| *schedule);
    let row = &event.row;
    let may_answer = attendance::check_may_answer(conn, row, me, Schedule::Absent, visit.now).is_ok();
    let dates = queries::dates_of_series(conn, row)?;
    let here = format!("/events/{id}");
    let tag_form = FormPage { page: visit.page(), values: typed, problem, aliases: &[] };
    let body = html! {
        div.split {
            div {
                section.card {
                    dl.facts {
                        dt { (labelled_icon(Icon::Clock, &visit.text("when"))) }
                        dd { b { (visit.span(row.starts_at, row.ends_at)) } }
                        dt { (labelled_icon(Icon::Pin, &visit.text("where"))) }
                        dd {
                            (row.place)
                            @if !event.room.row.verified { " " span.badge.warn { (visit.text("not-confirmed")) } }
                            @if row.shared { " " span.badge title=(visit.text("shared-hint")) { (visit.text("shared")) } }
                        }
                        dt { (labelled_icon(Icon::People, &visit.text("group"))) }
                        dd {
                            a href={ "/groups/" (row.group_id) } { (event.group.row.name) }
                            @if row.open { " " span.badge title=(visit.text("open-hint")) { (visit.text("open")) } }
                        }
                        @if !dates.is_empty() {
                            dt { (labelled_icon(Icon::Repeat, &visit.text("series"))) }
                            dd { (repetition::dates(&dates, row, visit)) }
                        }
                    }
                }
                @if may_answer { (own_answer(row, mine, &here, visit)) }
                @if !row.description.is_empty() {
                    h2 { (visit.text("about-event")) }
                    p.text { (row.description) }
                }
                h2 { (visit.text("who-comes")) }
                (answers(&event, &people, visit))
                (history::section(conn, me, visit, Subject::Event, id)?)
            }
            aside {
                section.card {
                    h2 { (visit.text("calendar")) }
                    p { a href=(google_calendar(&event)) rel="noreferrer" { (visit.text("google-calendar")) } }
                    p { a href={ (here) "/calendar.ics" } download { (visit.text("calendar-file")) } }
                }
                section.card {
                    h2 { (visit.text("admins")) }
                    p { (people.list(&event.admins, visit)) }
                    @if let Some(creator) = row.created_by.filter(|creator| !event.admins.contains(creator)) {
                        p.mute { (visit.text("created-by")) ": " (people.display_name(creator)) }
                    }
                }
                section.card {
                    h2 { (visit.text("tags")) }
                    p { @for tag in &event.tags { a.badge href=(address("/events", &[("tag", &tag.name)])) { "#" (tag.name) } " " } }
                    (tag_form.refusal())
                    (tag_form.form(&format!("{here}/tags"), None, &html! {
                        (tag_form.input(Input { name: "name", label: &visit.text("new-tag"), max_length: Some(16), ..Input::default() }))
                        button.small { (visit.text("add")) }
                    }))
                }
            }
        }
    };
    let actions = html! {
        @if may_change { a.button href={ (here) "/edit" } { (visit.text("edit")) } }
        a.button href=(address("/events/new", &[("copy", &id.to_string())])) { (visit.text("duplicate")) }
        @if may_change { a.button.danger href={ (here) "/delete" } { (visit.text("delete")) } }
    };
    Ok(visit.reply_with_actions(&row.name, actions, body))
}

fn own_answer(row: &Row, mine: Option<Schedule>, here: &str, visit: &Visit) -> Markup {
    let waits = mine == Some(Schedule::Pending) && row.ends_at > visit.now;
    html! {
        section.card.todo[waits] {
            h2 {
                (visit.text("my-answer"))
                @if waits { " " span.badge { (visit.text("not-answered-yet")) } }
            }
            (answer_form(row, mine, here, visit, false))
            @if row.series_id.is_some() {
                p.mute { (visit.text("answer-later")) }
                (answer_form(row, mine, here, visit, true))
            }
        }
    }
}

fn answers(event: &EventDetail, people: &People, visit: &Visit) -> Markup {
    let of = |schedule: Schedule| -> Vec<DbUuid> {
        event.answers.iter().filter(|(_, answer)| *answer == schedule).map(|(user, _)| *user).collect()
    };
    let is_for_all = event.row.group_id == EVERYONE;
    let kinds = [
        (Schedule::Attendance, "badge good", "answer-attendance"),
        (Schedule::Absent, "badge", "answer-absent"),
        (Schedule::Pending, "badge", "not-answered-yet"),
    ];
    html! {
        @if event.answers.is_empty() { p.empty { (visit.text("nobody-yet")) } } @else {
            div.card {
                @for (schedule, class, key) in kinds {
                    @let users = of(schedule);
                    @if !users.is_empty() {
                        h3 { (visit.text(key)) " " span class=(class) { (users.len()) } }
                        // All members of the club are no news.
                        @if !(is_for_all && schedule == Schedule::Pending) { p { (people.list(&users, visit)) } }
                    }
                }
            }
        }
    }
}

fn google_calendar(event: &EventDetail) -> String {
    let row = &event.row;
    let time = |at: common::time::Timestamp| at.utc().format("%Y%m%dT%H%M%SZ").to_string();
    let dates = format!("{}/{}", time(row.starts_at.0), time(row.ends_at.0));
    address(
        "https://calendar.google.com/calendar/render",
        &[("action", "TEMPLATE"), ("text", &row.name), ("dates", &dates), ("location", &row.place)],
    )
}

/// The event as a calendar file.
pub async fn calendar(club: Club, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| {
        let calendar = ical::one_event(conn, id, me.id, &club)?;
        let file = Reply::new(StatusCode::OK, "text/calendar; charset=utf-8", calendar.into_bytes());
        Ok(file.with(header::CONTENT_DISPOSITION, format!("attachment; filename=\"{id}.ics\"")))
    })
    .await
}

/// Answers.
pub async fn answer(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    let to = Some(form.get("to")).filter(|to| is_local(to)).map_or_else(|| format!("/events/{id}"), str::to_owned);
    let answer = if form.has("series", "true") { attendance::answer_later } else { attendance::answer };
    who.update(events::target(id, visit.zone), move |conn, me| {
        let event = find(conn, id)?;
        attendance::check_may_answer(conn, &event, me, Schedule::Absent, visit.now)?;
        let body = json!({ "schedule": form.get("schedule") });
        let RequestSchedule { schedule } = request(body).map_err(|failure| failure.0)?;
        answer(conn, id, me, schedule, visit.now)?;
        Ok(see_other(to.clone()))
    })
    .await
}

/// Adds a tag.
pub async fn add_tag(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let (id, again) = (DbUuid::from(*id), (who.clone(), visit.clone()));
    let tag = request::<RequestEventTag>(json!({ "name": form.get("name") })).map(RequestEventTag::into_pair);
    let result = match tag {
        Err(failure) => Err(failure),
        Ok(tag) => {
            let change = who.update(events::recorded(id, Action::Changed, visit.zone), move |conn, me| {
                attendance::add_tag(conn, id, &tag, me, visit.now)?;
                Ok(see_other(format!("/events/{id}")))
            });
            change.await
        }
    };
    let (who, visit) = again;
    or_form_again(result, who, move |conn, me, problem| page(conn, me, &visit, id, &form, Some(problem))).await
}

/// Asks whether to delete it.
pub async fn ask_to_delete(visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| delete_page(conn, me, &visit, id, None)).await
}

/// Asks; after a refusal, with the reason.
pub(super) fn delete_page(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    id: DbUuid,
    problem: Option<&common::problem::Problem>,
) -> Result<Reply, Error> {
    let row = find(conn, id)?;
    check_admin_or_privileged(conn, id, me)?;
    let tag = events::target(id, visit.zone).tag(conn, me)?;
    let what = html! { b { (row.name) } br; (visit.span(row.starts_at, row.ends_at)) ", " (row.place) };
    let (form, back) = (format!("/events/{id}/delete"), format!("/events/{id}"));
    let choices = repetition::deleted_dates(conn, me, &row, visit)?;
    Ok(visit.ask_to_delete("delete-event", (&what, &choices), (&form, &tag), &back, problem))
}

/// Deletes it.
pub async fn delete(visit: Visit, who: SignedIn, id: Path<Id>, _form: Form) -> Result<Reply, Failure> {
    let (id, again) = (DbUuid::from(*id), (who.clone(), visit.clone()));
    let result = who.update(events::target(id, visit.zone), move |conn, me| {
        // One lands in the month in which it was.
        let month = visit.local(find(conn, id)?.starts_at).format("%Y-%m").to_string();
        changes::delete(conn, id, me, visit.now)?;
        Ok(see_deleted_from_part("/events", &[("month", &month)], id))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| delete_page(conn, me, &visit, id, Some(problem))).await
}
