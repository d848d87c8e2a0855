//! The database of the portfolio-service.

use common::time::Clock;
use diesel::prelude::*;
use portfolio_service::{
    config::Cli,
    schema::{
        contest_team_members, contest_teams, contests, group_memberships, groups, project_members, projects, users,
    },
    server,
};
use rstest::rstest;
use service_kit::{
    config::parse,
    database::types::{DbTimestamp, DbUuid},
};

use crate::{
    Backend::{self, Postgres, Sqlite},
    Seeded, Service, lines,
};

fn seeded(backend: Backend) -> Seeded {
    let seeded = Seeded::new("portfolio", backend);
    assert_eq!(seeded.output, "100 users and 20 groups\n200 projects\n50 contests until 2026-11-20\n");
    seeded
}

/// Every row, in order, but for the identifiers of memberships.
fn rows(seeded: &Seeded) -> Vec<Vec<String>> {
    type Span = (i32, Option<i32>);
    let conn = &mut seeded.connect();
    let memberships = (group_memberships::group_id, group_memberships::user_id);
    vec![
        lines(
            users::table
                .order(users::id)
                .select((users::id, users::name, users::real_name, users::publishes_real_name))
                .load::<(DbUuid, String, String, bool)>(conn),
        ),
        lines(groups::table.order(groups::id).select((groups::id, groups::name)).load::<(DbUuid, String)>(conn)),
        lines(group_memberships::table.order(memberships).select(memberships).load::<(DbUuid, DbUuid)>(conn)),
        lines(
            projects::table
                .order(projects::id)
                .select((projects::id, projects::name, (projects::since, projects::until), projects::created_by))
                .load::<(DbUuid, String, Span, DbUuid)>(conn),
        ),
        lines(project_members::table.order((project_members::project_id, project_members::user_id)).load::<(
            DbUuid,
            DbUuid,
            i32,
            Option<i32>,
            bool,
            bool,
        )>(conn)),
        lines(
            contests::table
                .order(contests::id)
                .select((contests::id, contests::name, contests::since, contests::until, contests::created_by))
                .load::<(DbUuid, String, DbTimestamp, Option<DbTimestamp>, DbUuid)>(conn),
        ),
        lines(
            contest_teams::table
                .order(contest_teams::id)
                .select((contest_teams::id, contest_teams::contest_id, contest_teams::name))
                .load::<(DbUuid, DbUuid, String)>(conn),
        ),
        lines(
            contest_team_members::table.order((contest_team_members::team_id, contest_team_members::user_id)).load::<(
                DbUuid,
                DbUuid,
            )>(
                conn
            ),
        ),
    ]
}

#[test]
fn every_database_and_every_run_gives_the_same_rows() {
    let backends = [Backend::Sqlite, Backend::Sqlite, Backend::Postgres];
    let [sqlite, again, postgres] = backends.map(|one| rows(&seeded(one)));
    let counts: Vec<_> = sqlite.iter().map(Vec::len).collect();
    assert_eq!(counts, [100, 20, 400, 200, 1_600, 50, 500, 2_000]);
    assert!(sqlite == again, "two runs on SQLite differ");
    assert!(sqlite == postgres, "the databases differ");
}

#[rstest]
fn the_service_serves_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let seeded = seeded(backend);
    let arguments = ["portfolio-service", "--bind", "127.0.0.1:0", "--workers", "1", "--database-url", &seeded.url];
    let config = parse::<Cli>(arguments).unwrap().config;
    let service = Service::start(move || async move { server::start(&config, Clock::default()).await });
    let get = |path: &str| service.get(&format!("/api/v1{path}"), "");
    let list = |path: &str| get(path).as_array().unwrap().clone();
    assert_eq!((list("/users").len(), list("/groups").len(), list("/projects").len()), (100, 20, 200));
    let contests = list("/contests");
    assert_eq!(contests.len(), 50);
    let contest = get(&format!("/contests/{}", contests[0]["id"].as_str().unwrap()));
    let teams = contest["teams"].as_array().unwrap();
    assert!(teams.len() == 10 && teams.iter().all(|team| team["members"].as_array().unwrap().len() == 4), "{contest}");
    let project = get(&format!("/projects/{}", list("/projects")[0]["id"].as_str().unwrap()));
    assert_eq!(project["members"].as_array().unwrap().len(), 8);
}

#[rstest]
fn only_an_empty_database_is_seeded(#[values(Sqlite, Postgres)] backend: Backend) {
    let seeded = seeded(backend);
    seeded.refuses_another_run("projects");
    assert_eq!(projects::table.count().get_result::<i64>(&mut seeded.connect()).unwrap(), 200);
}
