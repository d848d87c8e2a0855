//! The JSON of contests.

use common::{
    // utoipa maps every type called `Duration` to the string of chrono's.
    duration::Duration as Span,
    input::Text,
    problem::Violations,
};
use deserr::Deserr;
use serde::Serialize;
use service_kit::{database::types::DbUuid, error::Error};
use utoipa::ToSchema;

use super::queries::{Changes, Draft, Row};
use crate::{
    link::Link,
    teams::{self, ContestTeam, ContestTeamWithoutMembers},
};

/// A contest in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "0198c0de-0000-7000-8000-000000000050", "name": "Programming Cup",
    "duration": {"since": "2026-04-04T09:00:00Z", "until": "2026-04-05T09:00:00Z"}
}))]
pub struct Contest {
    id: DbUuid,
    name: String,
    duration: Span,
}

impl Contest {
    /// Converts a row.
    pub fn new(row: Row) -> Result<Self, Error> {
        Ok(Self { id: row.id, duration: row.duration()?, name: row.name })
    }
}

/// A contest with all fields and its teams.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "0198c0de-0000-7000-8000-000000000050", "name": "Programming Cup",
    "duration": {"since": "2026-04-04T09:00:00Z"}, "link": "https://cup.example", "description": "Every spring.",
    "teams": [{
        "id": "0198c0de-0000-7000-8000-000000000060", "name": "club A", "result": "3rd",
        "members": [{"id": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "name": "alice", "realName": ""}]
    }]
}))]
pub struct ContestDetail {
    #[serde(flatten)]
    contest: Contest,
    /// Empty when there is none.
    link: String,
    description: String,
    /// Ordered by name.
    teams: Vec<ContestTeam>,
}

impl ContestDetail {
    /// A contest with its link, its description and its teams.
    pub fn new(contest: Contest, link: String, description: String, teams: Vec<teams::queries::Team>) -> Self {
        Self { contest, link, description, teams: teams.into_iter().map(ContestTeam::from).collect() }
    }
}

/// A contest of a user.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "0198c0de-0000-7000-8000-000000000050", "name": "Programming Cup",
    "duration": {"since": "2026-04-04T09:00:00Z"},
    "teams": [{"id": "0198c0de-0000-7000-8000-000000000060", "name": "club A", "result": "3rd"}]
}))]
pub struct UserContest {
    #[serde(flatten)]
    contest: Contest,
    /// Only the teams of the user, ordered by name.
    teams: Vec<ContestTeamWithoutMembers>,
}

impl UserContest {
    /// A contest with the user's teams.
    pub fn new((row, teams): (Row, Vec<teams::queries::Row>)) -> Result<Self, Error> {
        let teams = teams.into_iter().map(ContestTeamWithoutMembers::from).collect();
        Ok(Self { contest: Contest::new(row)?, teams })
    }
}

/// A new contest.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({
    "name": "Programming Cup", "link": "https://cup.example", "description": "Every spring.",
    "duration": {"since": "2026-04-04T09:00:00Z", "until": "2026-04-05T09:00:00Z"}
}))]
pub struct CreateContestRequest {
    #[schema(inline)]
    name: Text<1, 32>,
    /// Absolute http or https address; empty or left out for none.
    #[deserr(default)]
    #[schema(inline)]
    link: Option<Link>,
    #[schema(inline)]
    description: Text<1, 256>,
    duration: Span,
}

impl CreateContestRequest {
    /// Converts to a new row.
    pub fn into_draft(self) -> Draft {
        Draft {
            name: self.name.into_inner(),
            link: self.link.unwrap_or_default().into_inner(),
            description: self.description.into_inner(),
            duration: self.duration,
        }
    }
}

/// Changes of a contest. A field that is left out stays.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({"duration": {"since": "2026-04-04T09:00:00Z"}}))]
pub struct EditContestRequest {
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
    /// Without `until`, the contest goes on.
    #[deserr(default)]
    duration: Option<Span>,
}

impl EditContestRequest {
    /// Converts to the changes of a row.
    pub fn into_changes(self) -> Changes {
        Changes {
            name: self.name.map(Text::into_inner),
            link: self.link.map(Link::into_inner),
            description: self.description.map(Text::into_inner),
            duration: self.duration,
        }
    }
}
