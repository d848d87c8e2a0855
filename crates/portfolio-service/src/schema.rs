//! The tables that both sets of migrations create. A test reads every column of each.
#![expect(missing_docs, reason = "the columns are explained in the migrations; the macro makes one item for each")]
#![allow(clippy::wildcard_imports, reason = "as diesel itself writes its schema files")]

pub use club_sign_in::schema::{identities, spent_logins};
use import::schema::imported_rows;
use service_kit::{
    database::schema::{creations, history, idempotency_keys, leases},
    maintenance::tables::TableInfo,
};

/// All tables, each after those that it refers to.
pub const TABLES: &[TableInfo] = service_kit::tables! {
    idempotency_keys creations history imported_rows users sessions spent_logins identities accounts groups group_admins group_memberships events event_hosts event_levels
    projects project_members contests contest_teams contest_team_members pictures departures deleted_objects last_deletions leases
    copies
};

diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    users (id) {
        id -> DbUuid, name -> Text, real_name -> Text, publishes_real_name -> Bool, state -> SmallInt, bio -> Text,
        created_at -> DbTimestamp, updated_at -> DbTimestamp, email -> Nullable<Text>, in_directory -> Bool, admin -> Bool,
        picture -> Nullable<Text>,
    }
}
// As in `club_sign_in`: Diesel joins only tables of one crate.
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    sessions (id) {
        id -> DbUuid, token_hash -> Binary, user_id -> DbUuid, created_at -> DbTimestamp, expires_at -> DbTimestamp,
        revoked_at -> Nullable<DbTimestamp>, last_used_at -> DbTimestamp,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    accounts (id) {
        id -> DbUuid, user_id -> DbUuid,
        #[sql_name = "type"]
        type_ -> SmallInt,
        display_name -> Text, url -> Text, created_at -> DbTimestamp, updated_at -> DbTimestamp, further -> Bool,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    groups (id) {
        id -> DbUuid, name -> Text, link -> Text, description -> Text, created_at -> DbTimestamp,
        updated_at -> DbTimestamp,
    }
}
diesel::table! {
    use service_kit::database::types::DbUuid;
    group_admins (group_id, user_id) { group_id -> DbUuid, user_id -> DbUuid, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::DbUuid;
    group_memberships (id) {
        id -> DbUuid, group_id -> DbUuid, user_id -> DbUuid, since -> Integer, until -> Nullable<Integer>,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    events (id) {
        id -> DbUuid, name -> Text, description -> Text, place -> Text, since -> DbTimestamp, until -> DbTimestamp,
        updated_at -> DbTimestamp,
    }
}
diesel::table! {
    use service_kit::database::types::DbUuid;
    event_hosts (event_id, user_id) { event_id -> DbUuid, user_id -> DbUuid, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::DbUuid;
    event_levels (event_id) { event_id -> DbUuid, level -> SmallInt, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    projects (id) {
        id -> DbUuid, name -> Text, link -> Text, description -> Text, since -> Integer, until -> Nullable<Integer>,
        created_by -> DbUuid, created_at -> DbTimestamp, updated_at -> DbTimestamp, picture -> Nullable<Text>,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::DbUuid;
    pictures (object_id) { object_id -> DbUuid, media_type -> Text, large -> Binary, small -> Binary, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::DbUuid;
    project_members (project_id, user_id) {
        project_id -> DbUuid, user_id -> DbUuid, since -> Integer, until -> Nullable<Integer>, follows_since -> Bool,
        follows_until -> Bool,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    contests (id) {
        id -> DbUuid, name -> Text, link -> Text, description -> Text, since -> DbTimestamp,
        until -> Nullable<DbTimestamp>, created_by -> DbUuid, created_at -> DbTimestamp, updated_at -> DbTimestamp,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    contest_teams (id) {
        id -> DbUuid, contest_id -> DbUuid, name -> Text, link -> Text, description -> Text, result -> Text,
        created_by -> DbUuid, created_at -> DbTimestamp, updated_at -> DbTimestamp,
    }
}
diesel::table! {
    use service_kit::database::types::DbUuid;
    contest_team_members (team_id, user_id) { team_id -> DbUuid, user_id -> DbUuid, }
}
diesel::table! {
    use service_kit::database::types::{DbTimestamp, DbUuid};
    departures (object_id, user_id) { object_id -> DbUuid, user_id -> DbUuid, left_at -> DbTimestamp, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    deleted_objects (id) {
        id -> DbUuid, created_by -> DbUuid, deleted_at -> DbTimestamp, editors -> Text, content -> Text,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::DbTimestamp;
    last_deletions (kind) { kind -> Text, deleted_at -> DbTimestamp, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::DbTimestamp;
    copies (source) { source -> Text, copied_at -> DbTimestamp, }
}

diesel::joinable!(sessions -> users (user_id));
diesel::joinable!(accounts -> users (user_id));
diesel::joinable!(group_admins -> users (user_id));
diesel::joinable!(group_memberships -> users (user_id));
diesel::joinable!(group_memberships -> groups (group_id));
diesel::joinable!(event_hosts -> users (user_id));
diesel::joinable!(event_hosts -> events (event_id));
diesel::joinable!(event_levels -> events (event_id));
diesel::joinable!(project_members -> users (user_id));
diesel::joinable!(project_members -> projects (project_id));
diesel::joinable!(contest_teams -> contests (contest_id));
diesel::joinable!(contest_team_members -> users (user_id));
diesel::joinable!(contest_team_members -> contest_teams (team_id));
diesel::allow_tables_to_appear_in_same_query!(
    users,
    sessions,
    accounts,
    groups,
    group_admins,
    group_memberships,
    events,
    event_hosts,
    event_levels,
    projects,
    project_members,
    pictures,
    contests,
    contest_teams,
    contest_team_members,
);
