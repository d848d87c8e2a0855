//! The forms of projects.

use actix_web::web::Path;
use common::{input::Id, problem::Problem, semester::YearWithSemester};
use maud::html;
use serde_json::{Value, json};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    http::{
        Form, Reply,
        form::{change, request},
    },
    page::{FormPage, PageContext, see_deleted_from, see_other, see_saved},
    state::{Now, TimeDependent},
};

use super::{
    fields::{about, actions, ask_to_delete as ask, present_version, push_semesters, semesters, semesters_of},
    pictures,
};
use crate::{
    auth::{Caller, FormerProjectCreator, Member, ProjectCreator, ProjectEditor},
    club::Club,
    page as pages,
    projects::{
        self, CreateProjectRequest, EditProjectRequest,
        queries::{self, Row},
        recorded, restoration, target,
    },
};

/// The member of the requests that the fields of the semesters show.
const ALIASES: &[(&str, &str)] = &[("duration", "until")];

/// The form of a new project.
pub async fn new(
    page: PageContext,
    club: Club,
    who: Member,
    TimeDependent(now): TimeDependent,
) -> Result<Reply, Failure> {
    let present = club.semester(now);
    let mut values = Form::new([("name", ""), ("description", ""), ("link", "")]);
    values.push("since", super::fields::value_of(present));
    values.push("until", "");
    who.read(move |_, _| Ok(new_page(&page, present, &values, None))).await
}

fn new_page(page: &PageContext, present: YearWithSemester, values: &Form, problem: Option<&Problem>) -> Reply {
    let form = FormPage { page, values, problem, aliases: ALIASES };
    let body = html! {
        (form.refusal())
        (form.form("/projects/new", None, &html! {
            (about(&form))
            (semesters(&form, present))
            (actions(page, "/projects"))
        }))
    };
    page.reply(&page.text("new-project"), body)
}

/// Creates a project, and goes on with its members.
pub async fn create(page: PageContext, club: Club, who: Member, Now(now): Now, form: Form) -> Result<Reply, Failure> {
    let (values, again) = (form.clone(), who.clone());
    let result = who.create(move |conn, me| {
        let request: CreateProjectRequest = request(body(&form)?).map_err(|failure| failure.0)?;
        let id = queries::create(conn, &request.into_draft(), me.id, DbTimestamp(now))?;
        projects::show_created(conn, id, me)?;
        Ok(see_other(format!("/projects/{id}/members")))
    });
    let (result, present) = (result.await, club.semester(now));
    again.or_form_again(result, move |_, _, problem| Ok(new_page(&page, present, &values, Some(problem)))).await
}

fn body(form: &Form) -> Result<Value, Problem> {
    Ok(json!({
        "name": form.get("name"),
        "link": form.get("link").trim(),
        "description": form.text("description"),
        "duration": semesters_of(form)?,
    }))
}

/// The form to change a project.
pub async fn edit(
    page: PageContext,
    club: Club,
    who: ProjectEditor,
    TimeDependent(now): TimeDependent,
    id: Path<Id>,
) -> Result<Reply, Failure> {
    let (id, present) = (DbUuid::from(*id), club.semester(now));
    who.read(move |conn, me| edit_page(conn, me, &page, (id, present), None)).await
}

/// Changes a project.
pub async fn update(
    page: PageContext,
    club: Club,
    who: ProjectEditor,
    Now(now): Now,
    id: Path<Id>,
    form: Form,
) -> Result<Reply, Failure> {
    let (id, values, again) = (DbUuid::from(*id), form.clone(), who.clone());
    let result = who.update(recorded(target(id), id), move |conn, _| {
        let present = projects::fields(conn, id)?;
        let request: EditProjectRequest = change(body(&form)?, &present).map_err(|failure| failure.0)?;
        queries::update(conn, id, &request.into_changes(), DbTimestamp(now))?;
        Ok(see_saved(&format!("/projects/{id}")))
    });
    let (result, present) = (result.await, club.semester(now));
    again
        .or_form_again(result, move |conn, me, problem| {
            edit_page(conn, me, &page, (id, present), Some((&values, problem)))
        })
        .await
}

/// The form to change a project. `refused` is what was typed, and why it was refused.
fn edit_page(
    conn: &mut AnyConnection,
    me: &Caller,
    page: &PageContext,
    (id, now): (DbUuid, YearWithSemester),
    refused: Option<(&Form, &Problem)>,
) -> Result<Reply, Error> {
    let (row, link, description): (Row, _, _) = queries::get(conn, id)?;
    let tag = target(id).tag(conn, me)?;
    let mut present = Form::new([("name", &row.name), ("description", &description), ("link", &link)]);
    push_semesters(&mut present, row.span()?);
    let (values, problem) = refused.map_or((&present, None), |(values, problem)| (values, Some(problem)));
    let form = FormPage { page, values, problem, aliases: ALIASES };
    let path = format!("/projects/{id}");
    let theirs = html! {
        p { b { (row.name) } " " (pages::semesters(page, row.span()?)) }
        p.text { (description) }
        p { (link) }
    };
    let body = html! {
        (form.refusal())
        (present_version(&form, &format!("{path}/edit"), &theirs))
        (form.form(&format!("{path}/edit"), Some(&tag), &html! {
            (about(&form))
            (semesters(&form, now))
            (actions(page, &path))
        }))
        h2 { (page.text("picture")) }
        (pictures::section(page, &path, row.picture().as_deref()))
        p.actions {
            a.button href={ (path) "/members" } { (page.text("members")) }
            a.button.danger href={ (path) "/delete" } { (page.text("delete")) }
        }
    };
    Ok(page.reply(&page.text("edit-project"), body))
}

/// Asks whether to delete a project.
pub async fn ask_to_delete(page: PageContext, who: ProjectCreator, id: Path<Id>) -> Result<Reply, Failure> {
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
    let (path, action) = (format!("/projects/{id}"), format!("/projects/{id}/delete"));
    Ok(ask(page, "delete-project", &name, (&action, &tag), &path, problem))
}

/// Deletes a project.
pub async fn delete(
    page: PageContext,
    who: FormerProjectCreator,
    Now(now): Now,
    id: Path<Id>,
    _form: Form,
) -> Result<Reply, Failure> {
    let (id, again) = (DbUuid::from(*id), who.clone());
    let result = who.update(target(id), move |conn, me| {
        restoration::delete(conn, id, me, DbTimestamp(now))?;
        Ok(see_deleted_from("/projects", id))
    });
    let result = result.await;
    again.or_form_again(result, move |conn, me, problem| delete_page(conn, me, &page, id, Some(problem))).await
}
