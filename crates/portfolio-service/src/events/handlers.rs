//! The operations on events.

use actix_web::{get, patch, web::Path};
use common::input::Id;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::{Error, Failure},
    http::{Body, Page, Reply},
};

use super::{
    queries::{self, Event as Row},
    wire::{EditEventRequest, Event, EventDetail},
};
use crate::{
    auth::{Caller, Member, Visitor},
    users,
};

/// What `GET` of an event answers to this caller.
///
/// # Errors
/// 404 when there is none that the caller may see.
pub fn show(conn: &mut AnyConnection, id: DbUuid, caller: Option<&Caller>) -> Result<Reply, Error> {
    Reply::json(&EventDetail::new(queries::get(conn, id, caller)?)?)
}

/// List events
///
/// Ordered by start and id. Private ones only for their hosts and admins.
#[utoipa::path(
    tag = "events",
    operation_id = "getEvents",
    security((), ("proxy" = []), ("token" = [])),
    responses((status = 200, description = "Events", body = [Event]))
)]
#[get("")]
pub async fn list(who: Visitor, page: Page) -> Result<Reply, Failure> {
    who.list(page, |conn, caller, page| {
        page.reply(queries::list(conn, caller, &page.slice()?)?, Row::position, Event::new)
    })
    .await
}

/// One event
///
/// A private one only for its hosts and admins. An anonymous one has no hosts, but for themselves and admins.
#[utoipa::path(
    tag = "events",
    operation_id = "getEvent",
    security((), ("proxy" = []), ("token" = [])),
    params(("eventId" = uuid::Uuid, Path)),
    responses((status = 200, description = "The event", body = EventDetail))
)]
#[get("/{eventId}")]
pub async fn get(who: Visitor, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, caller| show(conn, (*id).into(), caller)).await
}

/// Change how much of an event is shown
///
/// For its hosts and admins.
#[utoipa::path(
    tag = "events",
    operation_id = "editEvent",
    params(("eventId" = uuid::Uuid, Path)),
    request_body = EditEventRequest,
    responses((status = 204, description = "Changed"))
)]
#[patch("/{eventId}")]
pub async fn update(who: Member, id: Path<Id>, body: Body<EditEventRequest>) -> Result<Reply, Failure> {
    let level = body.0.level;
    who.write(move |conn, _| {
        if let Some(level) = level {
            queries::set_level(conn, (*id).into(), level.number())?;
        }
        Ok(Reply::no_content())
    })
    .await
}

/// Events that a user hosted
///
/// Ordered by start and id. Of private and anonymous ones, only their hosts and admins learn here who hosted them.
#[utoipa::path(
    tag = "users",
    operation_id = "getUserEvents",
    security((), ("proxy" = []), ("token" = [])),
    params(("userId" = uuid::Uuid, Path)),
    responses((status = 200, description = "Events", body = [Event]))
)]
#[get("/{userId}/events")]
pub async fn of_user(who: Visitor, user: Path<Id>, page: Page) -> Result<Reply, Failure> {
    let slice = page.slice()?;
    who.read(move |conn, caller| {
        users::queries::need(conn, (*user).into())?;
        page.reply(queries::of_user(conn, (*user).into(), caller, &slice)?, Row::position, Event::new)
    })
    .await
}
