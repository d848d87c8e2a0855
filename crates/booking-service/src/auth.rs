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
        AnyConnection,
        sql::{Moment, Uid},
    },
    error::{Error, Failure},
    http::{Reply, credential::Credential, frame::LoggedCaller},
    server::Service,
    text_enum,
};

use crate::schema::{api_tokens, sessions, users};

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
    service: Data<Service>,
    request: HttpRequest,
}

/// Guard: the operation needs a privileged user (else 403).
pub struct Privileged(SignedIn);

impl SignedIn {
    /// Runs a reading operation on one snapshot.
    ///
    /// # Errors
    /// 401 and 403 as the guard says; whatever the operation fails with.
    pub async fn read<F>(self, mut operation: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        let (log, now, credential) = (Arc::new(OnceLock::new()), self.service.clock().now(), self.credential.clone());
        let seen = log.clone();
        let done = self.service.db().read(move |conn| {
            let caller = authenticate(conn, &credential, now)?;
            let _ = seen.set(caller.id);
            operation(conn, &caller)
        });
        let done = done.await;
        self.log(&log);
        Ok(done?)
    }

    /// Runs a writing operation in a transaction, which may run more than once.
    ///
    /// # Errors
    /// 401 and 403 as the guard says; 403 `insufficient-scope`; whatever the operation fails with.
    pub async fn write<F>(self, mut operation: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        let (log, now, credential) = (Arc::new(OnceLock::new()), self.service.clock().now(), self.credential.clone());
        let seen = log.clone();
        let done = self.service.db().write(move |conn| {
            let caller = authenticate(conn, &credential, now)?;
            let _ = seen.set(caller.id);
            if caller.scope != Scope::Write {
                return Err(Problem::new(code::INSUFFICIENT_SCOPE).into());
            }
            operation(conn, &caller)
        });
        let done = done.await;
        self.log(&log);
        Ok(done?)
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
        let (log, now, credential) = (Arc::new(OnceLock::new()), self.service.clock().now(), self.credential.clone());
        let (seen, again) = (log.clone(), credential.clone());
        let found = self.service.db().read(move |conn| {
            let caller = authenticate(conn, &credential, now)?;
            let _ = seen.set(caller.id);
            find(conn, &caller)
        });
        let done = match found.await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => {
                let write = move |conn: &mut AnyConnection| {
                    let caller = authenticate(conn, &again, now)?;
                    make(conn, &caller)
                };
                self.service.db().write(write).await
            }
            Err(error) => Err(error),
        };
        self.log(&log);
        Ok(done?)
    }

    fn log(&self, seen: &OnceLock<Uid>) {
        if let Some(caller) = seen.get() {
            self.request.extensions_mut().insert(LoggedCaller(caller.0));
        }
    }

    /// The credential, for the operations that end it.
    #[must_use]
    pub fn credential(&self) -> &Credential {
        &self.credential
    }
}

impl Privileged {
    /// Like [`SignedIn::read`], for privileged users.
    ///
    /// # Errors
    /// As there, and 403 for everybody else.
    pub async fn read<F>(self, mut operation: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        self.0.read(move |conn, me| me.need_privilege().and_then(|()| operation(conn, me))).await
    }

    /// Like [`SignedIn::write`], for privileged users.
    ///
    /// # Errors
    /// As there, and 403 for everybody else.
    pub async fn write<F>(self, mut operation: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        self.0.write(move |conn, me| me.need_privilege().and_then(|()| operation(conn, me))).await
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

    fn need_privilege(&self) -> Result<(), Error> {
        if self.privileged { Ok(()) } else { Err(Problem::forbidden("a privileged user").into()) }
    }
}

/// Id, privilege and state of a user.
type User = (Uid, bool, i16);

/// The active user behind a credential.
///
/// # Errors
/// 401 for a credential that is unknown, expired or revoked; 403 for an account that is not active.
pub fn authenticate(conn: &mut AnyConnection, credential: &Credential, now: Timestamp) -> Result<Caller, Error> {
    let now = Moment(now);
    let unknown = || Problem::new(code::BAD_CREDENTIALS);
    let user = (users::id, users::privileged, users::state);
    let ((id, privileged, state), scope, alive): (User, Scope, bool) = match credential {
        Credential::Session(secret) => {
            let found: Option<(User, Moment, Option<Moment>)> = sessions::table
                .inner_join(users::table)
                .filter(sessions::token_hash.eq(credentials::hash(secret)))
                .select((user, sessions::expires_at, sessions::revoked_at))
                .first(conn)
                .optional()?;
            let (user, expires, revoked) = found.ok_or_else(unknown)?;
            (user, Scope::Write, revoked.is_none() && now < expires)
        }
        Credential::Bearer(text) => {
            let token = ApiToken::parse(TOKEN_PREFIX, text).ok_or_else(unknown)?;
            let found: Option<(User, Scope, Option<Moment>, Option<Moment>)> = api_tokens::table
                .inner_join(users::table)
                .filter(api_tokens::token_hash.eq(token.hash()))
                .select((user, api_tokens::scope, api_tokens::expires_at, api_tokens::revoked_at))
                .first(conn)
                .optional()?;
            let (user, scope, expires, revoked) = found.ok_or_else(unknown)?;
            (user, scope, revoked.is_none() && expires.is_none_or(|expires| now < expires))
        }
    };
    if state != ACTIVE {
        return Err(Problem::new(code::ACCOUNT_INACTIVE).into());
    }
    if !alive {
        return Err(unknown().into());
    }
    let has_session = matches!(credential, Credential::Session(_));
    Ok(Caller { id, privileged, has_session, scope })
}

impl FromRequest for SignedIn {
    type Error = Failure;
    type Future = std::future::Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(signed_in(req).map_err(Failure::from))
    }
}

fn signed_in(req: &HttpRequest) -> Result<SignedIn, Problem> {
    let service = req.app_data::<Data<Service>>().ok_or_else(|| Problem::internal("the app has no service"))?;
    let credential = Credential::of(req, SESSION_COOKIE)?;
    if matches!(credential, Credential::Session(_)) {
        service.origins().check(req.method(), req.headers())?;
    }
    Ok(SignedIn { credential, service: service.clone(), request: req.clone() })
}

impl FromRequest for Privileged {
    type Error = Failure;
    type Future = std::future::Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(signed_in(req).map(Self).map_err(Failure::from))
    }
}
