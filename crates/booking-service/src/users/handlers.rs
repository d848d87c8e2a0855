//! The operations on users.

use actix_web::get;
use service_kit::{
    error::Failure,
    http::{Query, Reply},
};

use super::{
    queries,
    wire::{ListQuery, ResponseUser},
};
use crate::{auth::SignedIn, club::Club};

/// List users
///
/// Ordered by name.
#[utoipa::path(
    tag = "users",
    operation_id = "getUsers",
    params(ListQuery),
    responses((status = 200, description = "Users", body = [ResponseUser]))
)]
#[get("/users")]
pub async fn list(who: SignedIn, club: Club, query: Query<ListQuery>) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let users = queries::list(conn, query.0.include_suspended.0)?;
        let users: Vec<_> = users.into_iter().map(|user| ResponseUser::new(user, &club.origin)).collect();
        Reply::json(&users)
    })
    .await
}

/// The signed-in user
#[utoipa::path(
    tag = "users",
    operation_id = "getMe",
    responses((status = 200, description = "The caller", body = ResponseUser))
)]
#[get("/users/me")]
pub async fn me(who: SignedIn, club: Club) -> Result<Reply, Failure> {
    who.read(move |conn, me| Reply::json(&ResponseUser::new(queries::get(conn, me.id)?, &club.origin))).await
}
