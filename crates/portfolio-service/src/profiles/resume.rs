//! A member's résumé in the format of JSON Resume 1.0.0 (<https://jsonresume.org/schema>). An optional field without a
//! value is left out: most fields of the format must be texts that are not empty, addresses or dates.

use chrono::{Datelike, NaiveDate};
use serde::Serialize;
use service_kit::error::Error;
use utoipa::ToSchema;

use super::queries::{Profile, Project};
use crate::{club::Club, contests, link::to_uri, teams, users::Account};

const SCHEMA: &str = "https://raw.githubusercontent.com/jsonresume/resume-schema/v1.0.0/schema.json";

/// A résumé.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "$schema": "https://raw.githubusercontent.com/jsonresume/resume-schema/v1.0.0/schema.json",
    "basics": {
        "name": "alice", "summary": "I draw.",
        "profiles": [{"network": "github", "username": "alice", "url": "https://github.com/alice"}]
    },
    "projects": [{
        "name": "Lecture robot", "description": "It reads the timetable aloud.", "startDate": "2025-10-01",
        "endDate": "2026-09-30", "url": "https://club.example/robot"
    }],
    "awards": [{"title": "3rd", "date": "2026-04-05", "awarder": "Programming Cup", "summary": "club A"}],
    "meta": {
        "canonical": "https://club.example/api/v1/users/0198c0de-0000-7000-8000-000000000001/resume.json",
        "version": "v1.0.0"
    }
}))]
pub struct Resume {
    /// The JSON Schema of the format.
    #[serde(rename = "$schema")]
    schema: &'static str,
    basics: ResumeBasics,
    /// The newest first.
    projects: Vec<ResumeProject>,
    /// Those of the newest contests first.
    awards: Vec<ResumeAward>,
    meta: ResumeMeta,
}

/// The member.
#[derive(Debug, Serialize, ToSchema)]
struct ResumeBasics {
    /// The real name if its owner publishes it, else the sign-in name.
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    summary: String,
    /// The address of the picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    image: Option<String>,
    /// The accounts, by type.
    profiles: Vec<ResumeProfile>,
}

/// An account.
#[derive(Debug, Serialize, ToSchema)]
struct ResumeProfile {
    /// The name of the account type.
    network: &'static str,
    /// The display name.
    username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    url: String,
}

/// A project.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ResumeProject {
    name: String,
    description: String,
    /// The first day of the user's first semester in the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    start_date: Option<NaiveDate>,
    /// The last day of the user's last semester in it; absent while that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    end_date: Option<NaiveDate>,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    url: String,
}

/// The result of a team of the user in a contest.
#[derive(Debug, Serialize, ToSchema)]
struct ResumeAward {
    /// The team's result.
    title: String,
    /// The day on which the contest ended, or began if it has no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    date: Option<NaiveDate>,
    /// The contest.
    awarder: String,
    summary: String,
}

/// The document itself.
#[derive(Debug, Serialize, ToSchema)]
struct ResumeMeta {
    /// Its address.
    canonical: String,
    /// Version of the format.
    version: &'static str,
}

impl Resume {
    /// The résumé of a member.
    pub fn new(profile: Profile, club: &Club) -> Result<Self, Error> {
        let Profile { user, projects, teams } = profile;
        let names = [user.person.real_name(), &user.person.name];
        let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or_default().to_owned();
        let accounts = user.accounts.into_iter().map(Account::new).collect::<Result<Vec<_>, _>>()?;
        // An imported account may have no address.
        let profiles = accounts.iter().filter(|account| !account.url().is_empty()).map(ResumeProfile::new).collect();
        let awards = teams.into_iter().filter(|(_, team)| !team.result.is_empty());
        let image = user.person.picture().map(|path| format!("{}{path}", club.origin));
        Ok(Self {
            schema: SCHEMA,
            basics: ResumeBasics { name, summary: user.bio, image, profiles },
            projects: projects.into_iter().map(ResumeProject::new).collect(),
            awards: awards.map(|(contest, team)| ResumeAward::new(contest, team, club)).collect::<Result<_, _>>()?,
            meta: ResumeMeta {
                canonical: format!("{}/api/v1/users/{}/resume.json", club.origin, user.person.id),
                version: "v1.0.0",
            },
        })
    }
}

/// A date, if its year is one of those that the format has.
fn date(date: NaiveDate) -> Option<NaiveDate> {
    (1000..3000).contains(&date.year()).then_some(date)
}

impl ResumeProfile {
    fn new(account: &Account) -> Self {
        Self {
            network: account.type_name(),
            username: account.display_name().to_owned(),
            url: to_uri(account.url()).unwrap_or_default(),
        }
    }
}

impl ResumeProject {
    fn new(project: Project) -> Self {
        let span = project.own_span;
        Self {
            name: project.row.name,
            description: project.description,
            start_date: date(span.since().first_day()),
            end_date: span.until().and_then(|until| until.end().pred_opt()).and_then(date),
            url: to_uri(&project.link).unwrap_or_default(),
        }
    }
}

impl ResumeAward {
    fn new(contest: contests::queries::Row, team: teams::queries::Row, club: &Club) -> Result<Self, Error> {
        let duration = contest.duration()?;
        let at = duration.until().unwrap_or(duration.since());
        Ok(Self {
            title: team.result,
            date: date(at.utc().with_timezone(&club.zone).date_naive()),
            awarder: contest.name,
            summary: team.name,
        })
    }
}
