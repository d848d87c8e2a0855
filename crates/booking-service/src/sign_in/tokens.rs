//! API tokens in the database, for the operations and for the command line.

use common::{
    input::Text,
    problem::{Problem, Rule, code},
    time::Timestamp,
};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};
use uuid::Uuid;

use crate::{
    auth::{ApiToken, Scope, TOKEN_PREFIX, stay_active},
    codes,
    schema::{api_tokens, users},
    users::queries::no_user_called,
};

/// What a token is for, in the owner's words.
pub type TokenName = Text<1, 64>;

/// The most tokens of a user that have neither expired nor been revoked.
const MAX_TOKENS: i64 = 50;

/// A token as listed. The token itself is not stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = api_tokens)]
pub struct TokenRow {
    pub id: DbUuid,
    #[diesel(select_expression = users::name.nullable())]
    pub user_name: Option<String>,
    pub name: String,
    pub scope: Scope,
    pub created_at: DbTimestamp,
    pub expires_at: Option<DbTimestamp>,
    pub last_used_at: Option<DbTimestamp>,
}

/// The properties of a new token.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// What it is for.
    pub name: String,
    /// What it allows.
    pub scope: Scope,
    /// When it expires, if ever.
    pub expires_at: Option<Timestamp>,
}

/// Creates a token for the user with this sign-in name, or one of the club, which can only read.
///
/// # Errors
/// 404 when there is none, 403 when the user is not active, 400 for a name of the token that cannot be used, and for a
/// token of the club that could write; those of [`issue`].
pub fn create(
    conn: &mut AnyConnection,
    user_name: Option<&str>,
    name: &str,
    scope: Scope,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<ApiToken, Error> {
    let name = TokenName::new(name.to_owned())
        .map_err(|(code, message)| Problem::invalid("/name", code, message))?
        .into_inner();
    let user = user_name.map(|name| user_called(conn, name)).transpose()?;
    match user {
        Some(user) => stay_active(conn, user)?,
        None if scope == Scope::Read => {}
        None => return Err(Problem::invalid("/scope", Rule::NotAllowed, "must be read without a user").into()),
    }
    Ok(issue(conn, user, &NewToken { name, scope, expires_at }, now)?.1)
}

fn user_called(conn: &mut AnyConnection, name: &str) -> Result<DbUuid, Error> {
    let user: Option<DbUuid> = users::table.filter(users::name.eq(name)).select(users::id).first(conn).optional()?;
    user.ok_or_else(|| no_user_called(name).into())
}

/// Creates a token for a user or the club, and returns its id and the token. The caller locks the user ([`stay_active`]), so that
/// two transactions do not exceed the limit together.
///
/// # Errors
/// 400 when it would have expired already; 409 when there are too many of the user or the club.
pub fn issue(
    conn: &mut AnyConnection,
    user: Option<DbUuid>,
    new: &NewToken,
    now: Timestamp,
) -> Result<(DbUuid, ApiToken), Error> {
    if new.expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Err(Problem::invalid("/expiresAt", Rule::InThePast, "must be in the future").into());
    }
    let is_live = api_tokens::expires_at.is_null().or(api_tokens::expires_at.gt(DbTimestamp(now)).assume_not_null());
    let live = api_tokens::table.filter(api_tokens::revoked_at.is_null()).filter(is_live).count().into_boxed();
    let live = match user {
        Some(user) => live.filter(api_tokens::user_id.eq(user)),
        None => live.filter(api_tokens::user_id.is_null()),
    };
    if live.get_result::<i64>(conn)? >= MAX_TOKENS {
        return Err(Problem::new(codes::TOO_MANY_TOKENS).into());
    }
    let (id, token) = (DbUuid::new(), ApiToken::generate(TOKEN_PREFIX)?);
    diesel::insert_into(api_tokens::table)
        .values((
            api_tokens::id.eq(id),
            api_tokens::token_hash.eq(token.hash()),
            api_tokens::user_id.eq(user),
            api_tokens::name.eq(&new.name),
            api_tokens::scope.eq(new.scope),
            api_tokens::created_at.eq(DbTimestamp(now)),
            api_tokens::expires_at.eq(new.expires_at.map(DbTimestamp)),
        ))
        .execute(conn)?;
    Ok((id, token))
}

/// The tokens that have not been revoked, of the user with this sign-in name or of all, the oldest first.
pub fn list(conn: &mut AnyConnection, user: Option<&str>) -> Result<Vec<TokenRow>, Error> {
    let owner = user.map(|name| user_called(conn, name)).transpose()?;
    let mut query = api_tokens::table
        .left_join(users::table)
        .filter(api_tokens::revoked_at.is_null())
        .order((api_tokens::created_at, api_tokens::id))
        .select(TokenRow::as_select())
        .into_boxed();
    if let Some(owner) = owner {
        query = query.filter(api_tokens::user_id.eq(owner));
    }
    Ok(query.load(conn)?)
}

/// The tokens of a user that have not been revoked, the oldest first.
pub fn of_user(conn: &mut AnyConnection, user: DbUuid) -> Result<Vec<TokenRow>, Error> {
    let query = api_tokens::table
        .left_join(users::table)
        .filter(api_tokens::user_id.eq(user))
        .filter(api_tokens::revoked_at.is_null())
        .order((api_tokens::created_at, api_tokens::id));
    Ok(query.select(TokenRow::as_select()).load(conn)?)
}

/// Revokes a token of any user.
///
/// # Errors
/// 404 when there is none that has not been revoked.
pub fn revoke(conn: &mut AnyConnection, id: Uuid, now: Timestamp) -> Result<(), Error> {
    revoked(
        diesel::update(api_tokens::table.find(DbUuid(id)).filter(api_tokens::revoked_at.is_null()))
            .set(api_tokens::revoked_at.eq(DbTimestamp(now)))
            .execute(conn)?,
    )
}

/// Revokes a token of this user.
///
/// # Errors
/// 404 when the user has no such token, or it has been revoked.
pub fn revoke_of(conn: &mut AnyConnection, user: DbUuid, id: DbUuid, now: Timestamp) -> Result<(), Error> {
    let token = api_tokens::table
        .filter(api_tokens::id.eq(id))
        .filter(api_tokens::user_id.eq(user))
        .filter(api_tokens::revoked_at.is_null());
    revoked(diesel::update(token).set(api_tokens::revoked_at.eq(DbTimestamp(now))).execute(conn)?)
}

fn revoked(tokens: usize) -> Result<(), Error> {
    match tokens {
        0 => Err(Problem::new(code::NOT_FOUND).detail("There is no such token.").into()),
        _ => Ok(()),
    }
}
