//! What users look like on the wire.

use common::{input::Flag, problem::Violations};
use deserr::Deserr;
use serde::Serialize;
use service_kit::database::types::DbUuid;
use utoipa::{IntoParams, ToSchema};

use super::{icon, queries::User};

/// A member of the club.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ResponseUser, example = json!({
    "userId": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "name": "alice", "displayName": "Alice",
    "icon": "https://club.example/icons/alice.svg", "privileged": false, "state": 1
}))]
pub struct ResponseUser {
    user_id: DbUuid,
    /// The sign-in name.
    name: String,
    display_name: String,
    /// Absolute address of an image.
    icon: String,
    /// Whether the user may do what otherwise only owners and administrators may.
    privileged: bool,
    /// 0 deactivated, 1 active, 2 suspended.
    #[schema(minimum = 0, maximum = 2)]
    state: i16,
}

impl ResponseUser {
    /// A user as shown by the service at `origin`.
    pub fn new(user: User, origin: &str) -> Self {
        let icon = if user.icon.is_empty() { icon::address(origin, &user.name) } else { user.icon };
        Self {
            user_id: user.id,
            name: user.name,
            display_name: user.display_name,
            icon,
            privileged: user.privileged,
            state: user.state,
        }
    }
}

/// Which users to list.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Include suspended and deactivated users.
    #[deserr(rename = "include-suspended", default)]
    #[param(rename = "include-suspended", value_type = Option<bool>)]
    pub include_suspended: Flag,
}

/// How to copy the directory.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations)]
#[into_params(parameter_in = Query)]
pub struct SyncQuery {
    /// Accept a directory that takes access from more than half of the active members.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    pub force: Flag,
}

/// Whether a user is privileged.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations)]
#[schema(example = json!({"privileged": false}))]
pub struct RequestPrivileged {
    /// Whether the user may do what otherwise only owners and administrators may.
    pub privileged: bool,
}
