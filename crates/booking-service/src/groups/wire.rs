//! What groups look like on the wire.

use chrono_tz::Tz;
use common::{
    input::{Flag, IdSet, Text},
    kept::Replacement,
    problem::Violations,
    time::Zoned,
};
use deserr::Deserr;
use serde::Serialize;
use service_kit::database::types::DbUuid;
use utoipa::{IntoParams, ToSchema};

use super::{
    changes::GroupFields,
    queries::{Group, MADE_HERE},
};

/// A group of users.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ResponseGroup, example = json!({
    "groupId": "4e090077-6479-53f4-9b3a-da64d276f703", "name": "graphics", "description": "We draw.", "open": true,
    "isTraQGroup": false, "members": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"],
    "admins": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"], "createdBy": "f4626cad-abe0-5cf0-9f8a-af69cd254c29",
    "createdAt": "2026-04-01T18:00:00+09:00", "updatedAt": "2026-04-01T18:00:00+09:00"
}))]
pub struct ResponseGroup {
    group_id: DbUuid,
    name: String,
    description: String,
    /// Whether anybody may join and leave.
    open: bool,
    /// Whether it comes from the directory and cannot be changed here.
    #[serde(rename = "isTraQGroup")]
    is_traq_group: bool,
    members: Vec<DbUuid>,
    admins: Vec<DbUuid>,
    /// The nil UUID for groups that were not made here.
    created_by: DbUuid,
    created_at: Zoned,
    updated_at: Zoned,
}

impl ResponseGroup {
    /// A group with its times in `zone`.
    pub fn new(group: Group, zone: Tz) -> Self {
        let Group { row, members, admins } = group;
        Self {
            group_id: row.id,
            name: row.name,
            description: row.description,
            open: row.open,
            is_traq_group: row.kind != MADE_HERE,
            members,
            admins,
            created_by: row.created_by.unwrap_or_else(DbUuid::nil),
            created_at: row.created_at.in_zone(zone),
            updated_at: row.updated_at.in_zone(zone),
        }
    }
}

/// A new group, or the new fields of a group. Without `members`, an existing group keeps its members and a new one has
/// none.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({
    "name": "guitar", "description": "We play.", "open": true, "members": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"],
    "admins": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"]
}))]
pub struct RequestGroup {
    #[schema(inline)]
    name: Text<1, 32>,
    #[schema(inline)]
    description: Text<0, 10_000>,
    /// Whether anybody may join and leave.
    open: bool,
    #[deserr(default)]
    #[schema(inline)]
    members: Option<IdSet<0>>,
    #[schema(inline)]
    admins: IdSet<1>,
}

impl Replacement for RequestGroup {
    const FIELDS: &'static [(&'static str, &'static str)] = &[("name", "x"), ("description", "")];
}

impl From<RequestGroup> for GroupFields {
    fn from(request: RequestGroup) -> Self {
        Self {
            name: request.name.into_inner(),
            description: request.description.into_inner(),
            open: request.open,
            members: request.members,
            admins: request.admins,
        }
    }
}

/// How a user is related to a group.
#[derive(Debug, Clone, Copy, Default, Deserr, ToSchema)]
#[deserr(error = Violations)]
pub enum Relation {
    /// Is a member.
    #[default]
    #[deserr(rename = "belongs")]
    #[schema(rename = "belongs")]
    Belongs,
    /// Is an admin.
    #[deserr(rename = "admins")]
    #[schema(rename = "admins")]
    Admins,
    /// Either.
    #[deserr(rename = "belongs-or-admins")]
    #[schema(rename = "belongs-or-admins")]
    BelongsOrAdmins,
}

impl Relation {
    /// Whether it includes the groups of which the user is a member.
    pub fn belongs(self) -> bool {
        !matches!(self, Self::Admins)
    }

    /// Whether it includes the groups of which the user is an admin.
    pub fn admins(self) -> bool {
        !matches!(self, Self::Belongs)
    }
}

/// Which groups of a user to list.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations)]
#[into_params(parameter_in = Query)]
pub struct OfUserQuery {
    /// How the user is related to them. Default `belongs`.
    #[deserr(default)]
    #[param(value_type = Option<Relation>, inline)]
    pub relation: Relation,
}

/// How to delete a group.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations)]
#[into_params(parameter_in = Query)]
pub struct DeleteQuery {
    /// Also delete the group's events that have not ended.
    #[deserr(default)]
    #[param(value_type = Option<bool>)]
    pub force: Flag,
}

/// The schema of a list of ids.
#[derive(ToSchema)]
#[schema(as = UUIDs, example = json!(["f4626cad-abe0-5cf0-9f8a-af69cd254c29"]))]
#[expect(dead_code, reason = "only for the OpenAPI document")]
pub struct Uuids(Vec<uuid::Uuid>);
