//! The sign-in name that an authenticating reverse proxy sends in a header. Only the configured addresses are trusted;
//! the header is removed from every request before anything else can read it.

use std::net::IpAddr;

use actix_web::{
    Error, HttpMessage,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    http::header::{self, HeaderMap, HeaderName},
    middleware::Next,
    web::Data,
};
use service_kit::http::cidr::Cidr;

/// The proxies that may name the signed-in user, and their headers.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    /// The addresses of trusted proxies.
    pub trusted: Vec<Cidr>,
    /// The headers with the sign-in name, or with a verified e-mail address if their names end in `-email`.
    pub headers: Vec<HeaderName>,
    /// The cookie with the sign-in name, where no header has one; only in development mode.
    pub cookie: Option<&'static str>,
}

/// The cookie with the name of the user whom the page of development mode has signed in.
pub const DEVELOPMENT_COOKIE: &str = "development_user";

/// The caller as named by the proxy. The middleware [`proxy_user`] puts it into the extensions of each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyUser {
    /// No user: no header, an empty one or `-`, or a header from an address that is not trusted.
    Anonymous,
    /// The caller has this name.
    Name(String),
    /// The caller has this e-mail address, which the proxy has verified.
    Address(String),
    /// Two different names, or a repeated header.
    Unusable,
}

impl Proxies {
    /// The user that the headers name. Does not remove the headers.
    pub fn read(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> ProxyUser {
        if !peer.is_some_and(|peer| self.trusted.iter().any(|block| block.contains(peer))) {
            return ProxyUser::Anonymous;
        }
        let mut user = ProxyUser::Anonymous;
        for header in &self.headers {
            let values: Vec<_> = headers.get_all(header).collect();
            let name = match values.as_slice() {
                [] => continue,
                // Some proxies send this for visitors who did not sign in.
                [value] if matches!(value.as_bytes(), b"" | b"-") => continue,
                // Bytes that are not text become a character that no sign-in name has.
                [value] => {
                    let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
                    let is_address = header.as_str().ends_with("-email");
                    if is_address { ProxyUser::Address(text) } else { ProxyUser::Name(text) }
                }
                _ => ProxyUser::Unusable,
            };
            user = if user == ProxyUser::Anonymous || user == name { name } else { ProxyUser::Unusable };
        }
        if user == ProxyUser::Anonymous { self.in_cookie(headers).unwrap_or(user) } else { user }
    }

    fn in_cookie(&self, headers: &HeaderMap) -> Option<ProxyUser> {
        let (wanted, sent) = (self.cookie?, headers.get_all(header::COOKIE));
        let cookies = sent.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
        let mut pairs = cookies.filter_map(|cookie| cookie.trim().split_once('='));
        pairs.find(|(name, _)| *name == wanted).map(|(_, name)| ProxyUser::Name(name.to_owned()))
    }

    /// Removes the headers and returns the user that they named.
    pub fn take(&self, headers: &mut HeaderMap, peer: Option<IpAddr>) -> ProxyUser {
        let user = self.read(headers, peer);
        for header in &self.headers {
            headers.remove(header);
        }
        user
    }
}

/// Moves the name from the headers to the extensions, as a [`ProxyUser`]. The headers of an untrusted peer are removed
/// and ignored. Without `Data<Proxies>` no proxy is trusted.
pub async fn proxy_user<B: MessageBody>(mut req: ServiceRequest, next: Next<B>) -> Result<ServiceResponse<B>, Error> {
    // The address of the connection, never one from a header: anybody may send those.
    let peer = req.peer_addr().map(|peer| peer.ip());
    let user = match req.app_data::<Data<Proxies>>().cloned() {
        Some(proxies) => proxies.take(req.headers_mut(), peer),
        None => ProxyUser::Anonymous,
    };
    req.extensions_mut().insert(user);
    next.call(req).await
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn user(peer: &str, sent_headers: &[(&'static str, &'static [u8])]) -> ProxyUser {
        let headers = ["x-forwarded-user", "x-showcase-user"].map(HeaderName::from_static).to_vec();
        let proxies = Proxies { trusted: vec!["10.0.0.0/8".parse().unwrap()], headers, cookie: None };
        let mut map = HeaderMap::new();
        map.insert(HeaderName::from_static("accept"), HeaderValue::from_static("*/*"));
        for (name, value) in sent_headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
        }
        let user = proxies.take(&mut map, peer.parse().ok());
        assert_eq!(map.len(), 1, "taken off, whoever sends them");
        user
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let alice = [("x-forwarded-user", b"alice".as_slice())];
        assert_eq!(user("10.0.0.1", &alice), ProxyUser::Name("alice".to_owned()));
        assert_eq!(user("::ffff:10.0.0.1", &alice), ProxyUser::Name("alice".to_owned()));
        for other in ["127.0.0.1", "::1", "11.0.0.1", "no address"] {
            assert_eq!(user(other, &alice), ProxyUser::Anonymous, "{other}");
        }
    }

    #[test]
    fn what_is_not_one_name_is_unusable() {
        let user_of = |headers: &[(&'static str, &'static [u8])]| user("10.0.0.1", headers);
        let (forwarded, showcase) = ("x-forwarded-user", "x-showcase-user");
        assert_eq!(user_of(&[]), ProxyUser::Anonymous);
        assert_eq!(user_of(&[(forwarded, b"")]), ProxyUser::Anonymous);
        assert_eq!(user_of(&[(showcase, b"-")]), ProxyUser::Anonymous);
        assert_eq!(user_of(&[(forwarded, b"bob"), (showcase, b"-")]), ProxyUser::Name("bob".to_owned()));
        assert_eq!(user_of(&[(forwarded, b"bob"), (showcase, b"bob")]), ProxyUser::Name("bob".to_owned()));
        assert_eq!(user_of(&[(forwarded, b"bob"), (showcase, b"alice")]), ProxyUser::Unusable);
        assert_eq!(user_of(&[(forwarded, b"bob"), (forwarded, b"bob")]), ProxyUser::Unusable);
        assert_eq!(user_of(&[(forwarded, b"b\xf6b")]), ProxyUser::Name("b\u{fffd}b".to_owned()));
    }
}
