//! Who is calling. A credential is looked up in the same database hop, and the same snapshot, as the operation it is
//! for; the extractor types below are the only way for a handler to that hop, so no operation can forget to ask.

use std::sync::{Arc, OnceLock};

use actix_web::{FromRequest, HttpMessage, HttpRequest, dev::Payload, web::Data};
use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use diesel::{OptionalExtension, QueryDsl, RunQueryDsl, prelude::*};
use service_kit::{
    credentials::{self, ApiToken},
    db::{
        AnyConnection, State,
        sql::{Moment, Uid},
    },
    error::{Error, Failure},
    http::{Reply, credential::Credential, exchange::Exchange, frame::LoggedCaller},
    server::Service,
    text_enum,
};

use crate::{
    schema::{api_tokens, sessions, users},
    target::Target,
};

/// Name of the session cookie. Clients know it.
pub const SESSION_COOKIE: &str = "session";

/// What API tokens begin with, for secret scanners.
pub const TOKEN_PREFIX: &str = "clubbooking";

/// `users.state` of a user who may do things.
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
    pub id: Uid,
    /// Whether they may do everything.
    pub privileged: bool,
    /// Whether they came with a session of their own, not with a token.
    pub has_session: bool,
    scope: Scope,
}

/// Guard: the operation needs sign-in (401 without, 403 for an account that is not active).
pub struct SignedIn {
    credential: Credential,
    needs_privilege: bool,
    service: Data<Service>,
    request: HttpRequest,
}

/// Guard: the operation needs a privileged user (else 403).
pub struct Privileged(SignedIn);

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Reading,
    Writing,
}

/// What is asked of every caller, on a database thread.
struct Gate {
    credential: Credential,
    needs_privilege: bool,
    now: Timestamp,
    seen: OnceLock<Uid>,
}

impl Gate {
    /// The caller, and what stands for the state of the database.
    fn admit(&self, conn: &mut AnyConnection, doing: Doing) -> Result<(Caller, String), Error> {
        let (caller, state) = authenticate(conn, &self.credential, self.now)?;
        let _ = self.seen.set(caller.id);
        if doing == Doing::Writing && caller.scope != Scope::Write {
            return Err(Problem::new(code::INSUFFICIENT_SCOPE).into());
        }
        if self.needs_privilege {
            caller.need_privilege()?;
        }
        Ok((caller, state))
    }
}

impl SignedIn {
    /// Runs a reading operation on one snapshot.
    ///
    /// # Errors
    /// 401 and 403 as the guard says; whatever the operation fails with.
    pub async fn read<F>(self, mut operation: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        let (gate, exchange) = (self.gate(), Exchange::of(&self.request)?);
        let asked = gate.clone();
        let done = self.service.db().read(move |conn| {
            let (caller, state) = asked.admit(conn, Doing::Reading)?;
            exchange.read(conn, &caller.view(), Some(&state), |conn| operation(conn, &caller))
        });
        let done = done.await;
        self.finish(done, &gate)
    }

    /// Runs a writing operation in a transaction, which may run more than once.
    ///
    /// # Errors
    /// 401 and 403 as the guard says; 403 `insufficient-scope`; 412 and 422 as the contract's "Conditional requests and
    /// retries" says; whatever the operation fails with.
    pub async fn write<F>(self, mut operation: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        let (gate, exchange, target) = (self.gate(), Exchange::of(&self.request)?, Target::of(&self.request)?);
        let asked = gate.clone();
        let done = self.service.db().write(move |conn| {
            let (caller, _) = asked.admit(conn, Doing::Writing)?;
            let resource = target.as_ref().map(|target| target.resource(&caller));
            exchange.write(conn, &caller.asker(), resource, |conn| operation(conn, &caller))
        });
        let done = done.await;
        self.finish(done, &gate)
    }

    /// Runs a reading operation that makes what it reads when that is not there yet: `make` runs in a transaction after
    /// `find` found nothing on a snapshot. It asks for no write scope, because to the caller it is a read.
    ///
    /// # Errors
    /// 401 and 403 as the guard says; whatever the operation fails with.
    pub async fn read_or_make<F, M>(self, mut find: F, mut make: M) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Option<Reply>, Error> + Send + 'static,
        M: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        let (gate, exchange) = (self.gate(), Exchange::of(&self.request)?);
        let asked = gate.clone();
        let found = self.service.db().read(move |conn| {
            let (caller, _) = asked.admit(conn, Doing::Reading)?;
            find(conn, &caller)
        });
        let done = match found.await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => {
                let asked = gate.clone();
                let done = self.service.db().write(move |conn| {
                    let (caller, _) = asked.admit(conn, Doing::Reading)?;
                    make(conn, &caller)
                });
                done.await
            }
            Err(error) => Err(error),
        };
        self.finish(done.map(|reply| exchange.tagged(reply, None)), &gate)
    }

    /// Whether the caller may do this at all, for operations that have something slow to do before they write.
    ///
    /// # Errors
    /// 401 and 403 as the guard says; 403 `insufficient-scope`.
    pub async fn check(&self) -> Result<(), Failure> {
        let gate = self.gate();
        Ok(self.service.db().read(move |conn| gate.admit(conn, Doing::Writing).map(|_| ())).await?)
    }

    fn gate(&self) -> Arc<Gate> {
        let (credential, needs_privilege) = (self.credential.clone(), self.needs_privilege);
        Arc::new(Gate { credential, needs_privilege, now: self.service.clock().now(), seen: OnceLock::new() })
    }

    fn finish(self, done: Result<Reply, Error>, gate: &Gate) -> Result<Reply, Failure> {
        if let Some(caller) = gate.seen.get() {
            self.request.extensions_mut().insert(LoggedCaller(caller.0));
        }
        Ok(done?)
    }

    /// The credential, for the operations that end it.
    #[must_use]
    pub fn credential(&self) -> &Credential {
        &self.credential
    }
}

impl Privileged {
    /// Like [`SignedIn::write`], for privileged users.
    ///
    /// # Errors
    /// As there, and 403 for everybody else.
    pub async fn write<F>(self, operation: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        self.0.write(operation).await
    }

    /// Like [`SignedIn::check`], for privileged users.
    ///
    /// # Errors
    /// As there, and 403 for everybody else.
    pub async fn check(&self) -> Result<(), Failure> {
        self.0.check().await
    }
}

impl Caller {
    /// Refuses whoever came with a token.
    ///
    /// # Errors
    /// 403 `forbidden`.
    pub fn need_session(&self) -> Result<(), Error> {
        if self.has_session { Ok(()) } else { Err(Problem::forbidden("a session of your own, not a token").into()) }
    }

    /// Stands for all on which it depends what they see.
    fn view(&self) -> String {
        format!("{} {} {}", self.id, self.privileged, self.has_session)
    }

    /// Who may be given an earlier answer again. A session's answers are not its owner's tokens' to read: a new token may
    /// be among them.
    fn asker(&self) -> String {
        format!("{} {}", self.id, self.has_session)
    }

    fn need_privilege(&self) -> Result<(), Error> {
        if self.privileged { Ok(()) } else { Err(Problem::forbidden("a privileged user").into()) }
    }
}

/// Id, privilege and state of a user.
type User = (Uid, bool, i16);

/// The active user behind a credential, and what stands for the state of the database.
///
/// # Errors
/// 401 for a credential that is unknown, expired or revoked; 403 for an account that is not active.
fn authenticate(conn: &mut AnyConnection, credential: &Credential, now: Timestamp) -> Result<(Caller, String), Error> {
    let now = Moment(now);
    let unknown = || Problem::new(code::BAD_CREDENTIALS);
    let user = (users::id, users::privileged, users::state);
    let ((id, privileged, state), scope, alive, state_of_all): (User, Scope, bool, String) = match credential {
        Credential::Session(secret) => {
            let found: Option<(User, Moment, Option<Moment>, String)> = sessions::table
                .inner_join(users::table)
                .filter(sessions::token_hash.eq(credentials::hash(secret)))
                .select((user, sessions::expires_at, sessions::revoked_at, State))
                .first(conn)
                .optional()?;
            let (user, expires, revoked, all) = found.ok_or_else(unknown)?;
            (user, Scope::Write, revoked.is_none() && now < expires, all)
        }
        Credential::Bearer(text) => {
            type Found = (User, Scope, Option<Moment>, Option<Moment>, String);
            let token = ApiToken::parse(TOKEN_PREFIX, text).ok_or_else(unknown)?;
            let found: Option<Found> = api_tokens::table
                .inner_join(users::table)
                .filter(api_tokens::token_hash.eq(token.hash()))
                .select((user, api_tokens::scope, api_tokens::expires_at, api_tokens::revoked_at, State))
                .first(conn)
                .optional()?;
            let (user, scope, expires, revoked, all) = found.ok_or_else(unknown)?;
            (user, scope, revoked.is_none() && expires.is_none_or(|expires| now < expires), all)
        }
    };
    if state != ACTIVE {
        return Err(Problem::new(code::ACCOUNT_INACTIVE).into());
    }
    if !alive {
        return Err(unknown().into());
    }
    let has_session = matches!(credential, Credential::Session(_));
    Ok((Caller { id, privileged, has_session, scope }, state_of_all))
}

impl FromRequest for SignedIn {
    type Error = Failure;
    type Future = std::future::Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(signed_in(req, false).map_err(Failure::from))
    }
}

fn signed_in(req: &HttpRequest, needs_privilege: bool) -> Result<SignedIn, Problem> {
    let service = req.app_data::<Data<Service>>().ok_or_else(|| Problem::internal("the app has no service"))?;
    let credential = Credential::of(req, SESSION_COOKIE)?;
    if matches!(credential, Credential::Session(_)) {
        service.origins().check(req.method(), req.headers())?;
    }
    Ok(SignedIn { credential, needs_privilege, service: service.clone(), request: req.clone() })
}

impl FromRequest for Privileged {
    type Error = Failure;
    type Future = std::future::Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(signed_in(req, true).map(Self).map_err(Failure::from))
    }
}
