//! What is true of the service as a whole.

use portfolio_service::{policy, schema};
use serde_json::json;

use crate::harness::{DOCUMENT, SUSAN, on_both};

#[test]
fn every_operation_has_a_rule_and_every_rule_an_operation() {
    let mut operations = Vec::new();
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let parsed = method.parse().unwrap();
            assert!(policy::rule(&parsed, path).is_some(), "{method} {path} names no rule");
            operations.push((parsed, path.as_str()));
        }
    }
    // Those of the contract, and the types of accounts.
    assert_eq!(operations.len(), 39 + 1);
    for (method, path, _) in policy::RULES {
        let made = operations.contains(&(method.clone(), &*format!("{}{path}", policy::BASE)));
        assert!(made, "{method} {path} is not made");
    }
}

macro_rules! read_every_column {
    ($conn:expr, $($table:ident),+) => {$(
        let query = diesel::QueryDsl::select(schema::$table::table, schema::$table::all_columns);
        let sql = diesel::debug_query::<diesel::pg::Pg, _>(&query).to_string();
        let sql = sql.split(" -- ").next().unwrap();
        diesel::RunQueryDsl::execute(diesel::sql_query(sql), $conn).unwrap_or_else(|error| panic!("{sql}: {error}"));
    )+};
}

on_both! {
    the_schema_is_what_the_migrations_make(club) {
        let conn = &mut club.connect();
        read_every_column!(
            conn, users, accounts, groups, group_admins, group_memberships, events, event_hosts, event_levels, projects,
            project_members, contests, contest_teams, contest_team_members, leases, copies
        );
    }

    ping_needs_nothing(club) {
        assert_eq!(club.anonymous().get("/api/v1/ping").expect(200).json(), "pong");
        club.by(SUSAN).get("/api/v1/ping").expect(200);
        club.anonymous().get("/api/v1/nowhere").refused(404, "not-found");
        assert_eq!(club.anonymous().put("/api/v1/ping", json!({})).expect(405).header("allow"), Some("GET, HEAD"));
        club.anonymous().get("/readyz").expect(200);
    }
}
