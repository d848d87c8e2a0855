//! Both sets of migrations agree with `schema.rs`.

#[path = "../../../service-kit/tests/shared/schema.rs"]
mod rules;

use crate::harness::{
    Backend::{self, Postgres, Sqlite},
    Club,
};
use booking_service::schema;
use diesel::prelude::*;
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
        idempotency_keys creations history leases imported_rows users sessions api_tokens spent_logins identities groups group_members group_admins tags places rooms room_admins event_series event_series_admins skipped_occurrences events event_admins event_tags attendees withdrawn_invitations draft_events draft_event_slots draft_event_admins draft_event_invitees draft_event_tags draft_event_answers draft_event_choices webhooks deliveries invitations
    }
    assert!(rules::declared().keys().all(|table| read.contains(&table.as_str())), "a table is missing in this test");
}

#[test]
fn sqlite_triggers_change_the_data_version() {
    let never_shown = [
        "api_tokens",
        "creations",
        // The answers about them have no fingerprint.
        "deliveries",
        "idempotency_keys",
        "identities",
        "imported_rows",
        "leases",
        "places",
        "sessions",
        "spent_logins",
        "webhooks",
        // A withdrawal also deletes a row of `attendees`.
        "withdrawn_invitations",
    ];
    let hidden_columns = ["created_at", "email", "feed_nonce", "imported_feed_hash", "in_directory", "updated_at"];
    let hidden_columns = hidden_columns.map(|column| format!("users.{column}"));
    rules::every_change_of_what_is_shown_is_noted(&never_shown, &hidden_columns.each_ref().map(String::as_str));
}

#[test]
fn copy_to_copies_every_table() {
    rules::all_are_copied(schema::TABLES);
}
