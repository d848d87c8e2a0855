//! The JSON of projects.

use common::{
    input::{Id, Text},
    problem::Violations,
    semester::YearWithSemesterDuration,
};
use deserr::{Deserr, ValuePointerRef};
use serde::Serialize;
use service_kit::{database::types::DbUuid, error::Error};
use utoipa::ToSchema;

use super::queries::{Changes, Draft, Row};
use crate::{
    link::Link,
    users::{Person, User, references},
};

/// A project in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "0198c0de-0000-7000-8000-000000000040", "name": "Lecture robot",
    "duration": {"since": {"year": 2025, "semester": 1}, "until": {"year": 2026, "semester": 0}}
}))]
pub struct Project {
    id: DbUuid,
    name: String,
    duration: YearWithSemesterDuration,
    /// The address of the picture; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uri-reference")]
    picture: Option<String>,
}

impl Project {
    /// A project as listed.
    pub fn new(row: Row) -> Result<Self, Error> {
        Ok(Self { id: row.id, duration: row.span()?, picture: row.picture(), name: row.name })
    }
}

/// A member of a project.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "name": "alice", "realName": "",
    "duration": {"since": {"year": 2025, "semester": 1}}
}))]
pub struct ProjectMember {
    #[serde(flatten)]
    user: User,
    /// The part of the member's span inside the project's, or the member's span if the two do not overlap.
    duration: YearWithSemesterDuration,
}

impl ProjectMember {
    /// A member with the span to show.
    pub fn new((person, duration): (Person, YearWithSemesterDuration)) -> Self {
        Self { user: person.into(), duration }
    }
}

/// A project with all fields and its members.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "0198c0de-0000-7000-8000-000000000040", "name": "Lecture robot",
    "duration": {"since": {"year": 2025, "semester": 1}}, "link": "https://club.example/robot",
    "description": "It reads the timetable aloud.",
    "members": [{
        "id": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "name": "alice", "realName": "",
        "duration": {"since": {"year": 2025, "semester": 1}}
    }]
}))]
pub struct ProjectDetail {
    #[serde(flatten)]
    project: Project,
    /// Empty when there is none.
    link: String,
    description: String,
    /// Ordered by name.
    members: Vec<ProjectMember>,
}

impl ProjectDetail {
    /// A project with its link, its description and its members.
    pub fn new(project: Project, link: String, description: String, members: Vec<ProjectMember>) -> Self {
        Self { project, link, description, members }
    }
}

/// A project of a user.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "0198c0de-0000-7000-8000-000000000040", "name": "Lecture robot",
    "duration": {"since": {"year": 2025, "semester": 1}}, "userDuration": {"since": {"year": 2026, "semester": 0}}
}))]
pub struct UserProject {
    #[serde(flatten)]
    project: Project,
    /// The part of the user's span inside the project's, or the user's span if the two do not overlap.
    user_duration: YearWithSemesterDuration,
}

impl UserProject {
    /// A project with the user's span to show.
    pub fn new((row, user_duration): (Row, YearWithSemesterDuration)) -> Result<Self, Error> {
        Ok(Self { project: Project::new(row)?, user_duration })
    }
}

/// A new project.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({
    "name": "Lecture robot", "link": "https://club.example/robot", "description": "It reads the timetable aloud.",
    "duration": {"since": {"year": 2025, "semester": 1}}
}))]
pub struct CreateProjectRequest {
    #[schema(inline)]
    name: Text<1, 32>,
    /// Absolute http or https address; empty or left out for none.
    #[deserr(default)]
    #[schema(inline)]
    link: Option<Link>,
    #[schema(inline)]
    description: Text<1, 256>,
    duration: YearWithSemesterDuration,
}

impl CreateProjectRequest {
    /// Converts to a new row.
    pub fn into_draft(self) -> Draft {
        Draft {
            name: self.name.into_inner(),
            link: self.link.unwrap_or_default().into_inner(),
            description: self.description.into_inner(),
            span: self.duration,
        }
    }
}

/// Changes of a project. A field that is left out stays.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({
    "name": "Lecture robot 2",
    "duration": {"since": {"year": 2025, "semester": 1}, "until": {"year": 2026, "semester": 0}}
}))]
pub struct EditProjectRequest {
    #[deserr(default)]
    #[schema(inline)]
    name: Option<Text<1, 32>>,
    /// Absolute http or https address; empty for none.
    #[deserr(default)]
    #[schema(inline)]
    link: Option<Link>,
    #[deserr(default)]
    #[schema(inline)]
    description: Option<Text<1, 256>>,
    /// Without `until`, the project goes on.
    #[deserr(default)]
    duration: Option<YearWithSemesterDuration>,
}

impl EditProjectRequest {
    /// Converts to the changes of a row.
    pub fn into_changes(self) -> Changes {
        Changes {
            name: self.name.map(Text::into_inner),
            link: self.link.map(Link::into_inner),
            description: self.description.map(Text::into_inner),
            span: self.duration,
        }
    }
}

/// A member and their span.
#[derive(Debug, Clone, Copy, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", as = MemberIDWithYearWithSemesterDuration)]
pub struct MemberSpan {
    user_id: Id,
    /// Stored as sent, whatever the project's own span.
    duration: YearWithSemesterDuration,
}

/// The new list of members, which replaces the present one.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase, validate = each_once -> Violations)]
#[schema(rename_all = "camelCase", example = json!({"members": [{
    "userId": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "duration": {"since": {"year": 2025, "semester": 1}}
}]}))]
pub struct EditProjectMembersRequest {
    /// Each user once.
    members: Vec<MemberSpan>,
}

fn each_once(
    request: EditProjectMembersRequest,
    _: ValuePointerRef<'_>,
) -> Result<EditProjectMembersRequest, Violations> {
    let users = request.members.iter().map(|member| member.user_id.into());
    references::check_unique(users, |n| format!("/members/{n}/userId"))?;
    Ok(request)
}

impl EditProjectMembersRequest {
    /// The ids of the users and their spans.
    pub fn into_members(self) -> Vec<(DbUuid, YearWithSemesterDuration)> {
        self.members.into_iter().map(|member| (member.user_id.into(), member.duration)).collect()
    }
}
