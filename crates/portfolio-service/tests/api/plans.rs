//! Query plans: no list scans a growing table unless the complete list is requested, and none sorts rows that an index
//! has in order. The tests of each slice check its queries with these functions.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::sync::mpsc;

use diesel::{
    Connection, QueryableByName, RunQueryDsl,
    connection::{InstrumentationEvent, SimpleConnection},
    sql_query,
    sql_types::Text,
};
use service_kit::database::{AnyConnection, PageBounds};

use crate::harness::Club;

/// The plan of a statement for unknown parameters, one line for each step.
fn plan(conn: &mut AnyConnection, sql: &str) -> Vec<String> {
    #[derive(QueryableByName)]
    struct Sqlite {
        #[diesel(sql_type = Text)]
        detail: String,
    }
    #[derive(QueryableByName)]
    struct Postgres {
        #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
        line: String,
    }
    match conn {
        AnyConnection::Sqlite(conn) => {
            let steps: Vec<Sqlite> = sql_query(format!("EXPLAIN QUERY PLAN {sql}")).load(conn).unwrap();
            steps.into_iter().map(|step| step.detail).collect()
        }
        AnyConnection::Postgresql(conn) => {
            // Without sequential scans, which are cheaper only for the small tables of a test.
            conn.batch_execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan").unwrap();
            conn.batch_execute(&format!("PREPARE explained AS {sql}")).unwrap();
            let highest = (1..100).take_while(|n| sql.contains(&format!("${n}"))).count();
            let nulls = if highest == 0 { String::new() } else { format!("({})", vec!["NULL"; highest].join(", ")) };
            let lines: Vec<Postgres> = sql_query(format!("EXPLAIN EXECUTE explained{nulls}")).load(conn).unwrap();
            conn.batch_execute("DEALLOCATE explained").unwrap();
            lines.into_iter().map(|line| line.line.trim_start_matches([' ', '-', '>']).to_owned()).collect()
        }
    }
}

/// Whether a step scans a table. With `may_scan_index`, a scan of an index is allowed.
fn is_scan(step: &str, may_scan_index: bool) -> bool {
    let is_allowed = may_scan_index && (step.contains(" USING INDEX ") || step.contains(" USING COVERING INDEX "));
    step.starts_with("Seq Scan on ") || (step.starts_with("SCAN ") && !is_allowed)
}

fn is_sort(step: &str) -> bool {
    step.starts_with("Sort  (") || step.starts_with("USE TEMP B-TREE FOR ORDER BY")
}

/// The statements that `run` sends, each with its plan.
fn plans(club: &Club, run: impl FnOnce(&mut AnyConnection)) -> Vec<(String, Vec<String>)> {
    let (send, seen) = mpsc::channel();
    let mut conn = club.connect();
    conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::StartQuery { query, .. } = event {
            let text = query.to_string();
            send.send(text.split(" -- binds").next().unwrap().to_owned()).unwrap();
        }
    });
    run(&mut conn);
    let statements: Vec<String> = seen.try_iter().collect();
    assert!(!statements.is_empty());
    statements
        .into_iter()
        .map(|sql| {
            let plan = plan(&mut club.connect(), &sql);
            (sql, plan)
        })
        .collect()
}

/// The first page of a list, and a page that continues after this row.
pub fn pages<P>(after: P) -> [PageBounds<P>; 2] {
    [None, Some(after)].map(|after| PageBounds { after, rows: 11 })
}

/// Asserts that the lists of all objects that `run` reads come from an index in order.
pub fn check_page(club: &Club, run: impl FnOnce(&mut AnyConnection)) {
    for (sql, plan) in plans(club, run) {
        let bad = plan.iter().any(|step| is_scan(step, true) || is_sort(step));
        assert!(!bad, "{sql}\n{}", plan.join("\n"));
    }
}

/// Asserts that no statement that `run` sends scans a table, except for inserts.
pub fn check(club: &Club, run: impl FnOnce(&mut AnyConnection)) {
    for (sql, plan) in plans(club, run).into_iter().filter(|(sql, _)| !sql.starts_with("INSERT")) {
        assert!(!plan.iter().any(|step| is_scan(step, false)), "{sql}\n{}", plan.join("\n"));
    }
}

#[rstest]
fn a_scan_is_recognized(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let found = plan(&mut club.connect(), "SELECT name FROM projects WHERE description = 'x' ORDER BY link");
    assert!(
        found.iter().any(|step| is_scan(step, false)) && found.iter().any(|step| is_sort(step) || step == "Sort"),
        "{found:?}"
    );
}
