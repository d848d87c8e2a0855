//! The history of projects and contests, and all changes (contract, "History"). The guard and the code that creates and
//! deletes objects write the rows ([`service_kit::history`]).

use actix_web::{get, web::Path};
use chrono_tz::Tz;
use common::input::Id;
use service_kit::{
    audit::{AsLines, AuditQuery},
    database::types::DbUuid,
    error::Failure,
    guard::{Authenticator, Guard},
    history::{self, ResponseHistory},
    http::{Page, Query, Reply},
};
use utoipa_actix_web::service_config::ServiceConfig;

use crate::auth::{Admin, FormerContestCreator, FormerProjectEditor};

/// Registers the list of all changes.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(audit);
}

/// Registers the operations below `/projects`.
pub fn routes_of_projects(config: &mut ServiceConfig<'_>) {
    config.service(of_project);
}

/// Registers the operations below `/contests`.
pub fn routes_of_contests(config: &mut ServiceConfig<'_>) {
    config.service(of_contest);
}

async fn list<A: Authenticator>(who: Guard<A>, page: Page, object: Id) -> Result<Reply, Failure> {
    let object = DbUuid::from(object);
    who.list(page, move |conn, _, page| {
        let rows = history::load(conn, object, &page.bounds()?)?;
        page.rows(rows, |row| row.id, |row| ResponseHistory::new(row, Tz::UTC))
    })
    .await
}

/// The history of a project
///
/// For its creator, its members and admins, also after its deletion. The newest change first.
#[utoipa::path(
    tags = ["projects", "additions"],
    operation_id = "getProjectHistory",
    params(("projectId" = uuid::Uuid, Path)),
    responses((status = 200, description = "The changes", body = [ResponseHistory]))
)]
#[get("/{projectId}/history")]
async fn of_project(who: FormerProjectEditor, page: Page, id: Path<Id>) -> Result<Reply, Failure> {
    list(who, page, *id).await
}

/// The history of a contest
///
/// For its creator and admins, also after its deletion. The newest change first. Changes of its teams are not among them.
#[utoipa::path(
    tags = ["contests", "additions"],
    operation_id = "getContestHistory",
    params(("contestId" = uuid::Uuid, Path)),
    responses((status = 200, description = "The changes", body = [ResponseHistory]))
)]
#[get("/{contestId}/history")]
async fn of_contest(who: FormerContestCreator, page: Page, id: Path<Id>) -> Result<Reply, Failure> {
    list(who, page, *id).await
}

/// All changes
///
/// For admins. The newest first. With `Accept: application/x-ndjson` each is a line.
#[utoipa::path(
    tags = ["history", "additions"],
    operation_id = "getAudit",
    params(AuditQuery),
    responses((status = 200, description = "The changes", content(
        ([ResponseHistory] = "application/json"),
        (String = "application/x-ndjson"),
    )))
)]
#[get("/audit")]
async fn audit(who: Admin, page: Page, query: Query<AuditQuery>, as_lines: AsLines) -> Result<Reply, Failure> {
    service_kit::audit::audit(who, Tz::UTC, page, &query.0, &as_lines).await
}
