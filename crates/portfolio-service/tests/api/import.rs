//! `import` from a real MariaDB into both databases.

#[path = "../../../service-kit/tests/shared/mariadb.rs"]
mod mariadb;

use std::process::Command;

use rstest::rstest;
use serde_json::{Value, json};

use self::mariadb::{Printed, SourceDatabase, directory_file, server_without_bounds};
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
fn odd_rows_are_kept(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, source) = (Club::start(backend), SourceDatabase::new(&[SCHEMA, ODD]));
    let before = everything(&club);
    let dry = import(&club, &source, 2, &["--dry-run"]).done();
    assert_eq!(everything(&club), before);
    let done = import(&club, &source, 2, &[]).done();
    assert_eq!(dry.out.replace("dry run: nothing is written\n", ""), done.out);

    assert_eq!(done.counts("users"), [4, 4, 0, 0, 0, 0, 1]);
    assert_eq!(done.counts("accounts"), [8, 7, 0, 0, 0, 1, 1]);
    assert_eq!(done.counts("projects"), [9, 9, 0, 0, 0, 0, 3]);
    assert_eq!(done.counts("project_members")[5], 1);
    assert_eq!(done.counts("contests"), [3, 3, 0, 0, 0, 0, 0]);
    assert_eq!(done.counts("contest_teams"), [3, 2, 0, 0, 0, 1, 1]);
    assert_eq!(done.counts("event_level_relations"), [4, 4, 0, 0, 0, 0, 0]);
    assert_eq!(done.notes("users whom"), [id_of(1, 8), id_of(1, 9)]);
    assert_eq!(done.notes("groups that"), [id_of(6, 1)]);
    let left_out = [
        format!("accounts {}: user_id {} is no user", id_of(2, 8), id_of(1, 77)),
        format!("project_members {} {}: user_id {1} is no user", id_of(3, 1), id_of(1, 77)),
        format!("contest_teams {}: its contest {} is not here", id_of(5, 3), id_of(4, 77)),
    ];
    assert_eq!(done.notes("left out"), left_out);
    let changed = done.notes("values");
    let has = |line: String| assert!(changed.contains(&line.as_str()), "{line}: {}", done.out);
    has(format!("users {}: name \"no sign in name\" → \"00000008\"", id_of(1, 8)));
    has(format!("accounts {}: url \"javascript:alert(1)\" → \"\"", id_of(2, 3)));
    has(format!("accounts {}: type 99 → 0", id_of(2, 4)));
    has(format!("projects {}: name \"robot\" → \"robot (2)\"", id_of(3, 2)));
    has(format!("projects {}: until_year 2023 → 2024/0", id_of(3, 4)));
    has(format!("projects {}: since_year NULL → 1970", id_of(3, 7)));
    has(format!("projects {}: since_semester 7 → 1", id_of(3, 8)));
    has(format!("project_members {} {}: since_year 2024 → 2023/0", id_of(3, 1), id_of(1, 2)));
    has(format!("contests {}: since 2024-08-01 → 2023-01-01T00:00:00Z", id_of(4, 2)));
    has(format!("contests {}: since NULL → 2024-07-01T00:00:00Z", id_of(4, 3)));
    has(format!("event_level_relations {}: level 7 → 2", id_of(7, 2)));

    let user = get(&club, &format!("/users/{}", id_of(1, 1)));
    assert_eq!((&user["name"], user["bio"].as_str().unwrap().len()), (&json!("user1"), 300));
    let accounts = user["accounts"].as_array().unwrap();
    let accounts: Vec<_> =
        accounts.iter().map(|it| (it["type"].as_i64().unwrap(), it["url"].as_str().unwrap())).collect();
    let expected = [
        (0, ""),
        (0, "https://x.example"),
        (4, "https://www.pixiv.net/users/123/artworks"),
        (5, "https://github.com/one"),
        (5, "https://github.com/again"),
        (6, "https://qiita.example/one"),
        (7, "https://zenn.dev/one"),
    ];
    assert_eq!(accounts, expected);
    let links = (1..=9).map(|number| get(&club, &format!("/projects/{}", id_of(3, number)))["link"].clone());
    let expected = [
        "",
        "",
        "https://github.com/club/robot",
        "",
        "https://club.example/a%20b",
        "",
        "https://日本語.example/道",
        "",
        "https://club.example",
    ];
    assert_eq!(links.collect::<Vec<_>>(), expected);
    for number in 7..=9 {
        get(&club, &format!("/projects/{}", id_of(3, number)));
    }
    let gone = get(&club, &format!("/users/{}", id_of(1, 9)));
    assert_eq!((&gone["name"], &gone["state"], &gone["bio"]), (&json!("gone"), &json!(0), &json!("I left")));
    let project = get(&club, &format!("/projects/{}", id_of(3, 1)));
    assert_eq!(project["members"].as_array().unwrap().len(), 2);
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
fn a_further_account_of_a_type_can_be_changed_and_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, source) = (Club::start(backend), SourceDatabase::new(&[SCHEMA, ODD]));
    import(&club, &source, 2, &[]).done();
    let (path, admin) = (format!("/api/v1/users/{}/accounts", id_of(1, 1)), club.by(ALICE));
    let github = json!({"type": 5, "url": "https://github.com/third", "displayName": "third"});
    let edit = |number: u32, change: Value| admin.patch(&format!("{path}/{}", id_of(2, number)), change);
    edit(2, json!({"displayName": "renamed"})).expect(204);
    edit(2, json!({"type": 0, "url": "https://club.example"})).expect(409);
    // The first goes, and its type still has one.
    admin.delete(&format!("{path}/{}", id_of(2, 1))).expect(204);
    admin.post(&path, github.clone()).expect(409);
    edit(2, json!({"type": 1, "url": "https://club.example"})).expect(204);
    admin.post(&path, github).expect(201);
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
    run(&source.url_at(port), &["--directory-file", &directory])
        .failed(1, "nothing is written: it has ended the connection");
    let unbounded = source.url_at(server_without_bounds(None));
    run(&unbounded, &["--directory-file", &directory]).failed(1, "more than 10000 columns");
    source.run("ALTER TABLE projects DROP COLUMN until_year");
    import(&club, &source, 2, &[]).failed(1, "the column projects.until_year");
    assert_eq!(everything(&club), before);
}

/// Takes seconds: the client validates 2,000 projects, each with its members.
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
