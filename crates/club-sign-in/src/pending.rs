//! Pending sign-ins, which only the browser stores, and the cookies of sign-ins and sessions.
//!
//! * Each pending sign-in has a cookie of its own, named after its state, so that those of several tabs do not end each
//!   other.
//! * `POST /authParams` also sets a cookie `session` (contract, "Sign-in"), for programs that store no other. A browser
//!   sends it only to the callback, so that it never replaces a session.

use actix_web::{
    HttpRequest,
    cookie::{
        Cookie, SameSite,
        time::{Duration, OffsetDateTime},
    },
    http::header,
};
use chrono::TimeDelta;
use common::time::Timestamp;
use serde::{Deserialize, Serialize};
use service_kit::{
    credentials::{self, KeyIndex, Keys},
    error::Error,
    http::origin::Origins,
};

use crate::site::{Service, Site};

/// Prefix of the session cookie's value while it contains a pending sign-in. A session's value has no dot.
const PENDING_MARK: &str = "login.";

/// How long a sign-in may take.
pub const MAX_AGE: TimeDelta = TimeDelta::minutes(10);

/// How long a session lasts.
pub const SESSION: TimeDelta = TimeDelta::days(30);

/// How long a sign-in takes at most if the user need not enter anything.
const QUICK: TimeDelta = TimeDelta::seconds(30);

/// The most pending sign-ins of a browser.
const MAX_PENDING: usize = 10;

/// The most pending sign-ins that one answer removes.
const MAX_REMOVED: usize = 3;

/// The beginning of the name of a pending sign-in's cookie.
const LOGIN_COOKIE: &str = "login_";

/// How many characters of the state are part of that name.
const NAME_LENGTH: usize = 8;

/// The use for which the keys mark a state.
const STATE: &str = "state";

/// The use for which the keys seal a sign-in.
const SEAL: &str = "login";

/// A sign-in that has begun and is not finished. A provider that wants PKCE derives its verifier from the state and the
/// key by which it began ([`Keys::derive_by`]), so no verifier is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingSignIn {
    /// The callback contains it, which proves that this browser began the sign-in (RFC 6749, section 10.12).
    pub state: String,
    /// The provider's answer contains it, which proves that the answer is for this sign-in.
    pub nonce: String,
    /// Hash of the session that the browser had when the sign-in began; a finished sign-in ends it.
    pub previous: Option<Vec<u8>>,
    /// The other origin whose page began it, and to which the browser returns.
    #[serde(default)]
    pub origin: Option<String>,
    /// The address of the page of this service to which the browser returns; `None` for the usual one.
    #[serde(default)]
    pub page: Option<String>,
    /// The secret of the invitation by which the person comes.
    #[serde(default)]
    pub invitation: Option<String>,
    /// The key that encrypts it.
    #[serde(skip)]
    pub key: KeyIndex,
    expires_micros: i64,
}

impl PendingSignIn {
    /// Begins one in the browser that sent `req`.
    pub fn begin(req: &HttpRequest, origins: &Origins, site: &Site, now: Timestamp) -> Result<Self, Error> {
        let origin = req.headers().get(header::ORIGIN).and_then(|value| value.to_str().ok());
        // A program that stores one cookie has a pending sign-in instead of the session.
        let Site { keys, service, .. } = site;
        let cookie = req.cookie(service.session_cookie);
        let previous = match cookie.and_then(|cookie| Self::in_session(keys, cookie.value())) {
            Some(unfinished) => unfinished.previous,
            None => service.session(req).map(|secret| credentials::hash(&secret)),
        };
        Ok(Self {
            state: new_state(keys)?,
            nonce: credentials::random_secret()?,
            previous,
            origin: origin.filter(|origin| origins.is_other(origin)).map(str::to_owned),
            page: None,
            invitation: None,
            key: KeyIndex::default(),
            expires_micros: now.plus(MAX_AGE).micros(),
        })
    }

    /// The pending sign-in with this state in the browser that sent `req`.
    pub fn from_request(req: &HttpRequest, site: &Site, state: &str, now: Timestamp) -> Option<Self> {
        let (cookies, name, keys) = (req.cookies().ok()?, cookie_name(state), &site.keys);
        let has_session = site.service.session(req).is_some();
        let mut logins = cookies.iter().filter_map(|cookie| match cookie.name() {
            other if other == site.service.session_cookie && !has_session => Self::in_session(keys, cookie.value()),
            other if other == name => Self::open(keys, cookie.value()),
            _ => None,
        });
        logins.find(|login| credentials::same(&login.state, state) && !login.has_expired(now))
    }

    fn in_session(keys: &Keys, cookie: &str) -> Option<Self> {
        Self::open(keys, cookie.strip_prefix(PENDING_MARK)?)
    }

    fn open(keys: &Keys, sealed: &str) -> Option<Self> {
        let (key, json) = keys.open_by(SEAL, sealed)?;
        Some(Self { key, ..serde_json::from_str(&json).ok()? })
    }

    fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_micros <= now.micros()
    }

    /// The `Set-Cookie` values that store it in the browser that sent `req`, and that remove some of the oldest of
    /// more than [`MAX_PENDING`].
    pub fn cookies(&self, req: &HttpRequest, site: &Site, now: Timestamp) -> Vec<String> {
        let sealed = site.keys.seal(SEAL, serde_json::json!(self).to_string());
        let own = set_cookie(site, &cookie_name(&self.state), sealed, "/", Some((now, MAX_AGE)));
        let surplus = surplus(req, &site.keys, now);
        std::iter::once(own)
            .chain(surplus.iter().map(|name| set_cookie(site, name, String::new(), "/", None)))
            .collect()
    }

    /// The `Set-Cookie` that stores it as the cookie `session`.
    pub fn session_cookie(&self, req: &HttpRequest, site: &Site, now: Timestamp) -> String {
        let value = format!("{PENDING_MARK}{}", site.keys.seal(SEAL, serde_json::json!(self).to_string()));
        // Browsers send an origin with every POST, programs do not.
        let path = if req.headers().contains_key(header::ORIGIN) { site.service.callback } else { "/" };
        set_cookie(site, site.service.session_cookie, value, path, Some((now, MAX_AGE)))
    }

    /// The `Set-Cookie` that removes it from the browser.
    pub fn no_cookie(&self, site: &Site) -> String {
        set_cookie(site, &cookie_name(&self.state), String::new(), "/", None)
    }
}

/// A state: random, and marked as ours, see [`is_ours`].
fn new_state(keys: &Keys) -> Result<String, Error> {
    let random = credentials::random_secret()?;
    Ok(format!("{random}.{}", keys.derive(&[STATE, &random])))
}

/// Whether a sign-in of this installation has this state, in whichever browser it began.
pub fn is_ours(keys: &Keys, state: &str) -> bool {
    state.split_once('.').is_some_and(|(random, mark)| keys.has_derived(&[STATE, random], mark))
}

/// Whether another sign-in began less than 30 seconds ago in the browser that sent `req`, so that it may end soon.
pub fn has_other(req: &HttpRequest, keys: &Keys, state: &str, now: Timestamp) -> bool {
    let (Ok(cookies), own) = (req.cookies(), cookie_name(state)) else { return false };
    let mut others = cookies.iter().filter(|cookie| cookie.name().starts_with(LOGIN_COOKIE) && cookie.name() != own);
    others.any(|cookie| {
        let login = PendingSignIn::open(keys, cookie.value());
        login.is_some_and(|login| now.plus(MAX_AGE - QUICK).micros() < login.expires_micros)
    })
}

/// The name of the cookie of the sign-in with this state.
fn cookie_name(state: &str) -> String {
    format!("{LOGIN_COOKIE}{}", state.get(..NAME_LENGTH).unwrap_or_default())
}

/// The names of the cookies to remove for one more sign-in: the oldest ones. A cookie that is not a pending sign-in of
/// this service may be another program's.
fn surplus(req: &HttpRequest, keys: &Keys, now: Timestamp) -> Vec<String> {
    let Ok(cookies) = req.cookies() else { return Vec::new() };
    let mut logins: Vec<_> = cookies
        .iter()
        .filter(|cookie| cookie.name().starts_with(LOGIN_COOKIE))
        .filter_map(|cookie| {
            let login = PendingSignIn::open(keys, cookie.value())?;
            Some((login.expires_micros, login.has_expired(now), cookie.name().to_owned()))
        })
        .collect();
    logins.sort();
    let expired = logins.iter().filter(|(_, has_expired, _)| *has_expired).count();
    logins.truncate(expired.max((logins.len() + 1).saturating_sub(MAX_PENDING)).min(MAX_REMOVED));
    logins.into_iter().map(|(_, _, name)| name).collect()
}

/// The value of a session cookie with this name, valid or not. A pending sign-in is not a session.
pub fn session(req: &HttpRequest, name: &str) -> Option<String> {
    let cookies = req.cookies().ok()?;
    let mut values = cookies.iter().filter(|cookie| cookie.name() == name).map(Cookie::value);
    values.find(|value| !value.is_empty() && !value.starts_with(PENDING_MARK)).map(str::to_owned)
}

impl Service {
    /// The value of the session cookie, valid or not.
    pub fn session(&self, req: &HttpRequest) -> Option<String> {
        session(req, self.session_cookie)
    }
}

/// The `Set-Cookie` of a session that begins now.
pub fn session_cookie(site: &Site, secret: &str, now: Timestamp) -> String {
    set_cookie(site, site.service.session_cookie, secret.to_owned(), "/", Some((now, SESSION)))
}

/// The `Set-Cookie` that removes the session from the browser.
pub fn no_session_cookie(site: &Site) -> String {
    set_cookie(site, site.service.session_cookie, String::new(), "/", None)
}

/// Both `Max-Age` and `Expires`, because old clients know only the latter.
fn set_cookie(site: &Site, name: &str, value: String, path: &str, lifetime: Option<(Timestamp, TimeDelta)>) -> String {
    let (max_age, expires) = match lifetime {
        Some((now, duration)) => (duration.num_seconds(), now.plus(duration).utc().timestamp()),
        None => (0, 0),
    };
    Cookie::build(name, value)
        .path(path)
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(site.is_https)
        .max_age(Duration::seconds(max_age))
        .expires(OffsetDateTime::from_unix_timestamp(expires).unwrap_or(OffsetDateTime::UNIX_EPOCH))
        .finish()
        .to_string()
}
