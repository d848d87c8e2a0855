//! What sign-in and tokens look like on the wire.

use chrono_tz::Tz;
use club_sign_in::sessions::SessionRow;
use common::{
    problem::Violations,
    time::{Timestamp, Zoned},
};
use deserr::Deserr;
use serde::Serialize;
use service_kit::database::types::{DbTimestamp, DbUuid};
use utoipa::ToSchema;

use super::tokens::{NewToken, TokenName, TokenRow};
use crate::auth::{ApiToken, Scope};

/// How to continue a sign-in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = authParams, example = json!({"url": "http://127.0.0.1:3000/dev/sign-in?state=…&nonce=…"}))]
pub struct AuthParams {
    /// Where to send the browser.
    pub url: String,
}

/// A new API token.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({
    "name": "calendar bot", "scope": "read", "expiresAt": "2027-04-01T00:00:00+09:00"
}))]
pub struct RequestToken {
    #[schema(inline)]
    name: TokenName,
    /// `read`: reading; `write`: reading and writing; `board`: the board and nothing else.
    #[schema(value_type = Scope)]
    scope: RequestScope,
    /// When it expires, in the future; without this it does not.
    #[deserr(default)]
    expires_at: Option<Timestamp>,
}

#[derive(Debug, Deserr)]
#[deserr(error = Violations, rename_all = camelCase)]
enum RequestScope {
    Read,
    Write,
    Board,
}

impl From<RequestToken> for NewToken {
    fn from(request: RequestToken) -> Self {
        let scope = match request.scope {
            RequestScope::Read => Scope::Read,
            RequestScope::Write => Scope::Write,
            RequestScope::Board => Scope::Board,
        };
        Self { name: request.name.into_inner(), scope, expires_at: request.expires_at }
    }
}

/// A token as listed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "tokenId": "0198c0de-0000-7000-8000-000000000001", "name": "calendar bot", "scope": "read",
    "createdAt": "2026-04-01T18:00:00+09:00", "expiresAt": "2027-04-01T00:00:00+09:00",
    "lastUsedAt": "2026-04-02T09:30:00+09:00"
}))]
pub struct ResponseToken {
    token_id: DbUuid,
    name: String,
    /// `read`: reading; `write`: reading and writing; `board`: the board and nothing else.
    scope: Scope,
    created_at: Zoned,
    /// When it expires; left out when it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_at: Option<Zoned>,
    /// Updated at most once an hour; left out when it has not been used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_used_at: Option<Zoned>,
}

impl ResponseToken {
    /// A token with times in `zone`.
    pub fn new(row: TokenRow, zone: Tz) -> Self {
        Self {
            token_id: row.id,
            name: row.name,
            scope: row.scope,
            created_at: row.created_at.in_zone(zone),
            expires_at: row.expires_at.map(|at| at.in_zone(zone)),
            last_used_at: row.last_used_at.map(|at| at.in_zone(zone)),
        }
    }
}

/// A new API token, with its secret.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "tokenId": "0198c0de-0000-7000-8000-000000000001", "name": "calendar bot", "scope": "read",
    "createdAt": "2026-04-01T18:00:00+09:00", "expiresAt": "2027-04-01T00:00:00+09:00",
    "token": "clubbooking_…_…"
}))]
pub struct CreatedToken {
    token_id: DbUuid,
    name: String,
    /// `read`: reading; `write`: reading and writing; `board`: the board and nothing else.
    scope: Scope,
    created_at: Zoned,
    /// When it expires; left out when it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_at: Option<Zoned>,
    /// For `Authorization: Bearer`. It is not shown again.
    token: String,
}

impl CreatedToken {
    /// A token made now, with times in `zone`.
    pub fn new(id: DbUuid, new: &NewToken, token: &ApiToken, now: Timestamp, zone: Tz) -> Self {
        Self {
            token_id: id,
            name: new.name.clone(),
            scope: new.scope,
            created_at: DbTimestamp(now).in_zone(zone),
            expires_at: new.expires_at.map(|at| at.in_zone(zone)),
            token: token.reveal().to_owned(),
        }
    }
}

/// A session as listed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "sessionId": "0198c0de-0000-7000-8000-000000000001", "createdAt": "2026-04-01T18:00:00+09:00",
    "lastUsedAt": "2026-04-02T09:30:00+09:00", "expiresAt": "2026-05-01T18:00:00+09:00", "current": true
}))]
pub struct ResponseSession {
    session_id: DbUuid,
    created_at: Zoned,
    /// Updated at most once an hour.
    last_used_at: Zoned,
    /// When it ends at the latest; it ends before that when it has not been used for 14 days.
    expires_at: Zoned,
    /// Whether it is the session of this request.
    current: bool,
}

impl ResponseSession {
    /// A session with times in `zone`.
    pub fn new(row: &SessionRow, current: DbUuid, zone: Tz) -> Self {
        Self {
            session_id: row.id,
            created_at: row.created_at.in_zone(zone),
            last_used_at: row.last_used_at.in_zone(zone),
            expires_at: row.expires_at.in_zone(zone),
            current: row.id == current,
        }
    }
}
