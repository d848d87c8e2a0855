//! The table of imported rows and their hashes; the migrations of each service create it.
#![expect(missing_docs, reason = "the columns are explained in the migrations; the macro makes one item for each")]

diesel::table! {
    use diesel::sql_types::{Binary, Text};
    use service_kit::database::types::DbUuid;
    imported_rows (kind, id) { kind -> Text, id -> DbUuid, hash -> Binary, }
}
