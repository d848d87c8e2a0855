//! The forms of teams.

use actix_web::web::Path;
use common::{input::Id, problem::Problem};
use maud::{Markup, html};
use serde_json::{Value, json};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    guard::Target,
    http::{
        Form, Reply,
        form::{change, request},
    },
    page::{FormPage, Input, PageContext, see_deleted, see_other},
    state::Now,
};

use super::fields::{about, actions, ask_to_delete as ask, people, present_version, users_of};
use crate::{
    auth::{Caller, Member, TeamCreator, TeamEditor},
    teams::{
        self, AddContestTeamRequest, EditContestTeamRequest,
        queries::{self, check_contest},
        recorded,
    },
    users,
};

/// A team: contest, team.
type Ids = (DbUuid, DbUuid);

/// The team that a form changes. Its answer has the members as well.
fn target((contest, id): Ids) -> Target<Caller> {
    let shown = teams::target(contest, id);
    recorded(shown, contest, id)
}

fn fields(conn: &mut AnyConnection, form: &FormPage<'_>) -> Result<Markup, Error> {
    let (result, members) = (form.page.text("result"), form.page.text("members"));
    Ok(html! {
        (about(form))
        (form.input(Input { name: "result", label: &result, max_length: Some(32), ..Input::default() }))
        (people(conn, form, Input { name: "members", label: &members, ..Input::default() })?)
    })
}

fn body(form: &Form) -> Value {
    json!({
        "name": form.get("name"),
        "link": form.get("link").trim(),
        "description": form.text("description"),
        "result": form.get("result"),
    })
}

/// The form of a new team, with the caller as its member.
pub async fn new(page: PageContext, who: Member, contest: Path<Id>) -> Result<Reply, Failure> {
    let contest = DbUuid::from(*contest);
    who.read(move |conn, me| {
        check_contest(conn, contest)?;
        let name = users::queries::get(conn, me.id)?.person.name;
        let mut values = Form::new(["name", "description", "link", "result"].map(|name| (name, "")));
        values.push("members", name);
        new_page(conn, &page, contest, &values, None)
    })
    .await
}

fn new_page(
    conn: &mut AnyConnection,
    page: &PageContext,
    contest: DbUuid,
    values: &Form,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let form = FormPage { page, values, problem, aliases: &[] };
    let path = format!("/contests/{contest}");
    let body = html! {
        (form.refusal())
        (form.form(&format!("{path}/teams/new"), None, &html! { (fields(conn, &form)?) (actions(page, &path)) }))
    };
    Ok(page.reply(&page.text("new-team"), body))
}

/// Adds a team with its members.
pub async fn create(
    page: PageContext,
    who: Member,
    Now(now): Now,
    contest: Path<Id>,
    form: Form,
) -> Result<Reply, Failure> {
    let (contest, values, again) = (DbUuid::from(*contest), form.clone(), who.clone());
    let result = who.update(Target::parent(format!("contest {contest}")), move |conn, me| {
        let request: AddContestTeamRequest = request(body(&form)).map_err(|failure| failure.0)?;
        let (members, now) = (users_of(conn, &form, "members")?, DbTimestamp(now));
        let team = queries::create(conn, contest, &request.into_draft(), me.id, now)?;
        queries::put_members(conn, team.id, &members, me.id, now)?;
        teams::show_created(conn, contest, team, me)?;
        Ok(see_other(format!("/contests/{contest}")))
    });
    let result = result.await;
    again.or_form_again(result, move |conn, _, problem| new_page(conn, &page, contest, &values, Some(problem))).await
}

/// The form to change a team.
pub async fn edit(page: PageContext, who: TeamEditor, path: Path<(Id, Id)>) -> Result<Reply, Failure> {
    let ids: Ids = (path.0.into(), path.1.into());
    who.read(move |conn, me| edit_page(conn, me, &page, ids, None)).await
}

/// Changes a team and its members.
pub async fn update(
    page: PageContext,
    who: TeamEditor,
    Now(now): Now,
    path: Path<(Id, Id)>,
    form: Form,
) -> Result<Reply, Failure> {
    let ids: Ids = (path.0.into(), path.1.into());
    let (values, again) = (form.clone(), who.clone());
    let result = who.update(target(ids), move |conn, me| {
        let present = teams::fields(conn, ids.0, ids.1)?;
        let request: EditContestTeamRequest = change(body(&form), &present).map_err(|failure| failure.0)?;
        let (members, now) = (users_of(conn, &form, "members")?, DbTimestamp(now));
        queries::update(conn, ids.0, ids.1, &request.into_changes(), now)?;
        queries::put_members(conn, ids.1, &members, me.id, now)?;
        Ok(see_other(format!("/contests/{}", ids.0)))
    });
    let result = result.await;
    again
        .or_form_again(result, move |conn, me, problem| edit_page(conn, me, &page, ids, Some((&values, problem))))
        .await
}

/// The form to change a team. `refused` is what was typed, and why it was refused.
fn edit_page(
    conn: &mut AnyConnection,
    me: &Caller,
    page: &PageContext,
    ids: Ids,
    refused: Option<(&Form, &Problem)>,
) -> Result<Reply, Error> {
    let (row, link, description) = queries::get(conn, ids.0, ids.1)?;
    let members = queries::members(conn, ids.1, &PageBounds::all())?;
    let members = members.into_iter().map(|person| person.name).collect::<Vec<_>>().join(", ");
    let tag = target(ids).tag(conn, me)?;
    let mut present = Form::new([("name", &row.name), ("description", &description), ("link", &link)]);
    present.push("result", &row.result);
    present.push("members", &members);
    let (values, problem) = refused.map_or((&present, None), |(values, problem)| (values, Some(problem)));
    let form = FormPage { page, values, problem, aliases: &[] };
    let (path, back) = (format!("/contests/{}/teams/{}", ids.0, ids.1), format!("/contests/{}", ids.0));
    let theirs = html! {
        p { b { (row.name) } " " (row.result) }
        p.text { (description) }
        p { (link) }
        p { (members) }
    };
    let body = html! {
        (form.refusal())
        (present_version(&form, &path, &theirs))
        (form.form(&path, Some(&tag), &html! { (fields(conn, &form)?) (actions(page, &back)) }))
        p.actions { a.button.danger href={ (path) "/delete" } { (page.text("delete")) } }
    };
    Ok(page.reply(&page.text("edit-team"), body))
}

/// Asks whether to delete a team.
pub async fn ask_to_delete(page: PageContext, who: TeamCreator, path: Path<(Id, Id)>) -> Result<Reply, Failure> {
    let ids: Ids = (path.0.into(), path.1.into());
    who.read(move |conn, me| delete_page(conn, me, &page, ids, None)).await
}

fn delete_page(
    conn: &mut AnyConnection,
    me: &Caller,
    page: &PageContext,
    ids: Ids,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let (name, tag) = (queries::get(conn, ids.0, ids.1)?.0.name, teams::target(ids.0, ids.1).tag(conn, me)?);
    let back = format!("/contests/{}/teams/{}", ids.0, ids.1);
    Ok(ask(page, "delete-team", &name, (&format!("{back}/delete"), &tag), &back, problem))
}

/// Deletes a team.
pub async fn delete(page: PageContext, who: TeamCreator, path: Path<(Id, Id)>, _form: Form) -> Result<Reply, Failure> {
    let (ids, again): (Ids, _) = ((path.0.into(), path.1.into()), who.clone());
    let result = who.update(teams::target(ids.0, ids.1), move |conn, me| {
        teams::remove(conn, ids.1, me)?;
        Ok(see_deleted(&format!("/contests/{}", ids.0)))
    });
    let result = result.await;
    again.or_form_again(result, move |conn, me, problem| delete_page(conn, me, &page, ids, Some(problem))).await
}
