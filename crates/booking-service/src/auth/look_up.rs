//! Looks up the user of a credential in the database.

use club_sign_in::sessions::{ACTIVE, IDLE};
use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use diesel::{OptionalExtension, QueryDsl, RunQueryDsl, prelude::*};
use service_kit::{
    credentials,
    database::{
        AnyConnection, DataVersion,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{Author, By},
    with_connection,
};

use super::{
    api_token::ApiToken,
    caller::{Caller, Scope, TOKEN_PREFIX},
    credential::Credential,
};
use crate::{
    last_use::CredentialId,
    schema::{api_tokens, sessions, users},
};

/// Id, privilege and state of a user.
type User = (DbUuid, bool, i16);

/// Id, end, revocation and last use of a session.
type Session = (DbUuid, DbTimestamp, Option<DbTimestamp>, DbTimestamp);

/// Id, scope, end, revocation, last use and name of a token.
type Token = (DbUuid, Scope, Option<DbTimestamp>, Option<DbTimestamp>, Option<DbTimestamp>, String);

/// The active user of a credential, and the version of the database.
///
/// # Errors
/// 401 for an unknown, expired or revoked credential. 403 for an inactive account, even if the credential has expired
/// or been revoked.
pub fn authenticate(
    conn: &mut AnyConnection,
    credential: &Credential,
    now: Timestamp,
) -> Result<(Caller, String), Error> {
    let now = DbTimestamp(now);
    let unknown = || Problem::new(code::BAD_CREDENTIALS);
    let user = (users::id, users::privileged, users::state);
    let mut author = Author::new(By::Session, now);
    let (user, scope, credential, last_used_at, is_valid, data_version): (Option<User>, _, _, _, _, _) =
        match credential {
            Credential::Session(secret) => {
                let columns = (sessions::id, sessions::expires_at, sessions::revoked_at, sessions::last_used_at);
                let query = sessions::table
                    .inner_join(users::table)
                    .filter(sessions::token_hash.eq(credentials::hash(secret)))
                    .select((user, columns, DataVersion));
                let row: Option<(User, Session, String)> = with_connection!(conn, c => query.first(c)).optional()?;
                let (user, (session, expires, revoked, last_used), data_version) = row.ok_or_else(unknown)?;
                let is_valid = revoked.is_none() && now < expires && *now < last_used.plus(IDLE);
                (Some(user), Scope::Write, CredentialId::Session(session), Some(last_used), is_valid, data_version)
            }
            Credential::Bearer(text) => {
                let token = ApiToken::parse(TOKEN_PREFIX, text).ok_or_else(unknown)?;
                let columns = (
                    api_tokens::id,
                    api_tokens::scope,
                    api_tokens::expires_at,
                    api_tokens::revoked_at,
                    api_tokens::last_used_at,
                    api_tokens::name,
                );
                let query = api_tokens::table
                    .left_join(users::table)
                    .filter(api_tokens::token_hash.eq(token.hash()))
                    .select((user.nullable(), columns, DataVersion));
                let row: Option<(Option<User>, Token, String)> =
                    with_connection!(conn, c => query.first(c)).optional()?;
                let (user, (token, scope, expires, revoked, last_used, name), data_version) =
                    row.ok_or_else(unknown)?;
                let is_valid = revoked.is_none() && expires.is_none_or(|expires| now < expires);
                (author.by, author.token) = (By::Token, Some(name.into()));
                (user, scope, CredentialId::Token(token), last_used, is_valid, data_version)
            }
        };
    author.actor = user.map(|(id, ..)| id);
    // A token of the club has no user, and acts as one who is in no group and has nothing.
    let (id, privileged, state) = user.unwrap_or((DbUuid::nil(), false, ACTIVE));
    if state != ACTIVE {
        return Err(Problem::new(code::ACCOUNT_INACTIVE).into());
    }
    if !is_valid {
        return Err(unknown().into());
    }
    Ok((Caller { id, privileged, credential, scope, last_used_at, author }, data_version))
}
