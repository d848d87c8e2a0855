//! The operations on teams.

use actix_web::{delete, get, http::header, patch, post, put, web::Path};
use common::input::Id;
use serde_json::Value;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    guard::Target,
    history::{self, Action},
    http::{Body, ListPage, ListPart, Page, Reply},
    state::Now,
};

use super::{
    queries,
    wire::{
        AddContestTeamRequest, ContestTeam, ContestTeamDetail, EditContestTeamMembersRequest, EditContestTeamRequest,
    },
};
use crate::{
    auth::{Caller, Member, RecentTeamEditor, TeamCreator, TeamEditor, Visitor},
    objects::{TEAM, without_names},
    users::{Person, User},
};

fn ids(path: &Path<(Id, Id)>) -> (DbUuid, DbUuid) {
    (path.0.into(), path.1.into())
}

fn detail(conn: &mut AnyConnection, contest: DbUuid, id: DbUuid) -> Result<ContestTeamDetail, Error> {
    let (row, link, description) = queries::get(conn, contest, id)?;
    let members = queries::members(conn, id, &PageBounds::all())?;
    Ok(ContestTeamDetail::new((row, members).into(), link, description))
}

fn show(conn: &mut AnyConnection, contest: DbUuid, id: DbUuid) -> Result<Reply, Error> {
    Reply::json(&detail(conn, contest, id)?)
}

/// The fields of a team that the history records.
pub fn fields(conn: &mut AnyConnection, contest: DbUuid, id: DbUuid) -> Result<Value, Error> {
    Ok(without_names(history::fields_of(&detail(conn, contest, id)?)?))
}

/// A target whose change the history records.
pub fn recorded(target: Target<Caller>, contest: DbUuid, id: DbUuid) -> Target<Caller> {
    target.recorded(&TEAM, id, Action::Changed, move |conn| fields(conn, contest, id))
}

fn show_members(conn: &mut AnyConnection, contest: DbUuid, id: DbUuid, page: &ListPart) -> Result<ListPage, Error> {
    let bounds = page.bounds()?;
    queries::get(conn, contest, id)?;
    page.rows(queries::members(conn, id, &bounds)?, Person::position, |person| Ok(User::from(person)))
}

/// The team that an operation changes. All teams of a contest have the same lock.
pub fn target(contest: DbUuid, id: DbUuid) -> Target<Caller> {
    Target::new(format!("contest {contest}"), move |conn, _| show(conn, contest, id))
        .of_forms(&TEAM, move |conn| fields(conn, contest, id))
}

/// Records a new team, which has no members, and shows it.
pub fn show_created(
    conn: &mut AnyConnection,
    contest: DbUuid,
    team: queries::Row,
    me: &Caller,
) -> Result<Reply, Error> {
    let location = format!("/api/v1/contests/{contest}/teams/{}", team.id);
    let fields = fields(conn, contest, team.id)?;
    history::created(conn, &me.author, &TEAM, [(team.id, fields)])?;
    Ok(Reply::created(&ContestTeam::from((team, Vec::new())))?.with(header::LOCATION, location))
}

/// Deletes a team, and records that.
pub fn remove(conn: &mut AnyConnection, id: DbUuid, me: &Caller) -> Result<(), Error> {
    queries::delete(conn, id)?;
    history::deleted(conn, &me.author, &TEAM, &[id])
}

/// Teams of a contest
///
/// Ordered by name and id, each with its members, who are ordered by name.
#[utoipa::path(
    tag = "contests",
    operation_id = "getContestTeams",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("contestId" = uuid::Uuid, Path)),
    responses((status = 200, description = "Teams", body = [ContestTeam]))
)]
#[get("/{contestId}/teams")]
pub async fn list(who: Visitor, contest: Path<Id>, page: Page) -> Result<Reply, Failure> {
    let contest = DbUuid::from(*contest);
    who.list(page, move |conn, _, page| {
        queries::check_contest(conn, contest)?;
        let teams = queries::page_of_contest(conn, contest, &page.bounds()?)?;
        page.rows(teams, |(row, _)| (row.name.clone(), row.id), |team| Ok(ContestTeam::from(team)))
    })
    .await
}

/// Add a team to a contest
///
/// For any active member. The new team has no members.
#[utoipa::path(
    tag = "contests",
    operation_id = "addContestTeam",
    params(("contestId" = uuid::Uuid, Path)),
    request_body = AddContestTeamRequest,
    responses((status = 201, description = "The new team", body = ContestTeam,
        headers(("Location" = String, description = "Its address"))))
)]
#[post("/{contestId}/teams")]
pub async fn create(
    who: Member,
    Now(now): Now,
    contest: Path<Id>,
    body: Body<AddContestTeamRequest>,
) -> Result<Reply, Failure> {
    let (contest, draft) = (DbUuid::from(*contest), body.0.into_draft());
    who.update(Target::parent(format!("contest {contest}")), move |conn, me| {
        let team = queries::create(conn, contest, &draft, me.id, DbTimestamp(now))?;
        show_created(conn, contest, team, me)
    })
    .await
}

/// One team of a contest
#[utoipa::path(
    tag = "contests",
    operation_id = "getContestTeam",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("contestId" = uuid::Uuid, Path), ("teamId" = uuid::Uuid, Path)),
    responses((status = 200, description = "The team", body = ContestTeamDetail))
)]
#[get("/{contestId}/teams/{teamId}")]
pub async fn get(who: Visitor, path: Path<(Id, Id)>) -> Result<Reply, Failure> {
    let (contest, id) = ids(&path);
    who.read(move |conn, _| show(conn, contest, id)).await
}

/// Change a team
///
/// For its creator, its members, the creator of the contest, and admins. A field that is left out stays. A change and a
/// new list of members at the same time, without `If-Match`, both take effect, in either order, so members who remove
/// themselves may change the team for another minute.
#[utoipa::path(
    tag = "contests",
    operation_id = "editContestTeam",
    params(("contestId" = uuid::Uuid, Path), ("teamId" = uuid::Uuid, Path)),
    request_body = EditContestTeamRequest,
    responses((status = 204, description = "Changed"))
)]
#[patch("/{contestId}/teams/{teamId}")]
pub async fn update(
    who: RecentTeamEditor,
    Now(now): Now,
    path: Path<(Id, Id)>,
    body: Body<EditContestTeamRequest>,
) -> Result<Reply, Failure> {
    let ((contest, id), changes) = (ids(&path), body.0.into_changes());
    who.update(recorded(target(contest, id), contest, id), move |conn, _| {
        queries::update(conn, contest, id, &changes, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

/// Delete a team
///
/// For its creator, the creator of the contest, and admins.
#[utoipa::path(
    tag = "contests",
    operation_id = "deleteContestTeam",
    params(("contestId" = uuid::Uuid, Path), ("teamId" = uuid::Uuid, Path)),
    responses((status = 204, description = "Deleted"))
)]
#[delete("/{contestId}/teams/{teamId}")]
pub async fn delete(who: TeamCreator, path: Path<(Id, Id)>) -> Result<Reply, Failure> {
    let (contest, id) = ids(&path);
    who.update(target(contest, id), move |conn, me| remove(conn, id, me).map(|()| Reply::no_content())).await
}

/// Members of a team
///
/// Ordered by name.
#[utoipa::path(
    tag = "contests",
    operation_id = "getContestTeamMembers",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("contestId" = uuid::Uuid, Path), ("teamId" = uuid::Uuid, Path)),
    responses((status = 200, description = "Members", body = [User]))
)]
#[get("/{contestId}/teams/{teamId}/members")]
pub async fn list_members(who: Visitor, path: Path<(Id, Id)>, page: Page) -> Result<Reply, Failure> {
    let (contest, id) = ids(&path);
    who.list(page, move |conn, _, page| show_members(conn, contest, id, page)).await
}

/// Change the members of a team
///
/// For its creator, its members, the creator of the contest, and admins. The list replaces the present one.
#[utoipa::path(
    tag = "contests",
    operation_id = "editContestTeamMembers",
    params(("contestId" = uuid::Uuid, Path), ("teamId" = uuid::Uuid, Path)),
    request_body = EditContestTeamMembersRequest,
    responses((status = 204, description = "Changed"))
)]
#[put("/{contestId}/teams/{teamId}/members")]
pub async fn put_members(
    who: TeamEditor,
    Now(now): Now,
    path: Path<(Id, Id)>,
    body: Body<EditContestTeamMembersRequest>,
) -> Result<Reply, Failure> {
    let ((contest, id), members) = (ids(&path), body.0.into_members());
    let target = Target::new(format!("contest {contest}"), move |conn, _| {
        show_members(conn, contest, id, &ListPart::all()).map(ListPage::into_reply)
    });
    who.update(recorded(target, contest, id), move |conn, me| {
        queries::put_members(conn, id, &members, me.id, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}
