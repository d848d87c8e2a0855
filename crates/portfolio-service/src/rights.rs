//! The rights that operations need (contract, "Operations"). Admins have all of them.

use actix_web::HttpRequest;
use common::{
    input::Id,
    problem::{Problem, Rule},
};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    state::AppState,
    with_connection,
};

use crate::{
    caller::Caller,
    deletion, departures,
    schema::{
        contest_team_members, contest_teams, contests, event_hosts, event_levels, events, project_members, projects,
        users,
    },
};

/// `event_levels.level` of an event that only its hosts and admins see.
pub const PRIVATE: i16 = 2;

/// A right that an operation needs.
pub trait Right: Send + Sync + Sized + 'static {
    /// Reads the object from the path of a request.
    ///
    /// # Errors
    /// 400 for a malformed id.
    fn from_path(req: &HttpRequest) -> Result<Self, Problem>;

    /// Checks that the caller has the right.
    ///
    /// # Errors
    /// 404 for an object that does not exist or that the caller may not see; otherwise 403 with a text that says who
    /// has the right.
    fn check(&self, conn: &mut AnyConnection, caller: &Caller) -> Result<(), Error>;

    /// The answer to a caller whose sign-in name no user has.
    fn unknown_name() -> Problem {
        Problem::forbidden("a member of the club")
    }
}

/// An id in the path of a request.
fn id(req: &HttpRequest, name: &'static str) -> Result<DbUuid, Problem> {
    let value = req.match_info().get(name).unwrap_or_default();
    value.parse::<Id>().map(DbUuid::from).map_err(|message| Problem::parameter(name, Rule::NotAUuid, message))
}

/// Answers 403 unless the caller has the right or is an admin.
fn require(has_right: bool, caller: &Caller, needed: &'static str) -> Result<(), Error> {
    if has_right || caller.admin { Ok(()) } else { Err(Problem::forbidden(needed).into()) }
}

/// Any active member.
pub struct IsMember;

impl Right for IsMember {
    fn from_path(_: &HttpRequest) -> Result<Self, Problem> {
        Ok(Self)
    }

    fn check(&self, _: &mut AnyConnection, _: &Caller) -> Result<(), Error> {
        Ok(())
    }
}

/// Any active member, for their own profile. An unknown sign-in name is 404.
pub struct IsProfileOwner;

impl Right for IsProfileOwner {
    fn from_path(_: &HttpRequest) -> Result<Self, Problem> {
        Ok(Self)
    }

    fn check(&self, _: &mut AnyConnection, _: &Caller) -> Result<(), Error> {
        Ok(())
    }

    fn unknown_name() -> Problem {
        Problem::not_found("user of your name")
    }
}

/// An admin.
pub struct IsAdmin;

impl Right for IsAdmin {
    fn from_path(_: &HttpRequest) -> Result<Self, Problem> {
        Ok(Self)
    }

    fn check(&self, _: &mut AnyConnection, caller: &Caller) -> Result<(), Error> {
        require(false, caller, "an admin")
    }
}

/// The user themself.
pub struct IsUserSelf(DbUuid);

impl Right for IsUserSelf {
    fn from_path(req: &HttpRequest) -> Result<Self, Problem> {
        id(req, "userId").map(Self)
    }

    fn check(&self, conn: &mut AnyConnection, caller: &Caller) -> Result<(), Error> {
        if self.0 == caller.id {
            return Ok(());
        }
        let user = users::table.find(self.0).select(users::id).first::<DbUuid>(conn).optional()?;
        user.ok_or_else(|| Problem::not_found("user"))?;
        require(false, caller, "the user themself, or an admin")
    }
}

/// The creator of a project.
pub struct IsProjectCreator(DbUuid);

impl Right for IsProjectCreator {
    fn from_path(req: &HttpRequest) -> Result<Self, Problem> {
        id(req, "projectId").map(Self)
    }

    fn check(&self, conn: &mut AnyConnection, caller: &Caller) -> Result<(), Error> {
        let creator: Option<DbUuid> =
            projects::table.find(self.0).select(projects::created_by).first(conn).optional()?;
        let is_creator = creator.ok_or_else(|| Problem::not_found("project"))? == caller.id;
        require(is_creator, caller, "the creator of the project, or an admin")
    }
}

/// The creator of a project, or one of its members.
pub struct IsProjectEditor(DbUuid);

impl Right for IsProjectEditor {
    fn from_path(req: &HttpRequest) -> Result<Self, Problem> {
        id(req, "projectId").map(Self)
    }

    fn check(&self, conn: &mut AnyConnection, caller: &Caller) -> Result<(), Error> {
        let is_caller = project_members::project_id.eq(projects::id).and(project_members::user_id.eq(caller.id));
        let project = projects::table.left_join(project_members::table.on(is_caller)).filter(projects::id.eq(self.0));
        let people = project.select((projects::created_by, project_members::user_id.nullable()));
        let people: Option<(DbUuid, Option<DbUuid>)> = with_connection!(conn, c => people.first(c)).optional()?;
        let (creator, member) = people.ok_or_else(|| Problem::not_found("project"))?;
        require(
            creator == caller.id || member.is_some(),
            caller,
            "the creator of the project, one of its members, or an admin",
        )
    }
}

/// A right that the members of a project or team have.
pub trait HasMembers: Right {
    /// The id of the project or team.
    fn object(&self) -> DbUuid;
}

impl HasMembers for IsProjectEditor {
    fn object(&self) -> DbUuid {
        self.0
    }
}

impl HasMembers for IsTeamEditor {
    fn object(&self) -> DbUuid {
        self.0.team
    }
}

/// The right `R`, also for members who removed themselves within the last minute (contract, "Member spans").
pub struct Recent<R> {
    right: R,
    now: DbTimestamp,
}

impl<R: HasMembers> Right for Recent<R> {
    fn from_path(req: &HttpRequest) -> Result<Self, Problem> {
        let now = DbTimestamp(AppState::from_request(req)?.clock.now());
        Ok(Self { right: R::from_path(req)?, now })
    }

    fn check(&self, conn: &mut AnyConnection, caller: &Caller) -> Result<(), Error> {
        // In this order: if this transaction no longer sees the member, it sees the departure.
        match self.right.check(conn, caller) {
            Err(Error::Problem(problem)) if problem.status() == 403 => {
                let is_recent = departures::is_recent(conn, self.right.object(), caller.id, self.now)?;
                if is_recent { Ok(()) } else { Err(problem.into()) }
            }
            other => other,
        }
    }
}

/// A right over a project or contest.
pub trait OfDeletable: Right {
    /// Whether members have it, besides the creator.
    const OF_MEMBERS: bool;

    /// The right over this project or contest.
    fn over(id: DbUuid) -> Self;

    /// The id of the project or contest.
    fn deletable(&self) -> DbUuid;
}

impl OfDeletable for IsProjectEditor {
    const OF_MEMBERS: bool = true;

    fn over(id: DbUuid) -> Self {
        Self(id)
    }

    fn deletable(&self) -> DbUuid {
        self.0
    }
}

impl OfDeletable for IsProjectCreator {
    const OF_MEMBERS: bool = false;

    fn over(id: DbUuid) -> Self {
        Self(id)
    }

    fn deletable(&self) -> DbUuid {
        self.0
    }
}

impl OfDeletable for IsContestCreator {
    const OF_MEMBERS: bool = false;

    fn over(id: DbUuid) -> Self {
        Self(id)
    }

    fn deletable(&self) -> DbUuid {
        self.0
    }
}

/// The right `R`, also over an object that has been deleted.
pub struct EvenDeleted<R>(R);

impl<R: OfDeletable> EvenDeleted<R> {
    /// Whether a caller has the right over an object.
    pub fn is_of(conn: &mut AnyConnection, caller: &Caller, object: DbUuid) -> Result<bool, Error> {
        match Self(R::over(object)).check(conn, caller) {
            Ok(()) => Ok(true),
            Err(Error::Problem(problem)) if problem.status() < 500 => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl<R: OfDeletable> Right for EvenDeleted<R> {
    fn from_path(req: &HttpRequest) -> Result<Self, Problem> {
        R::from_path(req).map(Self)
    }

    fn check(&self, conn: &mut AnyConnection, caller: &Caller) -> Result<(), Error> {
        match self.0.check(conn, caller) {
            Err(Error::Problem(problem)) if problem.status() == 404 => {
                let people = deletion::people(conn, self.0.deletable())?.ok_or(problem)?;
                let is_editor = R::OF_MEMBERS && people.editors.contains(&caller.id);
                require(is_editor || people.creator == caller.id, caller, "who could change it, or an admin")
            }
            other => other,
        }
    }
}

/// A host of an event.
pub struct IsEventHost(DbUuid);

impl Right for IsEventHost {
    fn from_path(req: &HttpRequest) -> Result<Self, Problem> {
        id(req, "eventId").map(Self)
    }

    fn check(&self, conn: &mut AnyConnection, caller: &Caller) -> Result<(), Error> {
        let level: Option<Option<i16>> = events::table
            .left_join(event_levels::table)
            .filter(events::id.eq(self.0))
            .select(event_levels::level.nullable())
            .first(conn)
            .optional()?;
        let level = level.ok_or_else(|| Problem::not_found("event"))?;
        let host = event_hosts::table.find((self.0, caller.id)).select(event_hosts::user_id);
        let is_host = host.first::<DbUuid>(conn).optional()?.is_some();
        if !is_host && level == Some(PRIVATE) && !caller.admin {
            return Err(Problem::not_found("event").into());
        }
        require(is_host, caller, "a host of the event, or an admin")
    }
}

/// The creator of a contest.
pub struct IsContestCreator(DbUuid);

impl Right for IsContestCreator {
    fn from_path(req: &HttpRequest) -> Result<Self, Problem> {
        id(req, "contestId").map(Self)
    }

    fn check(&self, conn: &mut AnyConnection, caller: &Caller) -> Result<(), Error> {
        let creator: Option<DbUuid> =
            contests::table.find(self.0).select(contests::created_by).first(conn).optional()?;
        let creator = creator.ok_or_else(|| Problem::not_found("contest"))?;
        require(creator == caller.id, caller, "the creator of the contest, or an admin")
    }
}

/// A team of a contest.
struct Team {
    contest: DbUuid,
    team: DbUuid,
}

impl Team {
    fn from_path(req: &HttpRequest) -> Result<Self, Problem> {
        Ok(Self { contest: id(req, "contestId")?, team: id(req, "teamId")? })
    }

    fn is_creator(&self, conn: &mut AnyConnection, caller: &Caller) -> Result<bool, Error> {
        let creators: Option<(DbUuid, DbUuid)> = contest_teams::table
            .inner_join(contests::table)
            .filter(contest_teams::id.eq(self.team).and(contests::id.eq(self.contest)))
            .select((contest_teams::created_by, contests::created_by))
            .first(conn)
            .optional()?;
        let (of_team, of_contest) = creators.ok_or_else(|| Problem::not_found("team"))?;
        Ok(caller.id == of_team || caller.id == of_contest)
    }
}

/// The creator of a team or of its contest.
pub struct IsTeamCreator(Team);

impl Right for IsTeamCreator {
    fn from_path(req: &HttpRequest) -> Result<Self, Problem> {
        Team::from_path(req).map(Self)
    }

    fn check(&self, conn: &mut AnyConnection, caller: &Caller) -> Result<(), Error> {
        let is_creator = self.0.is_creator(conn, caller)?;
        require(is_creator, caller, "the creator of the team or of the contest, or an admin")
    }
}

/// The creator of a team or of its contest, or a member of the team.
pub struct IsTeamEditor(Team);

impl Right for IsTeamEditor {
    fn from_path(req: &HttpRequest) -> Result<Self, Problem> {
        Team::from_path(req).map(Self)
    }

    fn check(&self, conn: &mut AnyConnection, caller: &Caller) -> Result<(), Error> {
        if self.0.is_creator(conn, caller)? {
            return Ok(());
        }
        let member = contest_team_members::table.find((self.0.team, caller.id)).select(contest_team_members::user_id);
        let is_member = member.first::<DbUuid>(conn).optional()?.is_some();
        let needed = "the creator of the team or of the contest, a member of the team, or an admin";
        require(is_member, caller, needed)
    }
}
