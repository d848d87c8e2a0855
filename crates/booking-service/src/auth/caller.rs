//! The signed-in user behind a request.

use actix_web::{HttpRequest, http::header};
use chrono::TimeDelta;
use common::problem::Problem;
use service_kit::{
    database::types::{DbTimestamp, DbUuid},
    error::Error,
    guard, text_enum,
};
use url::form_urlencoded;
use uuid::Uuid;

use crate::last_use::CredentialId;

/// Name of the session cookie. Clients know it.
pub const SESSION_COOKIE: &str = "session";

/// The beginning of the cookie's value while it holds a pending sign-in. A session has no dot.
pub const PENDING_MARK: &str = "login.";

/// The beginning of every API token, for secret scanners.
pub const TOKEN_PREFIX: &str = "clubbooking";

/// A session ends when it has not been used for this long. As uses are recorded once an hour
/// ([`GRAIN`](crate::last_use::GRAIN)), it may end an hour early.
pub const IDLE: TimeDelta = TimeDelta::days(14);

/// `users.state` of an active user.
pub const ACTIVE: i16 = 1;

text_enum! {
    /// What a credential allows.
    pub enum Scope {
        /// Reading only.
        Read = "read",
        /// Reading and writing.
        Write = "write",
        /// The board and nothing else.
        Board = "board",
    }
}

/// The signed-in, active user behind a request.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// Their id.
    pub id: DbUuid,
    /// Whether they may do everything.
    pub privileged: bool,
    /// The session or token of the request.
    pub credential: CredentialId,
    /// What that allows.
    pub scope: Scope,
    pub(super) last_used_at: Option<DbTimestamp>,
}

impl guard::Caller for Caller {
    fn user(&self) -> Option<Uuid> {
        Some(self.id.0)
    }

    fn view(&self) -> String {
        format!("{} {} {:?}", self.id, self.privileged, self.credential)
    }

    /// An answer to a session is not sent again to a token of the same user: it may hold a new token.
    fn idempotency_scope(&self) -> String {
        format!("{} {}", self.id, matches!(self.credential, CredentialId::Session(_)))
    }
}

impl Caller {
    /// The session of the request.
    ///
    /// # Errors
    /// 403 `forbidden` for a token.
    pub fn need_session(&self) -> Result<DbUuid, Error> {
        match self.credential {
            CredentialId::Session(id) => Ok(id),
            CredentialId::Token(_) => Err(Problem::forbidden("a session of your own, not a token").into()),
        }
    }
}

/// Whether the request has a session cookie, good or bad, and not only a pending sign-in.
#[must_use]
pub fn holds_session(req: &HttpRequest) -> bool {
    req.cookie(SESSION_COOKIE)
        .is_some_and(|cookie| !cookie.value().is_empty() && !cookie.value().starts_with(PENDING_MARK))
}

/// The token in the address of the board. A browser that only shows a page can send it in no other way.
#[must_use]
pub fn kiosk_token(req: &HttpRequest) -> Option<String> {
    let mut query = form_urlencoded::parse(req.query_string().as_bytes()).filter(|_| req.path() == "/board");
    query.find_map(|(name, value)| (name == "kiosk" && !value.is_empty()).then(|| value.into_owned()))
}

/// Whether the request has a credential, good or bad. A pending sign-in is none.
#[must_use]
pub fn has_credential(req: &HttpRequest) -> bool {
    req.headers().contains_key(header::AUTHORIZATION) || holds_session(req) || kiosk_token(req).is_some()
}
