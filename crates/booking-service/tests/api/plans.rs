//! Query plans: no list and no check for conflicts scans a whole table that grows. The tests of each slice check its
//! queries with these functions.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::sync::mpsc;

use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl,
    connection::{InstrumentationEvent, SimpleConnection},
    sql_query,
    sql_types::Text,
};
use service_kit::database::{AnyConnection, PageBounds};

use crate::harness::Club;

/// The tables that grow.
const GROWING: [&str; 11] = [
    "events",
    "rooms",
    "attendees",
    "event_tags",
    "event_admins",
    "draft_events",
    "draft_event_slots",
    "draft_event_admins",
    "draft_event_invitees",
    "draft_event_answers",
    "draft_event_choices",
];

/// The generic plan of a statement, one line for each step.
pub fn plan(conn: &mut AnyConnection, sql: &str) -> Vec<String> {
    #[derive(QueryableByName)]
    struct Sqlite {
        #[diesel(sql_type = Text)]
        detail: String,
    }
    match conn {
        AnyConnection::Sqlite(conn) => {
            let steps: Vec<Sqlite> = sql_query(format!("EXPLAIN QUERY PLAN {sql}")).load(conn).unwrap();
            steps.into_iter().map(|step| step.detail).collect()
        }
        AnyConnection::Postgresql(conn) => {
            // The tables are small, so the planner must not choose plans that are only good for small tables.
            conn.batch_execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan").unwrap();
            conn.batch_execute(&format!("PREPARE explained AS {sql}")).unwrap();
            let highest = (1..100).take_while(|n| sql.contains(&format!("${n}"))).count();
            let nulls = if highest == 0 { String::new() } else { format!("({})", vec!["NULL"; highest].join(", ")) };
            let lines = run_explain(conn, &format!("EXPLAIN EXECUTE explained{nulls}"));
            conn.batch_execute("DEALLOCATE explained").unwrap();
            lines
        }
    }
}

/// The output of PostgreSQL for an `EXPLAIN`, one line for each step.
pub fn run_explain(conn: &mut PgConnection, explain: &str) -> Vec<String> {
    #[derive(QueryableByName)]
    struct Line {
        #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
        line: String,
    }
    let lines: Vec<Line> = sql_query(explain).load(conn).unwrap();
    lines.into_iter().map(|line| line.line.trim_start_matches([' ', '-', '>']).to_owned()).collect()
}

/// Whether a step reads a whole table that grows, or a whole index of such a table.
pub fn reads_everything(step: &str) -> bool {
    let scanned_table = step.strip_prefix("SCAN ").or_else(|| step.strip_prefix("Seq Scan on "));
    // A scan in list order is right for pages, but for a span of time it reads all rows before the span.
    let scans_list_index =
        step.starts_with("Index") && ["events_list on", "rooms_list on"].iter().any(|index| step.contains(index));
    scans_list_index || scanned_table.is_some_and(|rest| GROWING.contains(&rest.split(' ').next().unwrap()))
}

/// Whether a join starts with all rows that are not long, which are nearly all rows. As a branch of an OR, the same
/// step reads the few long rows.
fn begins_with_everything(before: Option<&String>, step: &str) -> bool {
    let is_branch = before.is_some_and(|before| before.starts_with("INDEX "));
    step.starts_with("SEARCH ") && step.ends_with("(is_long=?)") && !is_branch
}

/// The `SELECT` statements that `run` sends.
pub fn statements(club: &Club, run: impl FnOnce(&mut AnyConnection)) -> Vec<String> {
    let (sink, seen) = mpsc::channel();
    let mut conn = club.connect();
    conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::StartQuery { query, .. } = event {
            let text = query.to_string();
            sink.send(text.split(" -- binds").next().unwrap().to_owned()).unwrap();
        }
    });
    run(&mut conn);
    drop(conn);
    let statements: Vec<String> = seen.iter().collect();
    assert!(!statements.is_empty());
    statements.into_iter().filter(|sql| sql.trim_start().starts_with("SELECT")).collect()
}

/// Asserts that no statement that `run` sends reads a whole table that grows.
pub fn check(club: &Club, what: &str, run: impl FnOnce(&mut AnyConnection)) {
    for sql in &statements(club, run) {
        let plan = plan(&mut club.connect(), sql);
        assert!(!plan.is_empty());
        let is_bad = |n: usize| {
            let before = n.checked_sub(1).map(|before| &plan[before]);
            reads_everything(&plan[n]) || begins_with_everything(before, &plan[n])
        };
        assert!(!(0..plan.len()).any(is_bad), "{what}: {sql}\n{}", plan.join("\n"));
    }
}

/// The first page of a list, and a page that continues after this row.
pub fn pages<P>(after: P) -> [PageBounds<P>; 2] {
    [None, Some(after)].map(|after| PageBounds { after, rows: 51 })
}

/// Asserts that `run` reads a page in order from its start, without sorting the whole list.
pub fn check_page(club: &Club, what: &str, run: impl FnOnce(&mut AnyConnection)) {
    let sql = statements(club, run).into_iter().find(|sql| sql.contains("LIMIT")).unwrap();
    let mut conn = club.connect();
    if let AnyConnection::Postgresql(conn) = &mut conn {
        conn.batch_execute("SET enable_sort = off; SET enable_bitmapscan = off").unwrap();
    }
    let plan = plan(&mut conn, &sql);
    // An incremental sort of the few rows with equal starts or names is allowed.
    let sorts = |step: &String| step.starts_with("Sort") || step.ends_with("TEMP B-TREE FOR ORDER BY");
    assert!(
        !plan.iter().any(|step| sorts(step) && !step.starts_with("Sort Key")),
        "{what}: {sql}\n{}",
        plan.join("\n")
    );
}

#[rstest]
fn a_full_scan_is_detected(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut conn = club.connect();
    let plan = plan(&mut conn, "SELECT name FROM events WHERE description = 'x'");
    assert!(plan.iter().any(|step| reads_everything(step)), "{plan:?}");
}

#[rstest]
fn postgres_does_not_compile_queries(#[values(Sqlite, Postgres)] backend: Backend) {
    #[derive(QueryableByName)]
    struct Setting {
        #[diesel(sql_type = Text)]
        jit: String,
    }
    let club = Club::start(backend);
    if let AnyConnection::Postgresql(conn) = &mut club.connect() {
        let setting: Setting = sql_query("SELECT current_setting('jit') AS jit").get_result(conn).unwrap();
        assert_eq!(setting.jit, "off", "a long filter would take seconds to compile");
    }
}
