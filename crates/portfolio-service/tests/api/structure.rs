//! Rules for the source of this service.

#[path = "../../../service-kit/tests/shared/structure.rs"]
mod rules;

use portfolio_service::schema::TABLES;
use rules::{ForeignWrites, Layout};

const LAYOUT: Layout = Layout {
    slices: &[
        "users", "accounts", "groups", "events", "projects", "pictures", "teams", "contests", "profiles", "feeds",
        "sitemap", "history", "pages",
    ],
    base: &[
        "account_type",
        "auth",
        "bearer",
        "booking",
        "caller",
        "club",
        "codes",
        "config",
        "deletion",
        "departures",
        "identity",
        "link",
        "metadata",
        "objects",
        "page",
        "picture",
        "proxy_user",
        "rights",
        "schema",
        "span",
        "timeline",
    ],
    exceptions: &[],
    queries: &["queries.rs", "store.rs", "references.rs"],
    tables: &[
        ("users", &["users"]),
        ("sign_in", &["sessions"]),
        ("accounts", &["accounts"]),
        ("groups", &["groups", "group_admins", "group_memberships"]),
        ("events", &["events", "event_hosts", "event_levels", "copies"]),
        ("projects", &["projects", "project_members"]),
        ("pictures", &["pictures"]),
        ("teams", &["contest_teams", "contest_team_members"]),
        ("contests", &["contests"]),
        ("departures", &["departures"]),
        ("deletion", &["deleted_objects", "last_deletions"]),
    ],
    foreign_writes: &[
        ForeignWrites {
            file: "teams/queries.rs",
            tables: &["contests"],
            reason: "a change of a team is a change of its contest, and locks it against its deletion",
        },
        ForeignWrites {
            file: "pictures/queries.rs",
            tables: &["projects", "users"],
            reason: "the row of what has a picture has its hash, so that lists need no other table",
        },
        ForeignWrites {
            file: "deletion.rs",
            tables: &["pictures"],
            reason: "the picture of a deleted project goes when it can no longer be restored",
        },
    ],
    only_written_by: &[],
};

#[test]
fn slices_use_only_earlier_ones() {
    LAYOUT.slices_use_only_earlier_ones();
}

#[test]
fn handlers_know_no_sql_and_queries_no_http() {
    LAYOUT.handlers_know_no_sql_and_queries_no_http();
}

#[test]
fn slices_write_only_their_tables() {
    LAYOUT.slices_write_only_their_tables(TABLES);
}
