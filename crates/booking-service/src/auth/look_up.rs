//! The user behind a credential, in the database.

use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use diesel::{OptionalExtension, QueryDsl, RunQueryDsl, prelude::*};
use service_kit::{
    credentials::{self, ApiToken},
    database::{
        AnyConnection, State,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    http::credential::Credential,
    with_connection,
};

use super::{ACTIVE, Caller, IDLE, Scope, TOKEN_PREFIX};
use crate::{
    last_use::Used,
    schema::{api_tokens, sessions, users},
};

/// Id, privilege and state of a user.
type User = (DbUuid, bool, i16);

/// Id, end, revocation and last use of a session.
type Session = (DbUuid, DbTimestamp, Option<DbTimestamp>, DbTimestamp);

/// Id, scope, end, revocation and last use of a token.
type Token = (DbUuid, Scope, Option<DbTimestamp>, Option<DbTimestamp>, Option<DbTimestamp>);

/// The active user behind a credential; when that was last used as far as noted; and what stands for the state of the
/// database, which is read along with them.
///
/// # Errors
/// 401 for a credential that is none, has ended or was revoked; 403 for an account that is not active.
pub fn authenticate(
    conn: &mut AnyConnection,
    credential: &Credential,
    now: Timestamp,
) -> Result<(Caller, Option<DbTimestamp>, String), Error> {
    let now = DbTimestamp(now);
    let unknown = || Problem::new(code::BAD_CREDENTIALS);
    let user = (users::id, users::privileged, users::state);
    let ((id, privileged, state), scope, means, before, alive, all): (User, _, _, _, _, _) = match credential {
        Credential::Session(secret) => {
            let columns = (sessions::id, sessions::expires_at, sessions::revoked_at, sessions::last_used_at);
            let query = sessions::table
                .inner_join(users::table)
                .filter(sessions::token_hash.eq(credentials::hash(secret)))
                .select((user, columns, State));
            let found: Option<(User, Session, String)> = with_connection!(conn, c => query.first(c)).optional()?;
            let (user, (session, expires, revoked, before), all) = found.ok_or_else(unknown)?;
            let alive = revoked.is_none() && now < expires && *now < before.plus(IDLE);
            (user, Scope::Write, Used::Session(session), Some(before), alive, all)
        }
        Credential::Bearer(text) => {
            let token = ApiToken::parse(TOKEN_PREFIX, text).ok_or_else(unknown)?;
            let columns = (
                api_tokens::id,
                api_tokens::scope,
                api_tokens::expires_at,
                api_tokens::revoked_at,
                api_tokens::last_used_at,
            );
            let query = api_tokens::table
                .inner_join(users::table)
                .filter(api_tokens::token_hash.eq(token.hash()))
                .select((user, columns, State));
            let found: Option<(User, Token, String)> = with_connection!(conn, c => query.first(c)).optional()?;
            let (user, (token, scope, expires, revoked, before), all) = found.ok_or_else(unknown)?;
            let alive = revoked.is_none() && expires.is_none_or(|expires| now < expires);
            (user, scope, Used::Token(token), before, alive, all)
        }
    };
    if state != ACTIVE {
        return Err(Problem::new(code::ACCOUNT_INACTIVE).into());
    }
    if !alive {
        return Err(unknown().into());
    }
    Ok((Caller { id, privileged, means, scope }, before, all))
}

/// Holds a user who is active to it until the transaction ends: a suspension of theirs waits, and then also ends what
/// was made for them in here. [`SignedIn`](super::SignedIn) alone does not make it wait.
///
/// # Errors
/// 403 for an account that is not active, perhaps since a moment ago.
pub fn stay_active(conn: &mut AnyConnection, user: DbUuid) -> Result<(), Error> {
    let state = users::table.find(user).select(users::state);
    let state: Option<i16> = match conn {
        AnyConnection::Postgresql(pg) => state.for_no_key_update().first(pg).optional()?,
        // Nobody else writes meanwhile.
        AnyConnection::Sqlite(sqlite) => state.first(sqlite).optional()?,
    };
    if state == Some(ACTIVE) { Ok(()) } else { Err(Problem::new(code::ACCOUNT_INACTIVE).into()) }
}
