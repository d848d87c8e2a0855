//! Query plans: no list reads a whole table unless the complete list is requested, and none sorts rows that an index
//! has in order.

#[path = "../../../service-kit/tests/shared/plans.rs"]
mod rules;

pub use rules::{check, check_page, pages};

use rstest::rstest;

use crate::harness::{
    Backend::{self, Postgres, Sqlite},
    Club,
};

const READ_WHOLE: &[&str] = &[];

fn reads_nearly_all(_: Option<&str>, _: &str) -> bool {
    false
}

#[rstest]
fn a_scan_is_recognized(#[values(Sqlite, Postgres)] backend: Backend) {
    rules::scan_is_recognized(&Club::start(backend), "SELECT name FROM projects WHERE description = 'x' ORDER BY link");
}
