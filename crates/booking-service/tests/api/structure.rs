//! The rules for the source of this service.

#[path = "../../../service-kit/tests/shared/structure.rs"]
mod rules;

use rules::Layout;

const LAYOUT: Layout = Layout {
    slices: &["users", "groups", "tags", "rooms", "events", "availability", "polls", "ical", "sign_in", "board"],
    base: &[
        "auth",
        "club",
        "codes",
        "config",
        "expressions",
        "invitations",
        "last_use",
        "limits",
        "overlapping",
        "schedule",
        "schema",
        "wall_clock",
    ],
    exceptions: &[],
    queries: &[
        "queries.rs",
        "changes.rs",
        "booking.rs",
        "attendance.rs",
        "selection.rs",
        "confirmation.rs",
        "identities.rs",
    ],
};

#[test]
fn slices_use_only_earlier_ones() {
    LAYOUT.slices_use_only_earlier_ones();
}

#[test]
fn handlers_know_no_sql_and_queries_no_http() {
    LAYOUT.handlers_know_no_sql_and_queries_no_http();
}
