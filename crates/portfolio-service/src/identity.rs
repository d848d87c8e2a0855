//! The sign-in name of a caller (contract, "Where the data comes from"), from a header of an authenticating reverse
//! proxy, from a bearer token, or by a session.

use actix_web::{
    HttpMessage, HttpRequest,
    http::header::{self, HeaderMap},
    web::Data,
};
use club_issuer::joining::comparable_address;
pub use club_issuer::joining::is_sign_in_name;
use club_sign_in::SignIn;
use common::problem::{Problem, code};
use service_kit::{history::By, state::AppState};

use crate::{
    bearer::{BearerSettings, BearerTokens, NameKind, Named},
    proxy_user::{Proxies, ProxyUser},
};

/// The page of development mode on which anybody on this machine chooses a user.
pub const DEVELOPMENT_PAGE: &str = "/dev/sign-in";

/// The configured sources of identity.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Trusted proxies and the headers in which they send the sign-in name.
    pub proxies: Proxies,
    /// The issuer of bearer tokens, and what its tokens must have.
    pub bearer: Option<BearerSettings>,
    /// No source is configured: the headers of every client on this machine are trusted.
    pub is_development: bool,
    /// Whether the service signs people in itself.
    pub signs_in: bool,
    /// The address on which people sign in, with `{to}` for the page to return to.
    pub sign_in: Option<String>,
}

/// Who a request is from, by their sign-in name.
#[derive(Clone, PartialEq, Eq)]
pub enum Person {
    /// Nobody has signed in.
    Anonymous,
    /// Somebody whom a trusted proxy or the issuer has signed in, but whose name is neither a sign-in name nor an
    /// e-mail address: no member.
    Unnamed,
    /// This name, or the e-mail address of a user in the directory.
    Named(Named),
}

impl Person {
    /// Reads the credential of a request.
    ///
    /// # Errors
    /// 401 for a malformed or bad credential, 403 for a cross-site request, 503 while the issuer's keys are unknown.
    pub async fn from_request(request: &HttpRequest, state: &AppState) -> Result<Self, Problem> {
        let bad_credentials = |detail: &str| Problem::new(code::BAD_CREDENTIALS).detail(detail);
        let proxy_user = request.extensions().get::<ProxyUser>().cloned().unwrap_or(ProxyUser::Anonymous);
        let proxied = match proxy_user {
            ProxyUser::Anonymous => Self::Anonymous,
            ProxyUser::Name(name) => Self::proxied(name, NameKind::User),
            ProxyUser::Address(name) => Self::proxied(name, NameKind::Address),
            ProxyUser::Unusable => return Err(bad_credentials("The headers of the proxy do not name one user.")),
        };
        let tokens = request.app_data::<Data<BearerTokens>>();
        match (Authorization::from_headers(request.headers()), tokens) {
            (Authorization::Bearer(token), Some(tokens)) => {
                let person = Self::named(tokens.check(&token, state.clock.now()).await?);
                if proxied != Self::Anonymous && proxied.name() != person.name() {
                    return Err(bad_credentials("The token has not the sign-in name that the proxy sends."));
                }
                return Ok(person);
            }
            (Authorization::None, _) => {}
            // A proxy may forward the credential by which it has identified the user.
            _ if proxied != Self::Anonymous => {}
            (_, Some(_)) => return Err(bad_credentials("The Authorization header must be Bearer and a token.")),
            (_, None) => {
                return Err(bad_credentials("This service accepts no credential in the Authorization header."));
            }
        }
        let session = if proxied == Self::Anonymous { session(request) } else { None };
        let person = match session {
            Some(name) => Self::Named(Named { name, kind: NameKind::Session, by: By::Session, is_admin: false }),
            None => proxied,
        };
        if let Self::Named(_) = person {
            // The user is identified by a cookie, of the proxy or of this service, which a browser also sends with
            // requests that other sites start.
            state.origins.check(request.method(), request.headers())?;
        }
        Ok(person)
    }

    fn proxied(name: String, kind: NameKind) -> Self {
        Self::named(Named { name, kind, by: By::Proxy, is_admin: false })
    }

    /// The person of a sign-in name, or of an e-mail address that the proxy or the issuer has verified.
    fn named(mut named: Named) -> Self {
        if named.kind == NameKind::Address {
            let Some(address) = comparable_address(&named.name) else { return Self::Unnamed };
            named.name = address;
        } else if !is_sign_in_name(&named.name) {
            return Self::Unnamed;
        }
        Self::Named(named)
    }

    fn name(&self) -> Option<&str> {
        if let Self::Named(named) = self { Some(&named.name) } else { None }
    }

    /// Who is named, if anybody is.
    pub fn into_named(self) -> Option<Named> {
        if let Self::Named(named) = self { Some(named) } else { None }
    }
}

/// The session of a request, valid or not, if the service signs people in.
fn session(request: &HttpRequest) -> Option<String> {
    request.app_data::<Data<SignIn>>()?.site.service.session(request)
}

/// Whether a request has a token, a session or the header of a trusted proxy, valid or not.
pub fn has_credential(request: &HttpRequest) -> bool {
    // The middleware has taken the headers off, if it has run.
    let user = request.extensions().get::<ProxyUser>().cloned().unwrap_or_else(|| {
        let (peer, proxies) = (request.peer_addr().map(|peer| peer.ip()), request.app_data::<Data<Proxies>>());
        proxies.map_or(ProxyUser::Anonymous, |proxies| proxies.read(request.headers(), peer))
    });
    request.headers().contains_key(header::AUTHORIZATION) || user != ProxyUser::Anonymous || session(request).is_some()
}

/// The `Authorization` header of a request.
enum Authorization {
    None,
    Bearer(String),
    /// Another scheme, or more than one header.
    Other,
}

impl Authorization {
    fn from_headers(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header::AUTHORIZATION);
        let value = match (values.next(), values.next()) {
            (None, _) => return Self::None,
            (Some(value), None) => value.to_str().ok().and_then(|value| value.split_once(' ')),
            _ => None,
        };
        match value {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Self::Bearer(token.trim().to_owned()),
            _ => Self::Other,
        }
    }
}
