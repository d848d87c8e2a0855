//! Events, projects, contests and teams: each with every user there is.

use diesel::prelude::*;
use portfolio_service::schema::{
    contest_team_members, contest_teams, contests, event_hosts, event_levels, events, project_members, projects,
};
use service_kit::{
    db::{
        AnyConnection,
        sql::{Moment, Uid},
    },
    on_each,
};

use super::Objects;
use crate::harness::{BOB, id};

/// Makes so many of each; all teams are in the first contest.
pub fn grow(objects: &mut Objects, conn: &mut AnyConnection, count: usize, now: Moment) {
    for _ in 0..count {
        let [event, project, contest] = [Uid::new(), Uid::new(), Uid::new()];
        let event_row = (
            (events::id.eq(event), events::name.eq("event"), events::description.eq(""), events::place.eq("S516")),
            (events::since.eq(now), events::until.eq(now), events::updated_at.eq(now)),
        );
        diesel::insert_into(events::table).values(event_row).execute(conn).unwrap();
        let level = (event_levels::event_id.eq(event), event_levels::level.eq(1_i16));
        diesel::insert_into(event_levels::table).values(level).execute(conn).unwrap();
        let project_row = (
            (projects::id.eq(project), projects::name.eq(format!("project {project}")), projects::link.eq("")),
            (projects::description.eq("x"), projects::since.eq(4050), projects::created_by.eq(id(BOB))),
            (projects::created_at.eq(now), projects::updated_at.eq(now)),
        );
        diesel::insert_into(projects::table).values(project_row).execute(conn).unwrap();
        let contest_row = (
            (contests::id.eq(contest), contests::name.eq(format!("contest {contest}")), contests::link.eq("")),
            (contests::description.eq("x"), contests::since.eq(now), contests::created_by.eq(id(BOB))),
            (contests::created_at.eq(now), contests::updated_at.eq(now)),
        );
        diesel::insert_into(contests::table).values(contest_row).execute(conn).unwrap();
        objects.add("eventId", event);
        objects.add("projectId", project);
        objects.add("contestId", contest);
        // One in the first contest, and one in its own.
        for contest in [objects.ids("contestId")[0], contest] {
            let team = objects.add("teamId", Uid::new());
            let team_row = (
                (contest_teams::id.eq(team), contest_teams::contest_id.eq(contest), contest_teams::name.eq("team")),
                (contest_teams::link.eq(""), contest_teams::description.eq("x"), contest_teams::result.eq("")),
                (contest_teams::created_by.eq(id(BOB)), contest_teams::created_at.eq(now)),
                contest_teams::updated_at.eq(now),
            );
            diesel::insert_into(contest_teams::table).values(team_row).execute(conn).unwrap();
        }
    }
    let with_everybody = |parameter: &str| -> Vec<(Uid, Uid)> {
        let users = objects.ids("userId");
        objects.ids(parameter).iter().flat_map(|id| users.iter().map(move |user| (*id, *user))).collect()
    };
    diesel::delete(event_hosts::table).execute(conn).unwrap();
    for pairs in with_everybody("eventId").chunks(1000) {
        let rows: Vec<_> =
            pairs.iter().map(|(id, user)| (event_hosts::event_id.eq(*id), event_hosts::user_id.eq(*user))).collect();
        on_each!(conn, c => diesel::insert_into(event_hosts::table).values(rows).execute(c).unwrap());
    }
    diesel::delete(project_members::table).execute(conn).unwrap();
    for pairs in with_everybody("projectId").chunks(1000) {
        let row = |(id, user): &(Uid, Uid)| {
            let pair = (project_members::project_id.eq(*id), project_members::user_id.eq(*user));
            (pair, project_members::since.eq(4050))
        };
        let rows: Vec<_> = pairs.iter().map(row).collect();
        on_each!(conn, c => diesel::insert_into(project_members::table).values(rows).execute(c).unwrap());
    }
    diesel::delete(contest_team_members::table).execute(conn).unwrap();
    for pairs in with_everybody("teamId").chunks(1000) {
        let row =
            |(id, user): &(Uid, Uid)| (contest_team_members::team_id.eq(*id), contest_team_members::user_id.eq(*user));
        let rows: Vec<_> = pairs.iter().map(row).collect();
        on_each!(conn, c => diesel::insert_into(contest_team_members::table).values(rows).execute(c).unwrap());
    }
}
