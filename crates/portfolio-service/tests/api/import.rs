//! `import` from a real MariaDB into both databases.

#[path = "../../../service-kit/tests/shared/mariadb.rs"]
mod mariadb;

use std::process::Command;

use rstest::rstest;
use serde_json::{Value, json};

use self::mariadb::{Printed, SourceDatabase, directory_file};
use crate::harness::{
    ALICE, BOB,
    Backend::{self, Postgres, Sqlite},
    CAROL, Club, DAVE, id,
};

const SCHEMA: &str = include_str!("import/schema.sql");
const ODD: &str = include_str!("import/odd.sql");
const CLUB: &str = include_str!("import/club.sql");

/// The id of an object in the source.
fn id_of(kind: u8, number: u32) -> String {
    format!("{number:08x}-0000-4000-8000-{kind:012x}")
}

fn import(club: &Club, source: &SourceDatabase, users: u32, options: &[&str]) -> Printed {
    let users = (1..=users).map(|number| (id_of(1, number), format!("user{number}")));
    // A directory without the members that are here already would be suspicious.
    let present = [ALICE, BOB, CAROL, DAVE].map(|name| (id(name).to_string(), name.to_owned()));
    let users: Vec<_> = users.chain(present).collect();
    let directory = directory_file(club.folder(), &users);
    let mut program = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
    program.env_clear().args(["import", &source.url(), "--password-file", &source.password_file()]);
    program.args(["--database-url", club.url(), "--directory-file", &directory, "--time-zone", "Asia/Tokyo"]);
    Printed::by(program.args(["--log", "warn"]).args(options))
}

fn get(club: &Club, path: &str) -> Value {
    club.by(ALICE).get(&format!("/api/v1{path}")).expect(200).json()
}

/// The lists of all objects.
fn everything(club: &Club) -> Vec<Value> {
    ["/users?includeSuspended=true", "/projects", "/contests", "/groups"].map(|path| get(club, path)).to_vec()
}

#[rstest]
fn odd_rows_are_left_out_or_imported_as_they_are(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, source) = (Club::start(backend), SourceDatabase::new(&[SCHEMA, ODD]));
    let before = everything(&club);
    let dry = import(&club, &source, 2, &["--dry-run"]).done();
    assert_eq!(everything(&club), before);
    let done = import(&club, &source, 2, &[]).done();
    assert_eq!(dry.out.replace("dry run: nothing is written\n", ""), done.out);

    assert_eq!(done.counts("users"), [3, 3, 0, 0, 0, 0, 1]);
    assert_eq!(done.counts("accounts"), [4, 1, 0, 0, 0, 3, 0]);
    assert_eq!(done.counts("projects"), [6, 3, 0, 0, 0, 3, 1]);
    assert_eq!(done.counts("project_members")[5], 2);
    assert_eq!(done.counts("contests"), [2, 1, 0, 0, 0, 1, 0]);
    assert_eq!(done.counts("contest_teams"), [2, 1, 0, 0, 0, 1, 0]);
    assert_eq!(done.counts("event_level_relations"), [2, 1, 0, 0, 0, 1, 0]);
    assert_eq!(done.notes("users whom"), [id_of(1, 9)]);
    assert_eq!(done.notes("groups that"), [id_of(6, 1)]);
    let left_out = done.notes("left out").join("\n");
    for (kind, number, why) in [
        (2, 2, "same type"),
        (2, 3, "web address"),
        (3, 2, "same name"),
        (3, 3, "link"),
        (3, 4, "ends"),
        (5, 2, "contest"),
    ] {
        let line = left_out.lines().find(|line| line.contains(&format!(" {}: ", id_of(kind, number))));
        assert!(line.is_some_and(|line| line.contains(why)), "{kind} {number}: {left_out}");
    }

    let user = get(&club, &format!("/users/{}", id_of(1, 1)));
    assert_eq!((&user["name"], user["bio"].as_str().unwrap().len()), (&json!("user1"), 300));
    assert_eq!(user["accounts"][0]["url"], "https://github.com/one");
    let gone = get(&club, &format!("/users/{}", id_of(1, 9)));
    assert_eq!((&gone["name"], &gone["state"], &gone["bio"]), (&json!("gone"), &json!(0), &json!("I left")));
    let project = get(&club, &format!("/projects/{}", id_of(3, 1)));
    assert_eq!(project["members"].as_array().unwrap().len(), 1);
    assert_eq!(project["duration"], json!({"since": {"year": 2024, "semester": 0}}));
    let contest = get(&club, &format!("/contests/{}", id_of(4, 1)));
    assert_eq!(contest["duration"], json!({"since": "2024-08-01T00:00:00Z"}));
    assert_eq!(
        (&contest["teams"][0]["name"], &contest["teams"][0]["members"][0]["name"]),
        (&json!("us"), &json!("user1"))
    );
    let group = get(&club, &format!("/groups/{}", id_of(6, 1)));
    assert_eq!((&group["name"], &group["link"]), (&json!("graphics"), &json!("https://club.example/graphics")));
    let spans: Vec<_> = group["members"].as_array().unwrap().iter().map(|it| &it["duration"]).collect();
    assert!(spans.iter().all(|span| span["since"] == json!({"year": 2019, "semester": 0})), "{spans:?}");
    assert_eq!(spans.len(), 2);
}

#[rstest]
fn a_second_import_brings_changes_and_keeps_what_was_changed_here(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, mut source) = (Club::start(backend), SourceDatabase::new(&[SCHEMA, ODD]));
    import(&club, &source, 2, &[]).done();
    let before = everything(&club);
    let again = import(&club, &source, 2, &["--update"]).done();
    assert_eq!(everything(&club), before);
    for table in ["users", "accounts", "projects", "contests", "contest_teams", "groups", "group_user_belongings"] {
        let [_, added, updated, same, kept, ..] = again.counts(table)[..] else { panic!("{table}") };
        assert!(added == 0 && updated == 0 && kept == 0 && same > 0, "{table}: {}", again.out);
    }

    let path = |number| format!("/api/v1/projects/{}", id_of(3, number));
    club.by(ALICE).patch(&path(1), json!({"description": "changed here"})).expect(204);
    source.run(&format!(
        "UPDATE projects SET description = 'changed there' WHERE id IN ('{}', '{}'); DELETE FROM projects WHERE id = '{}'; \
         INSERT INTO project_members VALUES ('{}', '{}', 2024, 0, 0, 0)",
        id_of(3, 1), id_of(3, 5), id_of(3, 6), id_of(3, 5), id_of(1, 2),
    ));
    let without = import(&club, &source, 2, &[]).done();
    assert_eq!(without.notes("changed there"), [format!("projects {}", id_of(3, 5))]);
    assert_eq!(without.notes("no longer there"), [format!("projects {}", id_of(3, 6))]);
    let with = import(&club, &source, 2, &["--update"]).done();
    assert_eq!(with.notes("kept"), [format!("projects {}: has been changed here and there", id_of(3, 1))]);
    let description = |number| get(&club, &format!("/projects/{}", id_of(3, number)))["description"].clone();
    assert_eq!((description(1), description(5)), (json!("changed here"), json!("changed there")));
    assert_eq!(get(&club, &format!("/projects/{}", id_of(3, 5)))["members"].as_array().unwrap().len(), 2);
    club.by(ALICE).get(&path(6)).expect(404);
}

#[rstest]
fn a_failure_is_one_sentence_and_writes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, mut source) = (Club::start(backend), SourceDatabase::new(&[SCHEMA, CLUB]));
    let before = everything(&club);
    let port = source.behind_a_proxy_that_breaks_off_after(60_000);
    let directory = directory_file(club.folder(), &[]);
    let run = |url: &str, options: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
        program.env_clear().args(["import", url, "--database-url", club.url(), "--log", "warn"]);
        Printed::by(program.args(["--password-file", &source.password_file()]).args(options))
    };
    run(&source.url(), &[]).failed(78, "--directory-file");
    run(&source.url_at(port), &["--directory-file", &directory]).failed(1, "nothing is written");
    source.run("ALTER TABLE projects DROP COLUMN until_year");
    import(&club, &source, 2, &[]).failed(1, "the column projects.until_year");
    assert_eq!(everything(&club), before);
}

#[rstest]
fn two_thousand_projects_with_their_members(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, mut source) = (Club::start(backend), SourceDatabase::new(&[SCHEMA, CLUB]));
    let done = import(&club, &source, 295, &[]).done();
    assert_eq!(done.counts("projects"), [2000, 2000, 0, 0, 0, 0, 0]);
    assert!(done.notes("left out").is_empty(), "{}", done.out);
    let text = |item: &Value, member: &str| item[member].as_str().unwrap().to_owned();
    let ids = |list: &Value| {
        let mut ids: Vec<_> = list.as_array().unwrap().iter().map(|it| text(it, "id")).collect();
        ids.sort();
        ids.join(" ")
    };

    let projects = get(&club, "/projects");
    let lines = projects.as_array().unwrap().iter().map(|it| {
        let it = get(&club, &format!("/projects/{}", it["id"].as_str().unwrap()));
        let semester = |edge: &str| match &it["duration"][edge] {
            Value::Null => "0".to_owned(),
            semester => format!("{}.{}", semester["year"], semester["semester"]),
        };
        let own = ["id", "name", "description", "link"].map(|member| text(&it, member)).join("|");
        format!("{own}|{}|{}|{}", semester("since"), semester("until"), ids(&it["members"]))
    });
    let query = "SELECT CONCAT_WS('|', id, name, description, link, CONCAT(since_year, '.', since_semester), \
         IF(until_year = 0, '0', CONCAT(until_year, '.', until_semester)), \
         (SELECT GROUP_CONCAT(user_id ORDER BY user_id SEPARATOR ' ') FROM project_members WHERE project_id = p.id)) FROM projects p";
    same(source.rows(query), lines.collect());
    let contests = get(&club, "/contests");
    let lines = contests.as_array().unwrap().iter().map(|it| {
        let it = get(&club, &format!("/contests/{}", it["id"].as_str().unwrap()));
        let until = it["duration"]["until"].as_str().unwrap_or("0").to_owned();
        let own = ["id", "name", "description", "link"].map(|member| text(&it, member)).join("|");
        format!("{own}|{}|{until}|{}", text(&it["duration"], "since"), ids(&it["teams"]))
    });
    let query = "SELECT CONCAT_WS('|', id, name, description, link, DATE_FORMAT(since, '%Y-%m-%dT%H:%i:%sZ'), \
         IF(YEAR(until) = 1, '0', DATE_FORMAT(until, '%Y-%m-%dT%H:%i:%sZ')), \
         (SELECT GROUP_CONCAT(id ORDER BY id SEPARATOR ' ') FROM contest_teams WHERE contest_id = c.id)) FROM contests c";
    same(source.rows(query), lines.collect());
    let users = get(&club, "/users?includeSuspended=true");
    let imported = users.as_array().unwrap().iter().filter(|user| text(user, "id").ends_with("-000000000001"));
    let lines = imported.map(|it| {
        let it = get(&club, &format!("/users/{}", it["id"].as_str().unwrap()));
        format!("{}|{}|{}", text(&it, "id"), text(&it, "bio"), text(&it["accounts"][0], "url"))
    });
    let query = "SELECT CONCAT_WS('|', u.id, u.description, a.url) FROM users u JOIN accounts a ON a.user_id = u.id";
    same(source.rows(query), lines.collect());
}

/// Asserts that both have the same lines.
fn same(mut source: Vec<String>, mut here: Vec<String>) {
    source.sort();
    here.sort();
    assert!(!source.is_empty() && source.len() == here.len(), "{} and {}", source.len(), here.len());
    let different = source.iter().zip(&here).find(|(a, b)| a != b);
    assert_eq!(different, None);
}
