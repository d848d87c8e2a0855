//! The rows of this database that rows of the source may refer to.

use std::collections::{HashMap, HashSet};

use service_kit::database::types::{DbTimestamp, DbUuid};

/// The ids of these rows.
pub struct Targets {
    pub users: HashSet<DbUuid>,
    pub groups: HashSet<DbUuid>,
    /// The id in this database of each tag of the source.
    pub tags: HashMap<DbUuid, DbUuid>,
    /// The time of the import.
    pub now: DbTimestamp,
}
