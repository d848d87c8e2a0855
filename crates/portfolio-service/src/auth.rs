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
use common::{
    input::Id,
    problem::{Problem, code},
};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    db::{AnyConnection, sql::Uid},
    error::{Error, Failure},
    http::{
        Reply,
        frame::LoggedCaller,
        jwt::{Expectations, Verifier, keys::Origin},
        limit::{Charged, Payer},
        proxy::{Named, Proxies},
    },
    server::Service,
};

use crate::{
    club::Club,
    policy::{self, Rule, Target},
    schema::users,
};

/// `users.state` of a user who may do things.
pub const ACTIVE: i16 = 1;

/// The active member behind a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// Their id.
    pub id: Uid,
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
    target: Target,
    service: Data<Service>,
    club: Data<Club>,
    request: HttpRequest,
}

/// What is known of a sign-in name.
#[derive(PartialEq, Eq)]
enum Known {
    No,
    Inactive,
    Active(Caller),
}

impl Visitor {
    /// Runs a reading operation on one snapshot. The caller is there when they are an active member.
    ///
    /// # Errors
    /// Whatever the operation fails with.
    pub async fn read<F>(self, mut operation: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, Option<&Caller>) -> Result<Reply, Error> + Send + 'static,
    {
        let Guard { name, service, club, request, .. } = self.0;
        let seen = Arc::new(OnceLock::new());
        let (log, limited) = (seen.clone(), service.clone());
        let done = service.db().read(move |conn| {
            let caller = match &name {
                Some(name) => look_up(conn, &club, name)?,
                None => Known::No,
            };
            match caller {
                Known::Active(caller) => {
                    found(&limited, &seen, &caller)?;
                    operation(conn, Some(&caller))
                }
                // Who may not do anything sees what everybody sees.
                Known::Inactive | Known::No => operation(conn, None),
            }
        });
        finish(&request, done.await, &log)
    }
}

impl Member {
    /// Runs a reading operation on one snapshot.
    ///
    /// # Errors
    /// As the guard says; whatever the operation fails with.
    pub async fn read<F>(self, mut operation: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        let (service, request, seen) = (self.0.service.clone(), self.0.request.clone(), Arc::new(OnceLock::new()));
        let guarded = self.guarded(seen.clone());
        let done = service.db().read(move |conn| guarded(conn).and_then(|me| operation(conn, &me)));
        finish(&request, done.await, &seen)
    }

    /// Runs a writing operation in a transaction, which may run more than once.
    ///
    /// # Errors
    /// As the guard says; whatever the operation fails with.
    pub async fn write<F>(self, mut operation: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &Caller) -> Result<Reply, Error> + Send + 'static,
    {
        let (service, request, seen) = (self.0.service.clone(), self.0.request.clone(), Arc::new(OnceLock::new()));
        let guarded = self.guarded(seen.clone());
        let done = service.db().write(move |conn| guarded(conn).and_then(|me| operation(conn, &me)));
        finish(&request, done.await, &seen)
    }

    fn guarded(
        self,
        seen: Arc<OnceLock<Uid>>,
    ) -> impl Fn(&mut AnyConnection) -> Result<Caller, Error> + Send + 'static {
        let Guard { name, rule, target, service, club, .. } = self.0;
        move |conn| {
            let name = name.as_deref().ok_or_else(not_signed_in)?;
            let me = match look_up(conn, &club, name)? {
                Known::Active(caller) => caller,
                Known::Inactive => return Err(Problem::new(code::ACCOUNT_INACTIVE).into()),
                Known::No if rule == Rule::Known => return Err(Problem::not_found("user of your name").into()),
                Known::No => return Err(Problem::forbidden("a member of the club").into()),
            };
            found(&service, &seen, &me)?;
            policy::check(conn, rule, &me, &target)?;
            Ok(me)
        }
    }
}

fn look_up(conn: &mut AnyConnection, club: &Club, name: &str) -> Result<Known, Error> {
    let found: Option<(Uid, i16)> =
        users::table.filter(users::name.eq(name)).select((users::id, users::state)).first(conn).optional()?;
    Ok(match found {
        Some((id, ACTIVE)) => Known::Active(Caller { id, admin: club.admins.contains(name) }),
        Some(_) => Known::Inactive,
        None => Known::No,
    })
}

/// Charges a request to whom it is from; once, as a transaction may run more often.
fn found(service: &Service, seen: &OnceLock<Uid>, caller: &Caller) -> Result<(), Problem> {
    if seen.set(caller.id).is_ok() { service.limit().charge(Payer::User(caller.id.0)) } else { Ok(()) }
}

fn finish(request: &HttpRequest, done: Result<Reply, Error>, seen: &OnceLock<Uid>) -> Result<Reply, Failure> {
    if let Some(caller) = seen.get() {
        request.extensions_mut().insert(LoggedCaller(caller.0));
        request.extensions_mut().insert(Charged);
    }
    Ok(done?)
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
    let service = request.app_data::<Data<Service>>().ok_or_else(absent)?.clone();
    let club = request.app_data::<Data<Club>>().ok_or_else(absent)?.clone();
    let route = request.match_pattern().unwrap_or_default();
    let rule = policy::rule(request.method(), &route)
        .ok_or_else(|| Problem::internal(format!("{} {route} has no rule", request.method())))?;
    let ids = request.match_info().iter();
    let ids = ids.filter_map(|(name, value)| Some((name.to_owned(), Uid::from(value.parse::<Id>().ok()?))));
    let target = Target(ids.collect());
    let name = sign_in_name(&request, &service).await?;
    Ok(Guard { name, rule, target, service, club, request })
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
async fn sign_in_name(request: &HttpRequest, service: &Service) -> Result<Option<String>, Problem> {
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
