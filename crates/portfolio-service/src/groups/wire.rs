//! The JSON of groups.

use common::semester::YearWithSemesterDuration;
use serde::Serialize;
use service_kit::{database::types::DbUuid, error::Error};
use utoipa::ToSchema;

use super::queries;
use crate::users::{Person, User};

/// A group of the club.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"id": "4e090077-6479-53f4-9b3a-da64d276f703", "name": "graphics"}))]
pub struct Group {
    id: DbUuid,
    name: String,
}

impl From<queries::Group> for Group {
    fn from(group: queries::Group) -> Self {
        Self { id: group.id, name: group.name }
    }
}

/// A group with its people.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "4e090077-6479-53f4-9b3a-da64d276f703", "name": "graphics", "link": "", "admin": [],
    "members": [{
        "id": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "name": "alice", "realName": "",
        "duration": {"since": {"year": 2026, "semester": 0}}
    }],
    "description": "We draw."
}))]
pub struct GroupDetail {
    id: DbUuid,
    name: String,
    link: String,
    /// The administrators, ordered by name.
    admin: Vec<User>,
    /// Present and former members, ordered by name. A member who has returned is listed once for each span.
    members: Vec<GroupMember>,
    description: String,
}

impl From<queries::Detail> for GroupDetail {
    fn from(detail: queries::Detail) -> Self {
        Self {
            id: detail.group.id,
            name: detail.group.name,
            link: detail.link,
            admin: detail.admins.into_iter().map(User::from).collect(),
            members: detail.members.into_iter().map(GroupMember::from).collect(),
            description: detail.description,
        }
    }
}

/// A member of a group.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupMember {
    #[serde(flatten)]
    user: User,
    /// The semesters in the group.
    duration: YearWithSemesterDuration,
}

impl From<(Person, YearWithSemesterDuration)> for GroupMember {
    fn from((person, duration): (Person, YearWithSemesterDuration)) -> Self {
        Self { user: person.into(), duration }
    }
}

/// A group in which a user is or was.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "4e090077-6479-53f4-9b3a-da64d276f703", "name": "graphics",
    "duration": {"since": {"year": 2025, "semester": 1}, "until": {"year": 2026, "semester": 0}}
}))]
pub struct UserGroup {
    #[serde(flatten)]
    group: Group,
    /// The semesters in the group.
    duration: YearWithSemesterDuration,
}

impl UserGroup {
    /// A group with the user's span.
    pub fn new(membership: queries::Membership) -> Result<Self, Error> {
        Ok(Self { duration: membership.span()?, group: membership.group.into() })
    }
}
