//! The tables, as both sets of migrations make them; a test reads every column of each.
#![expect(missing_docs, reason = "the columns are explained in the migrations; the macro makes one item for each")]
#![allow(clippy::wildcard_imports, reason = "as diesel itself writes its schema files")]

use service_kit::db::{schema::idempotency_keys, tables::TableInfo};

/// All tables, each after those that it refers to.
pub const TABLES: &[TableInfo] = service_kit::tables! {
    idempotency_keys users accounts groups group_admins group_memberships events event_hosts event_levels projects
    project_members contests contest_teams contest_team_members leases copies
};

diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    users (id) {
        id -> Key, name -> Text, real_name -> Text, publishes_real_name -> Bool, state -> SmallInt, bio -> Text,
        created_at -> Instant, updated_at -> Instant,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    accounts (id) {
        id -> Key, user_id -> Key,
        #[sql_name = "type"]
        type_ -> SmallInt,
        display_name -> Text, url -> Text, created_at -> Instant, updated_at -> Instant,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    groups (id) {
        id -> Key, name -> Text, link -> Text, description -> Text, created_at -> Instant, updated_at -> Instant,
    }
}
diesel::table! {
    use service_kit::db::sql::Key;
    group_admins (group_id, user_id) { group_id -> Key, user_id -> Key, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::Key;
    group_memberships (id) {
        id -> Key, group_id -> Key, user_id -> Key, since -> Integer, until -> Nullable<Integer>,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    events (id) {
        id -> Key, name -> Text, description -> Text, place -> Text, since -> Instant, until -> Instant,
        updated_at -> Instant,
    }
}
diesel::table! {
    use service_kit::db::sql::Key;
    event_hosts (event_id, user_id) { event_id -> Key, user_id -> Key, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::Key;
    event_levels (event_id) { event_id -> Key, level -> SmallInt, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    projects (id) {
        id -> Key, name -> Text, link -> Text, description -> Text, since -> Integer, until -> Nullable<Integer>,
        created_by -> Key, created_at -> Instant, updated_at -> Instant,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::Key;
    project_members (project_id, user_id) {
        project_id -> Key, user_id -> Key, since -> Integer, until -> Nullable<Integer>,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    contests (id) {
        id -> Key, name -> Text, link -> Text, description -> Text, since -> Instant, until -> Nullable<Instant>,
        created_by -> Key, created_at -> Instant, updated_at -> Instant,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    contest_teams (id) {
        id -> Key, contest_id -> Key, name -> Text, link -> Text, description -> Text, result -> Text,
        created_by -> Key, created_at -> Instant, updated_at -> Instant,
    }
}
diesel::table! {
    use service_kit::db::sql::Key;
    contest_team_members (team_id, user_id) { team_id -> Key, user_id -> Key, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::{Instant, Key};
    leases (task) { task -> Text, holder -> Key, expires_at -> Instant, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::db::sql::Instant;
    copies (source) { source -> Text, copied_at -> Instant, }
}

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
    accounts,
    groups,
    group_admins,
    group_memberships,
    events,
    event_hosts,
    event_levels,
    projects,
    project_members,
    contests,
    contest_teams,
    contest_team_members,
);
