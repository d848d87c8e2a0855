//! Both sets of migrations agree with `schema.rs`.

#[path = "../../../service-kit/tests/shared/schema.rs"]
mod rules;

use crate::harness::{
    Backend::{self, Postgres, Sqlite},
    Club,
};
use diesel::prelude::*;
use portfolio_service::schema;
use rstest::rstest;

#[rstest]
fn every_table_can_be_read_as_the_code_declares_it(#[values(Sqlite, Postgres)] backend: Backend) {
    use import::schema::*;
    use schema::*;
    use service_kit::database::schema::*;
    let club = Club::start(backend);
    let conn = &mut club.connect();
    let mut read = Vec::new();
    macro_rules! read {
            ($($table:ident)+) => {
                $(
                    $table::table.limit(0).execute(conn).unwrap();
                    read.push(stringify!($table));
                )+
            };
        }
    read! {
        idempotency_keys creations history imported_rows users sessions spent_logins identities accounts groups group_admins group_memberships events event_hosts event_levels
        projects project_members contests contest_teams contest_team_members pictures departures deleted_objects last_deletions leases
        copies
    }
    assert!(rules::declared().keys().all(|table| read.contains(&table.as_str())), "a table is missing in this test");
}

#[test]
fn sqlite_triggers_record_every_change_of_shown_tables() {
    rules::every_change_of_what_is_shown_is_noted(
        // The row of `last_deletions` is written together with others.
        &[
            "copies",
            "creations",
            "deleted_objects",
            "departures",
            "idempotency_keys",
            "identities",
            "imported_rows",
            "last_deletions",
            "leases",
            "sessions",
            "spent_logins",
        ],
        &[],
    );
}

#[test]
fn copy_to_copies_every_table() {
    rules::all_are_copied(schema::TABLES);
}
