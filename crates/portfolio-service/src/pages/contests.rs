//! The forms of contests.

use actix_web::web::Path;
use chrono_tz::Tz;
use common::{duration::Duration, input::Id, problem::Problem};
use maud::html;
use serde_json::{Value, json};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    http::{
        Form, Language, Reply,
        form::{change, request},
    },
    page::{FormPage, PageContext, see_deleted_from, see_other, see_saved},
    state::Now,
};

use super::fields::{about, actions, ask_to_delete as ask, present_version, push_times, times, times_of};
use crate::{
    auth::{Caller, ContestCreator, FormerContestCreator, Member},
    club::Club,
    contests::{self, CreateContestRequest, EditContestRequest, queries, recorded, restoration, target},
    page::{MAX_ROWS, days, limit_note},
    teams,
};

/// The member of the requests that the fields of the times show.
const ALIASES: &[(&str, &str)] = &[("duration", "until")];

/// The form of a new contest.
pub async fn new(page: PageContext, club: Club, who: Member) -> Result<Reply, Failure> {
    let values = Form::new(["name", "description", "link", "since", "until"].map(|name| (name, "")));
    who.read(move |_, _| Ok(new_page(&page, club.zone, &values, None))).await
}

fn new_page(page: &PageContext, zone: Tz, values: &Form, problem: Option<&Problem>) -> Reply {
    let form = FormPage { page, values, problem, aliases: ALIASES };
    let body = html! {
        (form.refusal())
        (form.form("/contests/new", None, &html! {
            (about(&form))
            (times(&form, zone))
            (actions(page, "/contests"))
        }))
    };
    page.reply(&page.text("new-contest"), body)
}

/// Creates a contest.
pub async fn create(page: PageContext, club: Club, who: Member, Now(now): Now, form: Form) -> Result<Reply, Failure> {
    let (values, again, zone) = (form.clone(), who.clone(), club.zone);
    let result = who.create(move |conn, me| {
        let request: CreateContestRequest = request(body(&form, zone, None)?).map_err(|failure| failure.0)?;
        let id = queries::create(conn, &request.into_draft(), me.id, DbTimestamp(now))?;
        contests::show_created(conn, id, me)?;
        Ok(see_other(format!("/contests/{id}")))
    });
    let result = result.await;
    again.or_form_again(result, move |_, _, problem| Ok(new_page(&page, zone, &values, Some(problem)))).await
}

fn body(form: &Form, zone: Tz, present: Option<Duration>) -> Result<Value, Problem> {
    Ok(json!({
        "name": form.get("name"),
        "link": form.get("link").trim(),
        "description": form.text("description"),
        "duration": times_of(form, zone, present)?,
    }))
}

/// The form to change a contest.
pub async fn edit(page: PageContext, club: Club, who: ContestCreator, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| edit_page(conn, me, &page, (id, club.zone), None)).await
}

/// Changes a contest.
pub async fn update(
    page: PageContext,
    club: Club,
    who: ContestCreator,
    Now(now): Now,
    id: Path<Id>,
    form: Form,
) -> Result<Reply, Failure> {
    let (id, values, again, zone) = (DbUuid::from(*id), form.clone(), who.clone(), club.zone);
    let result = who.update(recorded(id), move |conn, _| {
        let present = queries::get(conn, id)?.0.duration()?;
        let (body, present) = (body(&form, zone, Some(present))?, contests::fields(conn, id)?);
        let request: EditContestRequest = change(body, &present).map_err(|failure| failure.0)?;
        queries::update(conn, id, &request.into_changes(), DbTimestamp(now))?;
        Ok(see_saved(&format!("/contests/{id}")))
    });
    let result = result.await;
    again
        .or_form_again(result, move |conn, me, problem| {
            edit_page(conn, me, &page, (id, zone), Some((&values, problem)))
        })
        .await
}

/// The form to change a contest. `refused` is what was typed, and why it was refused.
fn edit_page(
    conn: &mut AnyConnection,
    me: &Caller,
    page: &PageContext,
    (id, zone): (DbUuid, Tz),
    refused: Option<(&Form, &Problem)>,
) -> Result<Reply, Error> {
    let (row, link, description) = queries::get(conn, id)?;
    let (span, tag) = (row.duration()?, target(id).tag(conn, me)?);
    let mut present = Form::new([("name", &row.name), ("description", &description), ("link", &link)]);
    push_times(&mut present, span, zone);
    let (values, problem) = refused.map_or((&present, None), |(values, problem)| (values, Some(problem)));
    let form = FormPage { page, values, problem, aliases: ALIASES };
    let path = format!("/contests/{id}");
    let teams = teams::queries::page_of_contest(conn, id, &PageBounds { after: None, rows: MAX_ROWS })?;
    let teams: Vec<_> = teams.into_iter().map(|(team, _)| team).collect();
    let theirs = html! {
        p { b { (row.name) } " " (days(page, span, zone, Language::day)) }
        p.text { (description) }
        p { (link) }
    };
    let body = html! {
        (form.refusal())
        (present_version(&form, &format!("{path}/edit"), &theirs))
        (form.form(&format!("{path}/edit"), Some(&tag), &html! {
            (about(&form))
            (times(&form, zone))
            (actions(page, &path))
        }))
        h2 { (page.text("teams")) }
        @if !teams.is_empty() {
            div.card { ul.rows.named { @for team in &teams {
                li {
                    b { (team.name) }
                    a.button href={ (path) "/teams/" (team.id) } aria-label={ (page.text("edit")) ": " (team.name) } {
                        (page.text("edit"))
                    }
                }
            } } }
        }
        (limit_note(page, teams.len()))
        p.actions {
            a.button href={ (path) "/teams/new" } { (page.text("new-team")) }
            a.button.danger href={ (path) "/delete" } { (page.text("delete")) }
        }
    };
    Ok(page.reply(&page.text("edit-contest"), body))
}

/// Asks whether to delete a contest.
pub async fn ask_to_delete(page: PageContext, who: ContestCreator, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| delete_page(conn, me, &page, id, None)).await
}

fn delete_page(
    conn: &mut AnyConnection,
    me: &Caller,
    page: &PageContext,
    id: DbUuid,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let (name, tag) = (queries::get(conn, id)?.0.name, target(id).tag(conn, me)?);
    let (path, action) = (format!("/contests/{id}"), format!("/contests/{id}/delete"));
    Ok(ask(page, "delete-contest", &name, (&action, &tag), &path, problem))
}

/// Deletes a contest.
pub async fn delete(
    page: PageContext,
    who: FormerContestCreator,
    Now(now): Now,
    id: Path<Id>,
    _form: Form,
) -> Result<Reply, Failure> {
    let (id, again) = (DbUuid::from(*id), who.clone());
    let result = who.update(target(id), move |conn, me| {
        restoration::delete(conn, id, me, DbTimestamp(now))?;
        Ok(see_deleted_from("/contests", id))
    });
    let result = result.await;
    again.or_form_again(result, move |conn, me, problem| delete_page(conn, me, &page, id, Some(problem))).await
}
