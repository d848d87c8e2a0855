//! Users in the database.

use std::collections::HashSet;

use common::problem::{Problem, Violations};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    db::{AnyConnection, sql::Uid},
    error::Error,
};

use crate::{auth::ACTIVE, schema::users};

/// A user as listed.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = users)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct User {
    pub id: Uid,
    pub name: String,
    pub display_name: String,
    pub icon: String,
    pub privileged: bool,
    pub state: i16,
}

/// All users by name, or the active ones only.
///
/// # Errors
/// When the database fails.
pub fn list(conn: &mut AnyConnection, include_suspended: bool) -> Result<Vec<User>, Error> {
    let mut query = users::table.select(User::as_select()).order((users::name, users::id)).into_boxed();
    if !include_suspended {
        query = query.filter(users::state.eq(ACTIVE));
    }
    Ok(query.load(conn)?)
}

/// One user.
///
/// # Errors
/// 404 when there is none.
pub fn get(conn: &mut AnyConnection, id: Uid) -> Result<User, Error> {
    let found = users::table.find(id).select(User::as_select()).first(conn).optional()?;
    found.ok_or_else(|| Problem::not_found("user").into())
}

/// Refuses ids in a request that name no user.
///
/// # Errors
/// 400 `invalid-body` naming each unknown one below `pointer`.
pub fn require_known(conn: &mut AnyConnection, pointer: &str, ids: &[Uid]) -> Result<(), Error> {
    let mut known = HashSet::new();
    for ids in ids.chunks(1000) {
        known.extend(users::table.filter(users::id.eq_any(ids)).select(users::id).load::<Uid>(conn)?);
    }
    let mut violations = Violations::default();
    for (index, _) in ids.iter().enumerate().filter(|(_, id)| !known.contains(id)) {
        violations.push(format!("{pointer}/{index}"), "unknown-user", "names no user");
    }
    Ok(violations.into_result()?)
}
