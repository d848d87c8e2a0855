//! The operations on events.

use actix_web::{get, patch, web::Path};
use common::input::Id;
use service_kit::{
    error::Failure,
    http::{Body, Query, Reply},
};

use super::{
    queries,
    wire::{EditEventRequest, Event, EventDetail},
};
use crate::{
    auth::{Member, Visitor},
    list::ListQuery,
    users,
};

/// List events
///
/// Ordered by start and id. Private ones only for their hosts and admins.
#[utoipa::path(
    tag = "events",
    operation_id = "getEvents",
    security(()),
    params(ListQuery),
    responses((status = 200, description = "Events", body = [Event]))
)]
#[get("/events")]
pub async fn list(who: Visitor, query: Query<ListQuery>) -> Result<Reply, Failure> {
    let limit = query.0.limit.rows();
    who.read(move |conn, caller| {
        let events = queries::list(conn, caller, limit)?.into_iter().map(Event::new);
        Reply::json(&events.collect::<Result<Vec<_>, _>>()?)
    })
    .await
}

/// One event
///
/// A private one only for its hosts and admins. An anonymous one has no hosts, but for themselves and admins.
#[utoipa::path(
    tag = "events",
    operation_id = "getEvent",
    security(()),
    params(("eventId" = uuid::Uuid, Path)),
    responses((status = 200, description = "The event", body = EventDetail))
)]
#[get("/events/{eventId}")]
pub async fn get(who: Visitor, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, caller| Reply::json(&EventDetail::new(queries::get(conn, (*id).into(), caller)?)?)).await
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
#[patch("/events/{eventId}")]
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
    security(()),
    params(("userId" = uuid::Uuid, Path), ListQuery),
    responses((status = 200, description = "Events", body = [Event]))
)]
#[get("/users/{userId}/events")]
pub async fn of_user(who: Visitor, user: Path<Id>, query: Query<ListQuery>) -> Result<Reply, Failure> {
    let limit = query.0.limit.rows();
    who.read(move |conn, caller| {
        users::queries::need(conn, (*user).into())?;
        let events = queries::of_user(conn, (*user).into(), caller, limit)?.into_iter().map(Event::new);
        Reply::json(&events.collect::<Result<Vec<_>, _>>()?)
    })
    .await
}
