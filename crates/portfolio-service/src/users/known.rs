//! Whether the users that a request names are there.

use std::collections::HashSet;

use common::problem::{Problem, Violations};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    db::{AnyConnection, sql::Uid},
    error::Error,
};

use crate::schema::users;

/// Refuses the id of no user.
///
/// # Errors
/// 404 when there is no such user.
pub fn need(conn: &mut AnyConnection, id: Uid) -> Result<(), Error> {
    let found = users::table.find(id).select(users::id).first::<Uid>(conn).optional()?;
    found.map(|_| ()).ok_or_else(|| Problem::not_found("user").into())
}

/// Refuses ids in a body that name no user.
///
/// # Errors
/// 400 `invalid-body` naming each unknown one; `pointer` says where the n-th one stands.
pub fn require(conn: &mut AnyConnection, ids: &[Uid], pointer: impl Fn(usize) -> String) -> Result<(), Error> {
    let mut known = HashSet::new();
    for ids in ids.chunks(1000) {
        known.extend(users::table.filter(users::id.eq_any(ids)).select(users::id).load::<Uid>(conn)?);
    }
    let mut violations = Violations::default();
    for (n, _) in ids.iter().enumerate().filter(|(_, id)| !known.contains(id)) {
        violations.push(pointer(n), "unknown-user", "names no user");
    }
    Ok(violations.into_result()?)
}

/// The violations of "each user once"; `pointer` says where the n-th id stands.
pub fn repeats(ids: impl Iterator<Item = Uid>, pointer: impl Fn(usize) -> String) -> Violations {
    let mut seen = HashSet::new();
    let mut violations = Violations::default();
    for (n, _) in ids.enumerate().filter(|(_, id)| !seen.insert(*id)) {
        violations.push(pointer(n), "given-twice", "names a user who is in the list already");
    }
    violations
}
