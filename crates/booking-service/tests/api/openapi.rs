//! The OpenAPI document agrees with the contract and is committed.

#[path = "../../../service-kit/tests/shared/openapi.rs"]
mod document;

use document::Contract;

pub use self::document::{pinned, pinned_part};
use crate::harness::{ALICE, Backend, Club};

/// Every operation of the contract: method, path below `/api`, query parameters, body, success status and answer.
/// `(public)` needs no sign-in.
const OPERATIONS: &str = "
GET /rooms ?dateBegin ?dateEnd ?excludeEventID ?onlyVerified -> 200 ResponseRoom[]
POST /rooms RequestRoom -> 201 ResponseRoom
GET /rooms/{roomID} ?excludeEventID -> 200 ResponseRoom
DELETE /rooms/{roomID} ?force -> 200 ResponseRoom
POST /rooms/{roomID}/verified -> 204
DELETE /rooms/{roomID}/verified -> 204
POST /rooms/all ?dryRun text/csv -> 201 ResponseRoom[]
GET /rooms/{roomID}/events ?dateBegin ?dateEnd -> 200 ResponseEvent[]
GET /events ?dateBegin ?dateEnd ?q -> 200 ResponseEvent[]
POST /events RequestEvent -> 201 ResponseEventDetail
GET /events/{eventID} -> 200 ResponseEventDetail
PUT /events/{eventID} RequestEvent -> 200 ResponseEventDetail
DELETE /events/{eventID} -> 204
PUT /events/{eventID}/attendees/me RequestSchedule -> 204
POST /events/{eventID}/tags RequestEventTag -> 204
DELETE /events/{eventID}/tags/{tagName} -> 204
GET /users/me/events ?relation ?dateBegin ?dateEnd -> 200 ResponseEvent[]
GET /users/{userID}/events ?relation ?dateBegin ?dateEnd -> 200 ResponseEvent[]
GET /groups/{groupID}/events ?dateBegin ?dateEnd -> 200 ResponseEvent[]
GET /activity/events -> 200 ResponseEvent[]
GET /groups -> 200 ResponseGroup[]
POST /groups RequestGroup -> 201 ResponseGroup
GET /groups/{groupID} -> 200 ResponseGroup
PUT /groups/{groupID} RequestGroup -> 200 ResponseGroup
DELETE /groups/{groupID} ?force -> 204
PUT /groups/{groupID}/members/me -> 204
DELETE /groups/{groupID}/members/me -> 204
GET /users/me/groups ?relation -> 200 uuid[]
GET /users/{userID}/groups ?relation -> 200 uuid[]
GET /users ?include-suspended -> 200 ResponseUser[]
POST /users/sync -> 201
GET /users/me -> 200 ResponseUser
PATCH /users/{userID}/privileged RequestPrivileged -> 204
GET /tags -> 200 ResponseTag[]
POST /tags RequestTag -> 201 ResponseTag
GET /users/me/ical -> 200 icalSecret
PUT /users/me/ical -> 200 icalSecret
GET /ical/v1/{icalToken} ?q (public) -> 200 text/calendar
POST /authParams (public) -> 201 authParams
GET /callback ?code ?state (public) -> 302
GET /version (public) -> 200 version
POST /draft-events RequestDraftEvent -> 201 ResponseDraftEvent
GET /draft-events/{draftEventID} -> 200 ResponseDraftEventDetail
PUT /draft-events/{draftEventID} RequestDraftEventUpdate -> 200 ResponseDraftEventDetail
DELETE /draft-events/{draftEventID} -> 204
GET /draft-events/{draftEventID}/results -> 200 ResponseSchedulingResults
GET /draft-events/{draftEventID}/availability -> 200 ResponseAvailability
POST /draft-events/{draftEventID}/availability RequestAvailability -> 201 ResponseAvailability
PUT /draft-events/{draftEventID}/availability RequestAvailability -> 200 ResponseAvailability
GET /draft-events/{draftEventID}/availability/all -> 200 ResponseAvailability[]
GET /users/me/draft-events ?relation ?status -> 200 ResponseDraftEvent[]
GET /users/{userID}/draft-events ?relation ?status -> 200 ResponseDraftEvent[]
";

/// The fields of every type: optional ones with a question mark; the bounds of a string are its length, of an array
/// the smallest number of items.
const TYPES: &str = "
ResponseUser: userId uuid, name string, displayName string, icon string, privileged boolean, state integer
duration: timeStart date-time, timeEnd date-time
ResponseRoom: roomId uuid, place string, timeStart date-time, timeEnd date-time, verified boolean, \
freeTimes duration[], sharedTimes duration[], admins uuid[], createdBy uuid, createdAt date-time, updatedAt date-time
RequestRoom: place string(1-32), timeStart date-time, timeEnd date-time, admins uuid[](1)
ResponseGroup: groupId uuid, name string, description string, open boolean, isTraQGroup boolean, members uuid[], \
admins uuid[], createdBy uuid, createdAt date-time, updatedAt date-time
RequestGroup: name string(1-32), description string(0-10000), open boolean, members? uuid[], admins uuid[](1)
ResponseTag: tagId uuid, name string, createdAt date-time, updatedAt date-time
RequestTag: name string(1-16)
ResponseEventTag: tagId uuid, name string, locked boolean
RequestEventTag: name string(1-16), locked? boolean
RequestSchedule: schedule pending|absent|attendance
ResponseAttendee: userId uuid, schedule pending|absent|attendance
ResponseEvent: eventId uuid, name string, description string, sharedRoom boolean, timeStart date-time, \
timeEnd date-time, place string, roomId uuid, groupId uuid, open boolean, admins uuid[], tags ResponseEventTag[], \
attendees uuid[], createdBy uuid, createdAt date-time, updatedAt date-time, deletedAt? date-time
ResponseEventDetail: eventId uuid, name string, description string, sharedRoom boolean, timeStart date-time, \
timeEnd date-time, place string, groupName string, open boolean, room ResponseRoom, group ResponseGroup, \
admins uuid[], tags ResponseEventTag[], attendees ResponseAttendee[], createdBy uuid, createdAt date-time, \
updatedAt date-time
RequestEventInstant: name string(1-32), description string(0-10000), sharedRoom boolean, timeStart date-time, \
timeEnd date-time, place string(1-32), groupId uuid, open? boolean, admins uuid[](1), tags? RequestEventTag[]
RequestEventStock: name string(1-32), description string(0-10000), sharedRoom boolean, timeStart date-time, \
timeEnd date-time, roomId uuid, groupId uuid, open? boolean, admins uuid[](1), tags? RequestEventTag[]
RequestEvent: RequestEventInstant / RequestEventStock
RequestPrivileged: privileged boolean
authParams: url string
icalSecret: secret string
version: version string, revision string
RequestCandidateSlotOnDate: date date, startTime string, endTime string
RequestCandidateSlotSpan: timeStart date-time, timeEnd date-time
RequestCandidateSlot: RequestCandidateSlotOnDate / RequestCandidateSlotSpan
CandidateSlot: slotId uuid, timeStart date-time, timeEnd date-time
RequestDraftEvent: name string(1-32), description? string(0-10000), open? boolean, deadline date-time, \
candidateSlots RequestCandidateSlot[](1), admins uuid[](1), invitees? uuid[], inviteGroups? uuid[], \
tags? RequestEventTag[]
RequestDraftEventUpdate: name? string(1-32), description? string(0-10000), open? boolean, deadline? date-time, \
additionalCandidateSlots? RequestCandidateSlot[], invitees? uuid[], admins? uuid[](1)
ResponseDraftEvent: draftEventId uuid, name string, deadline date-time, status open|closed|confirmed, \
respondedCount integer, totalInvitees integer, admins uuid[], createdBy uuid, createdAt date-time, updatedAt date-time
ResponseDraftEventDetail: draftEventId uuid, name string, deadline date-time, status open|closed|confirmed, \
respondedCount integer, totalInvitees integer, admins uuid[], createdBy uuid, createdAt date-time, \
updatedAt date-time, description string, open boolean, candidateSlots CandidateSlot[], invitees uuid[], \
tags ResponseEventTag[], eventId? uuid
RequestAvailability: slotIds uuid[], maybeSlotIds? uuid[], comment? string(0-500)
ResponseAvailability: userId uuid, draftEventId uuid, slotIds uuid[], maybeSlotIds uuid[], comment? string, \
updatedAt date-time
SlotResult: slotId uuid, availableCount integer, availableUsers uuid[], availabilityRate number, maybeCount integer, \
maybeUsers uuid[], isTopChoice boolean
Respondent: userId uuid, respondedAt date-time, comment? string
ResponseSchedulingResults: draftEventId uuid, results SlotResult[], respondents Respondent[], nonRespondents uuid[]
RequestConfirmationInstant: slotId uuid, place string(1-32), groupId uuid, sharedRoom? boolean, open? boolean
RequestConfirmationStock: slotId uuid, roomId uuid, groupId uuid, sharedRoom? boolean, open? boolean
RequestConfirmation: RequestConfirmationInstant / RequestConfirmationStock
ResponseEventSeries: seriesId uuid, rrule string, timeZone string, admins uuid[], events ResponseEvent[], \
skipped SkippedDate[], createdBy uuid, createdAt date-time, updatedAt date-time, deleted? integer
RequestEventSeriesUpdate: from? date-time, name? string(1-32), description? string(0-10000), place? string(1-32), \
sharedRoom? boolean, open? boolean, groupId? uuid, admins? uuid[](1), tags? RequestEventTag[], startTime? string, \
endTime? string, until? date
RequestOccurrence: timeStart date-time, timeEnd date-time
ResponseFreeTime: place string, roomId uuid, timeStart date-time, timeEnd date-time, freeUsers? integer, \
busyUsers? integer
";

const CONTRACT: Contract = Contract { base: "/api", operations: OPERATIONS, types: TYPES };

#[test]
fn the_committed_document_is_current() {
    let output = crate::process::program(&["openapi"]).output().unwrap();
    pinned("docs/openapi/booking.json", &String::from_utf8(output.stdout).unwrap());
}

#[test]
fn refusals_have_examples_with_codes_of_the_operation() {
    document::refusals_have_fitting_examples();
}

#[test]
fn every_operation_of_the_contract_is_there_and_no_other_but_additions() {
    CONTRACT.every_operation_is_there_and_no_other_but_additions(41 + 11);
}

#[test]
fn optional_fields_accept_null() {
    document::optional_fields_accept_null(&Club::start(Backend::Sqlite).by(ALICE));
}

#[test]
fn every_type_has_the_fields_of_the_contract() {
    CONTRACT.every_type_has_its_fields(&[
        ("ResponseEvent", "seriesId?"),
        ("ResponseEvent", "occurrence?"),
        ("ResponseEventDetail", "seriesId?"),
        ("ResponseEventDetail", "occurrence?"),
    ]);
}
