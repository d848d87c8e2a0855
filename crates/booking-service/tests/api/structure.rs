//! The rules for the source of this service.

#[path = "../../../service-kit/tests/shared/structure.rs"]
mod rules;

use booking_service::schema::TABLES;
use rules::{ForeignWrites, Layout};

const LAYOUT: Layout = Layout {
    slices: &[
        "users",
        "groups",
        "tags",
        "rooms",
        "events",
        "series",
        "availability",
        "polls",
        "history",
        "ical",
        "join_links",
        "sign_in",
        "board",
        "webhooks",
        "pages",
    ],
    base: &[
        "auth",
        "club",
        "codes",
        "config",
        "deletion",
        "expressions",
        "invitations",
        "last_use",
        "limits",
        "objects",
        "period_filter",
        "schedule",
        "schema",
        "wall_clock",
    ],
    exceptions: &[],
    queries: &[
        "queries.rs",
        "changes.rs",
        "creation.rs",
        "several.rs",
        "revision.rs",
        "booking.rs",
        "attendance.rs",
        "selection.rs",
        "confirmation.rs",
        "restoration.rs",
        "outbox.rs",
        "preparation.rs",
        "results.rs",
        "timed.rs",
    ],
    tables: &[
        ("users", &["users"]),
        ("groups", &["groups", "group_members", "group_admins"]),
        ("tags", &["tags"]),
        ("rooms", &["places", "rooms", "room_admins"]),
        ("events", &["events", "event_admins", "event_tags", "attendees"]),
        ("series", &["event_series", "event_series_admins", "skipped_occurrences"]),
        (
            "polls",
            &[
                "draft_events",
                "draft_event_slots",
                "draft_event_admins",
                "draft_event_invitees",
                "draft_event_tags",
                "draft_event_answers",
                "draft_event_choices",
            ],
        ),
        ("invitations", &["withdrawn_invitations"]),
        ("webhooks", &["webhooks", "deliveries"]),
        ("join_links", &["invitations"]),
        ("sign_in", &["sessions", "api_tokens"]),
    ],
    foreign_writes: &[
        ForeignWrites {
            file: "deletion.rs",
            tables: &["draft_events", "event_series", "events", "groups", "rooms"],
            reason: "events are deleted by themselves, with their room and with their group, and rooms with their events",
        },
        ForeignWrites {
            file: "invitations.rs",
            tables: &["attendees"],
            reason: "members of a group are invited to its events when either changes",
        },
        ForeignWrites {
            file: "rooms/place_keys.rs",
            tables: &["events"],
            reason: "a migration computes the keys of all places again",
        },
        ForeignWrites {
            file: "last_use.rs",
            tables: &["api_tokens", "sessions"],
            reason: "authentication, which every slice uses, notes the last uses",
        },
        ForeignWrites {
            file: "users/sync.rs",
            tables: &["api_tokens", "group_admins", "group_members", "groups"],
            reason: "one transaction copies users and groups of the directory, and ends the access of who has left",
        },
        ForeignWrites {
            file: "rooms/changes.rs",
            tables: &["events"],
            reason: "after the verification of a room no event owns it",
        },
        ForeignWrites {
            file: "ical/queries.rs",
            tables: &["users"],
            reason: "the nonce of a feed is a column of its user, so that a suspension removes it",
        },
        ForeignWrites {
            file: "sign_in/changes.rs",
            tables: &["users"],
            reason: "the first sign-in of a person makes the user, if the operator allows that",
        },
    ],
    only_written_by: &[("events::deleted_at", "deletion.rs"), ("rooms::deleted_at", "deletion.rs")],
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
