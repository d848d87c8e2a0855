//! The pages of members, and the résumé.

use actix_web::{get, web::Path};
use common::{
    input::{Id, Text},
    problem::Violations,
};
use deserr::Deserr;
use service_kit::{
    error::Failure,
    http::{Query, Reply},
    page::PageContext,
    state::TimeDependent,
};

use super::{page as pages, queries, resume::Resume};
use crate::{auth::Anybody, club::Club, groups, page::MAX_ROWS, users};

/// The parameters of `/people`.
#[derive(Debug, Deserr)]
#[deserr(error = Violations, rename_all = camelCase)]
pub struct PeopleQuery {
    /// A part of a name.
    #[deserr(default)]
    search: Option<Text<1, 64>>,
}

/// The page `/people`.
pub async fn people(page: PageContext, who: Anybody, query: Query<PeopleQuery>) -> Result<Reply, Failure> {
    let search = query.0.search.map(Text::into_inner).unwrap_or_default();
    who.read(move |conn, _| Ok(pages::list(&page, &search, &users::queries::search(conn, &search, MAX_ROWS)?))).await
}

/// The page `/people/{name}`.
pub async fn person(
    page: PageContext,
    who: Anybody,
    club: Club,
    TimeDependent(now): TimeDependent,
    name: Path<String>,
) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let id = users::queries::id_by_name(conn, &name)?;
        let profile = queries::load(conn, id)?;
        pages::render(&page, &profile, &groups::queries::of_user(conn, id)?, club.semester(now), club.zone)
    })
    .await
}

/// Résumé of a user
///
/// In the format of JSON Resume 1.0.0. What everybody may see: the newest 200 projects with the semesters in which the
/// user took part, and the results of the user's teams in the newest contests. 404 for a user who is not active.
#[utoipa::path(
    tags = ["users", "additions"],
    operation_id = "getUserResume",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("userId" = uuid::Uuid, Path)),
    responses((status = 200, description = "The résumé", body = Resume))
)]
#[get("/{userId}/resume.json")]
pub async fn resume(who: Anybody, club: Club, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, _| Reply::json(&Resume::new(queries::load(conn, (*id).into())?, &club)?)).await
}
