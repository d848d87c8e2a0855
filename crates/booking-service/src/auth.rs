//! The caller of an operation: the user of a session cookie or an API token.

mod api_token;
mod caller;
mod credential;
mod look_up;

use std::sync::Arc;

use actix_web::{HttpRequest, web::Data};
use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    guard::{Access, Authenticator, Guard, Identified},
    http::notes::RequestNotes,
    state::AppState,
};

pub use self::{
    api_token::ApiToken,
    caller::{Caller, SESSION_COOKIE, Scope, TOKEN_PREFIX, has_credential, kiosk_token},
    credential::Credential,
    look_up::authenticate,
};
use crate::last_use::LastUse;
pub use club_sign_in::sessions::{ACTIVE, stay_active};

/// Guard: any signed-in user (401 without a credential, 403 for an inactive account).
pub type SignedIn = Guard<UserAuth<false>>;

/// Guard: a privileged user (else 403).
pub type Privileged = Guard<UserAuth<true>>;

/// Authenticates users by session cookie or API token.
pub struct UserAuth<const PRIVILEGED: bool> {
    credential: Credential,
    /// Whether the answer is about the caller: the pages, and what is below `/users/me`.
    is_personal: bool,
    last_use: Data<LastUse>,
    now: Timestamp,
    request_id: Arc<str>,
}

impl<const PRIVILEGED: bool> UserAuth<PRIVILEGED> {
    /// Authenticates by this credential, wherever in the request it was.
    ///
    /// # Errors
    /// 500 in an app without its state.
    pub fn new(req: &HttpRequest, credential: Credential) -> Result<Self, Problem> {
        let last_use = req.app_data::<Data<LastUse>>().ok_or_else(|| Problem::internal("the app has no LastUse"))?;
        let (now, request_id) =
            (AppState::from_request(req)?.clock.now(), RequestNotes::read(req, |notes| Arc::from(&*notes.request_id)));
        let is_personal = !req.path().starts_with("/api/") || req.path().starts_with("/api/users/me");
        Ok(Self { credential, is_personal, last_use: last_use.clone(), now, request_id })
    }
}

impl<const PRIVILEGED: bool> Authenticator for UserAuth<PRIVILEGED> {
    type Caller = Caller;

    async fn from_request(req: &HttpRequest) -> Result<Self, Problem> {
        let credential = Credential::from_request(req, SESSION_COOKIE)?;
        if matches!(credential, Credential::Session(_)) {
            AppState::from_request(req)?.origins.check(req.method(), req.headers())?;
        }
        Self::new(req, credential)
    }

    fn identify(&self, conn: &mut AnyConnection) -> Result<Identified<Caller>, Error> {
        let (mut caller, data_version) = authenticate(conn, &self.credential, self.now)?;
        caller.author.request_id = Some(self.request_id.clone());
        Ok(Identified { caller, data_version: Some(data_version) })
    }

    fn authorize(&self, _: &mut AnyConnection, caller: &Caller, access: Access) -> Result<(), Error> {
        let is_enough = match access {
            Access::Read => matches!(caller.scope, Scope::Read | Scope::Write),
            Access::Write => caller.scope == Scope::Write,
        };
        if !is_enough {
            return Err(Problem::new(code::INSUFFICIENT_SCOPE).into());
        }
        if self.is_personal && caller.id == DbUuid::nil() {
            return Err(Problem::forbidden("a user, not a token of the club").into());
        }
        if PRIVILEGED && !caller.privileged {
            return Err(Problem::forbidden("a privileged user").into());
        }
        Ok(())
    }

    fn credential(&self) -> Option<&str> {
        let (Credential::Session(secret) | Credential::Bearer(secret)) = &self.credential;
        Some(secret)
    }

    fn record_use(&self, caller: &Caller) {
        self.last_use.record(caller.credential, caller.last_used_at, self.now);
    }
}
