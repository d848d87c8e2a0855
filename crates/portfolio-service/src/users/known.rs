//! Whether the users that a request names are there.

use std::collections::HashSet;

use common::problem::Violations;
use diesel::prelude::*;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
};

use crate::schema::users;

/// Refuses ids in a body that name no user.
///
/// # Errors
/// 400 `invalid-body` naming each unknown one; `pointer` says where the n-th one stands.
pub fn require(conn: &mut AnyConnection, ids: &[DbUuid], pointer: impl Fn(usize) -> String) -> Result<(), Error> {
    let mut known = HashSet::new();
    for ids in ids.chunks(1000) {
        known.extend(users::table.filter(users::id.eq_any(ids)).select(users::id).load::<DbUuid>(conn)?);
    }
    let mut violations = Violations::default();
    for (n, _) in ids.iter().enumerate().filter(|(_, id)| !known.contains(id)) {
        violations.push(pointer(n), "unknown-user", "names no user");
    }
    Ok(violations.into_result()?)
}

/// The violations of "each user once"; `pointer` says where the n-th id stands.
pub fn repeats(ids: impl Iterator<Item = DbUuid>, pointer: impl Fn(usize) -> String) -> Violations {
    let mut seen = HashSet::new();
    let mut violations = Violations::default();
    for (n, _) in ids.enumerate().filter(|(_, id)| !seen.insert(*id)) {
        violations.push(pointer(n), "given-twice", "names a user who is in the list already");
    }
    violations
}
