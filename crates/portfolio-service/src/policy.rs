//! Who may do what, stated once: a rule for each operation, as in the contract's operation table. The guards of
//! [`auth`](crate::auth) look the rule up by the route of the request and hold the caller to it before the operation
//! itself runs, in the same database hop. What names no rule here is refused, and fails a test.

use actix_web::http::Method;
use common::problem::Problem;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
};

use crate::{
    auth::Caller,
    schema::{contest_team_members, contest_teams, contests, event_hosts, event_levels, events, project_members},
    schema::{projects, users},
    target::Ids,
};

/// Who may do something. Admins may do everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Anybody, signed in or not.
    Public,
    /// Whoever is signed in, and then only with their own things. An unknown name is 404.
    Known,
    /// Any active member.
    Member,
    /// The user `userId` themself.
    Myself,
    /// The creator of the project `projectId`, and its members.
    ProjectEditor,
    /// The creator of the project `projectId`.
    ProjectCreator,
    /// A host of the event `eventId`.
    Host,
    /// The creator of the contest `contestId`.
    ContestCreator,
    /// The creator of the team `teamId` or of its contest, and the team's members.
    TeamEditor,
    /// The creator of the team `teamId` or of its contest.
    TeamCreator,
    /// An admin.
    Admin,
}

/// The paths of all operations begin with this.
pub const BASE: &str = "/api/v1";

/// `event_levels.level` of an event that is not shown outside.
pub const PRIVATE: i16 = 2;

/// The rule of each operation, by method and path.
pub const RULES: &[(Method, &str, Rule)] = &[
    (Method::GET, "/ping", Rule::Public),
    (Method::GET, "/account-types", Rule::Public),
    (Method::GET, "/users", Rule::Public),
    (Method::POST, "/users/sync", Rule::Admin),
    (Method::GET, "/users/me", Rule::Known),
    (Method::GET, "/users/{userId}", Rule::Public),
    (Method::PATCH, "/users/{userId}", Rule::Myself),
    (Method::GET, "/users/{userId}/accounts", Rule::Public),
    (Method::POST, "/users/{userId}/accounts", Rule::Myself),
    (Method::GET, "/users/{userId}/accounts/{accountId}", Rule::Public),
    (Method::PATCH, "/users/{userId}/accounts/{accountId}", Rule::Myself),
    (Method::DELETE, "/users/{userId}/accounts/{accountId}", Rule::Myself),
    (Method::GET, "/users/{userId}/projects", Rule::Public),
    (Method::GET, "/users/{userId}/contests", Rule::Public),
    (Method::GET, "/users/{userId}/groups", Rule::Public),
    (Method::GET, "/users/{userId}/events", Rule::Public),
    (Method::GET, "/groups", Rule::Public),
    (Method::GET, "/groups/{groupId}", Rule::Public),
    (Method::GET, "/events", Rule::Public),
    (Method::GET, "/events/{eventId}", Rule::Public),
    (Method::PATCH, "/events/{eventId}", Rule::Host),
    (Method::GET, "/projects", Rule::Public),
    (Method::POST, "/projects", Rule::Member),
    (Method::GET, "/projects/{projectId}", Rule::Public),
    (Method::PATCH, "/projects/{projectId}", Rule::ProjectEditor),
    (Method::DELETE, "/projects/{projectId}", Rule::ProjectCreator),
    (Method::GET, "/projects/{projectId}/members", Rule::Public),
    (Method::PUT, "/projects/{projectId}/members", Rule::ProjectEditor),
    (Method::GET, "/contests", Rule::Public),
    (Method::POST, "/contests", Rule::Member),
    (Method::GET, "/contests/{contestId}", Rule::Public),
    (Method::PATCH, "/contests/{contestId}", Rule::ContestCreator),
    (Method::DELETE, "/contests/{contestId}", Rule::ContestCreator),
    (Method::GET, "/contests/{contestId}/teams", Rule::Public),
    (Method::POST, "/contests/{contestId}/teams", Rule::Member),
    (Method::GET, "/contests/{contestId}/teams/{teamId}", Rule::Public),
    (Method::PATCH, "/contests/{contestId}/teams/{teamId}", Rule::TeamEditor),
    (Method::DELETE, "/contests/{contestId}/teams/{teamId}", Rule::TeamCreator),
    (Method::GET, "/contests/{contestId}/teams/{teamId}/members", Rule::Public),
    (Method::PUT, "/contests/{contestId}/teams/{teamId}/members", Rule::TeamEditor),
];

/// The rule of the operation with this route.
#[must_use]
pub fn rule(method: &Method, route: &str) -> Option<Rule> {
    let path = route.strip_prefix(BASE)?;
    RULES.iter().find(|(of, at, _)| of == method && *at == path).map(|(_, _, rule)| *rule)
}

/// Holds a caller to a rule.
///
/// # Errors
/// 404 when the object is not there or is not shown to the caller; 403 saying what would be needed.
pub fn check(conn: &mut AnyConnection, rule: Rule, me: &Caller, ids: &Ids) -> Result<(), Error> {
    let needed = match rule {
        Rule::Public | Rule::Known | Rule::Member => return Ok(()),
        Rule::Admin => return if me.admin { Ok(()) } else { Err(Problem::forbidden("an admin").into()) },
        Rule::Myself => is_myself(conn, me, ids.get("userId")?)?,
        Rule::ProjectEditor => is_project_editor(conn, me, ids.get("projectId")?, true)?,
        Rule::ProjectCreator => is_project_editor(conn, me, ids.get("projectId")?, false)?,
        Rule::Host => is_host(conn, me, ids.get("eventId")?)?,
        Rule::ContestCreator => is_contest_creator(conn, me, ids.get("contestId")?)?,
        Rule::TeamEditor => is_team_editor(conn, me, ids.get("contestId")?, ids.get("teamId")?, true)?,
        Rule::TeamCreator => is_team_editor(conn, me, ids.get("contestId")?, ids.get("teamId")?, false)?,
    };
    match needed {
        Some(needed) if !me.admin => Err(Problem::forbidden(needed).into()),
        _ => Ok(()),
    }
}

/// What would be needed, or nothing when the caller has it.
type Needed = Option<&'static str>;

fn is_myself(conn: &mut AnyConnection, me: &Caller, user: DbUuid) -> Result<Needed, Error> {
    if user == me.id {
        return Ok(None);
    }
    let found = users::table.find(user).select(users::id).first::<DbUuid>(conn).optional()?;
    found.ok_or_else(|| Problem::not_found("user"))?;
    Ok(Some("the user themself, or an admin"))
}

fn is_project_editor(conn: &mut AnyConnection, me: &Caller, id: DbUuid, members: bool) -> Result<Needed, Error> {
    let creator: Option<DbUuid> = projects::table.find(id).select(projects::created_by).first(conn).optional()?;
    if creator.ok_or_else(|| Problem::not_found("project"))? == me.id {
        return Ok(None);
    }
    if !members {
        return Ok(Some("the creator of the project, or an admin"));
    }
    let member = project_members::table.find((id, me.id)).select(project_members::user_id);
    let member = member.first::<DbUuid>(conn).optional()?;
    Ok(if member.is_some() { None } else { Some("the creator of the project, one of its members, or an admin") })
}

fn is_host(conn: &mut AnyConnection, me: &Caller, id: DbUuid) -> Result<Needed, Error> {
    let found: Option<Option<i16>> = events::table
        .left_join(event_levels::table)
        .filter(events::id.eq(id))
        .select(event_levels::level.nullable())
        .first(conn)
        .optional()?;
    let level = found.ok_or_else(|| Problem::not_found("event"))?;
    let host = event_hosts::table.find((id, me.id)).select(event_hosts::user_id).first::<DbUuid>(conn).optional()?;
    if host.is_some() {
        return Ok(None);
    }
    if level == Some(PRIVATE) && !me.admin {
        return Err(Problem::not_found("event").into());
    }
    Ok(Some("a host of the event, or an admin"))
}

fn is_contest_creator(conn: &mut AnyConnection, me: &Caller, id: DbUuid) -> Result<Needed, Error> {
    let creator: Option<DbUuid> = contests::table.find(id).select(contests::created_by).first(conn).optional()?;
    let creator = creator.ok_or_else(|| Problem::not_found("contest"))?;
    Ok(if creator == me.id { None } else { Some("the creator of the contest, or an admin") })
}

fn is_team_editor(
    conn: &mut AnyConnection,
    me: &Caller,
    contest: DbUuid,
    team: DbUuid,
    members: bool,
) -> Result<Needed, Error> {
    let creators: Option<(DbUuid, DbUuid)> = contest_teams::table
        .inner_join(contests::table)
        .filter(contest_teams::id.eq(team).and(contests::id.eq(contest)))
        .select((contest_teams::created_by, contests::created_by))
        .first(conn)
        .optional()?;
    let (of_team, of_contest) = creators.ok_or_else(|| Problem::not_found("team"))?;
    if me.id == of_team || me.id == of_contest {
        return Ok(None);
    }
    if !members {
        return Ok(Some("the creator of the team or of the contest, or an admin"));
    }
    let member = contest_team_members::table.find((team, me.id)).select(contest_team_members::user_id);
    let member = member.first::<DbUuid>(conn).optional()?;
    let needed = "the creator of the team or of the contest, a member of the team, or an admin";
    Ok(if member.is_some() { None } else { Some(needed) })
}
