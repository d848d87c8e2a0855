//! What rows of the history look like on the wire.

use chrono_tz::Tz;
use common::{problem::Problem, time::Zoned};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{author::By, kind::Action, rows::Row};
use crate::{database::types::DbUuid, error::Error};

/// A change of an object.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "historyId": 516, "at": "2026-04-01T18:00:00+09:00", "actor": "f4626cad-abe0-5cf0-9f8a-af69cd254c29",
    "by": "session", "requestId": "0198c0de-0000-7000-8000-000000000050", "objectType": "event",
    "objectId": "0198c0de-0000-7000-8000-000000000020", "action": "changed",
    "changes": {"place": ["S516", "S517"], "admins": {"added": [], "removed": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"]}}
}))]
pub struct ResponseHistory {
    /// Later changes of an object have greater ones.
    history_id: i64,
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    at: Zoned,
    /// The user who made the change. Left out if no user did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    actor: Option<DbUuid>,
    /// `session`, `token` (of a program), `proxy` (which names the user), `command` (of the operator), `directory` (the
    /// copy of it) or `import`.
    #[schema(inline)]
    by: By,
    /// The name of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token_name: Option<String>,
    /// The `X-Request-Id` of the request that made the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    request_id: Option<String>,
    /// Such as `event` or `room`.
    object_type: String,
    object_id: DbUuid,
    /// What was done.
    #[schema(inline)]
    action: Action,
    /// The fields that changed: each as `[old, new]`, a list as `{"added": […], "removed": […]}`.
    #[schema(value_type = Object)]
    changes: Value,
}

impl ResponseHistory {
    /// A row with its time in `zone`.
    pub fn new(row: Row, zone: Tz) -> Result<Self, Error> {
        Ok(Self {
            history_id: row.id,
            at: row.at.in_zone(zone),
            actor: row.actor,
            by: row.origin,
            token_name: row.token,
            request_id: row.request_id,
            object_type: row.object_type,
            object_id: row.object_id,
            action: row.action,
            changes: serde_json::from_str(&row.changes).map_err(Problem::internal)?,
        })
    }
}
