//! Users in the database.

use std::collections::{BTreeSet, HashSet};

use common::{
    input::IdSet,
    problem::{Problem, Rule, Violations, code},
};
use diesel::{OptionalExtension, prelude::*, sql_types::Bool};
use serde_json::json;
use service_kit::{
    after,
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{self, Action, Author, By, Changes, Entry},
    with_connection,
};

use crate::{
    auth::{ACTIVE, stay_active},
    codes,
    objects::USER,
    schema::users,
};

/// A user as listed.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = users)]
pub struct User {
    pub id: DbUuid,
    pub name: String,
    pub display_name: String,
    pub icon: String,
    pub privileged: bool,
    pub state: i16,
}

/// All users by name, or the active ones only.
pub fn list(
    conn: &mut AnyConnection,
    include_suspended: bool,
    bounds: &PageBounds<(String, DbUuid)>,
) -> Result<Vec<User>, Error> {
    let mut query = users::table.select(User::as_select()).order((users::name, users::id)).into_boxed();
    if !include_suspended {
        query = query.filter(users::state.eq(ACTIVE));
    }
    if let Some((name, id)) = &bounds.after {
        query = after!(query, users::name; > name, users::id; > *id);
    }
    Ok(query.limit(bounds.rows).load(conn)?)
}

/// One user.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<User, Error> {
    let user = users::table.find(id).select(User::as_select()).first(conn).optional()?;
    user.ok_or_else(|| Problem::not_found("user").into())
}

/// The ids of all active users, in order: the members of the everyone group.
pub fn active_ids(conn: &mut AnyConnection) -> Result<Vec<DbUuid>, Error> {
    let active = users::table.filter(users::state.eq(ACTIVE)).select(users::id).order(users::id);
    Ok(with_connection!(conn, c => active.load(c))?)
}

/// Adds a violation for each id of a request's list that is not the id of a user (contract, "Identifiers"). `pointer`
/// is that of the list, such as `/admins`; the violations are at `/admins/3` and so on.
pub fn note_unknown<const MIN: usize>(
    conn: &mut AnyConnection,
    pointer: &str,
    set: &IdSet<MIN>,
    violations: &mut Violations,
) -> Result<(), Error> {
    let (indices, ids): (Vec<_>, Vec<_>) = set.iter().map(|(index, id)| (index, DbUuid(id))).unzip();
    for index in unknown_indexes(conn, &ids)? {
        violations.push(format!("{pointer}/{}", indices[index]), Rule::UnknownUser, "names no user");
    }
    Ok(())
}

/// Adds a violation for each administrator of a request that is not a user, or one if none of them is active: nobody
/// could administer. The administrators that the object has already, `present`, may have left.
pub fn note_unfit_admins(
    conn: &mut AnyConnection,
    admins: &IdSet<1>,
    present: &[DbUuid],
    violations: &mut Violations,
) -> Result<(), Error> {
    let before = violations.0.len();
    note_unknown(conn, "/admins", admins, violations)?;
    let ids: BTreeSet<_> = admins.iter().map(|(_, id)| DbUuid(id)).collect();
    if violations.0.len() == before
        && !present.iter().copied().collect::<BTreeSet<_>>().eq(&ids)
        && !any_active(conn, &Vec::from_iter(ids))?
    {
        violations.push("/admins", Rule::InactiveUser, "must have a user who is active");
    }
    Ok(())
}

/// Whether one of these users is active.
pub fn any_active(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<bool, Error> {
    for ids in ids.chunks(1000) {
        let active = users::table.filter(users::id.eq_any(ids)).filter(users::state.eq(ACTIVE));
        if active.select(users::id).first::<DbUuid>(conn).optional()?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The indexes in `ids` of those that are not the id of a user.
pub fn unknown_indexes(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<Vec<usize>, Error> {
    let mut existing = HashSet::new();
    for ids in ids.chunks(1000) {
        existing.extend(users::table.filter(users::id.eq_any(ids)).select(users::id).load::<DbUuid>(conn)?);
    }
    Ok(ids.iter().enumerate().filter(|(_, id)| !existing.contains(id)).map(|(index, _)| index).collect())
}

/// Grants a user the privilege or revokes it (contract, `PATCH /users/{userID}/privileged`). Returns whether that is a
/// change.
///
/// # Errors
/// 404 for an unknown user; 409 `last-privileged-user` when no active privileged user would be left.
pub fn set_privileged(conn: &mut AnyConnection, id: DbUuid, privileged: bool) -> Result<bool, Error> {
    let user = get(conn, id)?;
    if !privileged && user.privileged {
        let holders = lock_privileged(conn)?;
        if holders.iter().filter(|(_, state)| *state == ACTIVE).all(|(holder, _)| *holder == id) {
            return Err(Problem::new(codes::LAST_PRIVILEGED).into());
        }
    }
    let other = users::table.find(id).filter(users::privileged.ne(privileged));
    Ok(diesel::update(other).set(users::privileged.eq(privileged)).execute(conn)? > 0)
}

/// Records a change of the privilege that no operation made.
pub fn record_privilege(conn: &mut AnyConnection, id: DbUuid, privileged: bool, by: &Author) -> Result<(), Error> {
    let changes = Changes::from_iter([("privileged".to_owned(), json!([!privileged, privileged]))]);
    history::record(conn, by, &[Entry { kind: &USER, object: id, action: Action::Changed, changes }])
}

/// Locks the privileged users until the end of the transaction and returns their ids and states. Of two users who
/// revoke each other's privilege at the same time, one waits here. The order of the locks prevents a deadlock.
fn lock_privileged(conn: &mut AnyConnection) -> Result<Vec<(DbUuid, i16)>, Error> {
    let query = users::table.select((users::id, users::state)).order(users::id);
    // Each database uses its partial index only if the condition is written as in the index.
    Ok(match conn {
        AnyConnection::Postgresql(pg) => query.filter(users::privileged).for_update().load(pg)?,
        AnyConnection::Sqlite(sqlite) => query.filter(diesel::dsl::sql::<Bool>("privileged = 1")).load(sqlite)?,
    })
}

/// The problem of a command that names an unknown user.
pub fn no_user_called(name: &str) -> Problem {
    Problem::new(code::NOT_FOUND).detail(format!("There is no user {name:?}."))
}

/// Grants the privilege to the user with this name, for the command line. Returns whether the user did not have it.
///
/// # Errors
/// 404 for an unknown name; 403 for an inactive account.
pub fn grant_privilege(conn: &mut AnyConnection, name: &str, now: DbTimestamp) -> Result<bool, Error> {
    let user = users::table.filter(users::name.eq(name));
    let row: Option<(DbUuid, bool)> = user.select((users::id, users::privileged)).first(conn).optional()?;
    let (id, was_privileged) = row.ok_or_else(|| no_user_called(name))?;
    stay_active(conn, id)?;
    if !was_privileged {
        diesel::update(user).set(users::privileged.eq(true)).execute(conn)?;
        record_privilege(conn, id, true, &Author::new(By::Command, now))?;
    }
    Ok(!was_privileged)
}
