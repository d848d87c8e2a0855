//! Users in the database.

use std::collections::HashSet;

use common::{
    input::IdSet,
    problem::{Problem, Violations},
};
use diesel::{OptionalExtension, prelude::*, sql_types::Bool};
use service_kit::{
    after,
    database::{AnyConnection, PageBounds, types::DbUuid},
    error::Error,
    with_connection,
};

use crate::{auth::ACTIVE, codes, schema::users};

/// A user as listed.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = users)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct User {
    pub id: DbUuid,
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
pub fn list(
    conn: &mut AnyConnection,
    include_suspended: bool,
    slice: &PageBounds<(String, DbUuid)>,
) -> Result<Vec<User>, Error> {
    let mut query = users::table.select(User::as_select()).order((users::name, users::id)).into_boxed();
    if !include_suspended {
        query = query.filter(users::state.eq(ACTIVE));
    }
    if let Some((name, id)) = &slice.after {
        query = after!(query, users::name; > name, users::id; > *id);
    }
    Ok(query.limit(slice.rows).load(conn)?)
}

/// One user.
///
/// # Errors
/// 404 when there is none.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<User, Error> {
    let found = users::table.find(id).select(User::as_select()).first(conn).optional()?;
    found.ok_or_else(|| Problem::not_found("user").into())
}

/// The ids of all active users, in order: the members of the everyone group.
///
/// # Errors
/// When the database fails.
pub fn active_ids(conn: &mut AnyConnection) -> Result<Vec<DbUuid>, Error> {
    let active = users::table.filter(users::state.eq(ACTIVE)).select(users::id).order(users::id);
    Ok(with_connection!(conn, c => active.load(c))?)
}

/// Notes each id of a request's list that is no user's (contract, "Identifiers"): at `/admins/3`, for a list at
/// `/admins`.
///
/// # Errors
/// When the database fails.
pub fn note_unknown<const MIN: usize>(
    conn: &mut AnyConnection,
    pointer: &str,
    set: &IdSet<MIN>,
    violations: &mut Violations,
) -> Result<(), Error> {
    let (indices, ids): (Vec<_>, Vec<_>) = set.iter().map(|(index, id)| (index, DbUuid(id))).unzip();
    for unknown in unknown(conn, &ids)? {
        violations.push(format!("{pointer}/{}", indices[unknown]), "unknown-user", "names no user");
    }
    Ok(())
}

/// The indexes of those ids that are no user's.
///
/// # Errors
/// When the database fails.
pub fn unknown(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<Vec<usize>, Error> {
    let mut existing = HashSet::new();
    for ids in ids.chunks(1000) {
        existing.extend(users::table.filter(users::id.eq_any(ids)).select(users::id).load::<DbUuid>(conn)?);
    }
    Ok(ids.iter().enumerate().filter(|(_, id)| !existing.contains(id)).map(|(index, _)| index).collect())
}

/// Makes a user privileged, or no longer (contract, `PATCH /users/{userID}/privileged`). Changes nothing when it is so.
///
/// # Errors
/// 404 for an unknown user; 409 `last-privileged-user` when no active privileged user would be left.
pub fn set_privileged(conn: &mut AnyConnection, id: DbUuid, privileged: bool) -> Result<(), Error> {
    let user = get(conn, id)?;
    if !privileged && user.privileged {
        let holders = hold_privileged(conn)?;
        if holders.iter().filter(|(_, state)| *state == ACTIVE).all(|(holder, _)| *holder == id) {
            return Err(Problem::new(codes::LAST_PRIVILEGED).into());
        }
    }
    diesel::update(users::table.find(id).filter(users::privileged.ne(privileged)))
        .set(users::privileged.eq(privileged))
        .execute(conn)?;
    Ok(())
}

/// Id and state of the privileged users, who stay as they are until the transaction ends. Two of them who take each
/// other's privilege meet here, in the same order.
fn hold_privileged(conn: &mut AnyConnection) -> Result<Vec<(DbUuid, i16)>, Error> {
    let query = users::table.select((users::id, users::state)).order(users::id);
    // Both have a partial index; each knows it only by its own words.
    Ok(match conn {
        AnyConnection::Postgresql(pg) => query.filter(users::privileged).for_update().load(pg)?,
        AnyConnection::Sqlite(sqlite) => query.filter(diesel::dsl::sql::<Bool>("privileged = 1")).load(sqlite)?,
    })
}

/// Makes the user of this name privileged, for the command line. Returns whether the user was not privileged before.
///
/// # Errors
/// 404 for an unknown name.
pub fn grant_privilege(conn: &mut AnyConnection, name: &str) -> Result<bool, Error> {
    let user = users::table.filter(users::name.eq(name));
    let found: Option<bool> = user.select(users::privileged).first(conn).optional()?;
    let was_privileged = found.ok_or_else(|| Problem::not_found("user"))?;
    diesel::update(user).set(users::privileged.eq(true)).execute(conn)?;
    Ok(!was_privileged)
}
