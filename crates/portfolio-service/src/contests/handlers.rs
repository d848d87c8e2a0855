//! The operations on contests.

use actix_web::{delete, get, http::header, patch, post, web::Path};
use common::input::Id;
use serde_json::Value;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    guard::Target,
    history::{self, Action},
    http::{Body, Page, Reply},
    state::Now,
};

use super::{
    queries::{self, Row},
    restoration,
    wire::{Contest, ContestDetail, CreateContestRequest, EditContestRequest, UserContest},
};
use crate::{
    auth::{Caller, ContestCreator, FormerContestCreator, Member, Visitor},
    objects::CONTEST,
    teams,
};

fn detail(conn: &mut AnyConnection, id: DbUuid) -> Result<ContestDetail, Error> {
    let (row, link, description) = queries::get(conn, id)?;
    let teams = teams::queries::of_contest(conn, id)?;
    Ok(ContestDetail::new(Contest::new(row)?, link, description, teams))
}

fn show(conn: &mut AnyConnection, id: DbUuid) -> Result<Reply, Error> {
    Reply::json(&detail(conn, id)?)
}

/// The contest that an operation changes.
pub fn target(id: DbUuid) -> Target<Caller> {
    Target::new(format!("contest {id}"), move |conn, _| show(conn, id)).of_forms(&CONTEST, move |conn| fields(conn, id))
}

/// The same with a record of its change in the history.
pub fn recorded(id: DbUuid) -> Target<Caller> {
    target(id).recorded(&CONTEST, id, Action::Changed, move |conn| fields(conn, id))
}

/// The fields of a contest that the history records.
pub fn fields(conn: &mut AnyConnection, id: DbUuid) -> Result<Value, Error> {
    let (row, link, description) = queries::get(conn, id)?;
    history::fields_of(&ContestDetail::new(Contest::new(row)?, link, description, Vec::new()))
}

/// Records a new contest, and shows it.
pub fn show_created(conn: &mut AnyConnection, id: DbUuid, me: &Caller) -> Result<Reply, Error> {
    let fields = fields(conn, id)?;
    history::created(conn, &me.author, &CONTEST, [(id, fields)])?;
    Ok(Reply::created(&detail(conn, id)?)?.with(header::LOCATION, format!("/api/v1/contests/{id}")))
}

/// List contests
///
/// Ordered by start, the latest first, and by id.
#[utoipa::path(
    tag = "contests",
    operation_id = "getContests",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    responses((status = 200, description = "Contests", body = [Contest]))
)]
#[get("")]
pub async fn list(who: Visitor, page: Page) -> Result<Reply, Failure> {
    who.in_one_statement()
        .list(page, |conn, _, page| page.rows(queries::list(conn, &page.bounds()?)?, Row::position, Contest::new))
        .await
}

/// Create a contest
///
/// For any active member. The new contest has no teams.
#[utoipa::path(
    tag = "contests",
    operation_id = "createContest",
    request_body = CreateContestRequest,
    responses(
        (status = 201, description = "The new contest", body = ContestDetail,
            headers(("Location" = String, description = "Its address"))),
        (status = 409, description = "The name is taken (`duplicate-name`)"),
    )
)]
#[post("")]
pub async fn create(who: Member, Now(now): Now, body: Body<CreateContestRequest>) -> Result<Reply, Failure> {
    let draft = body.0.into_draft();
    who.create(move |conn, me| {
        let id = queries::create(conn, &draft, me.id, DbTimestamp(now))?;
        show_created(conn, id, me)
    })
    .await
}

/// One contest
///
/// With its teams and their members, both ordered by name.
#[utoipa::path(
    tag = "contests",
    operation_id = "getContest",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("contestId" = uuid::Uuid, Path)),
    responses((status = 200, description = "The contest", body = ContestDetail))
)]
#[get("/{contestId}")]
pub async fn get(who: Visitor, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, _| show(conn, (*id).into())).await
}

/// Change a contest
///
/// For its creator and admins. A field that is left out stays.
#[utoipa::path(
    tag = "contests",
    operation_id = "editContest",
    params(("contestId" = uuid::Uuid, Path)),
    request_body = EditContestRequest,
    responses(
        (status = 204, description = "Changed"),
        (status = 409, description = "The name is taken (`duplicate-name`)"),
    )
)]
#[patch("/{contestId}")]
pub async fn update(
    who: ContestCreator,
    Now(now): Now,
    id: Path<Id>,
    body: Body<EditContestRequest>,
) -> Result<Reply, Failure> {
    let (id, changes) = (DbUuid::from(*id), body.0.into_changes());
    who.update(recorded(id), move |conn, _| {
        queries::update(conn, id, &changes, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

/// Delete a contest
///
/// For its creator and admins. Its teams are deleted as well.
#[utoipa::path(
    tag = "contests",
    operation_id = "deleteContest",
    params(("contestId" = uuid::Uuid, Path)),
    responses((status = 204, description = "Deleted"))
)]
#[delete("/{contestId}")]
pub async fn delete(who: ContestCreator, Now(now): Now, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(target(id), move |conn, me| {
        restoration::delete(conn, id, me, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

/// Restore a deleted contest
///
/// For its creator and admins, within 30 days of its deletion. Its teams come back with it.
#[utoipa::path(
    tags = ["contests", "additions"],
    operation_id = "restoreContest",
    params(("contestId" = uuid::Uuid, Path)),
    responses(
        (status = 200, description = "The contest", body = ContestDetail),
        (status = 409, description = "It is not deleted (`not-deleted`), or the name is taken (`duplicate-name`)"),
    )
)]
#[post("/{contestId}/restore")]
pub async fn restore(who: FormerContestCreator, Now(now): Now, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(Target::parent(format!("contest {id}")), move |conn, me| {
        restoration::restore(conn, id, me, DbTimestamp(now))?;
        show(conn, id)
    })
    .await
}

/// Contests of a user
///
/// The contests with a team that the user is a member of, with those teams. Ordered by start, the latest first, and by
/// id.
#[utoipa::path(
    tag = "users",
    operation_id = "getUserContests",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("userId" = uuid::Uuid, Path)),
    responses((status = 200, description = "Contests", body = [UserContest]))
)]
#[get("/{userId}/contests")]
pub async fn of_user(who: Visitor, user: Path<Id>, page: Page) -> Result<Reply, Failure> {
    who.list(page, move |conn, _, page| {
        let contests = queries::of_user(conn, (*user).into(), &page.bounds()?)?;
        page.rows(contests, |(row, _)| row.position(), UserContest::new)
    })
    .await
}
