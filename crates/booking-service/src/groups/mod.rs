//! Stub.
#![allow(missing_docs, reason = "stub")]
use service_kit::db::sql::Uid;
pub mod queries;
pub const EVERYONE: Uid = Uid(uuid::Uuid::from_u128(0x1111_1111_1111_1111_1111_1111_1111_1111));
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub struct ResponseGroup {
    name: String,
}
impl ResponseGroup {
    pub fn new(group: queries::Group, _zone: chrono_tz::Tz) -> Self {
        Self { name: group.row.name }
    }
}
