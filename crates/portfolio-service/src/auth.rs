//! Who is calling, and whether they may. The sign-in name is looked up in the same database hop, and the same snapshot,
//! as the operation it is for, and held to the operation's [rule](crate::policy) there. The extractor types below are
//! the only way for a handler to that hop, so no operation can forget to ask.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
};

use actix_web::{
    FromRequest, HttpMessage, HttpRequest,
    dev::Payload,
    http::header::{self, HeaderMap},
    web::Data,
};
use common::problem::{Problem, code};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{AnyConnection, State, types::DbUuid},
    error::{Error, Failure},
    http::{
        Answer, Page, Reply,
        exchange::Exchange,
        frame::LoggedCaller,
        jwt::{Expectations, Verifier, keys::Origin},
        limit::{RateLimitCharged, RateLimitKey},
        proxy::{Named, Proxies},
    },
    server::AppState,
    with_connection,
};

use crate::{
    club::Club,
    policy::{self, Rule},
    schema::users,
    target::{Ids, Target},
};

/// `users.state` of a user who may do things.
pub const ACTIVE: i16 = 1;

/// The active member behind a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// Their id.
    pub id: DbUuid,
    /// Whether they may do everything.
    pub admin: bool,
}

/// Guard of a public operation: the caller may be anybody, and is known when they say who they are.
pub struct Visitor(Guard);

/// Guard of every other operation: 401 without sign-in, 403 for an account that is not active or not known, 403 or 404
/// for whoever the operation's rule does not allow.
pub struct Member(Guard);

/// What a request says of its caller and its object.
struct Guard {
    name: Option<String>,
    rule: Rule,
    ids: Ids,
    service: Data<AppState>,
    club: Data<Club>,
    request: HttpRequest,
}

/// What is known of a sign-in name.
enum Known {
    No,
    Inactive,
    Active(Caller),
}

impl Caller {
    /// Stands for all on which it depends what they see.
    fn view(&self) -> String {
        format!("{} {}", self.id, self.admin)
    }
}

/// What a handler does, in a box: what the guard does around it is compiled once and not for each handler.
type Operation = Box<dyn FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send>;

/// Likewise for visitors.
type Visit = Box<dyn FnMut(&mut AnyConnection, Option<&Caller>) -> Result<Reply, Error> + Send>;

/// Likewise of a list.
type Listing = Arc<dyn Fn(&mut AnyConnection, Option<&Caller>, &Page) -> Result<Reply, Error> + Send + Sync>;

impl Visitor {
    /// Runs a reading operation on one snapshot. The caller is there when they are an active member.
    ///
    /// # Errors
    /// Whatever the operation fails with.
    pub fn read<F>(self, operation: F) -> Answer
    where
        F: FnMut(&mut AnyConnection, Option<&Caller>) -> Result<Reply, Error> + Send + 'static,
    {
        let window = self.window();
        Box::pin(self.read_by(window, Box::new(operation)))
    }

    async fn read_by(self, window: Arc<Window>, mut operation: Visit) -> Result<Reply, Failure> {
        let (exchange, asked) = (Exchange::of(&self.0.request)?, window.clone());
        let done = self.0.service.db().read(move |conn| {
            let (caller, state) = asked.look(conn)?;
            let view = caller.as_ref().map_or_else(|| "anybody".to_owned(), Caller::view);
            exchange.read(conn, &view, Some(&state), |conn| operation(conn, caller.as_ref()))
        });
        let done = done.await.map(|reply| if window.name.is_none() { reply.public() } else { reply });
        finish(&self.0.request, done, &window.seen)
    }

    /// Answers a list: on one snapshot, but a long one a [chunk](service_kit::http::page::CHUNK) at a time, each on a
    /// snapshot of its own, while it is sent.
    ///
    /// # Errors
    /// Whatever the operation fails with.
    pub fn list<F>(self, page: Page, operation: F) -> Answer
    where
        F: Fn(&mut AnyConnection, Option<&Caller>, &Page) -> Result<Reply, Error> + Send + Sync + 'static,
    {
        Box::pin(self.list_by(page, Arc::new(operation)))
    }

    async fn list_by(self, page: Page, operation: Listing) -> Result<Reply, Failure> {
        let (db, window, page) = (self.0.service.db().clone(), self.window(), page.in_chunks());
        let first = operation.clone();
        let reply = self.read_by(window.clone(), Box::new(move |conn, caller| first(conn, caller, &page)));
        Ok(Box::pin(reply).await?.whole(move |rest| {
            let (db, window, operation) = (db.clone(), window.clone(), operation.clone());
            async move {
                db.read_on(move |conn| {
                    let (caller, _) = window.look(conn)?;
                    operation(conn, caller.as_ref(), &rest)
                })
                .await
            }
        }))
    }

    fn window(&self) -> Arc<Window> {
        let Guard { name, service, club, .. } = &self.0;
        let (name, service, club) = (name.clone(), service.clone(), club.clone());
        Arc::new(Window { name, service, club, seen: OnceLock::new() })
    }

    /// Gives an answer that is the same for everybody at any time.
    ///
    /// # Errors
    /// 400 for a header that cannot be used.
    pub fn answer(self, reply: Reply) -> Result<Reply, Failure> {
        Ok(Exchange::of(&self.0.request)?.tagged(reply.public(), None))
    }
}

/// What is asked of every visitor, on a database thread.
struct Window {
    name: Option<String>,
    service: Data<AppState>,
    club: Data<Club>,
    seen: OnceLock<DbUuid>,
}

impl Window {
    /// The caller when they are an active member, and what stands for the state of the database.
    fn look(&self, conn: &mut AnyConnection) -> Result<(Option<Caller>, String), Error> {
        let (known, state) = match &self.name {
            Some(name) => look_up(conn, &self.club, name)?,
            None => (Known::No, None),
        };
        let state = match state {
            Some(state) => state,
            None => with_connection!(conn, c => diesel::select(State).get_result(c))?,
        };
        let caller = match known {
            Known::Active(caller) => Some(caller),
            // Who may not do anything sees what everybody sees.
            Known::Inactive | Known::No => None,
        };
        if let Some(caller) = &caller {
            found(&self.service, &self.seen, caller)?;
        }
        Ok((caller, state))
    }
}

impl Member {
    /// Runs a reading operation on one snapshot.
    ///
    /// # Errors
    /// As the guard says; whatever the operation fails with.
    pub fn read<F>(self, operation: F) -> Answer
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        Box::pin(self.read_by(Box::new(operation)))
    }

    async fn read_by(self, mut operation: Operation) -> Result<Reply, Failure> {
        let (gate, exchange) = (self.gate(), Exchange::of(&self.0.request)?);
        let asked = gate.clone();
        let done = self.0.service.db().read(move |conn| {
            let (me, state) = asked.admit(conn)?;
            exchange.read(conn, &me.view(), state.as_deref(), |conn| operation(conn, &me))
        });
        finish(&self.0.request, done.await, &gate.seen)
    }

    /// Runs a writing operation in a transaction, which may run more than once.
    ///
    /// # Errors
    /// As the guard says, whatever else the request says; 412 and 422 as the contract's "Conditional requests and
    /// retries" says; whatever the operation fails with.
    pub fn write<F>(self, operation: F) -> Answer
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        Box::pin(self.write_by(Box::new(operation)))
    }

    async fn write_by(self, mut operation: Operation) -> Result<Reply, Failure> {
        let request = &self.0.request;
        let (gate, exchange, target) = (self.gate(), Exchange::of(request)?, Target::of(request)?);
        let asked = gate.clone();
        let done = self.0.service.db().write(move |conn| {
            let (me, _) = asked.admit(conn)?;
            let resource = target.as_ref().map(|target| target.resource(&me));
            exchange.write(conn, &me.id.to_string(), resource, |conn| operation(conn, &me))
        });
        finish(request, done.await, &gate.seen)
    }

    /// Whether the caller may do this at all, for operations that have something slow to do before they write.
    ///
    /// # Errors
    /// As the guard says.
    pub async fn check(&self) -> Result<(), Failure> {
        let gate = self.gate();
        let asked = gate.clone();
        let done = self.0.service.db().read(move |conn| asked.admit(conn).map(|_| ())).await;
        note(&self.0.request, &gate.seen);
        Ok(done?)
    }

    fn gate(&self) -> Arc<Gate> {
        let Guard { name, rule, ids, club, service, .. } = &self.0;
        let (name, ids, club, service) = (name.clone(), ids.clone(), club.clone(), service.clone());
        Arc::new(Gate { name, rule: *rule, ids, club, service, seen: OnceLock::new() })
    }
}

/// What is asked of every member, on a database thread.
struct Gate {
    name: Option<String>,
    rule: Rule,
    ids: Ids,
    club: Data<Club>,
    service: Data<AppState>,
    seen: OnceLock<DbUuid>,
}

impl Gate {
    /// The caller, and what stands for the state of the database.
    fn admit(&self, conn: &mut AnyConnection) -> Result<(Caller, Option<String>), Error> {
        let name = self.name.as_deref().ok_or_else(not_signed_in)?;
        let (me, state) = match look_up(conn, &self.club, name)? {
            (Known::Active(caller), state) => (caller, state),
            (Known::Inactive, _) => return Err(Problem::new(code::ACCOUNT_INACTIVE).into()),
            (Known::No, _) if self.rule == Rule::Known => return Err(Problem::not_found("user of your name").into()),
            (Known::No, _) => return Err(Problem::forbidden("a member of the club").into()),
        };
        found(&self.service, &self.seen, &me)?;
        policy::check(conn, self.rule, &me, &self.ids)?;
        Ok((me, state))
    }
}

/// What is known of a sign-in name; and what stands for the state of the database, when anything is.
fn look_up(conn: &mut AnyConnection, club: &Club, name: &str) -> Result<(Known, Option<String>), Error> {
    let query = users::table.filter(users::name.eq(name)).select((users::id, users::state, State));
    let found: Option<(DbUuid, i16, String)> = with_connection!(conn, c => query.first(c)).optional()?;
    Ok(match found {
        Some((id, ACTIVE, state)) => (Known::Active(Caller { id, admin: club.admins.contains(name) }), Some(state)),
        Some((_, _, state)) => (Known::Inactive, Some(state)),
        None => (Known::No, None),
    })
}

/// Charges a request to whom it is from; once, as a transaction may run more often.
fn found(service: &AppState, seen: &OnceLock<DbUuid>, caller: &Caller) -> Result<(), Problem> {
    if seen.set(caller.id).is_ok() { service.limit().charge(RateLimitKey::User(caller.id.0)) } else { Ok(()) }
}

fn finish(request: &HttpRequest, done: Result<Reply, Error>, seen: &OnceLock<DbUuid>) -> Result<Reply, Failure> {
    note(request, seen);
    Ok(done?)
}

/// Who it was, for the log, and that they have been charged.
fn note(request: &HttpRequest, seen: &OnceLock<DbUuid>) {
    if let Some(caller) = seen.get() {
        request.extensions_mut().insert(LoggedCaller(caller.0));
        request.extensions_mut().insert(RateLimitCharged);
    }
}

type Extracted<T> = Pin<Box<dyn Future<Output = Result<T, Failure>>>>;

impl FromRequest for Visitor {
    type Error = Failure;
    type Future = Extracted<Self>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let guard = guard(req.clone());
        Box::pin(async move {
            let guard = guard.await?;
            if guard.rule == Rule::Public { Ok(Self(guard)) } else { Err(wrong_guard(&guard).into()) }
        })
    }
}

impl FromRequest for Member {
    type Error = Failure;
    type Future = Extracted<Self>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let guard = guard(req.clone());
        Box::pin(async move {
            let guard = guard.await?;
            if guard.rule == Rule::Public {
                return Err(wrong_guard(&guard).into());
            }
            // Before the body is looked at, so that nobody learns from it what they may not do anyway.
            if guard.name.is_none() { Err(not_signed_in().into()) } else { Ok(Self(guard)) }
        })
    }
}

fn not_signed_in() -> Problem {
    Problem::new(code::NOT_SIGNED_IN).detail("This needs sign-in, at the site's own proxy or by a bearer token.")
}

fn wrong_guard(guard: &Guard) -> Problem {
    Problem::internal(format!("{:?} is not the rule that this handler's guard is for", guard.rule))
}

async fn guard(request: HttpRequest) -> Result<Guard, Problem> {
    let absent = || Problem::internal("the app lacks a part");
    let service = request.app_data::<Data<AppState>>().ok_or_else(absent)?.clone();
    let club = request.app_data::<Data<Club>>().ok_or_else(absent)?.clone();
    let route = request.match_pattern().unwrap_or_default();
    let rule = policy::rule(request.method(), &route)
        .ok_or_else(|| Problem::internal(format!("{} {route} has no rule", request.method())))?;
    let ids = Ids::of(&request);
    let name = sign_in_name(&request, &service).await?;
    Ok(Guard { name, rule, ids, service, club, request })
}

/// How callers say who they are (contract, "Where the data comes from").
#[derive(Debug, Clone)]
pub struct Identity {
    /// By a header of an authenticating proxy.
    pub proxies: Proxies,
    /// By a token of an issuer.
    pub tokens: Option<(Expectations, Origin)>,
    /// Nothing is configured, so whoever is on this machine is believed.
    pub is_development: bool,
}

/// The sign-in name of the caller, if they say one.
async fn sign_in_name(request: &HttpRequest, service: &AppState) -> Result<Option<String>, Problem> {
    let refused = |detail: &str| Problem::new(code::BAD_CREDENTIALS).detail(detail);
    let named = request.extensions().get::<Named>().cloned().unwrap_or(Named::Nobody);
    let proxied = match named {
        Named::Nobody => None,
        Named::Name(name) if is_sign_in_name(&name) => Some(name),
        Named::Name(_) | Named::Unusable => return Err(refused("The proxy's header is not one sign-in name.")),
    };
    let verifier = request.app_data::<Data<Verifier>>();
    match (bearer(request.headers()), verifier) {
        (Sent::Token(token), Some(verifier)) => {
            let name = verifier.name(&token, service.clock().now()).await?;
            if !is_sign_in_name(&name) || proxied.is_some_and(|proxied| proxied != name) {
                return Err(refused("The token and the proxy do not say one and the same sign-in name."));
            }
            return Ok(Some(name));
        }
        (Sent::Nothing, _) => {}
        // A proxy may sign people in by a credential of its own, which then is none of our business.
        _ if proxied.is_some() => {}
        (_, Some(_)) => return Err(refused("The Authorization header must be Bearer and a token.")),
        (_, None) => return Err(refused("This service takes no credential in the Authorization header.")),
    }
    if proxied.is_some() {
        // A proxy that signs people in does so by a cookie, which a browser also sends along for other sites.
        service.origins().check(request.method(), request.headers())?;
    }
    Ok(proxied)
}

/// Whether a request carries a token, or a proxy that is believed says whom it is from.
#[must_use]
pub fn has_credential(request: &HttpRequest) -> bool {
    let peer = request.peer_addr().map(|peer| peer.ip());
    let proxies = request.app_data::<Data<Proxies>>();
    request.headers().contains_key(header::AUTHORIZATION)
        || proxies.is_some_and(|proxies| proxies.read(request.headers(), peer) != Named::Nobody)
}

enum Sent {
    Nothing,
    Token(String),
    Other,
}

fn bearer(headers: &HeaderMap) -> Sent {
    let mut sent = headers.get_all(header::AUTHORIZATION);
    let value = match (sent.next(), sent.next()) {
        (None, _) => return Sent::Nothing,
        (Some(value), None) => value.to_str().ok().and_then(|value| value.split_once(' ')),
        _ => None,
    };
    match value {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Sent::Token(token.trim().to_owned()),
        _ => Sent::Other,
    }
}

/// Whether this can be a sign-in name (contract, "Types": User).
#[must_use]
pub fn is_sign_in_name(name: &str) -> bool {
    (1..=32).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-'))
}
