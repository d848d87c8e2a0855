//! Checks of the user ids in a request body.

use std::collections::HashSet;

use common::problem::{Rule, Violations};
use diesel::prelude::*;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    with_connection,
};

use crate::schema::users;

/// Checks that each id is the id of a user. `pointer` returns the JSON pointer of the n-th id.
///
/// # Errors
/// 400 `invalid-body` with a violation for each unknown id.
pub fn check_exist(conn: &mut AnyConnection, ids: &[DbUuid], pointer: impl Fn(usize) -> String) -> Result<(), Error> {
    let mut existing = HashSet::new();
    for ids in ids.chunks(1000) {
        let users = users::table.filter(users::id.eq_any(ids)).select(users::id);
        existing.extend(with_connection!(conn, c => users.load::<DbUuid>(c)?));
    }
    let mut violations = Violations::default();
    for (n, _) in ids.iter().enumerate().filter(|(_, id)| !existing.contains(id)) {
        violations.push(pointer(n), Rule::UnknownUser, "names no user");
    }
    Ok(violations.into_result()?)
}

/// Checks that no id is repeated. `pointer` returns the JSON pointer of the n-th id.
///
/// # Errors
/// A violation for each repeated id.
pub fn check_unique(ids: impl Iterator<Item = DbUuid>, pointer: impl Fn(usize) -> String) -> Result<(), Violations> {
    let mut seen = HashSet::new();
    let mut violations = Violations::default();
    for (n, _) in ids.enumerate().filter(|(_, id)| !seen.insert(*id)) {
        violations.push(pointer(n), Rule::Duplicate, "names a user who is in the list already");
    }
    if violations.0.is_empty() { Ok(()) } else { Err(violations) }
}
