//! The operations on events.

use actix_web::{get, patch, web::Path};
use common::input::Id;
use serde_json::json;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::{Error, Failure},
    guard::Target,
    history::Action,
    http::{Body, Page, Reply},
};

use super::{
    queries::{self, Event as Row},
    wire::{EditEventRequest, Event, EventDetail},
};
use crate::{
    auth::{Caller, EventHost, Visitor},
    objects::EVENT,
    users,
};

fn show(conn: &mut AnyConnection, id: DbUuid, caller: Option<&Caller>) -> Result<Reply, Error> {
    Reply::json(&EventDetail::new(queries::get(conn, id, caller)?)?)
}

/// List events
///
/// Ordered by start and id. Private events are listed only for their hosts and admins.
#[utoipa::path(
    tag = "events",
    operation_id = "getEvents",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    responses((status = 200, description = "Events", body = [Event]))
)]
#[get("")]
pub async fn list(who: Visitor, page: Page) -> Result<Reply, Failure> {
    who.list(page, |conn, caller, page| {
        page.rows(queries::list(conn, caller.as_ref(), &page.bounds()?)?, Row::position, Event::new)
    })
    .await
}

/// One event
///
/// Only its hosts and admins see a private event, and the hosts of an anonymous one.
#[utoipa::path(
    tag = "events",
    operation_id = "getEvent",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("eventId" = uuid::Uuid, Path)),
    responses((status = 200, description = "The event", body = EventDetail))
)]
#[get("/{eventId}")]
pub async fn get(who: Visitor, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, caller| show(conn, (*id).into(), caller.as_ref())).await
}

/// Change the level of an event
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
pub async fn update(who: EventHost, id: Path<Id>, body: Body<EditEventRequest>) -> Result<Reply, Failure> {
    let (id, level) = (DbUuid::from(*id), body.0.level);
    let target = Target::new(format!("event {id}"), move |conn, caller| show(conn, id, Some(caller)));
    let target =
        target.recorded(&EVENT, id, Action::Changed, move |conn| Ok(json!({"level": queries::level(conn, id)?})));
    who.update(target, move |conn, _| {
        if let Some(level) = level {
            queries::set_level(conn, id, level.number())?;
        }
        Ok(Reply::no_content())
    })
    .await
}

/// Events of a host
///
/// Ordered by start and id. Private and anonymous events are listed only for their hosts and admins.
#[utoipa::path(
    tag = "users",
    operation_id = "getUserEvents",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("userId" = uuid::Uuid, Path)),
    responses((status = 200, description = "Events", body = [Event]))
)]
#[get("/{userId}/events")]
pub async fn of_user(who: Visitor, user: Path<Id>, page: Page) -> Result<Reply, Failure> {
    who.list(page, move |conn, caller, page| {
        users::queries::check_exists(conn, (*user).into())?;
        page.rows(queries::of_user(conn, (*user).into(), caller.as_ref(), &page.bounds()?)?, Row::position, Event::new)
    })
    .await
}
