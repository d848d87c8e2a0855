//! Query plans: which queries read a whole table, and which sort a whole list. Both services include this file in their
//! tests, by its path. The tests of each slice check its queries with [`check`] and [`check_page`].

use std::sync::mpsc;

use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl,
    connection::{InstrumentationEvent, SimpleConnection},
    sql_query,
    sql_types::Text,
};
use service_kit::database::{AnyConnection, PageBounds};

use crate::harness::Club;

/// The generic plan of a statement: its steps, each in one line.
pub fn plan(conn: &mut AnyConnection, sql: &str) -> Vec<String> {
    #[derive(QueryableByName)]
    struct Step {
        #[diesel(sql_type = Text)]
        detail: String,
    }
    match conn {
        AnyConnection::Sqlite(conn) => {
            let steps: Vec<Step> = sql_query(format!("EXPLAIN QUERY PLAN {sql}")).load(conn).unwrap();
            steps.into_iter().map(|step| step.detail).collect()
        }
        AnyConnection::Postgresql(conn) => {
            // The tables are small, so the planner must not choose plans that are only good for small tables.
            conn.batch_execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan").unwrap();
            conn.batch_execute(&format!("PREPARE explained AS {sql}")).unwrap();
            let highest = (1..100).take_while(|n| sql.contains(&format!("${n}"))).count();
            let nulls = if highest == 0 { String::new() } else { format!("({})", vec!["NULL"; highest].join(", ")) };
            let steps = run_explain(conn, &format!("EXPLAIN EXECUTE explained{nulls}"));
            conn.batch_execute("DEALLOCATE explained").unwrap();
            steps
        }
    }
}

/// The output of PostgreSQL for an `EXPLAIN`: its steps, each with its conditions in one line.
pub fn run_explain(conn: &mut PgConnection, explain: &str) -> Vec<String> {
    #[derive(QueryableByName)]
    struct Line {
        #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
        line: String,
    }
    let lines: Vec<Line> = sql_query(explain).load(conn).unwrap();
    let mut steps: Vec<String> = Vec::new();
    for Line { line } in lines {
        let line = line.trim_start_matches([' ', '-', '>']);
        match steps.last_mut() {
            // Only a step has a cost.
            Some(step) if !line.contains("  (cost=") => *step = format!("{step} {line}"),
            _ => steps.push(line.to_owned()),
        }
    }
    steps
}

/// A plan that reads a whole table or index only if the statement has no condition for an index. For a few rows,
/// PostgreSQL prefers to read all of a small table in list order; in a bitmap scan, it needs a condition.
fn searching_plan(club: &Club, sql: &str) -> Vec<String> {
    let mut conn = club.connect();
    if let AnyConnection::Postgresql(conn) = &mut conn {
        conn.batch_execute("SET enable_indexscan = off; SET enable_indexonlyscan = off").unwrap();
    }
    plan(&mut conn, sql)
}

/// The table of which a step reads all rows, directly or by an index.
pub fn table_read_whole(step: &str) -> Option<&str> {
    let rest = if let Some(rest) = step.strip_prefix("SCAN ") {
        // A subquery, or the values of a list.
        (!rest.starts_with('(') && !rest.starts_with("CONSTANT")).then_some(rest)?
    } else if let Some(rest) = step.strip_prefix("Seq Scan on ") {
        rest
    } else {
        let reads_index = step.starts_with("Index Scan ") || step.starts_with("Index Only Scan ");
        (reads_index && !step.contains("Index Cond: ")).then(|| step.split_once(" on "))??.1
    };
    rest.split(' ').next()
}

/// The statements that `run` sends, without inserts and without those that have no plan.
pub fn statements(club: &Club, run: impl FnOnce(&mut AnyConnection)) -> Vec<String> {
    let (send, seen) = mpsc::channel();
    let mut conn = club.connect();
    conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::StartQuery { query, .. } = event {
            let text = query.to_string();
            send.send(text.split(" -- binds").next().unwrap().to_owned()).unwrap();
        }
    });
    run(&mut conn);
    drop(conn);
    let has_plan = |sql: &String| {
        ["SELECT", "UPDATE", "DELETE"].iter().any(|verb| sql.trim_start_matches([' ', '(']).starts_with(verb))
    };
    let statements: Vec<String> = seen.iter().filter(has_plan).collect();
    assert!(!statements.is_empty());
    statements
}

/// Asserts that no statement that `run` sends reads a whole table, or a whole index, in any order.
pub fn check(club: &Club, run: impl FnOnce(&mut AnyConnection)) {
    for sql in statements(club, run) {
        let searching = searching_plan(club, &sql);
        for step in &searching {
            let is_wrong = table_read_whole(step).is_some_and(|table| !super::READ_WHOLE.contains(&table));
            refuse(is_wrong, "reads a whole table", step, &sql, &searching);
        }
        let plan = plan(&mut club.connect(), &sql);
        for (n, step) in plan.iter().enumerate() {
            let before = n.checked_sub(1).map(|before| plan[before].as_str());
            refuse(super::reads_nearly_all(before, step), "reads nearly all rows of a table", step, &sql, &plan);
        }
    }
}

/// The first page of a list, and a page that continues after this row.
pub fn pages<P>(after: P) -> [PageBounds<P>; 2] {
    [None, Some(after)].map(|after| PageBounds { after, rows: 51 })
}

/// Asserts that each statement with a `LIMIT` that `run` sends reads its rows in order from an index.
pub fn check_page(club: &Club, run: impl FnOnce(&mut AnyConnection)) {
    let statements: Vec<String> = statements(club, run).into_iter().filter(|sql| sql.contains("LIMIT")).collect();
    assert!(!statements.is_empty(), "no statement has a LIMIT");
    for sql in statements {
        let mut conn = club.connect();
        if let AnyConnection::Postgresql(conn) = &mut conn {
            conn.batch_execute("SET enable_sort = off; SET enable_bitmapscan = off").unwrap();
        }
        let plan = plan(&mut conn, &sql);
        for step in &plan {
            // `LAST TERM OF ORDER BY` and an incremental sort order the few rows with equal starts or names.
            let sorts = step.starts_with("Sort ") || step.ends_with("TEMP B-TREE FOR ORDER BY");
            refuse(sorts, "sorts the whole list", step, &sql, &plan);
            let reads_index = step.contains(" USING INDEX ") || step.contains(" USING COVERING INDEX ");
            let scans = step.starts_with("Seq Scan ") || (step.starts_with("SCAN ") && !reads_index);
            refuse(scans && table_read_whole(step).is_some(), "reads a table without an index", step, &sql, &plan);
        }
    }
}

fn refuse(is_wrong: bool, what: &str, step: &str, sql: &str, plan: &[String]) {
    assert!(!is_wrong, "this step of the plan {what}: {step}\nthe statement: {sql}\nits plan:\n{}", plan.join("\n"));
}

/// `check` refuses this statement.
pub fn scan_is_recognized(club: &Club, sql: &str) {
    let plan = searching_plan(club, sql);
    assert!(plan.iter().any(|step| table_read_whole(step).is_some()), "{sql}: {plan:?}");
}
