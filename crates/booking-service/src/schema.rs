//! The tables, as both sets of migrations make them; a test compares the three.
#![expect(missing_docs, reason = "the columns are explained in the migrations; the macro makes one item for each")]
#![allow(clippy::wildcard_imports, reason = "as diesel itself writes its schema files")]

use service_kit::db::{schema::idempotency_keys, tables::TableInfo};

/// All tables, each after those that it refers to.
pub const TABLES: &[TableInfo] = service_kit::tables! {
    idempotency_keys users sessions api_tokens spent_logins identities groups group_members group_admins tags
    places rooms room_admins events event_admins event_tags attendees
};

diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    users (id) {
        id -> Key, name -> Text, display_name -> Text, icon -> Text, state -> SmallInt, privileged -> Bool,
        feed_nonce -> Nullable<Text>, created_at -> Instant, updated_at -> Instant,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    sessions (id) {
        id -> Key, token_hash -> Binary, user_id -> Key, created_at -> Instant, expires_at -> Instant,
        revoked_at -> Nullable<Instant>, last_used_at -> Instant,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    api_tokens (id) {
        id -> Key, token_hash -> Binary, user_id -> Key, name -> Text, scope -> Text, created_at -> Instant,
        expires_at -> Nullable<Instant>, revoked_at -> Nullable<Instant>, last_used_at -> Nullable<Instant>,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::Instant;
    spent_logins (state_hash) { state_hash -> Binary, expires_at -> Instant, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    identities (provider, subject) { provider -> Text, subject -> Text, user_id -> Key, created_at -> Instant, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    groups (id) {
        id -> Key, kind -> SmallInt, name -> Text, description -> Text, open -> Bool, created_by -> Nullable<Key>,
        created_at -> Instant, updated_at -> Instant, deleted_at -> Nullable<Instant>,
    }
}
diesel::table! {
    use service_kit::db::sql::Key;
    group_members (group_id, user_id) { group_id -> Key, user_id -> Key, }
}
diesel::table! {
    use service_kit::db::sql::Key;
    group_admins (group_id, user_id) { group_id -> Key, user_id -> Key, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    tags (id) { id -> Key, name -> Text, name_key -> Text, created_at -> Instant, updated_at -> Instant, }
}
diesel::table! {
    places (key) { key -> Text, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    rooms (id) {
        id -> Key, place -> Text, place_key -> Text, starts_at -> Instant, ends_at -> Instant, is_long -> Bool,
        reach_from -> Instant, verified -> Bool, created_by -> Key, created_at -> Instant, updated_at -> Instant,
        deleted_at -> Nullable<Instant>,
    }
}
diesel::table! {
    use service_kit::db::sql::Key;
    room_admins (room_id, user_id) { room_id -> Key, user_id -> Key, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    events (id) {
        id -> Key, name -> Text, description -> Text, shared -> Bool, starts_at -> Instant, ends_at -> Instant,
        is_long -> Bool, place -> Text, place_key -> Text, room_id -> Key, owns_room -> Bool, group_id -> Key,
        open -> Bool, sequence -> Integer, created_by -> Key, created_at -> Instant, updated_at -> Instant,
        deleted_at -> Nullable<Instant>,
    }
}
diesel::table! {
    use service_kit::db::sql::Key;
    event_admins (event_id, user_id) { event_id -> Key, user_id -> Key, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::Key;
    event_tags (event_id, tag_id) { event_id -> Key, tag_id -> Key, locked -> Bool, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::Key;
    attendees (event_id, user_id) { event_id -> Key, user_id -> Key, schedule -> Text, }
}

diesel::joinable!(sessions -> users (user_id));
diesel::joinable!(api_tokens -> users (user_id));
diesel::joinable!(event_tags -> tags (tag_id));
diesel::joinable!(events -> rooms (room_id));
diesel::joinable!(events -> groups (group_id));
diesel::allow_tables_to_appear_in_same_query!(
    users,
    sessions,
    api_tokens,
    spent_logins,
    identities,
    groups,
    group_members,
    group_admins,
    tags,
    places,
    rooms,
    room_admins,
    events,
    event_admins,
    event_tags,
    attendees,
);
