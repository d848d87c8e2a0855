//! The operations on projects.

use actix_web::{delete, get, http::header, patch, post, put, web::Path};
use common::input::Id;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    http::{Body, Page, Reply},
};

use super::{
    queries::{self, Row},
    wire::{
        CreateProjectRequest, EditProjectMembersRequest, EditProjectRequest, Project, ProjectDetail, ProjectMember,
        UserProject,
    },
};
use crate::{
    auth::{Member, Visitor},
    club::Now,
    policy::BASE,
};

fn detail(conn: &mut AnyConnection, id: DbUuid) -> Result<ProjectDetail, Error> {
    let (row, link, description) = queries::get(conn, id)?;
    let members = queries::members_within(conn, id, row.span()?, &PageBounds::whole())?
        .into_iter()
        .map(ProjectMember::new)
        .collect();
    Ok(ProjectDetail::new(Project::new(row)?, link, description, members))
}

/// What `GET` of a project answers.
///
/// # Errors
/// 404 when there is none.
pub fn show(conn: &mut AnyConnection, id: DbUuid) -> Result<Reply, Error> {
    Reply::json(&detail(conn, id)?)
}

/// What `GET` of the members of a project answers.
///
/// # Errors
/// 404 when there is no such project; 400 for a cursor of another list.
pub fn show_members(conn: &mut AnyConnection, id: DbUuid, page: &Page) -> Result<Reply, Error> {
    let members = queries::members(conn, id, &page.slice()?)?;
    page.reply(members, |(person, _)| person.position(), |member| Ok(ProjectMember::new(member)))
}

/// List projects
///
/// The newest first: by the semester they began in, the latest one first, then by id.
#[utoipa::path(
    tag = "projects",
    operation_id = "getProjects",
    security((), ("proxy" = []), ("token" = [])),
    responses((status = 200, description = "Projects", body = [Project]))
)]
#[get("")]
pub async fn list(who: Visitor, page: Page) -> Result<Reply, Failure> {
    who.list(page, |conn, _, page| page.reply(queries::list(conn, &page.slice()?)?, Row::position, Project::new)).await
}

/// Make a project
///
/// For any active member. It has no members yet.
#[utoipa::path(
    tag = "projects",
    operation_id = "createProject",
    request_body = CreateProjectRequest,
    responses(
        (status = 201, description = "The new project", body = ProjectDetail,
            headers(("Location" = String, description = "Its address"))),
        (status = 409, description = "The name is taken"),
    )
)]
#[post("")]
pub async fn create(who: Member, Now(now): Now, body: Body<CreateProjectRequest>) -> Result<Reply, Failure> {
    let draft = body.0.into_draft();
    who.write(move |conn, me| {
        let id = queries::create(conn, &draft, me.id, DbTimestamp(now))?;
        Ok(Reply::created(&detail(conn, id)?)?.with(header::LOCATION, format!("{BASE}/projects/{id}")))
    })
    .await
}

/// One project
#[utoipa::path(
    tag = "projects",
    operation_id = "getProject",
    security((), ("proxy" = []), ("token" = [])),
    params(("projectId" = uuid::Uuid, Path)),
    responses((status = 200, description = "The project", body = ProjectDetail))
)]
#[get("/{projectId}")]
pub async fn get(who: Visitor, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, _| show(conn, (*id).into())).await
}

/// Change a project
///
/// For its creator, its members and admins. What is left out stays. Sent at the same time as the list of members,
/// both take effect, whichever comes first.
#[utoipa::path(
    tag = "projects",
    operation_id = "editProject",
    params(("projectId" = uuid::Uuid, Path)),
    request_body = EditProjectRequest,
    responses((status = 204, description = "Changed"), (status = 409, description = "The name is taken"))
)]
#[patch("/{projectId}")]
pub async fn update(
    who: Member,
    Now(now): Now,
    id: Path<Id>,
    body: Body<EditProjectRequest>,
) -> Result<Reply, Failure> {
    let changes = body.0.into_changes();
    who.write(move |conn, _| {
        queries::update(conn, (*id).into(), &changes, DbTimestamp(now)).map(|()| Reply::no_content())
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
pub async fn delete(who: Member, id: Path<Id>) -> Result<Reply, Failure> {
    who.write(move |conn, _| queries::delete(conn, (*id).into()).map(|()| Reply::no_content())).await
}

/// Members of a project
///
/// Ordered by name.
#[utoipa::path(
    tag = "projects",
    operation_id = "getProjectMembers",
    security((), ("proxy" = []), ("token" = [])),
    params(("projectId" = uuid::Uuid, Path)),
    responses((status = 200, description = "Members", body = [ProjectMember]))
)]
#[get("/{projectId}/members")]
pub async fn list_members(who: Visitor, id: Path<Id>, page: Page) -> Result<Reply, Failure> {
    who.read(move |conn, _| show_members(conn, (*id).into(), &page)).await
}

/// Change the members of a project
///
/// For its creator, its members and admins. The whole new list.
#[utoipa::path(
    tag = "projects",
    operation_id = "editProjectMembers",
    params(("projectId" = uuid::Uuid, Path)),
    request_body = EditProjectMembersRequest,
    responses((status = 204, description = "Changed"))
)]
#[put("/{projectId}/members")]
pub async fn put_members(
    who: Member,
    Now(now): Now,
    id: Path<Id>,
    body: Body<EditProjectMembersRequest>,
) -> Result<Reply, Failure> {
    let members = body.0.into_members();
    who.write(move |conn, _| {
        queries::put_members(conn, (*id).into(), &members, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

/// Projects of a user
///
/// The newest first: by the semester they began in, the latest one first, then by id.
#[utoipa::path(
    tag = "users",
    operation_id = "getUserProjects",
    security((), ("proxy" = []), ("token" = [])),
    params(("userId" = uuid::Uuid, Path)),
    responses((status = 200, description = "Projects", body = [UserProject]))
)]
#[get("/{userId}/projects")]
pub async fn of_user(who: Visitor, user: Path<Id>, page: Page) -> Result<Reply, Failure> {
    let slice = page.slice()?;
    who.read(move |conn, _| {
        let projects = queries::of_user(conn, (*user).into(), &slice)?;
        page.reply(projects, |(row, _)| row.position(), UserProject::new)
    })
    .await
}
