//! The OpenAPI document agrees with the contract, and the committed one is up to date.

#[path = "../../../service-kit/tests/shared/openapi.rs"]
mod document;

use std::process::Command;

use document::Contract;
pub use document::{pinned, pinned_part};

use crate::harness::{ALICE, Backend, Club, DOCUMENT};

/// Every operation of the contract: method, path below `/api/v1`, query parameters, body, success status and answer.
/// `(public)` needs no sign-in.
const OPERATIONS: &str = "
GET /users ?includeSuspended ?name ?limit (public) -> 200 User[]
POST /users/sync -> 204
GET /users/me -> 200 UserDetail
GET /users/{userId} (public) -> 200 UserDetail
PATCH /users/{userId} EditUserRequest -> 204
GET /users/{userId}/accounts (public) -> 200 Account[]
POST /users/{userId}/accounts AddAccountRequest -> 201 Account
GET /users/{userId}/accounts/{accountId} (public) -> 200 Account
PATCH /users/{userId}/accounts/{accountId} EditUserAccountRequest -> 204
DELETE /users/{userId}/accounts/{accountId} -> 204
GET /users/{userId}/projects (public) -> 200 UserProject[]
GET /users/{userId}/contests (public) -> 200 UserContest[]
GET /users/{userId}/groups (public) -> 200 UserGroup[]
GET /users/{userId}/events (public) -> 200 Event[]
GET /projects ?limit (public) -> 200 Project[]
POST /projects CreateProjectRequest -> 201 ProjectDetail
GET /projects/{projectId} (public) -> 200 ProjectDetail
PATCH /projects/{projectId} EditProjectRequest -> 204
DELETE /projects/{projectId} -> 204
GET /projects/{projectId}/members (public) -> 200 ProjectMember[]
PUT /projects/{projectId}/members EditProjectMembersRequest -> 204
GET /events ?limit (public) -> 200 Event[]
GET /events/{eventId} (public) -> 200 EventDetail
PATCH /events/{eventId} EditEventRequest -> 204
GET /groups ?limit (public) -> 200 Group[]
GET /groups/{groupId} (public) -> 200 GroupDetail
GET /contests ?limit (public) -> 200 Contest[]
POST /contests CreateContestRequest -> 201 ContestDetail
GET /contests/{contestId} (public) -> 200 ContestDetail
PATCH /contests/{contestId} EditContestRequest -> 204
DELETE /contests/{contestId} -> 204
GET /contests/{contestId}/teams (public) -> 200 ContestTeam[]
POST /contests/{contestId}/teams AddContestTeamRequest -> 201 ContestTeam
GET /contests/{contestId}/teams/{teamId} (public) -> 200 ContestTeamDetail
PATCH /contests/{contestId}/teams/{teamId} EditContestTeamRequest -> 204
DELETE /contests/{contestId}/teams/{teamId} -> 204
GET /contests/{contestId}/teams/{teamId}/members (public) -> 200 User[]
PUT /contests/{contestId}/teams/{teamId}/members EditContestTeamMembersRequest -> 204
GET /ping (public) -> 200 string
";

/// The fields of every type: optional ones with a question mark; the bounds of a string are its length.
const TYPES: &str = "
User: id uuid, name string, realName string
UserAccountState: 0|1|2
UserDetail: id uuid, name string, realName string, state UserAccountState, bio string, accounts Account[]
Account: id uuid, displayName string, type AccountType, url string
AccountType: 0|1|2|3|4|5|6|7|8|9|10|11|12|13
UserProject: id uuid, name string, duration YearWithSemesterDuration, userDuration YearWithSemesterDuration
UserGroup: id uuid, name string, duration YearWithSemesterDuration
UserContest: id uuid, name string, duration Duration, teams ContestTeamWithoutMembers[]
Project: id uuid, name string, duration YearWithSemesterDuration
ProjectDetail: id uuid, name string, duration YearWithSemesterDuration, link string, description string, \
members ProjectMember[]
ProjectMember: id uuid, name string, realName string, duration YearWithSemesterDuration
Event: id uuid, name string, duration Duration, level EventLevel
EventLevel: 0|1|2
EventDetail: id uuid, name string, duration Duration, level EventLevel, description string, place string, \
hostname User[]
Group: id uuid, name string
GroupDetail: id uuid, name string, link string, admin User[], members GroupMember[], description string
GroupMember: id uuid, name string, realName string, duration YearWithSemesterDuration
Contest: id uuid, name string, duration Duration
ContestDetail: id uuid, name string, duration Duration, link string, description string, teams ContestTeam[]
ContestTeamWithoutMembers: id uuid, name string, result string
ContestTeam: id uuid, name string, result string, members User[]
ContestTeamDetail: id uuid, name string, result string, members User[], link string, description string
Duration: since date-time, until? date-time
YearWithSemester: year integer, semester Semester
Semester: 0|1
YearWithSemesterDuration: since YearWithSemester, until? YearWithSemester
MemberIDWithYearWithSemesterDuration: userId uuid, duration YearWithSemesterDuration
EditUserRequest: bio? string(0-256), check? boolean
AddAccountRequest: type AccountType, url uri, displayName string(1-256)
EditUserAccountRequest: type? AccountType, url? uri, displayName? string(1-256)
EditEventRequest: level? EventLevel
CreateProjectRequest: name string(1-32), link? uri-reference, description string(1-256), \
duration YearWithSemesterDuration
EditProjectRequest: name? string(1-32), link? uri-reference, description? string(1-256), \
duration? YearWithSemesterDuration
EditProjectMembersRequest: members MemberIDWithYearWithSemesterDuration[]
CreateContestRequest: name string(1-32), link? uri-reference, description string(1-256), duration Duration
EditContestRequest: name? string(1-32), link? uri-reference, description? string(1-256), duration? Duration
AddContestTeamRequest: name string(1-32), link? uri-reference, description string(1-256), result? string(0-32)
EditContestTeamRequest: name? string(1-32), link? uri-reference, description? string(1-256), result? string(0-32)
EditContestTeamMembersRequest: members uuid[]
";

const CONTRACT: Contract = Contract { base: "/api/v1", operations: OPERATIONS, types: TYPES };

#[test]
fn the_committed_document_is_the_present_one() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
    let output = command.env_clear().arg("openapi").output().unwrap();
    pinned("docs/openapi/portfolio.json", &String::from_utf8(output.stdout).unwrap());
}

#[test]
fn refusals_have_examples_with_codes_of_the_operation() {
    document::refusals_have_fitting_examples();
}

#[test]
fn the_operations_are_those_of_the_contract_and_additions() {
    CONTRACT.every_operation_is_there_and_no_other_but_additions(39);
}

#[test]
fn optional_fields_accept_null() {
    document::optional_fields_accept_null(&Club::start(Backend::Sqlite).by(ALICE));
}

#[test]
fn every_type_has_the_fields_of_the_contract() {
    // At `GET /users/me` only (contract, "Operations").
    let mut added = vec![("UserDetail", "check?")];
    let with_picture =
        ["User", "UserDetail", "ProjectMember", "GroupMember", "Project", "ProjectDetail", "UserProject"];
    added.extend(with_picture.map(|name| (name, "picture?")));
    CONTRACT.every_type_has_its_fields(&added);
    assert_eq!(DOCUMENT["components"]["schemas"]["YearWithSemester"]["properties"]["year"]["minimum"], 1970);
}
