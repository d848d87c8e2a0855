//! The number of SQL statements of an operation does not depend on the number of rows.

use crate::harness::Backend::{self, Postgres, Sqlite};
use crate::{
    harness::{BOB, Club, DOCUMENT},
    objects::{Objects, reader},
};
use rstest::rstest;

/// The upper bound for every operation.
const MAX_STATEMENTS: u64 = 10;

/// The ends of the paths whose answers do not grow with the number of rows.
const NOT_GROWING: [&str; 5] = ["/ping", "/account-types", "/users/me", "/{accountId}", "/picture"];

/// The pages.
const PAGES: [&str; 8] = [
    "/people/bob",
    "/projects",
    "/projects/{projectId}",
    "/projects/{projectId}/members",
    "/contests",
    "/contests/{contestId}",
    "/contests/{contestId}/edit",
    "/me",
];

/// The number of statements so far.
fn statements(club: &Club) -> u64 {
    let metrics = club.anonymous().get("/metrics").expect(200).text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("db_statements_total ")).unwrap();
    line.parse().unwrap()
}

/// The number of statements and the length of the answer of each GET.
fn measure(club: &Club, objects: &Objects) -> Vec<(String, u64, usize)> {
    let templates = DOCUMENT["paths"].as_object().unwrap().iter();
    let templates = templates.filter(|(_, item)| item["get"].is_object()).map(|(template, _)| template.as_str());
    let templates = templates.chain(PAGES);
    let mut measured = Vec::new();
    for template in templates {
        let path = &objects.paths(template, true)[0];
        // The first request may also prepare statements or open a connection.
        club.by(reader(template)).get(path).expect(200);
        let before = statements(club);
        let length = club.by(reader(template)).get(path).expect(200).body.len();
        measured.push((template.to_owned(), statements(club) - before, length));
    }
    measured
}

/// What one statement reads. An anonymous caller is not looked up for it.
const OBJECTS: [&str; 2] = ["/api/v1/users/{userId}", "/api/v1/projects/{projectId}"];

#[rstest]
fn frequent_reads_take_one_or_two_statements(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    for template in [&OBJECTS[..], &["/api/v1/users", "/api/v1/projects", "/api/v1/contests"]].concat() {
        let path = &objects.paths(template, true)[0];
        club.anonymous().get(path).expect(200);
        let before = statements(&club);
        club.anonymous().get(path).expect(200);
        // The rows; for a list also the version of the database.
        assert_eq!(statements(&club) - before, if OBJECTS.contains(&template) { 1 } else { 2 }, "{path}");
    }
}

#[rstest]
fn no_operation_sends_more_statements_for_more_rows(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    let few = measure(&club, &objects);
    objects.grow(&club, 25);
    let many = measure(&club, &objects);
    for ((template, few, short), (_, many, long)) in few.into_iter().zip(many) {
        assert_eq!(few, many, "{template}");
        assert!(many <= MAX_STATEMENTS, "{template} sends {many}");
        // The answers with lists must have grown; otherwise the comparison would show nothing.
        let has_grown = long > short || NOT_GROWING.iter().any(|end| template.ends_with(end));
        assert!(
            has_grown,
            "{template} has {short} bytes, with more rows {long}: grow its rows, or add it to NOT_GROWING"
        );
    }
}

#[rstest]
fn only_objects_take_an_additional_statement_for_a_signed_in_caller(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    for (template, item) in DOCUMENT["paths"].as_object().unwrap() {
        let needs_sign_in = ["/users/me", "/history", "/audit"].iter().any(|end| template.ends_with(end));
        if item["get"].is_null() || needs_sign_in {
            continue;
        }
        let path = &objects.paths(template, true)[0];
        let [anonymous, member] = [club.anonymous(), club.by(BOB)].map(|client| {
            client.get(path).expect(200);
            let before = statements(&club);
            client.get(path).expect(200);
            statements(&club) - before
        });
        assert_eq!(anonymous + u64::from(OBJECTS.contains(&template.as_str())), member, "{template}");
    }
}
