//! Rules for the source of this service.

#[path = "../../../service-kit/tests/shared/structure.rs"]
mod rules;

use rules::Layout;

const LAYOUT: Layout = Layout {
    slices: &["users", "accounts", "groups", "events", "projects", "teams", "contests", "profiles", "feeds"],
    base: &[
        "account_type",
        "auth",
        "bearer",
        "booking",
        "caller",
        "club",
        "codes",
        "config",
        "departures",
        "identity",
        "link",
        "page",
        "proxy_user",
        "rights",
        "schema",
        "span",
        "timeline",
    ],
    exceptions: &[],
    queries: &["queries.rs", "store.rs", "lease.rs", "references.rs"],
};

#[test]
fn slices_use_only_earlier_ones() {
    LAYOUT.slices_use_only_earlier_ones();
}

#[test]
fn handlers_know_no_sql_and_queries_no_http() {
    LAYOUT.handlers_know_no_sql_and_queries_no_http();
}
