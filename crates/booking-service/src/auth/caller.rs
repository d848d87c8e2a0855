//! The signed-in user behind a request.

use actix_web::{HttpRequest, http::header};
use club_sign_in::pending::session;
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

/// Prefix of every API token, for secret scanners.
pub const TOKEN_PREFIX: &str = "clubbooking";

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

/// The signed-in, active user behind a request, or nobody for a token of the club.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Their id; the nil id for a token of the club.
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

/// The token in the address of the board. A browser that only shows a page can send it in no other way.
pub fn kiosk_token(req: &HttpRequest) -> Option<String> {
    let mut query = form_urlencoded::parse(req.query_string().as_bytes()).filter(|_| req.path() == "/board");
    query.find_map(|(name, value)| (name == "kiosk" && !value.is_empty()).then(|| value.into_owned()))
}

/// Whether the request has a credential, valid or not. A pending sign-in is not a credential.
pub fn has_credential(req: &HttpRequest) -> bool {
    req.headers().contains_key(header::AUTHORIZATION)
        || session(req, SESSION_COOKIE).is_some()
        || kiosk_token(req).is_some()
}
