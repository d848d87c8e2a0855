//! Query plans: no list scans a growing table unless the complete list is requested, and none sorts rows that an index
//! has in order.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::sync::mpsc;

use diesel::{
    Connection, QueryableByName, RunQueryDsl,
    connection::{InstrumentationEvent, SimpleConnection},
    sql_query,
    sql_types::Text,
};
use portfolio_service::{auth::Caller, contests, events, feeds, groups, profiles, projects, teams, users};
use service_kit::database::{AnyConnection, PageBounds, types::DbTimestamp};

use crate::{
    harness::{BOB, Club, id},
    objects::Objects,
};

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

/// Pages of a list: the first, and one in the middle.
fn pages<P: Clone>(position: P) -> [PageBounds<P>; 2] {
    [None, Some(position)].map(|after| PageBounds { after, rows: 11 })
}

#[rstest]
fn lists_of_all_come_from_an_index_in_order(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    let bob = Caller { id: id(BOB), admin: false };
    let callers = [None, Some(&bob), Some(&Caller { admin: true, ..bob })];
    let at = DbTimestamp(club.clock.now());
    let conn = &mut club.connect();
    let project = projects::queries::list(conn, &PageBounds::all()).unwrap()[0].position();
    let lists = [
        plans(&club, |conn| {
            for page in pages((String::new(), id(BOB))) {
                users::queries::list(conn, &users::queries::Selection::All, &page).unwrap();
                users::queries::list(conn, &users::queries::Selection::Active, &page).unwrap();
                groups::queries::list(conn, &page).unwrap();
            }
        }),
        plans(&club, |conn| {
            for page in pages(project) {
                projects::queries::list(conn, &page).unwrap();
            }
        }),
        plans(&club, |conn| {
            for page in pages((at, id(BOB))) {
                contests::queries::list(conn, &page).unwrap();
                feeds::load_projects(conn).unwrap();
                feeds::load_contests(conn).unwrap();
                for caller in callers {
                    events::queries::list(conn, caller, &page).unwrap();
                }
            }
        }),
    ];
    for (sql, plan) in lists.into_iter().flatten() {
        let bad = plan.iter().any(|step| is_scan(step, true) || is_sort(step));
        assert!(!bad, "{sql}\n{}", plan.join("\n"));
    }
}

#[rstest]
fn the_rows_of_one_object_are_found_by_index(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    let (bob, other) = (id(BOB), Caller { id: id("carol"), admin: false });
    let of = |parameter: &str| objects.first(parameter);
    let at = DbTimestamp(club.clock.now());
    let project = projects::queries::list(&mut club.connect(), &PageBounds::all()).unwrap()[0].position();
    let found = plans(&club, |conn| {
        users::queries::get(conn, bob).unwrap();
        users::queries::id_by_name(conn, BOB).unwrap();
        profiles::queries::load(conn, bob).unwrap();
        groups::queries::get(conn, of("groupId")).unwrap();
        groups::queries::of_user(conn, bob).unwrap();
        projects::queries::get(conn, of("projectId")).unwrap();
        contests::queries::get(conn, of("contestId")).unwrap();
        teams::queries::of_contest(conn, of("contestId")).unwrap();
        teams::queries::get(conn, of("contestId"), of("teamId")).unwrap();
        for page in pages(project) {
            projects::queries::of_user(conn, bob, &page).unwrap();
        }
        for page in pages((at, bob)) {
            contests::queries::of_user(conn, bob, &page).unwrap();
            for caller in [None, Some(&other)] {
                events::queries::of_user(conn, bob, caller, &page).unwrap();
            }
        }
        for page in pages((String::new(), bob)).into_iter().chain([PageBounds::all()]) {
            projects::queries::members(conn, of("projectId"), &page).unwrap();
            teams::queries::page_of_contest(conn, of("contestId"), &page).unwrap();
            teams::queries::members(conn, of("teamId"), &page).unwrap();
        }
        for caller in [None, Some(&other)] {
            events::queries::get(conn, of("eventId"), caller).unwrap();
        }
        projects::queries::put_members(conn, of("projectId"), &[], bob, at).unwrap();
        teams::queries::put_members(conn, of("teamId"), &[bob], bob, at).unwrap();
    });
    for (sql, plan) in found.into_iter().filter(|(sql, _)| !sql.starts_with("INSERT")) {
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
