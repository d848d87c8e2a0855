//! Fills the database of the portfolio-service. The ordinary sync adds users and groups; all other rows are computed
//! from their numbers. There are no events, because they come from the booking-service. Only the identifiers of
//! memberships differ between runs.

use std::sync::Arc;

use chrono::{NaiveDate, TimeDelta};
use club_directory::Snapshot;
use common::semester::YearWithSemester;
use diesel::{OptionalExtension, prelude::*};
use portfolio_service::{
    demo::semester_before,
    schema::{contest_team_members, contest_teams, contests, project_members, projects, users},
    span::Half,
    sync,
};
use service_kit::{
    database::{
        AnyConnection, Database, JobOwner,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    progress::Progress,
    with_connection,
};

use super::{CHUNK, Say, Size, analyze, directory, in_use, midnight};

/// Projects or contests of one transaction. A transaction has a time limit.
const STEP: usize = 250;

/// Members of a project.
const PROJECT_MEMBERS: usize = 8;
/// Teams of a contest.
const TEAMS: usize = 10;
/// Members of a team.
const TEAM_MEMBERS: usize = 4;

/// Days over which contests are spread.
const CONTEST_DAYS: usize = 3650;

/// The number of projects and of contests of a size.
fn counts(size: Size) -> (usize, usize) {
    match size {
        Size::Small => (200, 50),
        Size::Club => (100, 30),
        Size::Large => (2_000, 500),
        Size::Crowded => (2_000, 5_000),
        Size::Huge => (2_000, 25_000),
    }
}

/// The common input of all rows.
struct Plan {
    directory: Snapshot,
    contests: usize,
    now: DbTimestamp,
    present: YearWithSemester,
}

/// Fills a database without users.
///
/// # Errors
/// 409 when the database is not empty.
pub async fn fill(db: &Database, size: Size, day: NaiveDate, progress: &Progress, say: Say<'_>) -> Result<(), Error> {
    let (projects, contests) = counts(size);
    let (now, present) = (DbTimestamp(midnight(day)?), YearWithSemester::containing(day));
    let plan = Arc::new(Plan { directory: directory::snapshot(size), contests, now, present });
    let first = plan.clone();
    db.write(JobOwner::Internal, move |conn| insert_users_and_groups(conn, &first)).await?;
    say(&format!("{} users and {} groups", plan.directory.users.len(), plan.directory.groups.len()));
    progress.step("adding projects", Some(projects as u64));
    for from in (0..projects).step_by(STEP) {
        let plan = plan.clone();
        db.write(JobOwner::Internal, move |conn| insert_projects(conn, &plan, from, projects.min(from + STEP))).await?;
        progress.add(projects.min(from + STEP).saturating_sub(from) as u64);
    }
    say(&format!("{projects} projects"));
    progress.step("adding contests", Some(contests as u64));
    for from in (0..contests).step_by(STEP) {
        let plan = plan.clone();
        db.write(JobOwner::Internal, move |conn| insert_contests(conn, &plan, from, contests.min(from + STEP))).await?;
        progress.add(contests.min(from + STEP).saturating_sub(from) as u64);
    }
    analyze(db).await?;
    say(&format!("{contests} contests until {day}"));
    Ok(())
}

/// Inserts the users and groups. Every third user publishes the real name.
fn insert_users_and_groups(conn: &mut AnyConnection, plan: &Plan) -> Result<(), Error> {
    // Without users there are no other rows, because each of them belongs to a user.
    let user: Option<DbUuid> = users::table.select(users::id).first(conn).optional()?;
    if user.is_some() {
        return Err(in_use());
    }
    sync::apply(conn, &plan.directory, false, plan.present, plan.now)?;
    let publishers = plan.directory.users.iter().step_by(3).map(|user| DbUuid(user.id));
    diesel::update(users::table.filter(users::id.eq_any(publishers)))
        .set(users::publishes_real_name.eq(true))
        .execute(conn)?;
    Ok(())
}

#[derive(Clone, Copy)]
enum Kind {
    Project = 1,
    Contest = 2,
    Team = 3,
}

impl Plan {
    fn id(&self, kind: Kind, number: usize) -> DbUuid {
        DbUuid(directory::id(self.now.0, kind as u8, number))
    }

    /// Consecutive users, all different.
    fn people(&self, from: usize, count: usize) -> impl Iterator<Item = DbUuid> {
        let users = &self.directory.users;
        (from..from + count).map(|number| DbUuid(users[number % users.len()].id))
    }

    fn first(&self, from: usize) -> DbUuid {
        self.people(from, 1).next().unwrap_or_default()
    }

    /// The semester that is `count` semesters before the present one.
    fn half(&self, count: usize) -> Half {
        semester_before(self.present, count).into()
    }
}

/// Inserts some of the projects. They began in the last eight semesters, and every second one is over.
fn insert_projects(conn: &mut AnyConnection, plan: &Plan, from: usize, to: usize) -> Result<(), Error> {
    let (mut rows, mut members) = (Vec::new(), Vec::new());
    for number in from..to {
        let (id, began) = (plan.id(Kind::Project, number), 1 + number % 8);
        let ended = number.is_multiple_of(2).then(|| plan.half(began / 2));
        let people = number * PROJECT_MEMBERS;
        rows.push((
            (projects::id.eq(id), projects::name.eq(format!("Project {number:05}"))),
            projects::link.eq(format!("https://works.example/{number}")),
            projects::description.eq("Something that eight people made in their free time, and are proud of."),
            (projects::since.eq(plan.half(began)), projects::until.eq(ended)),
            (projects::created_by.eq(plan.first(people)), projects::created_at.eq(plan.now)),
            projects::updated_at.eq(plan.now),
        ));
        members.extend(plan.people(people, PROJECT_MEMBERS).map(|user| {
            (
                (project_members::project_id.eq(id), project_members::user_id.eq(user)),
                (project_members::since.eq(plan.half(began)), project_members::until.eq(ended)),
            )
        }));
    }
    with_connection!(conn, c => diesel::insert_into(projects::table).values(&rows).execute(c))?;
    for members in members.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(project_members::table).values(members).execute(c))?;
    }
    Ok(())
}

/// Inserts some of the contests, of two days each, with their teams.
fn insert_contests(conn: &mut AnyConnection, plan: &Plan, from: usize, to: usize) -> Result<(), Error> {
    let (mut rows, mut teams, mut members) = (Vec::new(), Vec::new(), Vec::new());
    for number in from..to {
        let id = plan.id(Kind::Contest, number);
        let days = |count: usize| TimeDelta::days(i64::try_from(count).unwrap_or(0));
        let since = plan.now.plus(-days(3 + number * CONTEST_DAYS / plan.contests));
        let first = number * TEAMS * TEAM_MEMBERS;
        rows.push((
            (contests::id.eq(id), contests::name.eq(format!("Contest {number:05}"))),
            contests::link.eq(format!("https://contest.example/{number}")),
            contests::description.eq("Two days, many problems, and not enough sleep for anybody."),
            (contests::since.eq(DbTimestamp(since)), contests::until.eq(Some(DbTimestamp(since.plus(days(2)))))),
            (contests::created_by.eq(plan.first(first)), contests::created_at.eq(plan.now)),
            contests::updated_at.eq(plan.now),
        ));
        for nth in 0..TEAMS {
            let (team, people) = (plan.id(Kind::Team, number * TEAMS + nth), first + nth * TEAM_MEMBERS);
            teams.push((
                (contest_teams::id.eq(team), contest_teams::contest_id.eq(id)),
                (contest_teams::name.eq(format!("Team {nth}")), contest_teams::link.eq("")),
                contest_teams::description.eq("Four people who had not met before."),
                contest_teams::result.eq(format!("{}th of 80", nth * 7 + 4)),
                (contest_teams::created_by.eq(plan.first(people)), contest_teams::created_at.eq(plan.now)),
                contest_teams::updated_at.eq(plan.now),
            ));
            members.extend(
                plan.people(people, TEAM_MEMBERS)
                    .map(|user| (contest_team_members::team_id.eq(team), contest_team_members::user_id.eq(user))),
            );
        }
    }
    with_connection!(conn, c => diesel::insert_into(contests::table).values(&rows).execute(c))?;
    for teams in teams.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(contest_teams::table).values(teams).execute(c))?;
    }
    for members in members.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(contest_team_members::table).values(members).execute(c))?;
    }
    Ok(())
}
