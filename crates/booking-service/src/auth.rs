//! Who is calling. A credential is looked up in the same database hop, and the same snapshot, as the operation it is
//! for; the extractor types below are the only way for a handler to that hop, so no operation can forget to ask.

mod look_up;

use std::{
    hash::Hash,
    sync::{Arc, OnceLock},
};

use actix_web::{FromRequest, HttpMessage, HttpRequest, dev::Payload, http::header, web::Data};
use chrono::TimeDelta;
use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use service_kit::{
    database::{AnyConnection, QueueKey, types::DbUuid},
    error::{Error, Failure},
    http::{
        Answer, Page, Reply,
        credential::Credential,
        exchange::Exchange,
        frame::LoggedCaller,
        limit::{RateLimitCharged, RateLimitKey},
    },
    server::AppState,
    text_enum,
};

pub use self::look_up::{authenticate, stay_active};
use crate::{
    last_use::{LastUse, Used},
    target::Target,
};

/// Name of the session cookie. Clients know it.
pub const SESSION_COOKIE: &str = "session";

/// Begins the cookie's value while it holds a sign-in under way. No session does: theirs have no dot.
pub const PENDING_MARK: &str = "login.";

/// What API tokens begin with, for secret scanners.
pub const TOKEN_PREFIX: &str = "clubbooking";

/// A session ends when it has not been used for this long. As uses are noted to [`GRAIN`](crate::last_use::GRAIN), it may
/// end an hour early.
pub const IDLE: TimeDelta = TimeDelta::days(14);

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
    pub id: DbUuid,
    /// Whether they may do everything.
    pub privileged: bool,
    /// What they came with.
    pub means: Used,
    scope: Scope,
}

/// Guard: the operation needs sign-in (401 without, 403 for an account that is not active).
pub struct SignedIn {
    credential: Credential,
    needs_privilege: bool,
    service: Data<AppState>,
    last_use: Data<LastUse>,
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

/// Lets a request in, as often as its transactions run; it is charged to its user, and a use, once.
#[derive(Clone)]
struct Door {
    credential: Credential,
    needs_privilege: bool,
    service: Data<AppState>,
    last_use: Data<LastUse>,
    now: Timestamp,
    found: Arc<OnceLock<DbUuid>>,
}

impl Door {
    /// The caller, and what stands for the state of the database.
    fn enter(&self, conn: &mut AnyConnection, doing: Doing) -> Result<(Caller, String), Error> {
        let (caller, before, state) = authenticate(conn, &self.credential, self.now)?;
        if self.found.set(caller.id).is_ok() {
            self.service.limit().charge(RateLimitKey::User(caller.id.0))?;
            self.last_use.note(caller.means, before, self.now);
        }
        if doing == Doing::Writing && caller.scope != Scope::Write {
            return Err(Problem::new(code::INSUFFICIENT_SCOPE).into());
        }
        if self.needs_privilege {
            caller.need_privilege()?;
        }
        Ok((caller, state))
    }
}

/// What a handler does, in a box: what the guard does around it is compiled once and not for each handler.
type Operation = Box<dyn FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send>;

/// Likewise of a list.
type Listing = Arc<dyn Fn(&mut AnyConnection, &Caller, &Page) -> Result<Reply, Error> + Send + Sync>;

impl SignedIn {
    fn door(&self) -> Door {
        Door {
            credential: self.credential.clone(),
            needs_privilege: self.needs_privilege,
            service: self.service.clone(),
            last_use: self.last_use.clone(),
            now: self.service.clock().now(),
            found: Arc::default(),
        }
    }

    /// Runs a reading operation on one snapshot.
    ///
    /// # Errors
    /// 401 and 403 as the guard says; 429; whatever the operation fails with.
    pub fn read<F>(self, operation: F) -> Answer
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        let door = self.door();
        Box::pin(self.read_by(door, Box::new(operation)))
    }

    async fn read_by(self, door: Door, mut operation: Operation) -> Result<Reply, Failure> {
        let exchange = Exchange::of(&self.request)?;
        let found = door.found.clone();
        let done = self.service.db().read(move |conn| {
            let (caller, state) = door.enter(conn, Doing::Reading)?;
            exchange.read(conn, &caller.view(), Some(&state), |conn| operation(conn, &caller))
        });
        let done = done.await;
        self.finish(&found, done)
    }

    /// Answers a list: on one snapshot, but a long one a [chunk](service_kit::http::page::CHUNK) at a time, each on a
    /// snapshot of its own, while it is sent.
    ///
    /// # Errors
    /// 401 and 403 as the guard says; 429; whatever the operation fails with.
    pub fn list<F>(self, page: Page, operation: F) -> Answer
    where
        F: Fn(&mut AnyConnection, &Caller, &Page) -> Result<Reply, Error> + Send + Sync + 'static,
    {
        Box::pin(self.list_by(page, Arc::new(operation)))
    }

    async fn list_by(self, page: Page, operation: Listing) -> Result<Reply, Failure> {
        let (door, db, page) = (self.door(), self.service.db().clone(), page.in_chunks());
        let first = operation.clone();
        let reply = self.read_by(door.clone(), Box::new(move |conn, me| first(conn, me, &page)));
        Ok(Box::pin(reply).await?.whole(move |rest| {
            let (db, door, operation) = (db.clone(), door.clone(), operation.clone());
            async move {
                db.read_on(move |conn| {
                    let (me, _) = door.enter(conn, Doing::Reading)?;
                    operation(conn, &me, &rest)
                })
                .await
            }
        }))
    }

    /// Runs a writing operation in a transaction, which may run more than once.
    ///
    /// # Errors
    /// 401 and 403 as the guard says; 429; 403 `insufficient-scope`; 412 and 422 as the contract's "Conditional requests
    /// and retries" says; whatever the operation fails with.
    pub fn write<F>(self, operation: F) -> Answer
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        Box::pin(self.write_in_turn(None, Box::new(operation)))
    }

    /// Like [`Self::write`], for what many may want at once: they go to the database one after another, so that nobody
    /// who wants something else waits for all of them.
    ///
    /// # Errors
    /// As there.
    pub fn write_about<F>(self, thing: &impl Hash, operation: F) -> Answer
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        let turn = self.service.db().turn(thing);
        Box::pin(self.write_in_turn(Some(turn), Box::new(operation)))
    }

    async fn write_in_turn(self, turn: Option<QueueKey>, mut operation: Operation) -> Result<Reply, Failure> {
        let (door, exchange) = (self.door(), Exchange::of(&self.request)?);
        let target = Target::of(&self.request, door.now)?;
        let found = door.found.clone();
        let done = self.service.db().write_in_turn(turn, move |conn| {
            let (caller, _) = door.enter(conn, Doing::Writing)?;
            let resource = target.as_ref().map(|target| target.resource(&caller));
            exchange.write(conn, &caller.asker(), resource, |conn| operation(conn, &caller))
        });
        let done = done.await;
        self.finish(&found, done)
    }

    /// Runs a reading operation that makes what it reads when that is not there yet: `make` runs in a transaction after
    /// `find` found nothing on a snapshot. It asks for no write scope, because to the caller it is a read.
    ///
    /// # Errors
    /// 401 and 403 as the guard says; 429; whatever the operation fails with.
    pub async fn read_or_make<F, M>(self, mut find: F, mut make: M) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Option<Reply>, Error> + Send + 'static,
        M: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        let (door, exchange) = (self.door(), Exchange::of(&self.request)?);
        let (found, again) = (door.found.clone(), door.clone());
        let there = self.service.db().read(move |conn| {
            let (caller, _) = door.enter(conn, Doing::Reading)?;
            find(conn, &caller)
        });
        let done = match there.await {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => {
                let written = self.service.db().write(move |conn| {
                    let (caller, _) = again.enter(conn, Doing::Reading)?;
                    make(conn, &caller)
                });
                written.await
            }
            Err(error) => Err(error),
        };
        self.finish(&found, done.map(|reply| exchange.tagged(reply, None)))
    }

    /// Whether the caller may do this at all, for operations that have something slow to do before they write.
    ///
    /// # Errors
    /// 401 and 403 as the guard says; 429; 403 `insufficient-scope`.
    pub async fn check(&self) -> Result<(), Failure> {
        let door = self.door();
        let found = door.found.clone();
        let done = self.service.db().read(move |conn| door.enter(conn, Doing::Writing).map(|_| ())).await;
        self.note(&found);
        Ok(done?)
    }

    fn finish(&self, found: &OnceLock<DbUuid>, done: Result<Reply, Error>) -> Result<Reply, Failure> {
        self.note(found);
        Ok(done?)
    }

    /// Who it was, for the log, and that they have been charged.
    fn note(&self, found: &OnceLock<DbUuid>) {
        if let Some(caller) = found.get() {
            self.request.extensions_mut().insert(LoggedCaller(caller.0));
            self.request.extensions_mut().insert(RateLimitCharged);
        }
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
    pub fn write<F>(self, operation: F) -> Answer
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        self.0.write(operation)
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
    /// The session that they came with. Refuses whoever came with a token.
    ///
    /// # Errors
    /// 403 `forbidden`.
    pub fn need_session(&self) -> Result<DbUuid, Error> {
        match self.means {
            Used::Session(id) => Ok(id),
            Used::Token(_) => Err(Problem::forbidden("a session of your own, not a token").into()),
        }
    }

    /// Stands for all on which it depends what they see.
    fn view(&self) -> String {
        format!("{} {} {:?}", self.id, self.privileged, self.means)
    }

    /// Who may be given an earlier answer again. A session's answers are not its owner's tokens' to read: a new token may
    /// be among them.
    fn asker(&self) -> String {
        format!("{} {}", self.id, matches!(self.means, Used::Session(_)))
    }

    fn need_privilege(&self) -> Result<(), Error> {
        if self.privileged { Ok(()) } else { Err(Problem::forbidden("a privileged user").into()) }
    }
}

/// Whether the browser holds something that may be a session, and not merely a sign-in under way.
#[must_use]
pub fn holds_session(req: &HttpRequest) -> bool {
    req.cookie(SESSION_COOKIE)
        .is_some_and(|cookie| !cookie.value().is_empty() && !cookie.value().starts_with(PENDING_MARK))
}

/// Whether a request carries a credential, good or bad. A sign-in under way is none yet.
#[must_use]
pub fn has_credential(req: &HttpRequest) -> bool {
    req.headers().contains_key(header::AUTHORIZATION) || holds_session(req)
}

impl FromRequest for SignedIn {
    type Error = Failure;
    type Future = std::future::Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(signed_in(req, false).map_err(Failure::from))
    }
}

fn signed_in(req: &HttpRequest, needs_privilege: bool) -> Result<SignedIn, Problem> {
    let absent = || Problem::internal("the app lacks a part");
    let service = req.app_data::<Data<AppState>>().ok_or_else(absent)?;
    let last_use = req.app_data::<Data<LastUse>>().ok_or_else(absent)?;
    let credential = Credential::of(req, SESSION_COOKIE)?;
    if matches!(credential, Credential::Session(_)) {
        service.origins().check(req.method(), req.headers())?;
    }
    let (service, last_use, request) = (service.clone(), last_use.clone(), req.clone());
    Ok(SignedIn { credential, needs_privilege, service, last_use, request })
}

impl FromRequest for Privileged {
    type Error = Failure;
    type Future = std::future::Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(signed_in(req, true).map(Self).map_err(Failure::from))
    }
}
