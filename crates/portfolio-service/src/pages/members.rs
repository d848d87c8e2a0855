//! The members of a project, each with a form for their semesters.

use actix_web::web::Path;
use common::{
    input::Id,
    problem::{Problem, Rule},
    semester::{YearWithSemester, YearWithSemesterDuration},
};
use maud::html;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    guard::Target,
    http::{Form, Reply},
    page::{FormPage, Input, PageContext, button, see_other},
    state::{Now, TimeDependent},
};

use super::fields::{actions, people, present_version, push_semesters, semesters, semesters_of, users_of};
use crate::{
    auth::{Caller, ProjectEditor},
    club::Club,
    page::{self as pages, MAX_ROWS, limit_note},
    projects::{queries, recorded_members},
    users::{self, Person},
};

/// The members of a project, and a form to add more.
pub async fn list(
    page: PageContext,
    club: Club,
    who: ProjectEditor,
    TimeDependent(now): TimeDependent,
    id: Path<Id>,
) -> Result<Reply, Failure> {
    let present = club.semester(now);
    who.read(move |conn, me| list_page(conn, me, &page, (*id).into(), present, None)).await
}

/// Adds members.
pub async fn add(
    page: PageContext,
    club: Club,
    who: ProjectEditor,
    Now(now): Now,
    id: Path<Id>,
    form: Form,
) -> Result<Reply, Failure> {
    let (id, values, again) = (DbUuid::from(*id), form.clone(), who.clone());
    let target = Target::parent(format!("project {id}"));
    let result = who.update(recorded_members(target, id), move |conn, me| {
        let (users, span) = (users_of(conn, &form, "names")?, semesters_of(&form)?);
        if users.is_empty() {
            return Err(Problem::invalid("/names", Rule::Required, "must name somebody").into());
        }
        for user in users {
            queries::put_member(conn, id, (user, Some(span)), me.id, DbTimestamp(now))?;
        }
        Ok(see_other(format!("/projects/{id}/members")))
    });
    let (result, present) = (result.await, club.semester(now));
    again
        .or_form_again(result, move |conn, me, problem| {
            list_page(conn, me, &page, id, present, Some((&values, problem)))
        })
        .await
}

/// The members. `refused` is the form with further ones, and why it was refused.
fn list_page(
    conn: &mut AnyConnection,
    me: &Caller,
    page: &PageContext,
    id: DbUuid,
    now: YearWithSemester,
    refused: Option<(&Form, &Problem)>,
) -> Result<Reply, Error> {
    let (row, ..) = queries::get(conn, id)?;
    let span = row.span()?;
    let members = queries::members_within(conn, id, span, &PageBounds { after: None, rows: MAX_ROWS })?;
    let is_member = members.iter().any(|(person, _)| person.id == me.id);
    let own = if is_member { String::new() } else { users::queries::get(conn, me.id)?.person.name };
    let mut empty = Form::new([("names", own)]);
    push_semesters(&mut empty, span);
    let (values, problem) = refused.map_or((&empty, None), |(values, problem)| (values, Some(problem)));
    let form = FormPage { page, values, problem, aliases: &[] };
    let path = format!("/projects/{id}");
    let text = |key| page.text(key);
    let body = html! {
        p { a href=(path) { (row.name) } " " (pages::semesters(page, span)) }
        @if members.is_empty() { p { (text("none-yet")) } }
        @if !members.is_empty() {
            div.card { ul.rows.named { @for (person, own) in &members {
                li {
                    div { (users::on_page(person)) small { (pages::semesters(page, *own)) } }
                    a.button href={ (path) "/members/" (person.id) } aria-label={ (text("edit")) " " (person.name) } {
                        (text("edit"))
                    }
                }
            } } }
        }
        (limit_note(page, members.len()))
        h2 { (text("add-members")) }
        (form.refusal())
        (form.form(&format!("{path}/members"), None, &html! {
            (people(conn, &form, Input { name: "names", label: &text("names"), is_required: true, ..Input::default() })?)
            (semesters(&form, now))
            div.actions {
                button.primary { (text("add")) }
                a href=(path) { (text("done")) }
            }
        }))
    };
    Ok(page.reply(&text("members"), body))
}

/// A member of a project: project, user.
type Ids = (DbUuid, DbUuid);

/// What the form of one member changes: their span.
fn target((id, user): Ids) -> Target<Caller> {
    let span = move |conn: &mut AnyConnection, _: &Caller| Reply::json(&span_of(conn, (id, user))?.1);
    recorded_members(Target::new(format!("project {id}"), span), id)
}

/// A member and their span.
fn span_of(conn: &mut AnyConnection, (id, user): Ids) -> Result<(Person, YearWithSemesterDuration), Error> {
    let members = queries::members(conn, id, &PageBounds::all())?;
    let member = members.into_iter().find(|(person, _)| person.id == user);
    member.ok_or_else(|| Problem::not_found("member of the project").into())
}

/// The form to change the semesters of a member.
pub async fn edit(
    page: PageContext,
    club: Club,
    who: ProjectEditor,
    TimeDependent(now): TimeDependent,
    path: Path<(Id, Id)>,
) -> Result<Reply, Failure> {
    let (ids, present) = ((path.0.into(), path.1.into()), club.semester(now));
    who.read(move |conn, me| edit_page(conn, me, &page, ids, present, None)).await
}

/// Changes the semesters of a member.
pub async fn update(
    page: PageContext,
    club: Club,
    who: ProjectEditor,
    Now(now): Now,
    path: Path<(Id, Id)>,
    form: Form,
) -> Result<Reply, Failure> {
    let ids: Ids = (path.0.into(), path.1.into());
    let (values, again) = (form.clone(), who.clone());
    let result = who.update(target(ids), move |conn, me| {
        span_of(conn, ids)?;
        queries::put_member(conn, ids.0, (ids.1, Some(semesters_of(&form)?)), me.id, DbTimestamp(now))?;
        Ok(see_other(format!("/projects/{}/members", ids.0)))
    });
    let (result, present) = (result.await, club.semester(now));
    again
        .or_form_again(result, move |conn, me, problem| {
            edit_page(conn, me, &page, ids, present, Some((&values, problem)))
        })
        .await
}

/// Removes a member.
pub async fn remove(who: ProjectEditor, Now(now): Now, path: Path<(Id, Id)>, _form: Form) -> Result<Reply, Failure> {
    let ids: Ids = (path.0.into(), path.1.into());
    who.update(target(ids), move |conn, me| {
        queries::put_member(conn, ids.0, (ids.1, None), me.id, DbTimestamp(now))?;
        Ok(see_other(format!("/projects/{}", ids.0)))
    })
    .await
}

/// The form of a member. `refused` is what was typed, and why it was refused.
fn edit_page(
    conn: &mut AnyConnection,
    me: &Caller,
    page: &PageContext,
    ids: Ids,
    now: YearWithSemester,
    refused: Option<(&Form, &Problem)>,
) -> Result<Reply, Error> {
    let (row, ..) = queries::get(conn, ids.0)?;
    let (person, span) = span_of(conn, ids)?;
    let tag = target(ids).tag(conn, me)?;
    let mut present = Form::default();
    push_semesters(&mut present, span);
    let (values, problem) = refused.map_or((&present, None), |(values, problem)| (values, Some(problem)));
    let form = FormPage { page, values, problem, aliases: &[] };
    let (path, members) = (format!("/projects/{}/members/{}", ids.0, ids.1), format!("/projects/{}/members", ids.0));
    let text = |key| page.text(key);
    let remove = text(if ids.1 == me.id { "leave-project" } else { "remove-member" });
    let body = html! {
        p { a href={ "/projects/" (ids.0) } { (row.name) } " " (pages::semesters(page, row.span()?)) }
        p.mute { (text("span-about")) }
        (form.refusal())
        (present_version(&form, &path, &html! { p { (pages::semesters(page, span)) } }))
        (form.form(&path, Some(&tag), &html! {
            (semesters(&form, now))
            (actions(page, &members))
        }))
        p { (button(&format!("{path}/remove"), &[], &remove, None)) }
    };
    Ok(page.reply(&page.format("time-of", &[("name", person.name.into())]), body))
}
