//! What is here that rows of the source may refer to.

use std::collections::{HashMap, HashSet};

use service_kit::database::types::{DbTimestamp, DbUuid};

/// What is here to refer to.
pub struct Targets {
    pub users: HashSet<DbUuid>,
    pub groups: HashSet<DbUuid>,
    /// The tags of the source, and which tags here they are.
    pub tags: HashMap<DbUuid, DbUuid>,
    pub now: DbTimestamp,
}
