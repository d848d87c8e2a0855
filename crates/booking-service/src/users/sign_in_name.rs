//! The names with which users sign in.

use service_kit::directory::NameRule;

/// Users with other names stay in the copy of the directory, because groups and events may name them.
pub const NAMES: NameRule = NameRule { accepts: is_sign_in_name, otherwise: "cannot sign in" };

/// Whether this is a sign-in name (contract, "Sign-in names"). Other characters could imitate another user's name.
#[must_use]
pub fn is_sign_in_name(name: &str) -> bool {
    let is_allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'@' | b'+' | b'-');
    (1..=32).contains(&name.len()) && name.bytes().all(is_allowed)
}
