//! The operations on events.

use actix_web::{delete, get, http::header, post, put, web::Path};
use chrono::TimeDelta;
use chrono_tz::Tz;
use common::{
    input::Id,
    kept::Kept,
    problem::{Problem, Rule},
};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    history::Action,
    http::{Body, ListPage, ListPart, Page, Query, Reply, pagination::Load},
    state::{Now, TimeDependent},
};

use super::{
    attendance, changes,
    filter::Filter,
    params::{ActivityQuery, AnswerQuery, ChangeQuery, ListQuery, SpanQuery, UserQuery},
    queries::{self, Order},
    requests::{RequestEvent, RequestEventTag, RequestSchedule},
    search,
    selection::{Criterion, Deleted, Selection},
    target::{check_may_change, recorded, show, show_created, target},
    wire::{ResponseEvent, ResponseEventDetail},
};
use crate::{
    auth::{ACTIVE, SignedIn},
    club::Zone,
    groups, rooms, users,
};

/// How far back the activity list goes.
const ACTIVITY: TimeDelta = TimeDelta::days(7);

fn list_selection(
    conn: &mut AnyConnection,
    selection: &Selection,
    order: Order,
    page: &ListPart,
    zone: Tz,
) -> Result<ListPage, Error> {
    let mut end = None;
    let events = match page.load()? {
        Load::Page(bounds) => {
            let part = queries::searched_part(conn, selection, bounds.after)?;
            end = part.until;
            queries::load_page(conn, &part, order, &bounds)?
        }
        Load::First(bounds) => queries::load_first(conn, selection, order, &bounds)?,
        Load::Ids(bounds) => {
            return Ok(ListPage::versions(queries::load_versions(conn, selection, order, &bounds)?));
        }
        Load::These(ids) => queries::load_page(conn, &selection.these(ids), order, &PageBounds::all())?,
    };
    let rows = page.rows(events, |event| order.position(&event.row), |event| Ok(ResponseEvent::new(event, zone)))?;
    page.up_to(rows, end)
}

/// List events
///
/// Events that overlap the span, match the filter and contain what is searched for. Either end of the span may be
/// missing. Ordered by timeStart and id.
#[utoipa::path(
    tag = "events",
    operation_id = "getEvents",
    params(ListQuery),
    responses((status = 200, description = "Events", body = [ResponseEvent]))
)]
#[get("")]
pub async fn list(who: SignedIn, Zone(zone): Zone, page: Page, query: Query<ListQuery>) -> Result<Reply, Failure> {
    let ((time, filter), words) = (query.0.time_and_filter()?, query.0.words()?);
    let selection =
        time.selection(if filter == Filter::Everything { Criterion::All } else { Criterion::Matching(filter) });
    let page = if words.is_empty() { page } else { page.always_limited() };
    who.list(page, move |conn, _, page| {
        let selection = selection.clone().containing(search::find(conn, &words)?);
        list_selection(conn, &selection, Order::Start, page, zone)
    })
    .await
}

/// Create an event
///
/// With `place`, an unverified room with the event's span is created. With `roomId`, the event must lie inside the
/// period of that room. The members of the group are invited.
#[utoipa::path(
    tag = "events",
    operation_id = "addEvents",
    params(ChangeQuery),
    request_body = RequestEvent,
    responses(
        (status = 200, description = "The event that would be created (`dryRun`)", body = ResponseEventDetail),
        (status = 201, description = "The new event", body = ResponseEventDetail,
            headers(("Location" = String, description = "Its address"))),
        (status = 409, description = "The room is taken (`room-conflict`); `conflicts` lists the conflicting events, \
            `freeTimes` when it is free"),
    )
)]
#[post("")]
pub async fn create(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    query: Query<ChangeQuery>,
    body: Body<RequestEvent>,
) -> Result<Reply, Failure> {
    let draft = body.0.into_draft();
    who.dry_run(query.0.dry_run.0)
        .queued_by(&draft.venue)
        .create(move |conn, me| {
            let id = changes::create(conn, &draft, &me.author, zone, DbTimestamp(now))?;
            Ok(Reply::created(&show_created(conn, id, &me.author, zone)?)?
                .with(header::LOCATION, format!("/api/events/{id}")))
        })
        .await
}

/// One event
#[utoipa::path(
    tag = "events",
    operation_id = "getEventDetail",
    params(("eventID" = uuid::Uuid, Path)),
    responses((status = 200, description = "The event", body = ResponseEventDetail))
)]
#[get("/{eventID}")]
pub async fn get(who: SignedIn, Zone(zone): Zone, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, _| show(conn, (*id).into(), zone)).await
}

/// Change an event
///
/// Needs an administrator of the event or a privileged user. Replaces the event except its creator and the answers.
/// An event at a `place` keeps its room, which moves with it: send the `place`, or the `roomId` of the event.
#[utoipa::path(
    tag = "events",
    operation_id = "updateEvent",
    params(("eventID" = uuid::Uuid, Path), ChangeQuery),
    request_body = RequestEvent,
    responses(
        (status = 200, description = "The changed event", body = ResponseEventDetail),
        (status = 409, description = "The room is taken (`room-conflict`); `conflicts` lists the conflicting events, \
            `freeTimes` when it is free"),
    )
)]
#[put("/{eventID}")]
pub async fn update(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    id: Path<Id>,
    query: Query<ChangeQuery>,
    body: Result<Body<Kept<RequestEvent>>, Failure>,
) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    let body = match body {
        Ok(body) => body.0,
        Err(refusal) => return who.refuse(refusal, move |conn, me| check_may_change(conn, id, me)).await,
    };
    let (draft, unchecked) = (body.body.into_draft(), body.unchecked);
    who.dry_run(query.0.dry_run.0)
        .queued_by(&draft.venue)
        .update(recorded(id, Action::Changed, zone), move |conn, me| {
            changes::update(conn, id, (&draft, &unchecked), me, zone, DbTimestamp(now))?;
            show(conn, id, zone)
        })
        .await
}

/// Delete an event
///
/// Needs an administrator of the event or a privileged user. The activity list and the feeds show the event as deleted.
#[utoipa::path(
    tag = "events",
    operation_id = "deleteEvent",
    params(("eventID" = uuid::Uuid, Path)),
    responses((status = 204, description = "Deleted"))
)]
#[delete("/{eventID}")]
pub async fn delete(who: SignedIn, Zone(zone): Zone, Now(now): Now, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(target(id, zone), move |conn, me| {
        changes::delete(conn, id, me, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

/// Answer an event
///
/// Needs an open event, membership of its group, or an invitation. Whoever is listed may answer until the event ends, and
/// `absent` always.
#[utoipa::path(
    tag = "events",
    operation_id = "updateSchedule",
    params(("eventID" = uuid::Uuid, Path), AnswerQuery),
    request_body = RequestSchedule,
    responses((status = 204, description = "Answered"))
)]
#[put("/{eventID}/attendees/me")]
pub async fn answer(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    id: Path<Id>,
    query: Query<AnswerQuery>,
    body: Body<RequestSchedule>,
) -> Result<Reply, Failure> {
    let (id, schedule, later) = (DbUuid::from(*id), body.0.schedule, query.0.series.0);
    who.update(target(id, zone), move |conn, me| {
        let answer = if later { attendance::answer_later } else { attendance::answer };
        answer(conn, id, me, schedule, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

/// Add a tag to an event
///
/// Creates the tag if it does not exist. Adding a tag again changes nothing. To add a locked tag, the caller must be an
/// administrator of the event or privileged.
#[utoipa::path(
    tag = "events",
    operation_id = "addEventTag",
    params(("eventID" = uuid::Uuid, Path)),
    request_body = RequestEventTag,
    responses(
        (status = 204, description = "The event has the tag"),
        (status = 409, description = "It has 100 tags (`too-many-tags`)")
    )
)]
#[post("/{eventID}/tags")]
pub async fn add_tag(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    id: Path<Id>,
    body: Body<RequestEventTag>,
) -> Result<Reply, Failure> {
    let (id, tag) = (DbUuid::from(*id), body.0.into_pair());
    who.update(recorded(id, Action::Changed, zone), move |conn, me| {
        attendance::add_tag(conn, id, &tag, me, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

/// Remove a tag from an event
///
/// To remove a locked tag, the caller must be an administrator of the event or privileged.
#[utoipa::path(
    tag = "events",
    operation_id = "deleteEventTag",
    params(("eventID" = uuid::Uuid, Path), ("tagName" = String, Path, description = "Percent-encoded. Clients take \
        `.` and `..` for parts of the path: remove these by changing the event.",
        pattern = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]+$")),
    responses((status = 204, description = "The event no longer has the tag"))
)]
#[delete("/{eventID}/tags/{tagName}")]
pub async fn remove_tag(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    path: Path<(Id, String)>,
) -> Result<Reply, Failure> {
    let (id, name) = path.into_inner();
    // Names of tags contain no control characters, and PostgreSQL rejects U+0000 in parameters.
    if name.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(Problem::parameter("tagName", Rule::ControlCharacter, "must not contain control characters").into());
    }
    let id = DbUuid::from(id);
    who.update(recorded(id, Action::Changed, zone), move |conn, me| {
        attendance::remove_tag(conn, id, &name, me, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

/// Events in a room
#[utoipa::path(
    tag = "events",
    operation_id = "getEventsOfRoom",
    params(("roomID" = uuid::Uuid, Path), SpanQuery),
    responses((status = 200, description = "Events", body = [ResponseEvent]))
)]
#[get("/{roomID}/events")]
pub async fn of_room(
    who: SignedIn,
    Zone(zone): Zone,
    id: Path<Id>,
    page: Page,
    query: Query<SpanQuery>,
) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    let selection = query.0.time()?.selection(Criterion::InRoom(id));
    who.list(page, move |conn, _, page| {
        rooms::queries::check_exists(conn, id)?;
        list_selection(conn, &selection, Order::Start, page, zone)
    })
    .await
}

/// Events of a group
#[utoipa::path(
    tag = "events",
    operation_id = "getEventsOfGroup",
    params(("groupID" = uuid::Uuid, Path), SpanQuery),
    responses((status = 200, description = "Events", body = [ResponseEvent]))
)]
#[get("/{groupID}/events")]
pub async fn of_group(
    who: SignedIn,
    Zone(zone): Zone,
    id: Path<Id>,
    page: Page,
    query: Query<SpanQuery>,
) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    let selection = query.0.time()?.selection(Criterion::OfGroup(id));
    who.list(page, move |conn, _, page| {
        groups::queries::check_exists(conn, id)?;
        list_selection(conn, &selection, Order::Start, page, zone)
    })
    .await
}

/// Events of the signed-in user
#[utoipa::path(
    tag = "events",
    operation_id = "getMyEvents",
    params(UserQuery),
    responses((status = 200, description = "Events", body = [ResponseEvent]))
)]
#[get("/me/events")]
pub async fn mine(who: SignedIn, Zone(zone): Zone, page: Page, query: Query<UserQuery>) -> Result<Reply, Failure> {
    let (time, relation) = query.0.time_and_relation()?;
    who.list(page, move |conn, me, page| {
        let criterion = Criterion::OfUser { user: me.id, relation, is_active: true, by_span: false };
        list_selection(conn, &time.selection(criterion), Order::Start, page, zone)
    })
    .await
}

/// Events of a user
#[utoipa::path(
    tag = "events",
    operation_id = "getUserEvents",
    params(("userID" = uuid::Uuid, Path), UserQuery),
    responses((status = 200, description = "Events", body = [ResponseEvent]))
)]
#[get("/{userID}/events")]
pub async fn of_user(
    who: SignedIn,
    Zone(zone): Zone,
    id: Path<Id>,
    page: Page,
    query: Query<UserQuery>,
) -> Result<Reply, Failure> {
    let (time, relation) = query.0.time_and_relation()?;
    who.list(page, move |conn, _, page| {
        let user = users::queries::get(conn, (*id).into())?;
        let criterion = Criterion::OfUser { user: user.id, relation, is_active: user.state == ACTIVE, by_span: false };
        list_selection(conn, &time.selection(criterion), Order::Start, page, zone)
    })
    .await
}

/// Recent activity
///
/// Events created, changed or deleted in the last 7 days, the newest change first.
#[utoipa::path(
    tag = "events",
    operation_id = "getEventActivities",
    params(ActivityQuery),
    responses((status = 200, description = "Events, deleted ones with `deletedAt`", body = [ResponseEvent]))
)]
#[get("/activity/events")]
pub async fn activity(
    who: SignedIn,
    Zone(zone): Zone,
    TimeDependent(now): TimeDependent,
    page: Page,
    query: Query<ActivityQuery>,
) -> Result<Reply, Failure> {
    let criterion = Criterion::ChangedAfter(query.0.after(now.plus(-ACTIVITY)));
    let selection = Selection { deleted: Deleted::All, ..Selection::new(criterion) };
    who.list(page, move |conn, _, page| list_selection(conn, &selection, Order::Change, page, zone)).await
}
