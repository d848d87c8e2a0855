//! Query plans: no list and no check for conflicts reads a whole table.

#[path = "../../../service-kit/tests/shared/plans.rs"]
mod rules;

pub use rules::{check, check_page, pages, plan, run_explain, statements};

use diesel::{QueryableByName, RunQueryDsl, sql_query, sql_types::Text};
use rstest::rstest;
use service_kit::database::AnyConnection;

use crate::harness::{
    Backend::{self, Postgres, Sqlite},
    Club,
};

/// The group of all active users is all rows of a table.
const READ_WHOLE: &[&str] = &["users"];

/// Whether a step reads nearly all rows although it uses an index.
fn reads_nearly_all(before: Option<&str>, step: &str) -> bool {
    // A scan in list order is right for pages, but for a span of time it reads all rows before the span.
    let scans_list_index =
        step.starts_with("Index") && ["events_list on", "rooms_list on"].iter().any(|index| step.contains(index));
    // A join that starts with all rows that are not long. As a branch of an OR, the same step reads the few long rows.
    let is_branch = before.is_some_and(|before| before.starts_with("INDEX "));
    scans_list_index || (step.starts_with("SEARCH ") && step.ends_with("(is_long=?)") && !is_branch)
}

/// Whether a step reads a whole table, or nearly.
pub fn reads_everything(step: &str) -> bool {
    rules::table_read_whole(step).is_some() || reads_nearly_all(None, step)
}

#[rstest]
fn a_scan_is_recognized(#[values(Sqlite, Postgres)] backend: Backend) {
    rules::scan_is_recognized(&Club::start(backend), "SELECT name FROM events WHERE description = 'x'");
}

/// PostgreSQL reads the whole index as well, but its plan does not say so.
#[test]
fn sqlite_shows_a_condition_for_the_second_column_of_an_index() {
    rules::scan_is_recognized(&Club::start(Sqlite), "SELECT room_id FROM room_admins WHERE user_id = x'00'");
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
