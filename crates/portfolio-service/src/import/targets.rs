//! What is here that rows of the source may refer to.

use std::collections::HashSet;

use service_kit::database::types::{DbTimestamp, DbUuid};
use uuid::uuid;

/// Whom imported projects, contests and teams belong to.
pub const CREATOR: DbUuid = DbUuid(uuid!("b9f0a4a6-5c1f-4c53-9a55-6d0b6b3f2f10"));

/// What is here to refer to.
pub struct Targets {
    pub users: HashSet<DbUuid>,
    pub now: DbTimestamp,
}
