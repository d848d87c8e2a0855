//! The operations on series.

use actix_web::{delete, get, http::header, patch, post, web::Path};
use common::input::Id;
use service_kit::{
    database::types::{DbTimestamp, DbUuid},
    error::Failure,
    http::{Body, Query, Reply, etag::ETag},
    state::Now,
};

use super::{
    changes, creation, occurrences, queries,
    requests::{DeleteQuery, RequestEventSeries, RequestEventSeriesUpdate, RequestOccurrence, UpdateQuery},
    revision,
    target::{extended, record_new_series, show, target},
    wire::ResponseEventSeries,
};
use crate::{
    auth::SignedIn,
    club::Zone,
    events::{self, ChangeQuery, ResponseEventDetail},
};

/// Create a series of events
///
/// The rule is expanded at once; its occurrences are ordinary events with the same wall-clock times. With `place`, each is
/// in the verified room at that place that contains it, else in a room of its own.
#[utoipa::path(
    tags = ["events", "additions"],
    operation_id = "addEventSeries",
    params(ChangeQuery),
    request_body = RequestEventSeries,
    responses(
        (status = 200, description = "The series that would be created (`dryRun`)", body = ResponseEventSeries),
        (status = 201, description = "The new series", body = ResponseEventSeries,
            headers(("Location" = String, description = "Its address"))),
        (status = 409, description = "Dates cannot be booked (`series-conflict`); `dates` lists them"),
    )
)]
#[post("")]
pub async fn create(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    query: Query<ChangeQuery>,
    body: Body<RequestEventSeries>,
) -> Result<Reply, Failure> {
    let new = body.0.into_new();
    who.dry_run(query.0.dry_run.0)
        .queued_by(&new.draft.venue)
        .create(move |conn, me| {
            let (id, skipped) = creation::create(conn, &new, &me.author, zone, DbTimestamp(now))?;
            let series = record_new_series(conn, id, &me.author, zone)?;
            let series = ResponseEventSeries::new(series, zone).with_conflicts(skipped);
            Ok(Reply::created(&series)?.with(header::LOCATION, format!("/api/event-series/{id}")))
        })
        .await
}

/// One series of events
///
/// Its rule, its remaining events by time, and the dates that were skipped because they could not be booked.
#[utoipa::path(
    tags = ["events", "additions"],
    operation_id = "getEventSeries",
    params(("seriesID" = uuid::Uuid, Path)),
    responses((status = 200, description = "The series", body = ResponseEventSeries))
)]
#[get("/{seriesID}")]
pub async fn get(who: SignedIn, Zone(zone): Zone, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, _| show(conn, (*id).into(), zone)).await
}

/// Change the occurrences of a series
///
/// Needs an administrator of the series or a privileged user. Changes those that begin at `from` or later
/// and were not changed by themselves, all or none.
#[utoipa::path(
    tags = ["events", "additions"],
    operation_id = "updateEventSeries",
    params(("seriesID" = uuid::Uuid, Path), UpdateQuery),
    request_body = RequestEventSeriesUpdate,
    responses(
        (status = 200, description = "The series", body = ResponseEventSeries),
        (status = 409, description = "Dates cannot be booked (`series-conflict`); `dates` lists them"),
    )
)]
#[patch("/{seriesID}")]
pub async fn update(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    id: Path<Id>,
    query: Query<UpdateQuery>,
    body: Result<Body<RequestEventSeriesUpdate>, Failure>,
) -> Result<Reply, Failure> {
    let (id, now) = (DbUuid::from(*id), DbTimestamp(now));
    let body = match body {
        Ok(body) => body.0,
        Err(refusal) => {
            return who.refuse(refusal, move |conn, me| queries::check_found_and_may_change(conn, id, me)).await;
        }
    };
    let change = body.into_change(query.0.include_changed.0, now);
    who.dry_run(query.0.dry_run.0)
        .queued_by(&id)
        .update(target(id, zone), move |conn, me| {
            let deleted = revision::update(conn, id, &change, me, zone, now)?;
            let shown = show(conn, id, zone)?;
            if change.until.is_none() {
                return Ok(shown);
            }
            let series = ResponseEventSeries::new(queries::get(conn, id)?, zone).with_deleted(deleted);
            // Its entity tag is that of the series.
            Ok(Reply::json(&series)?.with(header::ETAG, ETag::new(shown.body(), None).text()))
        })
        .await
}

/// Delete the occurrences of a series
///
/// Needs an administrator of the series or a privileged user. Deletes those that begin at `from` or later.
/// Each can be restored.
#[utoipa::path(
    tags = ["events", "additions"],
    operation_id = "deleteEventSeries",
    params(("seriesID" = uuid::Uuid, Path), DeleteQuery),
    responses((status = 204, description = "Deleted"))
)]
#[delete("/{seriesID}")]
pub async fn delete(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    id: Path<Id>,
    query: Query<DeleteQuery>,
) -> Result<Reply, Failure> {
    let (id, now) = (DbUuid::from(*id), DbTimestamp(now));
    let from = query.0.from.map_or(now, DbTimestamp);
    who.update(target(id, zone), move |conn, me| {
        changes::delete(conn, id, from, me, zone, now).map(|()| Reply::no_content())
    })
    .await
}

/// Add a date to a series
///
/// Needs an administrator of the series or a privileged user. The new event has the fields of the last one.
/// A date that was skipped is tried again.
#[utoipa::path(
    tags = ["events", "additions"],
    operation_id = "addOccurrence",
    params(("seriesID" = uuid::Uuid, Path), ChangeQuery),
    request_body = RequestOccurrence,
    responses(
        (status = 200, description = "The event that would be created (`dryRun`)", body = ResponseEventDetail),
        (status = 201, description = "The new event", body = ResponseEventDetail,
            headers(("Location" = String, description = "Its address"))),
        (status = 409, description = "The date cannot be booked (`series-conflict`); `dates` has it"),
    )
)]
#[post("/{seriesID}/occurrences")]
pub async fn add_occurrence(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    id: Path<Id>,
    query: Query<ChangeQuery>,
    body: Result<Body<RequestOccurrence>, Failure>,
) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    let body = match body {
        Ok(body) => body.0,
        Err(refusal) => {
            return who.refuse(refusal, move |conn, me| queries::check_found_and_may_change(conn, id, me)).await;
        }
    };
    let span = body.span();
    who.dry_run(query.0.dry_run.0)
        .queued_by(&id)
        .update(extended(id), move |conn, me| {
            let event = occurrences::add(conn, id, span, me, zone, DbTimestamp(now))?;
            let shown = events::show_created(conn, event, &me.author, zone)?;
            Ok(Reply::created(&shown)?.with(header::LOCATION, format!("/api/events/{event}")))
        })
        .await
}
