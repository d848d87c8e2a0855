//! The names with which users sign in.

use club_issuer::joining::is_sign_in_name;
use service_kit::directory::NameRule;

/// Users with other names stay in the copy of the directory, because groups and events may name them.
pub const NAMES: NameRule = NameRule { accepts: is_sign_in_name, otherwise: "cannot sign in" };
