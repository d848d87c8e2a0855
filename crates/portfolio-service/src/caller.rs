//! The caller of an operation.

use service_kit::{database::types::DbUuid, guard, history::Author};
use uuid::Uuid;

/// `users.state` of an active user.
pub const ACTIVE: i16 = 1;

/// An active member of the club.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The id of the user.
    pub id: DbUuid,
    /// Whether they are an admin, who may do everything.
    pub admin: bool,
    /// What the history says about their changes.
    pub author: Author,
}

impl guard::Caller for Caller {
    fn user(&self) -> Option<Uuid> {
        Some(self.id.0)
    }

    fn view(&self) -> String {
        format!("{} {}", self.id, self.admin)
    }

    fn author(&self) -> Option<&Author> {
        Some(&self.author)
    }

    fn has_special_rights(&self) -> bool {
        self.admin
    }

    fn idempotency_scope(&self) -> String {
        self.id.to_string()
    }
}
