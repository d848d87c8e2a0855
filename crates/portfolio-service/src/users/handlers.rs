//! The operations on users.

use actix_web::get;
use service_kit::{
    error::Failure,
    http::{Query, Reply},
};

use super::{
    queries,
    wire::{ListQuery, User},
};
use crate::auth::Visitor;

/// List users
///
/// Ordered by name. Only active ones, unless asked for others.
#[utoipa::path(
    tag = "users",
    operation_id = "getUsers",
    security(()),
    params(ListQuery),
    responses((status = 200, description = "Users", body = [User]))
)]
#[get("/users")]
pub async fn list(who: Visitor, query: Query<ListQuery>) -> Result<Reply, Failure> {
    let (selection, limit) = query.0.into_selection()?;
    who.read(move |conn, _| {
        let users = queries::list(conn, &selection, limit)?;
        Reply::json(&users.into_iter().map(User::from).collect::<Vec<_>>())
    })
    .await
}
