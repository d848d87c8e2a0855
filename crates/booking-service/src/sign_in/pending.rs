//! A sign-in under way, kept in the browser and nowhere else; and the cookie that holds it, or the session.

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
    credentials::{self, Keys, Which},
    error::Error,
    http::origin::Origins,
};

use crate::{
    auth::{PENDING_MARK, SESSION_COOKIE},
    club::Club,
};

/// How long a sign-in may take.
pub const MAX_AGE: TimeDelta = TimeDelta::minutes(10);

/// How long a session lasts.
pub const SESSION: TimeDelta = TimeDelta::days(30);

/// The use for which the keys seal a sign-in.
const SEAL: &str = "login";

/// A sign-in that has begun and is not finished. A provider that wants PKCE derives its verifier from the state and the
/// key by which it began ([`Keys::derive_by`]), so none is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Comes back with the callback, which so was started by this browser (RFC 6749, section 10.12).
    pub state: String,
    /// Comes back inside what the provider says, which so was said for this sign-in.
    pub nonce: String,
    /// Hash of the session that the browser had when it began; it ends when this one begins.
    pub previous: Option<Vec<u8>>,
    /// The other origin whose page began it, and to which the browser returns.
    #[serde(default)]
    pub origin: Option<String>,
    /// The key that sealed it, or will.
    #[serde(skip)]
    pub key: Which,
    expires_micros: i64,
}

impl Pending {
    /// Begins one in the browser that sent `req`.
    ///
    /// # Errors
    /// When the operating system has no randomness to give.
    pub fn begin(req: &HttpRequest, origins: &Origins, keys: &Keys, now: Timestamp) -> Result<Self, Error> {
        let origin = req.headers().get(header::ORIGIN).and_then(|value| value.to_str().ok());
        let previous = match Self::of(req, keys) {
            Some(unfinished) => unfinished.previous,
            None => req.cookie(SESSION_COOKIE).map(|cookie| credentials::hash(cookie.value())),
        };
        Ok(Self {
            state: credentials::random_secret()?,
            nonce: credentials::random_secret()?,
            previous,
            origin: origin.filter(|origin| origins.is_other(origin)).map(str::to_owned),
            key: Which::default(),
            expires_micros: now.plus(MAX_AGE).micros(),
        })
    }

    /// The one under way in the browser that sent `req`. It may have expired.
    #[must_use]
    pub fn of(req: &HttpRequest, keys: &Keys) -> Option<Self> {
        let cookie = req.cookie(SESSION_COOKIE)?;
        let (key, json) = keys.open_by(SEAL, cookie.value().strip_prefix(PENDING_MARK)?)?;
        Some(Self { key, ..serde_json::from_str(&json).ok()? })
    }

    /// Whether a callback with this state finishes it.
    #[must_use]
    pub fn accepts(&self, state: &str, now: Timestamp) -> bool {
        credentials::same(&self.state, state) && now.micros() < self.expires_micros
    }

    /// The `Set-Cookie` that keeps it in the browser.
    #[must_use]
    pub fn cookie(&self, club: &Club, now: Timestamp) -> String {
        let json = serde_json::json!(self).to_string();
        set_cookie(club, format!("{PENDING_MARK}{}", club.keys.seal(SEAL, json)), Some((now, MAX_AGE)))
    }
}

/// The `Set-Cookie` of a session that begins now.
#[must_use]
pub fn session_cookie(club: &Club, secret: &str, now: Timestamp) -> String {
    set_cookie(club, secret.to_owned(), Some((now, SESSION)))
}

/// The `Set-Cookie` that takes session or sign-in from the browser.
#[must_use]
pub fn no_cookie(club: &Club) -> String {
    set_cookie(club, String::new(), None)
}

/// Both `Max-Age` and `Expires`, because old clients know only the latter.
fn set_cookie(club: &Club, value: String, lasting: Option<(Timestamp, TimeDelta)>) -> String {
    let (max_age, expires) = match lasting {
        Some((now, lasts)) => (lasts.num_seconds(), now.plus(lasts).utc().timestamp()),
        None => (0, 0),
    };
    Cookie::build(SESSION_COOKIE, value)
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(club.is_https)
        .max_age(Duration::seconds(max_age))
        .expires(OffsetDateTime::from_unix_timestamp(expires).unwrap_or(OffsetDateTime::UNIX_EPOCH))
        .finish()
        .to_string()
}
