//! The operations on projects.

use actix_web::{delete, get, http::header, patch, post, put, web::Path};
use common::input::Id;
use serde_json::{Value, json};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    guard::Target,
    history::{self, Action},
    http::{Body, ListPage, ListPart, Page, Reply},
    state::Now,
};

use super::{
    queries::{self, Row, Spans},
    restoration,
    wire::{
        CreateProjectRequest, EditProjectMembersRequest, EditProjectRequest, Project, ProjectDetail, ProjectMember,
        UserProject,
    },
};
use crate::{
    auth::{Caller, FormerProjectCreator, Member, ProjectCreator, ProjectEditor, RecentProjectEditor, Visitor},
    objects::{PROJECT, without_names},
};

fn detail(conn: &mut AnyConnection, id: DbUuid) -> Result<ProjectDetail, Error> {
    let ((row, link, description), members) = queries::get_with_members(conn, id)?;
    let members = members.into_iter().map(ProjectMember::new).collect();
    Ok(ProjectDetail::new(Project::new(row)?, link, description, members))
}

fn show(conn: &mut AnyConnection, id: DbUuid) -> Result<Reply, Error> {
    Reply::json(&detail(conn, id)?)
}

fn show_members(conn: &mut AnyConnection, id: DbUuid, page: &ListPart) -> Result<ListPage, Error> {
    let members = queries::members(conn, id, &page.bounds()?)?;
    page.rows(members, |(person, _)| person.position(), |member| Ok(ProjectMember::new(member)))
}

/// The project that an operation changes.
pub fn target(id: DbUuid) -> Target<Caller> {
    // Its members have forms of their own.
    Target::new(format!("project {id}"), move |conn, _| show(conn, id)).of_forms(&PROJECT, move |conn| {
        let mut fields = fields(conn, id)?;
        fields["members"].take();
        Ok(fields)
    })
}

/// The fields of a project that the history records.
pub fn fields(conn: &mut AnyConnection, id: DbUuid) -> Result<Value, Error> {
    Ok(without_names(history::fields_of(&detail(conn, id)?)?))
}

/// A target whose change the history records.
pub fn recorded(target: Target<Caller>, id: DbUuid) -> Target<Caller> {
    target.recorded(&PROJECT, id, Action::Changed, move |conn| fields(conn, id))
}

/// A target of whose change the history records the members alone, which takes one statement.
pub fn recorded_members(target: Target<Caller>, id: DbUuid) -> Target<Caller> {
    target.recorded(&PROJECT, id, Action::Changed, move |conn| Ok(member_fields(queries::spans_of_members(conn, id)?)))
}

/// What the history records of the members of a project.
fn member_fields(members: Spans) -> Value {
    let member = |(id, duration)| json!({"id": id, "duration": duration});
    json!({ "members": members.into_iter().map(member).collect::<Vec<_>>() })
}

/// Records a new project, and shows it.
pub fn show_created(conn: &mut AnyConnection, id: DbUuid, me: &Caller) -> Result<Reply, Error> {
    let fields = fields(conn, id)?;
    history::created(conn, &me.author, &PROJECT, [(id, fields)])?;
    Ok(Reply::created(&detail(conn, id)?)?.with(header::LOCATION, format!("/api/v1/projects/{id}")))
}

/// List projects
///
/// The newest first: by the semester they began in, the latest one first, then by id.
#[utoipa::path(
    tag = "projects",
    operation_id = "getProjects",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    responses((status = 200, description = "Projects", body = [Project]))
)]
#[get("")]
pub async fn list(who: Visitor, page: Page) -> Result<Reply, Failure> {
    who.in_one_statement()
        .list(page, |conn, _, page| page.rows(queries::list(conn, &page.bounds()?)?, Row::position, Project::new))
        .await
}

/// Create a project
///
/// For any active member. The new project has no members.
#[utoipa::path(
    tag = "projects",
    operation_id = "createProject",
    request_body = CreateProjectRequest,
    responses(
        (status = 201, description = "The new project", body = ProjectDetail,
            headers(("Location" = String, description = "Its address"))),
        (status = 409, description = "The name is taken (`duplicate-name`)"),
    )
)]
#[post("")]
pub async fn create(who: Member, Now(now): Now, body: Body<CreateProjectRequest>) -> Result<Reply, Failure> {
    let draft = body.0.into_draft();
    who.create(move |conn, me| {
        let id = queries::create(conn, &draft, me.id, DbTimestamp(now))?;
        show_created(conn, id, me)
    })
    .await
}

/// One project
#[utoipa::path(
    tag = "projects",
    operation_id = "getProject",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("projectId" = uuid::Uuid, Path)),
    responses((status = 200, description = "The project", body = ProjectDetail))
)]
#[get("/{projectId}")]
pub async fn get(who: Visitor, id: Path<Id>) -> Result<Reply, Failure> {
    who.in_one_statement().read(move |conn, _| show(conn, (*id).into())).await
}

/// Change a project
///
/// For its creator, its members and admins. A field that is left out stays. A change and a new list of members at the
/// same time, without `If-Match`, both take effect, in either order, so members who remove themselves may change the
/// project for another minute.
#[utoipa::path(
    tag = "projects",
    operation_id = "editProject",
    params(("projectId" = uuid::Uuid, Path)),
    request_body = EditProjectRequest,
    responses(
        (status = 204, description = "Changed"),
        (status = 409, description = "The name is taken (`duplicate-name`)"),
    )
)]
#[patch("/{projectId}")]
pub async fn update(
    who: RecentProjectEditor,
    Now(now): Now,
    id: Path<Id>,
    body: Body<EditProjectRequest>,
) -> Result<Reply, Failure> {
    let (id, changes) = (DbUuid::from(*id), body.0.into_changes());
    who.update(recorded(target(id), id), move |conn, _| {
        queries::update(conn, id, &changes, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

/// Delete a project
///
/// For its creator and admins.
#[utoipa::path(
    tag = "projects",
    operation_id = "deleteProject",
    params(("projectId" = uuid::Uuid, Path)),
    responses((status = 204, description = "Deleted"))
)]
#[delete("/{projectId}")]
pub async fn delete(who: ProjectCreator, Now(now): Now, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(target(id), move |conn, me| {
        restoration::delete(conn, id, me, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

/// Restore a deleted project
///
/// For its creator and admins, within 30 days of its deletion.
#[utoipa::path(
    tags = ["projects", "additions"],
    operation_id = "restoreProject",
    params(("projectId" = uuid::Uuid, Path)),
    responses(
        (status = 200, description = "The project", body = ProjectDetail),
        (status = 409, description = "It is not deleted (`not-deleted`), or the name is taken (`duplicate-name`)"),
    )
)]
#[post("/{projectId}/restore")]
pub async fn restore(who: FormerProjectCreator, Now(now): Now, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(Target::parent(format!("project {id}")), move |conn, me| {
        restoration::restore(conn, id, me, DbTimestamp(now))?;
        show(conn, id)
    })
    .await
}

/// Members of a project
///
/// Ordered by name.
#[utoipa::path(
    tag = "projects",
    operation_id = "getProjectMembers",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("projectId" = uuid::Uuid, Path)),
    responses((status = 200, description = "Members", body = [ProjectMember]))
)]
#[get("/{projectId}/members")]
pub async fn list_members(who: Visitor, id: Path<Id>, page: Page) -> Result<Reply, Failure> {
    who.list(page, move |conn, _, page| show_members(conn, (*id).into(), page)).await
}

/// Change the members of a project
///
/// For its creator, its members and admins. The list replaces the present one. An edge of a span that is equal to the
/// project's own follows the project's when that changes.
#[utoipa::path(
    tag = "projects",
    operation_id = "editProjectMembers",
    params(("projectId" = uuid::Uuid, Path)),
    request_body = EditProjectMembersRequest,
    responses((status = 204, description = "Changed"))
)]
#[put("/{projectId}/members")]
pub async fn put_members(
    who: ProjectEditor,
    Now(now): Now,
    id: Path<Id>,
    body: Body<EditProjectMembersRequest>,
) -> Result<Reply, Failure> {
    let (id, members) = (DbUuid::from(*id), body.0.into_members());
    let target = Target::new(format!("project {id}"), move |conn, _| {
        show_members(conn, id, &ListPart::all()).map(ListPage::into_reply)
    });
    who.update(target.exclusive(), move |conn, me| {
        let (before, after) = queries::put_members(conn, id, &members, me.id, DbTimestamp(now))?;
        let object = (&PROJECT, id, Action::Changed);
        history::changed(conn, &me.author, object, &member_fields(before), &member_fields(after))?;
        Ok(Reply::no_content())
    })
    .await
}

/// Projects of a user
///
/// The newest first: by the semester they began in, the latest one first, then by id.
#[utoipa::path(
    tag = "users",
    operation_id = "getUserProjects",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("userId" = uuid::Uuid, Path)),
    responses((status = 200, description = "Projects", body = [UserProject]))
)]
#[get("/{userId}/projects")]
pub async fn of_user(who: Visitor, user: Path<Id>, page: Page) -> Result<Reply, Failure> {
    who.list(page, move |conn, _, page| {
        let projects = queries::of_user(conn, (*user).into(), &page.bounds()?)?;
        page.rows(projects, |(row, _)| row.position(), UserProject::new)
    })
    .await
}
