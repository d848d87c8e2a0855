//! The tables that both sets of migrations create. A test compares the three.
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
    idempotency_keys creations history leases imported_rows users sessions api_tokens spent_logins identities groups group_members group_admins
    tags places rooms room_admins event_series event_series_admins skipped_occurrences events event_admins event_tags attendees
    withdrawn_invitations draft_events draft_event_slots draft_event_admins draft_event_invitees draft_event_tags draft_event_answers
    draft_event_choices webhooks deliveries
    invitations
};

diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    users (id) {
        id -> DbUuid, name -> Text, display_name -> Text, icon -> Text, state -> SmallInt, privileged -> Bool,
        feed_nonce -> Nullable<Text>, created_at -> DbTimestamp, updated_at -> DbTimestamp,
        imported_feed_hash -> Nullable<Binary>, in_directory -> Bool, display_name_changed_at -> DbTimestamp,
        email -> Nullable<Text>,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    invitations (id) {
        id -> DbUuid, secret_hash -> Binary, uses -> Integer, used -> Integer, privileged -> Bool,
        created_by -> Nullable<DbUuid>, created_at -> DbTimestamp, expires_at -> DbTimestamp,
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
    api_tokens (id) {
        id -> DbUuid, token_hash -> Binary, user_id -> Nullable<DbUuid>, name -> Text, scope -> Text,
        created_at -> DbTimestamp, expires_at -> Nullable<DbTimestamp>, revoked_at -> Nullable<DbTimestamp>,
        last_used_at -> Nullable<DbTimestamp>,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    groups (id) {
        id -> DbUuid, kind -> SmallInt, name -> Text, description -> Text, open -> Bool, created_by -> Nullable<DbUuid>,
        created_at -> DbTimestamp, updated_at -> DbTimestamp, deleted_at -> Nullable<DbTimestamp>,
    }
}
diesel::table! {
    use service_kit::database::types::DbUuid;
    group_members (group_id, user_id) { group_id -> DbUuid, user_id -> DbUuid, }
}
diesel::table! {
    use service_kit::database::types::DbUuid;
    group_admins (group_id, user_id) { group_id -> DbUuid, user_id -> DbUuid, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    tags (id) { id -> DbUuid, name -> Text, name_key -> Text, created_at -> DbTimestamp, updated_at -> DbTimestamp, }
}
diesel::table! {
    places (key) { key -> Text, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    rooms (id) {
        id -> DbUuid, place -> Text, place_key -> Text, starts_at -> DbTimestamp, ends_at -> DbTimestamp,
        is_long -> Bool, reach_from -> DbTimestamp, verified -> Bool, created_by -> Nullable<DbUuid>,
        created_at -> DbTimestamp, updated_at -> DbTimestamp, deleted_at -> Nullable<DbTimestamp>, made_for_event -> Bool,
    }
}
diesel::table! {
    use service_kit::database::types::DbUuid;
    room_admins (room_id, user_id) { room_id -> DbUuid, user_id -> DbUuid, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    events (id) {
        id -> DbUuid, name -> Text, description -> Text, shared -> Bool, starts_at -> DbTimestamp,
        ends_at -> DbTimestamp, is_long -> Bool, place -> Text, place_key -> Text, room_id -> DbUuid, owns_room -> Bool,
        group_id -> DbUuid, open -> Bool, sequence -> Integer, created_by -> Nullable<DbUuid>,
        created_at -> DbTimestamp, updated_at -> DbTimestamp, deleted_at -> Nullable<DbTimestamp>,
        series_id -> Nullable<DbUuid>, occurrence -> Nullable<Integer>, changed_by_itself -> Bool,
        text_key -> Text, deleted_by_until -> Bool,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    event_series (id) {
        id -> DbUuid, rrule -> Text, time_zone -> Text, exdates -> Text, starts_at -> DbTimestamp,
        ends_at -> DbTimestamp, next_occurrence -> Integer, created_by -> Nullable<DbUuid>, created_at -> DbTimestamp,
        updated_at -> DbTimestamp,
    }
}
diesel::table! {
    use service_kit::database::types::DbUuid;
    event_series_admins (series_id, user_id) { series_id -> DbUuid, user_id -> DbUuid, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    skipped_occurrences (series_id, occurrence) {
        series_id -> DbUuid, occurrence -> Integer, starts_at -> DbTimestamp, ends_at -> DbTimestamp, code -> Text,
    }
}
diesel::table! {
    use service_kit::database::types::DbUuid;
    event_admins (event_id, user_id) { event_id -> DbUuid, user_id -> DbUuid, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::DbUuid;
    event_tags (event_id, tag_id) { event_id -> DbUuid, tag_id -> DbUuid, locked -> Bool, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    attendees (event_id, user_id) {
        event_id -> DbUuid, user_id -> DbUuid, schedule -> Text, changed_at -> DbTimestamp,
    }
}
diesel::table! {
    use service_kit::database::types::{DbTimestamp, DbUuid};
    withdrawn_invitations (event_id, user_id) {
        event_id -> DbUuid, user_id -> DbUuid, withdrawn_at -> DbTimestamp,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    draft_events (id) {
        id -> DbUuid, name -> Text, description -> Text, open -> Bool, deadline -> DbTimestamp,
        event_id -> Nullable<DbUuid>, created_by -> DbUuid, created_at -> DbTimestamp, updated_at -> DbTimestamp,
        deleted_at -> Nullable<DbTimestamp>,
    }
}
diesel::table! {
    use service_kit::database::types::{DbTimestamp, DbUuid};
    draft_event_slots (id) {
        id -> DbUuid, draft_event_id -> DbUuid, starts_at -> DbTimestamp, ends_at -> DbTimestamp,
    }
}
diesel::table! {
    use service_kit::database::types::DbUuid;
    draft_event_admins (draft_event_id, user_id) { draft_event_id -> DbUuid, user_id -> DbUuid, }
}
diesel::table! {
    use service_kit::database::types::DbUuid;
    draft_event_invitees (draft_event_id, user_id) { draft_event_id -> DbUuid, user_id -> DbUuid, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::DbUuid;
    draft_event_tags (draft_event_id, tag_id) { draft_event_id -> DbUuid, tag_id -> DbUuid, locked -> Bool, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    draft_event_answers (draft_event_id, user_id) {
        draft_event_id -> DbUuid, user_id -> DbUuid, comment -> Nullable<Text>, updated_at -> DbTimestamp,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::DbUuid;
    draft_event_choices (draft_event_id, user_id, slot_id) {
        draft_event_id -> DbUuid, user_id -> DbUuid, slot_id -> DbUuid, maybe -> Bool,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    webhooks (id) {
        id -> DbUuid, name -> Text, url -> Text, shown_url -> Text, format -> Text, types -> Text, group_ids -> Text,
        language -> Text, mentions -> Text, mention_groups -> Text, channel_id -> Nullable<DbUuid>, is_on -> Bool,
        why_off -> Nullable<Text>, secret -> Nullable<Text>, former_secret -> Nullable<Text>,
        secret_changed_at -> Nullable<DbTimestamp>, since -> DbTimestamp, read_until -> DbTimestamp,
        failing_since -> Nullable<DbTimestamp>, created_by -> DbUuid, created_at -> DbTimestamp,
        updated_at -> DbTimestamp, url_changed_at -> Nullable<DbTimestamp>,
    }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    deliveries (id) {
        id -> DbUuid, webhook_id -> DbUuid, cause -> Text, kind -> Text, history_id -> Nullable<BigInt>,
        object_id -> DbUuid, at -> DbTimestamp, status -> Text, due_at -> DbTimestamp, attempts -> SmallInt,
        tried_at -> Nullable<DbTimestamp>, body -> Nullable<Text>, answer_status -> Nullable<SmallInt>,
        answer -> Nullable<Text>,
    }
}

diesel::joinable!(sessions -> users (user_id));
diesel::joinable!(api_tokens -> users (user_id));
diesel::joinable!(event_tags -> tags (tag_id));
diesel::joinable!(events -> rooms (room_id));
diesel::joinable!(events -> groups (group_id));
diesel::joinable!(attendees -> events (event_id));
diesel::joinable!(draft_event_tags -> tags (tag_id));
diesel::joinable!(deliveries -> webhooks (webhook_id));
diesel::allow_tables_to_appear_in_same_query!(
    users,
    sessions,
    api_tokens,
    groups,
    group_members,
    group_admins,
    tags,
    places,
    rooms,
    room_admins,
    event_series,
    event_series_admins,
    skipped_occurrences,
    events,
    event_admins,
    event_tags,
    attendees,
    withdrawn_invitations,
    draft_events,
    draft_event_slots,
    draft_event_admins,
    draft_event_invitees,
    draft_event_tags,
    draft_event_answers,
    draft_event_choices,
    webhooks,
    deliveries,
);
