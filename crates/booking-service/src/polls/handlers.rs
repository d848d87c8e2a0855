//! The operations on polls.

use actix_web::{
    delete, get,
    http::{StatusCode, header},
    post, put,
    web::Path,
};
use chrono_tz::Tz;
use common::input::Id;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    guard::Target,
    http::{Body, ListPage, ListPart, Page, Query, Reply, pagination::Load},
    state::{Now, TimeDependent},
};

use super::{
    answers::{self, Answer},
    changes,
    confirmation::{self, Confirmation},
    queries::{self, Poll, Selection, UserAnswer},
    requests::{OfUserQuery, RequestAvailability, RequestConfirmation, RequestDraftEvent, RequestDraftEventUpdate},
    results::by_user,
    target::{changed, confirmed, lock_name, record_created, show, target},
    wire::{ResponseAvailability, ResponseDraftEvent, ResponseDraftEventDetail, ResponseSchedulingResults},
};
use crate::{
    auth::{Caller, SignedIn},
    club::Zone,
    events::{self, ChangeQuery, ResponseEventDetail, selection::Relation},
    users,
};

/// The poll to which an operation adds a part.
pub fn parent(id: DbUuid) -> Target<Caller> {
    Target::parent(lock_name(id))
}

/// The answer of a user.
fn show_answer(conn: &mut AnyConnection, id: DbUuid, user: DbUuid, zone: Tz) -> Result<Reply, Error> {
    queries::find(conn, id)?;
    let answer = queries::answer_of(conn, id, user)?;
    let (slots, choices) = (queries::slots(conn, id)?, queries::choices(conn, id, Some(&[user]))?);
    Reply::json(&ResponseAvailability::new(answer, id, &slots, &choices, zone))
}

/// The caller's answer, which an operation changes.
fn answer_target(id: DbUuid, zone: Tz) -> Target<Caller> {
    Target::of_caller(format!("answer to poll {id}"), move |conn, me: &Caller| show_answer(conn, id, me.id, zone))
}

/// Create a poll
///
/// A poll proposes candidate slots, and its invitees answer which of them suit. Each slot is on one date in the club's
/// time zone, or between two instants.
#[utoipa::path(
    tag = "draft-events",
    operation_id = "addDraftEvent",
    request_body = RequestDraftEvent,
    responses((status = 201, description = "The new poll", body = ResponseDraftEvent,
        headers(("Location" = String, description = "Its address"))))
)]
#[post("")]
pub async fn create(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    body: Body<RequestDraftEvent>,
) -> Result<Reply, Failure> {
    let now = DbTimestamp(now);
    who.create(move |conn, me| {
        let id = changes::create(conn, &body.0.to_poll(zone)?, &me.author, now)?;
        record_created(conn, id, &me.author, now, zone)?;
        let reply = Reply::created(&ResponseDraftEvent::new(queries::get(conn, id)?, now, zone))?;
        Ok(reply.with(header::LOCATION, format!("/api/draft-events/{id}")))
    })
    .await
}

/// One poll
#[utoipa::path(
    tag = "draft-events",
    operation_id = "getDraftEvent",
    params(("draftEventID" = uuid::Uuid, Path)),
    responses((status = 200, description = "The poll", body = ResponseDraftEventDetail))
)]
#[get("/{draftEventID}")]
pub async fn get(
    who: SignedIn,
    Zone(zone): Zone,
    TimeDependent(now): TimeDependent,
    id: Path<Id>,
) -> Result<Reply, Failure> {
    who.read(move |conn, _| show(conn, (*id).into(), DbTimestamp(now), zone)).await
}

/// Change a poll
///
/// Needs an administrator of the poll or a privileged user, until the deadline. After the deadline, a change that sets
/// a new one in the future reopens the poll. A confirmed poll is closed. Fields that are left out stay as they are.
/// Slots can be added but not removed.
#[utoipa::path(
    tag = "draft-events",
    operation_id = "updateDraftEvent",
    params(("draftEventID" = uuid::Uuid, Path)),
    request_body = RequestDraftEventUpdate,
    responses((status = 200, description = "The poll", body = ResponseDraftEventDetail))
)]
#[put("/{draftEventID}")]
pub async fn update(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    id: Path<Id>,
    body: Result<Body<RequestDraftEventUpdate>, Failure>,
) -> Result<Reply, Failure> {
    let (id, now) = (DbUuid::from(*id), DbTimestamp(now));
    let body = match body {
        Ok(body) => body.0,
        Err(refusal) => return who.refuse(refusal, move |conn, me| queries::check_may_change(conn, id, me)).await,
    };
    who.update(changed(id, now, zone), move |conn, me| {
        changes::update(conn, id, &body.to_change(zone)?, me, now)?;
        show(conn, id, now, zone)
    })
    .await
}

/// Delete a poll
///
/// Needs an administrator of the poll or a privileged user. The event of a confirmed poll stays.
#[utoipa::path(
    tag = "draft-events",
    operation_id = "deleteDraftEvent",
    params(("draftEventID" = uuid::Uuid, Path)),
    responses((status = 204, description = "Deleted"))
)]
#[delete("/{draftEventID}")]
pub async fn delete(who: SignedIn, Zone(zone): Zone, Now(now): Now, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(target(id, DbTimestamp(now), zone), move |conn, me| {
        changes::delete(conn, id, me, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

/// Restore a deleted poll
///
/// Needs an administrator of the poll or a privileged user, within 30 days of its deletion.
#[utoipa::path(
    tags = ["draft-events", "additions"],
    operation_id = "restoreDraftEvent",
    params(("draftEventID" = uuid::Uuid, Path)),
    responses(
        (status = 200, description = "The poll", body = ResponseDraftEventDetail),
        (status = 409, description = "It is not deleted (`not-deleted`)"),
    )
)]
#[post("/{draftEventID}/restore")]
pub async fn restore(who: SignedIn, Zone(zone): Zone, Now(now): Now, id: Path<Id>) -> Result<Reply, Failure> {
    let (id, now) = (DbUuid::from(*id), DbTimestamp(now));
    who.update(parent(id), move |conn, me| {
        changes::restore(conn, id, me, now)?;
        show(conn, id, now, zone)
    })
    .await
}

/// The results of a poll
#[utoipa::path(
    tag = "draft-events",
    operation_id = "getDraftEventResults",
    params(("draftEventID" = uuid::Uuid, Path)),
    responses((status = 200, description = "The results", body = ResponseSchedulingResults))
)]
#[get("/{draftEventID}/results")]
pub async fn results(who: SignedIn, Zone(zone): Zone, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, _| {
        queries::find(conn, id)?;
        let (slots, invitees) = (queries::slots(conn, id)?, queries::invitees(conn, id)?);
        let (answers, choices) = (queries::answers(conn, id, &PageBounds::all())?, queries::choices(conn, id, None)?);
        Reply::json(&ResponseSchedulingResults::new(id, &slots, &invitees, answers, &choices, zone))
    })
    .await
}

/// The caller's answer
#[utoipa::path(
    tag = "availability",
    operation_id = "getMyAvailability",
    params(("draftEventID" = uuid::Uuid, Path)),
    responses((status = 200, description = "The answer", body = ResponseAvailability))
)]
#[get("/{draftEventID}/availability")]
pub async fn own_answer(who: SignedIn, Zone(zone): Zone, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| show_answer(conn, id, me.id, zone)).await
}

/// Answer a poll
///
/// Needs an invitee or an administrator of the poll, or an open poll, until the deadline or the confirmation.
#[utoipa::path(
    tag = "availability",
    operation_id = "addAvailability",
    params(("draftEventID" = uuid::Uuid, Path)),
    request_body = RequestAvailability,
    responses(
        (status = 201, description = "The answer", body = ResponseAvailability),
        (status = 409, description = "The caller has already answered (`already-answered`)"),
    )
)]
#[post("/{draftEventID}/availability")]
pub async fn create_answer(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    id: Path<Id>,
    body: Body<RequestAvailability>,
) -> Result<Reply, Failure> {
    let (id, answer) = (DbUuid::from(*id), Answer::from(body.0));
    who.update(parent(id), move |conn, me| {
        answers::create(conn, id, me.id, &answer, DbTimestamp(now))?;
        Ok(show_answer(conn, id, me.id, zone)?.with_status(StatusCode::CREATED))
    })
    .await
}

/// Change the caller's answer
///
/// Replaces the answer, until the deadline or the confirmation.
#[utoipa::path(
    tag = "availability",
    operation_id = "updateAvailability",
    params(("draftEventID" = uuid::Uuid, Path)),
    request_body = RequestAvailability,
    responses((status = 200, description = "The answer", body = ResponseAvailability))
)]
#[put("/{draftEventID}/availability")]
pub async fn update_answer(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    id: Path<Id>,
    body: Body<RequestAvailability>,
) -> Result<Reply, Failure> {
    let (id, answer) = (DbUuid::from(*id), Answer::from(body.0));
    who.update(answer_target(id, zone), move |conn, me| {
        answers::update(conn, id, me.id, &answer, DbTimestamp(now))?;
        show_answer(conn, id, me.id, zone)
    })
    .await
}

/// All answers
///
/// Needs an administrator of the poll or a privileged user. Ordered by userId.
#[utoipa::path(
    tag = "availability",
    operation_id = "getAllAvailabilities",
    params(("draftEventID" = uuid::Uuid, Path)),
    responses((status = 200, description = "The answers", body = [ResponseAvailability]))
)]
#[get("/{draftEventID}/availability/all")]
pub async fn all_answers(who: SignedIn, Zone(zone): Zone, id: Path<Id>, page: Page) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.list(page, move |conn, me, page| {
        queries::find(conn, id)?;
        queries::check_admin_or_privileged(conn, id, me)?;
        let answers = queries::answers(conn, id, &page.bounds()?)?;
        let users: Vec<_> = answers.iter().map(|answer| answer.user).collect();
        let (slots, choices) = (queries::slots(conn, id)?, queries::choices(conn, id, Some(&users))?);
        let choices = by_user(choices);
        let show = |answer: UserAnswer| {
            let choices = choices.get(&answer.user).map_or(&[][..], Vec::as_slice);
            Ok(ResponseAvailability::new(answer, id, &slots, choices, zone))
        };
        page.rows(answers, |answer| answer.user, show)
    })
    .await
}

/// Confirm a slot of a poll
///
/// Needs an administrator of the poll or a privileged user, before or after the deadline. The slot becomes an event
/// with the poll's name, description, tags and administrators, created as by `POST /events`. Users who answered yes for
/// the slot attend. Users who answered maybe or did not answer are pending. Users who answered without choosing the
/// slot are absent. The poll is closed until the event is deleted.
#[utoipa::path(
    tags = ["draft-events", "additions"],
    operation_id = "confirmDraftEvent",
    params(("draftEventID" = uuid::Uuid, Path), ChangeQuery),
    request_body = RequestConfirmation,
    responses(
        (status = 200, description = "The event that would be created (`dryRun`)", body = ResponseEventDetail),
        (status = 201, description = "The new event", body = ResponseEventDetail,
            headers(("Location" = String, description = "Its address"))),
        (status = 409, description = "The room is taken (`room-conflict`), or the poll has already been \
            confirmed (`poll-confirmed`, with `eventId`)"),
    )
)]
#[post("/{draftEventID}/confirm")]
pub async fn confirm(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    id: Path<Id>,
    query: Query<ChangeQuery>,
    body: Result<Body<RequestConfirmation>, Failure>,
) -> Result<Reply, Failure> {
    let (id, now) = (DbUuid::from(*id), DbTimestamp(now));
    let body = match body {
        Ok(body) => body.0,
        Err(refusal) => return who.refuse(refusal, move |conn, me| queries::check_may_change(conn, id, me)).await,
    };
    let confirmation = Confirmation::from(body);
    who.dry_run(query.0.dry_run.0)
        .queued_by(&confirmation.venue)
        .update(confirmed(id, now, zone), move |conn, me| {
            let event = confirmation::confirm(conn, id, &confirmation, me, zone, now)?;
            let reply = Reply::created(&events::show_created(conn, event, &me.author, zone)?)?;
            Ok(reply.with(header::LOCATION, format!("/api/events/{event}")))
        })
        .await
}

/// Polls of the signed-in user
///
/// Ordered by deadline and id.
#[utoipa::path(
    tag = "draft-events",
    operation_id = "getMyDraftEvents",
    params(OfUserQuery),
    responses((status = 200, description = "Polls", body = [ResponseDraftEvent]))
)]
#[get("/me/draft-events")]
pub async fn mine(
    who: SignedIn,
    Zone(zone): Zone,
    TimeDependent(now): TimeDependent,
    page: Page,
    query: Query<OfUserQuery>,
) -> Result<Reply, Failure> {
    let now = DbTimestamp(now);
    who.list(page, move |conn, me, page| list_of_user(conn, me.id, &query.0, now, page, zone)).await
}

/// Polls of a user
///
/// Ordered by deadline and id.
#[utoipa::path(
    tag = "draft-events",
    operation_id = "getUserDraftEvents",
    params(("userID" = uuid::Uuid, Path), OfUserQuery),
    responses((status = 200, description = "Polls", body = [ResponseDraftEvent]))
)]
#[get("/{userID}/draft-events")]
pub async fn of_user(
    who: SignedIn,
    Zone(zone): Zone,
    TimeDependent(now): TimeDependent,
    id: Path<Id>,
    page: Page,
    query: Query<OfUserQuery>,
) -> Result<Reply, Failure> {
    let now = DbTimestamp(now);
    who.list(page, move |conn, _, page| {
        let user = users::queries::get(conn, (*id).into())?;
        list_of_user(conn, user.id, &query.0, now, page, zone)
    })
    .await
}

fn list_of_user(
    conn: &mut AnyConnection,
    user: DbUuid,
    query: &OfUserQuery,
    now: DbTimestamp,
    page: &ListPart,
    zone: Tz,
) -> Result<ListPage, Error> {
    let relation = query.relation.unwrap_or(Relation::Belongs);
    let selection = Selection { user, relation, status: query.status };
    let polls = match page.load()? {
        Load::Page(bounds) | Load::First(bounds) => queries::load(conn, &selection, now, &bounds)?,
        Load::Ids(bounds) => return Ok(ListPage::ids(queries::load_ids(conn, &selection, now, &bounds)?)),
        Load::These(ids) => queries::load_these(conn, &ids)?,
    };
    let position = |poll: &Poll| (poll.row.deadline, poll.row.id);
    page.rows(polls, position, |poll| Ok(ResponseDraftEvent::new(poll, now, zone)))
}
