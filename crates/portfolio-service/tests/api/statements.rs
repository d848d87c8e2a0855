//! One hop: an operation sends the same few statements whatever the size of what it reads.

use crate::harness::Backend::{self, Postgres, Sqlite};
use crate::{
    harness::{ALICE, BOB, Club, DOCUMENT},
    objects::Objects,
};
use rstest::rstest;

/// More than any operation needs: the check of the connection, begin, the caller, four kinds of rows, commit.
const MOST: u64 = 10;

/// The pages.
const PAGES: [&str; 5] = ["/people/bob", "/projects", "/projects/{projectId}", "/contests", "/contests/{contestId}"];

/// How many statements were sent so far.
fn sent(club: &Club) -> u64 {
    let metrics = club.anonymous().get("/metrics").expect(200).text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("db_statements_total ")).unwrap();
    line.parse().unwrap()
}

/// What each GET sends, and how long its answer is.
fn measure(club: &Club, objects: &Objects) -> Vec<(String, u64, usize)> {
    let templates = DOCUMENT["paths"].as_object().unwrap().iter();
    let templates = templates.filter(|(_, item)| item["get"].is_object()).map(|(template, _)| template.as_str());
    let templates = templates.chain(PAGES);
    let mut measured = Vec::new();
    for template in templates {
        let path = &objects.paths(template, true)[0];
        // The first request of its kind may find the statements not yet prepared, or a connection not yet made.
        club.by(ALICE).get(path).expect(200);
        let before = sent(club);
        let length = club.by(ALICE).get(path).expect(200).body.len();
        measured.push((template.to_owned(), sent(club) - before, length));
    }
    measured
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
        assert!(many <= MOST, "{template} sends {many}");
        // Lists, and what has lists, did grow; else this would say nothing.
        let single = ["/ping", "/account-types", "/users/me", "/{accountId}"];
        let has_grown = long > short || single.iter().any(|end| template.ends_with(end));
        assert!(has_grown, "{template}: {short} and {long} bytes");
    }
}

#[rstest]
fn who_is_signed_in_costs_no_statement_more(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    for (template, item) in DOCUMENT["paths"].as_object().unwrap() {
        if item["get"].is_null() || template.ends_with("/users/me") {
            continue;
        }
        let path = &objects.paths(template, true)[0];
        let [anonymous, member] = [club.anonymous(), club.by(BOB)].map(|client| {
            client.get(path).expect(200);
            let before = sent(&club);
            client.get(path).expect(200);
            sent(&club) - before
        });
        assert_eq!(anonymous, member, "{template}");
    }
}
