//! The tables of sign-in, which the migrations of each service create, and what sign-in needs of its table `users`.
#![expect(missing_docs, reason = "the columns are explained in the migrations; the macro makes one item for each")]
#![allow(clippy::wildcard_imports, reason = "as diesel itself writes its schema files")]

diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::DbUuid;
    users (id) {
        id -> DbUuid, name -> Text, state -> SmallInt, in_directory -> Bool, email -> Nullable<Text>,
    }
}
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
    use service_kit::database::types::DbTimestamp;
    spent_logins (state_hash) { state_hash -> Binary, expires_at -> DbTimestamp, }
}
diesel::table! {
    use diesel::sql_types::*;
    use service_kit::database::types::{DbTimestamp, DbUuid};
    identities (provider, subject) {
        provider -> Text, subject -> Text, user_id -> DbUuid, created_at -> DbTimestamp, invited -> Bool,
    }
}
