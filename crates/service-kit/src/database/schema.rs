//! The tables that every service has; the migrations of each service create them.
#![expect(missing_docs, reason = "the columns are explained in the migrations; the macro makes one item for each")]
#![allow(clippy::wildcard_imports, reason = "as diesel itself writes its schema files")]

diesel::table! {
    use diesel::sql_types::*;
    use crate::database::types::DbTimestamp;
    idempotency_keys (id) {
        id -> Binary, request_hash -> Binary, status -> Nullable<SmallInt>, headers -> Nullable<Text>,
        body -> Nullable<Binary>, sealed -> Bool, expires_at -> DbTimestamp,
        caller_hash -> Binary, size -> Integer, compressed -> Bool,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use crate::database::types::{DbTimestamp, DbUuid};
    creations (user_id) { user_id -> DbUuid, expires_at -> DbTimestamp, number -> Integer, }
}

diesel::table! {
    use diesel::sql_types::*;
    use crate::database::types::{DbTimestamp, DbUuid};
    history (id) {
        id -> BigInt, at -> DbTimestamp, actor -> Nullable<DbUuid>, origin -> Text, token -> Nullable<Text>,
        request_id -> Nullable<Text>, object_type -> Text, object_id -> DbUuid, action -> Text, changes -> Text,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use crate::database::types::{DbTimestamp, DbUuid};
    leases (task) { task -> Text, holder -> DbUuid, expires_at -> DbTimestamp, }
}
