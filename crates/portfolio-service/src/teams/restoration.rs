//! The teams of a contest that is deleted or restored.

use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use crate::schema::{contest_team_members, contest_teams};

/// The rows of the teams of a contest.
#[derive(Serialize, Deserialize)]
pub struct Stored {
    teams: Vec<Team>,
    /// Team and user.
    members: Vec<(DbUuid, DbUuid)>,
}

/// Id, name, link, description, result, creator, time of creation and of the last change.
type Team = (DbUuid, String, String, String, String, DbUuid, DbTimestamp, DbTimestamp);

impl Stored {
    /// The ids of the teams.
    pub fn ids(&self) -> Vec<DbUuid> {
        self.teams.iter().map(|team| team.0).collect()
    }

    /// Reads the teams of a contest.
    pub fn load(conn: &mut AnyConnection, contest: DbUuid) -> Result<Self, Error> {
        let of_contest = contest_teams::table.filter(contest_teams::contest_id.eq(contest));
        let teams = of_contest.select((
            contest_teams::id,
            contest_teams::name,
            contest_teams::link,
            contest_teams::description,
            contest_teams::result,
            contest_teams::created_by,
            contest_teams::created_at,
            contest_teams::updated_at,
        ));
        let members = contest_team_members::table
            .filter(contest_team_members::team_id.eq_any(of_contest.select(contest_teams::id)))
            .select((contest_team_members::team_id, contest_team_members::user_id));
        Ok(Self { teams: teams.load(conn)?, members: members.load(conn)? })
    }

    /// Inserts the teams into their contest.
    pub fn insert(&self, conn: &mut AnyConnection, contest: DbUuid) -> Result<(), Error> {
        let team = |(id, name, link, description, result, created_by, created_at, updated_at): &Team| {
            (
                (
                    contest_teams::id.eq(*id),
                    contest_teams::contest_id.eq(contest),
                    contest_teams::name.eq(name.clone()),
                ),
                (contest_teams::link.eq(link.clone()), contest_teams::description.eq(description.clone())),
                (contest_teams::result.eq(result.clone()), contest_teams::created_by.eq(*created_by)),
                (contest_teams::created_at.eq(*created_at), contest_teams::updated_at.eq(*updated_at)),
            )
        };
        let teams: Vec<_> = self.teams.iter().map(team).collect();
        for teams in teams.chunks(1000) {
            with_connection!(&mut *conn, c => diesel::insert_into(contest_teams::table).values(teams).execute(c)?);
        }
        let member = |(team, user): &(DbUuid, DbUuid)| {
            (contest_team_members::team_id.eq(*team), contest_team_members::user_id.eq(*user))
        };
        let members: Vec<_> = self.members.iter().map(member).collect();
        for rows in members.chunks(1000) {
            with_connection!(&mut *conn, c => diesel::insert_into(contest_team_members::table).values(rows).execute(c)?);
        }
        Ok(())
    }
}
