//! The objects that have a history.

use serde_json::Value;
use service_kit::history::Kind;

/// A project.
pub static PROJECT: Kind = Kind { name: "project", hidden: &["id"] };

/// A contest. Its teams have histories of their own.
pub static CONTEST: Kind = Kind { name: "contest", hidden: &["id", "teams"] };

/// A team.
pub static TEAM: Kind = Kind { name: "team", hidden: &["id"] };

/// What a user says about themself. A published real name can be withdrawn, so it is not recorded.
pub static PROFILE: Kind = Kind { name: "profile", hidden: &["id", "name", "realName", "state", "accounts"] };

/// An account of a user.
pub static ACCOUNT: Kind = Kind { name: "account", hidden: &["id"] };

/// An event, of which only the level changes here.
pub static EVENT: Kind = Kind { name: "event", hidden: &[] };

/// Leaves out the names and pictures of the members of an object, which are those of the users.
pub fn without_names(mut fields: Value) -> Value {
    for member in fields["members"].as_array_mut().into_iter().flatten() {
        if let Some(member) = member.as_object_mut() {
            member.retain(|name, _| !["name", "realName", "picture"].contains(&name.as_str()));
        }
    }
    fields
}
