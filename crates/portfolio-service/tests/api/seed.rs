//! `seed`: a club of a given size.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    fmt::Debug,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use diesel::prelude::*;
use portfolio_service::schema::{
    contest_team_members, contest_teams, contests, group_memberships, groups, project_members, projects, users,
};
use serde_json::Value;
use service_kit::database::{
    AnyConnection, Url,
    types::{DbTimestamp, DbUuid},
};
use tempfile::TempDir;

use crate::harness::postgres_schema;

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
    command.env_clear().args(arguments).stdin(Stdio::null());
    command
}

/// What the command printed, what it complained of, and its exit status.
fn seed(url: &str) -> (String, String, Option<i32>) {
    let arguments = ["--log", "warn", "seed", "--size", "small", "--day", "2026-11-20", "--database-url", url];
    let output = program(&arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// A database that holds a small club of 20 November 2026.
struct Seeded {
    url: String,
    _folder: TempDir,
}

impl Seeded {
    fn new(backend: Backend) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = match backend {
            Backend::Sqlite => format!("sqlite://{}/club.sqlite3", folder.path().display()),
            Backend::Postgres => postgres_schema(),
        };
        let (said, complaint, status) = seed(&url);
        assert_eq!((complaint.as_str(), status), ("", Some(0)));
        assert_eq!(said, "100 users and 20 groups\n200 projects\n50 contests until 2026-11-20\n");
        Self { url, _folder: folder }
    }

    fn connect(&self) -> AnyConnection {
        self.url.parse::<Url>().unwrap().connect().unwrap()
    }
}

fn lines<T: Debug>(rows: Result<Vec<T>, diesel::result::Error>) -> Vec<String> {
    rows.unwrap().into_iter().map(|row| format!("{row:?}")).collect()
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
    let [sqlite, again, postgres] = backends.map(|one| rows(&Seeded::new(one)));
    let counts: Vec<_> = sqlite.iter().map(Vec::len).collect();
    assert_eq!(counts, [100, 20, 400, 200, 1_600, 50, 500, 2_000]);
    assert!(sqlite == again, "two runs on SQLite differ");
    assert!(sqlite == postgres, "the databases differ");
}

struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(url: &str) -> Self {
        let arguments = ["--bind", "127.0.0.1:0", "--workers", "1", "--database-url", url];
        let mut child = program(&arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let line = log.find(|line| line.contains("listens on http://")).expect("the service starts");
        let address = line.split("http://").nth(1).unwrap().split([',', '"']).next().unwrap().to_owned();
        // Else it would write into a pipe that nobody reads.
        std::thread::spawn(move || log.for_each(drop));
        Self { child, address }
    }

    fn get(&self, path: &str) -> Value {
        let mut answer = ureq::get(format!("http://{}/api/v1{path}", self.address)).call().unwrap();
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[rstest]
fn the_service_serves_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let seeded = Seeded::new(backend);
    let service = Serving::start(&seeded.url);
    let list = |path: &str| service.get(path).as_array().unwrap().clone();
    assert_eq!((list("/users").len(), list("/groups").len(), list("/projects").len()), (100, 20, 200));
    let contests = list("/contests");
    assert_eq!(contests.len(), 50);
    let contest = service.get(&format!("/contests/{}", contests[0]["id"].as_str().unwrap()));
    let teams = contest["teams"].as_array().unwrap();
    assert!(teams.len() == 10 && teams.iter().all(|team| team["members"].as_array().unwrap().len() == 4), "{contest}");
    let project = service.get(&format!("/projects/{}", list("/projects")[0]["id"].as_str().unwrap()));
    assert_eq!(project["members"].as_array().unwrap().len(), 8);
}

#[rstest]
fn only_an_empty_database_is_seeded(#[values(Sqlite, Postgres)] backend: Backend) {
    let seeded = Seeded::new(backend);
    let (said, complaint, status) = seed(&seeded.url);
    assert_eq!((said.as_str(), complaint.lines().count(), status), ("", 1, Some(1)), "{complaint}");
    assert!(complaint.contains("is in use"), "{complaint}");
    assert_eq!(projects::table.count().get_result::<i64>(&mut seeded.connect()).unwrap(), 200);
}
