//! The kinds of objects that have a history, and what is done to them.

use common::problem::Problem;
use serde::Serialize;
use serde_json::Value;

use crate::error::Error;

text_enum! {
    /// What was done to an object.
    pub enum Action {
        /// It was created.
        Created = "created",
        /// Fields have changed.
        Changed = "changed",
        /// It was deleted.
        Deleted = "deleted",
        /// Its deletion was undone.
        Restored = "restored",
        /// It has the fields of an earlier time again.
        Reverted = "reverted",
        /// A room was confirmed.
        Verified = "verified",
        /// The confirmation of a room was withdrawn.
        Unverified = "unverified",
        /// A poll has become an event.
        Confirmed = "confirmed",
    }
}

/// A kind of objects that have a history.
#[derive(Debug)]
pub struct Kind {
    /// Its name in the rows.
    pub name: &'static str,
    /// The fields of the object's answer that the history leaves out, besides [`OF_EVERY_ROW`].
    pub hidden: &'static [&'static str],
}

impl Kind {
    /// Whether the history has a field.
    pub(super) fn shows(&self, name: &str) -> bool {
        !self.hidden.contains(&name) && !OF_EVERY_ROW.contains(&name)
    }

    /// The fields of an object without those that the history leaves out.
    pub(crate) fn shown(&self, mut fields: Value) -> Value {
        if let Some(fields) = fields.as_object_mut() {
            fields.retain(|name, _| self.shows(name));
        }
        fields
    }
}

/// Fields whose values each row has by itself.
const OF_EVERY_ROW: [&str; 3] = ["createdAt", "createdBy", "updatedAt"];

/// The fields of an object, as `difference` takes them.
///
/// # Errors
/// 500 for a value that has no JSON.
pub fn fields_of(answer: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(answer).map_err(|error| Problem::internal(error).into())
}
