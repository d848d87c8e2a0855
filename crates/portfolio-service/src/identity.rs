//! The sign-in name of a caller (contract, "Where the data comes from"): from a header of an authenticating reverse proxy
//! or from a bearer token.

use actix_web::{
    HttpMessage, HttpRequest,
    http::header::{self, HeaderMap},
    web::Data,
};
use common::problem::{Problem, code};
use service_kit::{
    http::{
        jwt::{Expectations, Verifier, keys::Origin},
        proxy::{Proxies, ProxyUser},
    },
    state::AppState,
};

/// The configured sources of identity.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Headers of authenticating proxies.
    pub proxies: Proxies,
    /// Tokens of an issuer.
    pub tokens: Option<(Expectations, Origin)>,
    /// Nothing is configured: the header is believed from this machine.
    pub is_development: bool,
}

/// The sign-in name of the caller; `None` for an anonymous one.
///
/// # Errors
/// 401 for a malformed or bad credential, 403 for a cross-site request, 503 while the issuer's keys are unknown.
pub async fn sign_in_name(request: &HttpRequest, state: &AppState) -> Result<Option<String>, Problem> {
    let refused = |detail: &str| Problem::new(code::BAD_CREDENTIALS).detail(detail);
    let proxy_user = request.extensions().get::<ProxyUser>().cloned().unwrap_or(ProxyUser::Nobody);
    let proxied = match proxy_user {
        ProxyUser::Nobody => None,
        ProxyUser::Name(name) if is_sign_in_name(&name) => Some(name),
        ProxyUser::Name(_) | ProxyUser::Unusable => return Err(refused("The proxy's header is not one sign-in name.")),
    };
    let verifier = request.app_data::<Data<Verifier>>();
    match (bearer(request.headers()), verifier) {
        (Sent::Token(token), Some(verifier)) => {
            let name = verifier.name(&token, state.clock().now()).await?;
            if !is_sign_in_name(&name) || proxied.is_some_and(|proxied| proxied != name) {
                return Err(refused("The token and the proxy do not say one and the same sign-in name."));
            }
            return Ok(Some(name));
        }
        (Sent::Nothing, _) => {}
        // The proxy's own credential, which it may pass on.
        _ if proxied.is_some() => {}
        (_, Some(_)) => return Err(refused("The Authorization header must be Bearer and a token.")),
        (_, None) => return Err(refused("This service takes no credential in the Authorization header.")),
    }
    if proxied.is_some() {
        // The proxy recognizes the user by a cookie, which a browser sends for other sites as well.
        state.origins().check(request.method(), request.headers())?;
    }
    Ok(proxied)
}

/// Whether a request has a token or the header of a trusted proxy, good or bad.
#[must_use]
pub fn has_credential(request: &HttpRequest) -> bool {
    let peer = request.peer_addr().map(|peer| peer.ip());
    let proxies = request.app_data::<Data<Proxies>>();
    request.headers().contains_key(header::AUTHORIZATION)
        || proxies.is_some_and(|proxies| proxies.read(request.headers(), peer) != ProxyUser::Nobody)
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

/// Whether this is a valid sign-in name (contract, "Types": User).
#[must_use]
pub fn is_sign_in_name(name: &str) -> bool {
    (1..=32).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-'))
}
