//! Sessions and finished sign-ins in the database.

use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use diesel::{
    dsl::{exists, select},
    prelude::*,
    result::{DatabaseErrorKind, Error as DieselError},
};
use service_kit::{
    credentials,
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{Author, By},
};

use super::{
    failure::bad_login,
    identities,
    pending::{MAX_AGE, PendingSignIn, SESSION},
    provider::exchange::Principal,
};
use crate::{
    auth::{IDLE, stay_active},
    codes,
    config::SignInPolicy,
    schema::{sessions, spent_logins},
    users::queries::{record_privilege, set_privileged},
};

/// The most rows of a table that [`delete_expired`] deletes at once.
const STEP: i64 = 500;

/// Finishes a sign-in, once: creates the session with this secret and ends the browser's previous one. Returns the
/// user.
///
/// # Errors
/// 400 `bad-login` when it has been finished already; 403 when the user is not active, or as in
/// [`identities::user_of`].
pub fn finish(
    conn: &mut AnyConnection,
    login: &PendingSignIn,
    principal: &Principal,
    policy: SignInPolicy,
    secret: &str,
    now: Timestamp,
) -> Result<DbUuid, Error> {
    let inserted = diesel::insert_into(spent_logins::table)
        .values((
            spent_logins::state_hash.eq(credentials::hash(&login.state)),
            // Not before the pending sign-in expires.
            spent_logins::expires_at.eq(DbTimestamp(now.plus(MAX_AGE))),
        ))
        .execute(conn);
    match inserted {
        Err(DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => return Err(bad_login().into()),
        other => other?,
    };
    let user = match principal {
        Principal::User(user) => *user,
        Principal::Identity(identity) => {
            let user = identities::user_of(conn, identity, policy, now)?;
            if let Some(is_privileged) = identity.is_privileged {
                follow_provider(conn, user, is_privileged, DbTimestamp(now))?;
            }
            user
        }
    };
    stay_active(conn, user)?;
    if let Some(previous) = &login.previous {
        end(conn, previous, now)?;
    }
    diesel::insert_into(sessions::table)
        .values((
            sessions::id.eq(DbUuid::new()),
            sessions::token_hash.eq(credentials::hash(secret)),
            sessions::user_id.eq(user),
            sessions::created_at.eq(DbTimestamp(now)),
            sessions::last_used_at.eq(DbTimestamp(now)),
            sessions::expires_at.eq(DbTimestamp(now.plus(SESSION))),
        ))
        .execute(conn)?;
    Ok(user)
}

/// Grants or revokes the privilege as the provider says. The last privileged user keeps it.
fn follow_provider(conn: &mut AnyConnection, user: DbUuid, is_privileged: bool, now: DbTimestamp) -> Result<(), Error> {
    match set_privileged(conn, user, is_privileged) {
        Ok(true) => {
            let by = Author { actor: Some(user), ..Author::new(By::Session, now) };
            record_privilege(conn, user, is_privileged, &by)
        }
        Err(Error::Problem(problem)) if problem.code() == codes::LAST_PRIVILEGED => {
            log::warn!(
                "the user {user} stays privileged, as the last one, although the sign-in provider says otherwise"
            );
            Ok(())
        }
        other => other.map(|_| ()),
    }
}

/// Whether the sign-in with this state has been finished. The record is deleted once the sign-in would have expired.
pub fn is_finished(conn: &mut AnyConnection, state: &str) -> Result<bool, Error> {
    let row = spent_logins::table.find(credentials::hash(state));
    Ok(select(exists(row)).get_result(conn)?)
}

/// Ends the session whose secret has this hash, if there is one.
pub fn end(conn: &mut AnyConnection, hash: &[u8], now: Timestamp) -> Result<(), Error> {
    diesel::update(sessions::table.filter(sessions::token_hash.eq(hash)).filter(sessions::revoked_at.is_null()))
        .set(sessions::revoked_at.eq(DbTimestamp(now)))
        .execute(conn)?;
    Ok(())
}

/// A session as listed.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = sessions)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct SessionRow {
    pub id: DbUuid,
    pub created_at: DbTimestamp,
    pub last_used_at: DbTimestamp,
    pub expires_at: DbTimestamp,
}

/// The sessions of a user that have not ended, the newest first, then by id.
pub fn sessions_of(conn: &mut AnyConnection, user: DbUuid, now: Timestamp) -> Result<Vec<SessionRow>, Error> {
    let live = sessions::table
        .filter(sessions::user_id.eq(user))
        .filter(sessions::revoked_at.is_null())
        .filter(sessions::expires_at.gt(DbTimestamp(now)))
        .filter(sessions::last_used_at.gt(DbTimestamp(now.plus(-IDLE))));
    let query = live.order((sessions::created_at.desc(), sessions::id));
    Ok(query.select(SessionRow::as_select()).load(conn)?)
}

/// Ends a session of this user.
///
/// # Errors
/// 404 when the user has no such session, or it has ended.
pub fn end_of(conn: &mut AnyConnection, user: DbUuid, id: DbUuid, now: Timestamp) -> Result<(), Error> {
    let live = sessions::table
        .filter(sessions::id.eq(id))
        .filter(sessions::user_id.eq(user))
        .filter(sessions::revoked_at.is_null())
        .filter(sessions::expires_at.gt(DbTimestamp(now)))
        .filter(sessions::last_used_at.gt(DbTimestamp(now.plus(-IDLE))));
    match diesel::update(live).set(sessions::revoked_at.eq(DbTimestamp(now))).execute(conn)? {
        0 => Err(Problem::new(code::NOT_FOUND).detail("There is no such session.").into()),
        _ => Ok(()),
    }
}

/// Deletes sessions and finished sign-ins that have expired, [`STEP`] of each at most, the oldest first. One call for
/// each sign-in is enough, because a sign-in adds one row to each table. Returns the number of deleted rows.
pub fn delete_expired(conn: &mut AnyConnection, now: Timestamp) -> Result<usize, Error> {
    let now = DbTimestamp(now);
    let old: Vec<DbUuid> = sessions::table
        .filter(sessions::expires_at.le(now))
        .order(sessions::expires_at)
        .select(sessions::id)
        .limit(STEP)
        .load(conn)?;
    let old_sessions = diesel::delete(sessions::table.filter(sessions::id.eq_any(old))).execute(conn)?;
    let old: Vec<Vec<u8>> = spent_logins::table
        .filter(spent_logins::expires_at.le(now))
        .order(spent_logins::expires_at)
        .select(spent_logins::state_hash)
        .limit(STEP)
        .load(conn)?;
    let old_logins = diesel::delete(spent_logins::table.filter(spent_logins::state_hash.eq_any(old))).execute(conn)?;
    Ok(old_sessions + old_logins)
}
