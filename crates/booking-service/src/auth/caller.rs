//! The signed-in user behind a request.

use actix_web::{HttpRequest, cookie::Cookie, http::header};
use chrono::TimeDelta;
use common::problem::Problem;
use service_kit::{
    database::types::{DbTimestamp, DbUuid},
    error::Error,
    guard,
    history::Author,
    text_enum,
};
use url::form_urlencoded;
use uuid::Uuid;

use crate::last_use::CredentialId;

/// Name of the session cookie. Clients depend on it (contract, "Sign-in").
pub const SESSION_COOKIE: &str = "session";

/// Prefix of the cookie's value while it contains a pending sign-in. A session's value has no dot.
pub const PENDING_MARK: &str = "login.";

/// Prefix of every API token, for secret scanners.
pub const TOKEN_PREFIX: &str = "clubbooking";

/// A session expires after this long without use. Uses are recorded at most once an hour
/// ([`MIN_INTERVAL`](crate::last_use::MIN_INTERVAL)), so a session may expire up to an hour early.
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
#[derive(Debug, Clone)]
pub struct Caller {
    /// Their id.
    pub id: DbUuid,
    /// Whether the user is privileged.
    pub privileged: bool,
    /// The session or token of the request.
    pub credential: CredentialId,
    /// What that allows.
    pub scope: Scope,
    pub(super) last_used_at: Option<DbTimestamp>,
    /// What the history says about their changes.
    pub author: Author,
}

impl guard::Caller for Caller {
    fn user(&self) -> Option<Uuid> {
        Some(self.id.0)
    }

    fn view(&self) -> String {
        format!("{} {} {:?}", self.id, self.privileged, self.credential)
    }

    fn author(&self) -> Option<&Author> {
        Some(&self.author)
    }

    fn has_special_rights(&self) -> bool {
        self.privileged
    }

    /// Sessions and tokens of a user do not share stored answers: an answer to a session may contain a new token.
    fn idempotency_scope(&self) -> String {
        format!("{} {}", self.id, matches!(self.credential, CredentialId::Session(_)))
    }
}

impl Caller {
    /// The session of the request.
    ///
    /// # Errors
    /// 403 `forbidden` for a token.
    pub fn require_session(&self) -> Result<DbUuid, Error> {
        match self.credential {
            CredentialId::Session(id) => Ok(id),
            CredentialId::Token(_) => Err(Problem::forbidden("a session of your own, not a token").into()),
        }
    }
}

/// The value of the session cookie, valid or not. A pending sign-in is not a session.
#[must_use]
pub fn session(req: &HttpRequest) -> Option<String> {
    let cookies = req.cookies().ok()?;
    let mut values = cookies.iter().filter(|cookie| cookie.name() == SESSION_COOKIE).map(Cookie::value);
    values.find(|value| !value.is_empty() && !value.starts_with(PENDING_MARK)).map(str::to_owned)
}

/// The token in the address of the board. A browser that only shows a page can send it in no other way.
#[must_use]
pub fn kiosk_token(req: &HttpRequest) -> Option<String> {
    let mut query = form_urlencoded::parse(req.query_string().as_bytes()).filter(|_| req.path() == "/board");
    query.find_map(|(name, value)| (name == "kiosk" && !value.is_empty()).then(|| value.into_owned()))
}

/// Whether the request has a credential, valid or not. A pending sign-in is not a credential.
#[must_use]
pub fn has_credential(req: &HttpRequest) -> bool {
    req.headers().contains_key(header::AUTHORIZATION) || session(req).is_some() || kiosk_token(req).is_some()
}
