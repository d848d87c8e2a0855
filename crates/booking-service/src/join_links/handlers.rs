//! The operations on invitations.

use actix_web::{delete, get, http::header, post, web::Path};
use chrono_tz::Tz;
use common::input::Id;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    guard::Target,
    http::{Body, Page, Reply},
    state::{Now, TimeDependent},
};

use super::{
    changes,
    queries::{self, Invitation},
    wire::{InvitationWithLink, NewInvitation, RequestInvitation, ResponseInvitation},
};
use crate::{
    auth::{Caller, Privileged},
    club::{Club, Zone},
};

/// The address by which somebody joins.
pub fn address(origin: &str, secret: &str) -> String {
    format!("{origin}/join/{secret}")
}

/// The invitation that an operation changes.
pub fn target(id: DbUuid, zone: Tz) -> Target<Caller> {
    Target::new(format!("invitation {id}"), move |conn: &mut AnyConnection, _| -> Result<Reply, Error> {
        Reply::json(&ResponseInvitation::new(&queries::get(conn, id)?, zone))
    })
}

/// List invitations
///
/// Needs a privileged user. Those by which somebody can still join, the newest first.
#[utoipa::path(
    tags = ["users", "additions"],
    operation_id = "getInvitations",
    responses((status = 200, description = "Invitations", body = [ResponseInvitation]))
)]
#[get("")]
pub async fn list(who: Privileged, Zone(zone): Zone, now: TimeDependent, page: Page) -> Result<Reply, Failure> {
    who.list(page, move |conn, _, page| {
        let position = |invitation: &Invitation| (std::cmp::Reverse(invitation.created_at), invitation.id);
        let invitations = queries::list(conn, DbTimestamp(now.0))?;
        page.rows_of_all(invitations, position, |invitation| Ok(ResponseInvitation::new(&invitation, zone)))
    })
    .await
}

/// Create an invitation
///
/// Needs a privileged user. Whoever opens the link and signs in becomes a member. It is shown in this answer only.
#[utoipa::path(
    tags = ["users", "additions"],
    operation_id = "createInvitation",
    request_body = RequestInvitation,
    responses(
        (status = 201, description = "The invitation with its link", body = InvitationWithLink),
        (status = 409, description = "There are 100 already (`too-many-invitations`)")
    )
)]
#[post("")]
pub async fn create(who: Privileged, club: Club, now: Now, body: Body<RequestInvitation>) -> Result<Reply, Failure> {
    let new = NewInvitation::from(body.0);
    who.create(move |conn, me| {
        let (invitation, secret) = changes::create_recorded(conn, new.checked()?, &me.author, DbTimestamp(now.0))?;
        let invitation = ResponseInvitation::new(&invitation, club.zone);
        let answer = InvitationWithLink { invitation, url: address(&club.origin, &secret) };
        Ok(Reply::created(&answer)?.with(header::CACHE_CONTROL, "no-store").secret())
    })
    .await
}

/// Delete an invitation
///
/// Needs a privileged user. Nobody can join by it any more; who has joined stays.
#[utoipa::path(
    tags = ["users", "additions"],
    operation_id = "deleteInvitation",
    params(("invitationID" = uuid::Uuid, Path)),
    responses((status = 204, description = "Deleted"))
)]
#[delete("/{invitationID}")]
pub async fn delete(who: Privileged, Zone(zone): Zone, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(target(id, zone), move |conn, me| {
        changes::delete(conn, id, &me.author)?;
        Ok(Reply::no_content())
    })
    .await
}
