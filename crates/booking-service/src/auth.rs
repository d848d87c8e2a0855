//! Who calls an operation: the user behind a session cookie or an API token.

mod look_up;

use actix_web::{HttpRequest, http::header, web::Data};
use chrono::TimeDelta;
use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    guard::{self, Access, Authenticator, Guard, Identified},
    http::credential::Credential,
    state::AppState,
    text_enum,
};
use uuid::Uuid;

pub use self::look_up::{authenticate, stay_active};
use crate::last_use::{CredentialId, LastUse};

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
    scope: Scope,
    last_used_at: Option<DbTimestamp>,
}

/// Guard: any signed-in user (401 without a credential, 403 for an inactive account).
pub type SignedIn = Guard<UserAuth<false>>;

/// Guard: a privileged user (else 403).
pub type Privileged = Guard<UserAuth<true>>;

/// Authenticates users by session cookie or API token.
pub struct UserAuth<const PRIVILEGED: bool> {
    credential: Credential,
    last_use: Data<LastUse>,
    now: Timestamp,
}

impl<const PRIVILEGED: bool> Authenticator for UserAuth<PRIVILEGED> {
    type Caller = Caller;

    async fn from_request(req: &HttpRequest) -> Result<Self, Problem> {
        let state = AppState::of(req)?;
        let last_use = req.app_data::<Data<LastUse>>().ok_or_else(|| Problem::internal("the app has no LastUse"))?;
        let credential = Credential::of(req, SESSION_COOKIE)?;
        if matches!(credential, Credential::Session(_)) {
            state.origins().check(req.method(), req.headers())?;
        }
        Ok(Self { credential, last_use: last_use.clone(), now: state.clock().now() })
    }

    fn identify(&self, conn: &mut AnyConnection) -> Result<Identified<Caller>, Error> {
        let (caller, data_version) = authenticate(conn, &self.credential, self.now)?;
        Ok(Identified { caller, data_version: Some(data_version) })
    }

    fn authorize(&self, _: &mut AnyConnection, caller: &Caller, access: Access) -> Result<(), Error> {
        if access == Access::Write && caller.scope != Scope::Write {
            return Err(Problem::new(code::INSUFFICIENT_SCOPE).into());
        }
        if PRIVILEGED && !caller.privileged {
            return Err(Problem::forbidden("a privileged user").into());
        }
        Ok(())
    }

    fn record_use(&self, caller: &Caller) {
        self.last_use.record(caller.credential, caller.last_used_at, self.now);
    }
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

/// Whether the request has a credential, good or bad. A pending sign-in is none.
#[must_use]
pub fn has_credential(req: &HttpRequest) -> bool {
    req.headers().contains_key(header::AUTHORIZATION) || holds_session(req)
}
