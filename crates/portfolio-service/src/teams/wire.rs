//! The JSON of teams.

use common::{
    input::{Id, Text},
    problem::Violations,
};
use deserr::{Deserr, ValuePointerRef};
use serde::Serialize;
use service_kit::database::types::DbUuid;
use utoipa::ToSchema;

use super::queries::{Changes, Draft, Row, Team};
use crate::{
    link::Link,
    users::{User, references},
};

/// A team in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"id": "0198c0de-0000-7000-8000-000000000060", "name": "club A", "result": "3rd"}))]
pub struct ContestTeamWithoutMembers {
    id: DbUuid,
    name: String,
    /// The result of the team in the contest; empty when there is none yet.
    result: String,
}

impl From<Row> for ContestTeamWithoutMembers {
    fn from(row: Row) -> Self {
        Self { id: row.id, name: row.name, result: row.result }
    }
}

/// A team with its members.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "0198c0de-0000-7000-8000-000000000060", "name": "club A", "result": "3rd",
    "members": [{"id": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "name": "alice", "realName": ""}]
}))]
pub struct ContestTeam {
    #[serde(flatten)]
    team: ContestTeamWithoutMembers,
    /// Ordered by name.
    members: Vec<User>,
}

impl From<Team> for ContestTeam {
    fn from((row, members): Team) -> Self {
        Self { team: row.into(), members: members.into_iter().map(User::from).collect() }
    }
}

/// A team with all fields.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "0198c0de-0000-7000-8000-000000000060", "name": "club A", "result": "3rd",
    "members": [{"id": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "name": "alice", "realName": ""}],
    "link": "https://club.example/a", "description": "Our first time."
}))]
pub struct ContestTeamDetail {
    #[serde(flatten)]
    team: ContestTeam,
    /// Empty when there is none.
    link: String,
    description: String,
}

impl ContestTeamDetail {
    /// A team with its members, its link and its description.
    pub fn new(team: ContestTeam, link: String, description: String) -> Self {
        Self { team, link, description }
    }
}

/// A new team.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({
    "name": "club A", "link": "https://club.example/a", "description": "Our first time.", "result": "3rd"
}))]
pub struct AddContestTeamRequest {
    #[schema(inline)]
    name: Text<1, 32>,
    /// Absolute http or https address; empty or left out for none.
    #[deserr(default)]
    #[schema(inline)]
    link: Option<Link>,
    #[schema(inline)]
    description: Text<1, 256>,
    /// The result of the team in the contest; empty when there is none yet.
    #[deserr(default)]
    #[schema(inline)]
    result: Option<Text<0, 32>>,
}

impl AddContestTeamRequest {
    /// Converts to a new row.
    pub fn into_draft(self) -> Draft {
        Draft {
            name: self.name.into_inner(),
            link: self.link.unwrap_or_default().into_inner(),
            description: self.description.into_inner(),
            result: self.result.map(Text::into_inner).unwrap_or_default(),
        }
    }
}

/// Changes of a team. A field that is left out stays.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({"result": "3rd"}))]
pub struct EditContestTeamRequest {
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
    /// The result of the team in the contest; empty when there is none yet.
    #[deserr(default)]
    #[schema(inline)]
    result: Option<Text<0, 32>>,
}

impl EditContestTeamRequest {
    /// Converts to the changes of a row.
    pub fn into_changes(self) -> Changes {
        Changes {
            name: self.name.map(Text::into_inner),
            link: self.link.map(Link::into_inner),
            description: self.description.map(Text::into_inner),
            result: self.result.map(Text::into_inner),
        }
    }
}

/// The new list of members, which replaces the present one.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase, validate = check_members -> Violations)]
#[schema(rename_all = "camelCase", example = json!({"members": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"]}))]
pub struct EditContestTeamMembersRequest {
    /// Each user once.
    members: Vec<Id>,
}

fn check_members(
    request: EditContestTeamMembersRequest,
    _: ValuePointerRef<'_>,
) -> Result<EditContestTeamMembersRequest, Violations> {
    references::check_unique(request.members.iter().map(|id| (*id).into()), |n| format!("/members/{n}"))?;
    Ok(request)
}

impl EditContestTeamMembersRequest {
    /// The ids.
    pub fn into_members(self) -> Vec<DbUuid> {
        self.members.into_iter().map(DbUuid::from).collect()
    }
}
