//! Profiles in the database.

use common::semester::YearWithSemesterDuration;
use diesel::prelude::*;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
};

use crate::{
    contests,
    page::MAX_ROWS,
    projects,
    schema::{contest_team_members, contest_teams, contests as contest, project_members, projects as project},
    span::{Columns, Half},
    teams,
    users::{self, queries::Detail},
};

/// The public data of one active member.
#[derive(Debug)]
pub struct Profile {
    /// The member with their accounts.
    pub user: Detail,
    /// The newest first, at most [`MAX_ROWS`].
    pub projects: Vec<Project>,
    /// The member's teams, those in the newest contests first, at most [`MAX_ROWS`].
    pub teams: Vec<(contests::queries::Row, teams::queries::Row)>,
}

/// A project of a member.
#[derive(Debug)]
pub struct Project {
    pub row: projects::queries::Row,
    pub link: String,
    pub description: String,
    pub span: YearWithSemesterDuration,
    /// The member's own span, as it is shown.
    pub own_span: YearWithSemesterDuration,
}

/// The profile of a member.
///
/// # Errors
/// 404 when there is no such user, or the account is not active.
pub fn load(conn: &mut AnyConnection, id: DbUuid) -> Result<Profile, Error> {
    let user = users::queries::get(conn, id)?;
    if !user.person.is_active() {
        return Err(users::queries::not_found());
    }
    Ok(Profile { user, projects: load_projects(conn, id)?, teams: load_teams(conn, id)? })
}

fn load_projects(conn: &mut AnyConnection, user: DbUuid) -> Result<Vec<Project>, Error> {
    type Row = (projects::queries::Row, (String, String), (Half, Option<Half>));
    let rows: Vec<Row> = project_members::table
        .inner_join(project::table)
        .filter(project_members::user_id.eq(user))
        .select((
            projects::queries::Row::as_select(),
            (project::link, project::description),
            (project_members::since, project_members::until),
        ))
        .order((project::since.desc(), project::id))
        .limit(MAX_ROWS)
        .load(conn)?;
    let project = |(row, (link, description), own): Row| {
        let span = row.span()?;
        let own_span = Columns::from(own).span()?.shown_within(span);
        Ok(Project { row, link, description, span, own_span })
    };
    rows.into_iter().map(project).collect()
}

fn load_teams(
    conn: &mut AnyConnection,
    user: DbUuid,
) -> Result<Vec<(contests::queries::Row, teams::queries::Row)>, Error> {
    Ok(contest_team_members::table
        .inner_join(contest_teams::table.inner_join(contest::table))
        .filter(contest_team_members::user_id.eq(user))
        .select((contests::queries::Row::as_select(), teams::queries::Row::as_select()))
        .order((contest::since.desc(), contest::id, contest_teams::name, contest_teams::id))
        .limit(MAX_ROWS)
        .load(conn)?)
}
