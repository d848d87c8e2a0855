//! The operations that undo changes of an event.

use actix_web::{post, web::Path};
use chrono_tz::Tz;
use common::{input::Id, kept::Kept, problem::Violations};
use deserr::Deserr;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    history::Action,
    http::{Body, Query, Reply},
    state::Now,
};
use utoipa::ToSchema;

use super::{
    changes,
    params::RestoreQuery,
    requests::RequestEvent,
    restoration,
    target::{check_may_change, fields, parent, recorded, show},
    wire::ResponseEventDetail,
};
use crate::{
    auth::{Caller, SignedIn},
    club::Zone,
};

/// Restore a deleted event
///
/// Needs an administrator of the event or a privileged user, within 30 days of its deletion. A deleted room comes back
/// with the event: one that was made for it, and another one if the caller may restore that.
#[utoipa::path(
    tags = ["events", "additions"],
    operation_id = "restoreEvent",
    params(("eventID" = uuid::Uuid, Path), RestoreQuery),
    responses(
        (status = 200, description = "The event", body = ResponseEventDetail),
        (status = 409, description = "It is not deleted (`not-deleted`), the room is taken (`room-conflict`), its group is \
            deleted (`group-deleted`), or the room is deleted and somebody else must restore it first (`room-deleted`)"),
    )
)]
#[post("/{eventID}/restore")]
pub async fn restore(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    id: Path<Id>,
    query: Query<RestoreQuery>,
) -> Result<Reply, Failure> {
    let (id, group) = (DbUuid::from(*id), query.0.group_id.map(DbUuid::from));
    who.update(parent(id), move |conn, me| {
        restoration::restore(conn, id, group, me, zone, DbTimestamp(now))?;
        show(conn, id, zone)
    })
    .await
}

/// A change in the history of an object.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations)]
#[schema(example = json!({"to": 516}))]
pub struct RequestRevert {
    /// The `historyId` of the change.
    #[schema(minimum = 1, maximum = 9_223_372_036_854_775_807_i64)]
    to: i64,
}

/// Give an event the fields that it had after a change
///
/// Needs an administrator of the event or a privileged user. The same checks as for a `PUT` of these fields.
#[utoipa::path(
    tags = ["events", "additions"],
    operation_id = "revertEvent",
    params(("eventID" = uuid::Uuid, Path)),
    request_body = RequestRevert,
    responses(
        (status = 200, description = "The event", body = ResponseEventDetail),
        (status = 409, description = "The room is taken (`room-conflict`); `conflicts` lists the conflicting events, \
            `freeTimes` when it is free"),
    )
)]
#[post("/{eventID}/revert")]
pub async fn revert(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    id: Path<Id>,
    body: Result<Body<RequestRevert>, Failure>,
) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    let body = match body {
        Ok(body) => body.0,
        Err(refusal) => {
            return who.refuse(refusal, move |conn, me| check_may_change(conn, id, me)).await;
        }
    };
    let to = body.to;
    who.update(recorded(id, Action::Reverted, zone), move |conn, me| {
        revert_to(conn, id, to, me, zone, DbTimestamp(now))?;
        show(conn, id, zone)
    })
    .await
}

/// Gives an event the fields that it had after a change.
///
/// # Errors
/// 404; 400 if the event has no such change; those of a `PUT`.
pub fn revert_to(
    conn: &mut AnyConnection,
    id: DbUuid,
    to: i64,
    me: &Caller,
    zone: Tz,
    now: DbTimestamp,
) -> Result<(), Error> {
    let present = fields(conn, id, zone)?;
    let body = restoration::body_after(conn, id, to, present)?;
    let Kept { body, unchecked } = deserr::deserialize::<Kept<RequestEvent>, _, Violations>(body)?;
    changes::update(conn, id, (&body.into_draft(), &unchecked), me, zone, now)
}
