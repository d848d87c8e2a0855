//! Sessions and finished sign-ins in the database.

use chrono::TimeDelta;
use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use diesel::{
    OptionalExtension,
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
};

use crate::{
    SignInPolicy, codes,
    failure::bad_login,
    identities::{self, Identity, Users},
    pending::{MAX_AGE, PendingSignIn, SESSION},
    provider::exchange::Principal,
    schema::{sessions, spent_logins, users},
};

/// `users.state` of an active user.
pub const ACTIVE: i16 = 1;

/// A session expires after this long without use, where uses are recorded: at most once an hour, so it may expire up to
/// an hour early.
pub const IDLE: TimeDelta = TimeDelta::days(14);

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
    service: &Users,
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
            let user = user_of(conn, login, identity, policy, service, now)?;
            if let Some(is_privileged) = identity.is_privileged {
                (service.set_privileged)(conn, user, is_privileged, DbTimestamp(now))?;
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

/// The user of an identity, who may be invited.
fn user_of(
    conn: &mut AnyConnection,
    login: &PendingSignIn,
    identity: &Identity,
    policy: SignInPolicy,
    service: &Users,
    now: Timestamp,
) -> Result<DbUuid, Error> {
    let invitation = match &login.invitation {
        Some(secret) => (service.invitation)(conn, secret, DbTimestamp(now))?,
        None => None,
    };
    let result = identities::user_of(conn, identity, policy, service, now);
    let Some(invitation) = invitation else { return result };
    // Nothing was written before this refusal.
    let is_stranger = matches!(&result, Err(Error::Problem(problem)) if problem.code() == codes::NOT_A_MEMBER);
    let user = if is_stranger {
        let invited = Identity { is_invited: true, ..identity.clone() };
        identities::user_of(conn, &invited, policy, service, now)?
    } else {
        result?
    };
    if is_stranger || invitation.is_privileged {
        (service.accept)(conn, invitation, user, DbTimestamp(now))?;
    }
    Ok(user)
}

/// Locks an active user until the end of the transaction. A concurrent suspension waits for it, and then also revokes
/// what this transaction created for the user.
///
/// # Errors
/// 403 for an inactive account.
pub fn stay_active(conn: &mut AnyConnection, user: DbUuid) -> Result<(), Error> {
    let state = users::table.find(user).select(users::state);
    let state: Option<i16> = match conn {
        AnyConnection::Postgresql(pg) => state.for_no_key_update().first(pg).optional()?,
        // The transaction is the only writer.
        AnyConnection::Sqlite(sqlite) => state.first(sqlite).optional()?,
    };
    if state == Some(ACTIVE) { Ok(()) } else { Err(Problem::new(code::ACCOUNT_INACTIVE).into()) }
}

/// The active user of the session with this secret, if it has not ended.
pub fn owner(conn: &mut AnyConnection, secret: &str, now: Timestamp) -> Result<Option<DbUuid>, Error> {
    let live = sessions::table
        .filter(sessions::token_hash.eq(credentials::hash(secret)))
        .filter(sessions::revoked_at.is_null())
        .filter(sessions::expires_at.gt(DbTimestamp(now)))
        .filter(sessions::last_used_at.gt(DbTimestamp(now.plus(-IDLE))));
    let user: Option<DbUuid> = live.select(sessions::user_id).first(conn).optional()?;
    let Some(user) = user else { return Ok(None) };
    let state: Option<i16> = users::table.find(user).select(users::state).first(conn).optional()?;
    Ok(Some(user).filter(|_| state == Some(ACTIVE)))
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

/// Ends all sessions of these users.
pub fn end_all_of(conn: &mut AnyConnection, users: &[DbUuid], now: DbTimestamp) -> Result<(), Error> {
    let live = sessions::table.filter(sessions::user_id.eq_any(users)).filter(sessions::revoked_at.is_null());
    diesel::update(live).set(sessions::revoked_at.eq(now)).execute(conn)?;
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
