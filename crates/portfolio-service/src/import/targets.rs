//! Rows of this service's database that imported rows refer to.

use std::collections::HashSet;

use service_kit::database::types::{DbTimestamp, DbUuid};
use uuid::uuid;

/// The creator of imported projects, contests and teams.
pub const CREATOR: DbUuid = DbUuid(uuid!("b9f0a4a6-5c1f-4c53-9a55-6d0b6b3f2f10"));

/// The present users, and the time of the import.
pub struct Targets {
    pub users: HashSet<DbUuid>,
    pub now: DbTimestamp,
}
