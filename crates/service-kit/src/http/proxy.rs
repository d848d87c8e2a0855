//! The sign-in name that an authenticating reverse proxy sends in a header. Only the configured addresses are trusted;
//! the header is removed from every request before anything else can read it.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use actix_web::http::header::{HeaderMap, HeaderName};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// A block of addresses, such as `10.0.0.0/8`, `fd00::/8` or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr(IpNet);

/// Unique local addresses (RFC 4193), the only private block larger than the limits of [`Cidr::is_too_large`].
const PRIVATE: IpNet = IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7));

impl Cidr {
    /// The addresses of this machine itself.
    pub const LOOPBACK: [Self; 2] = [
        Self(IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8))),
        Self(IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128))),
    ];

    /// Whether the block has more public addresses than any operator of proxies: more than an IPv4 /8 or an IPv6 /16.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        let shortest = if self.0.addr().is_ipv4() { 8 } else { 16 };
        self.0.prefix_len() < shortest && !PRIVATE.contains(&self.0)
    }

    /// Whether the address is in the block. An IPv4-mapped IPv6 address counts as the IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let block = match text.parse::<IpAddr>() {
            Ok(address) => IpNet::from(address),
            Err(_) => text.parse().map_err(|_| format!("{text:?} is no address or block such as 10.0.0.0/8"))?,
        };
        // A typing error would trust more addresses than the text seems to say.
        if block.addr() != block.network() {
            return Err(format!("{text:?}: the address has bits behind its prefix"));
        }
        Ok(Self(block))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The proxies that may name the signed-in user, and their headers.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    /// The addresses of trusted proxies.
    pub trusted: Vec<Cidr>,
    /// The headers with the sign-in name.
    pub headers: Vec<HeaderName>,
}

/// The caller as named by the proxy. The middleware `proxy_user` puts it into the extensions of each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyUser {
    /// No user: no header, an empty one or `-`, or a header from an address that is not trusted.
    Nobody,
    /// The caller has this name.
    Name(String),
    /// Two different names, a repeated header, or a name that is not text.
    Unusable,
}

impl Proxies {
    /// What the headers say, left where they are.
    #[must_use]
    pub fn read(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> ProxyUser {
        if !peer.is_some_and(|peer| self.trusted.iter().any(|block| block.contains(peer))) {
            return ProxyUser::Nobody;
        }
        let mut user = ProxyUser::Nobody;
        for header in &self.headers {
            let values: Vec<_> = headers.get_all(header).collect();
            let name = match values.as_slice() {
                [] => continue,
                // What some proxies send of visitors who did not sign in.
                [one] if matches!(one.as_bytes(), b"" | b"-") => continue,
                [one] => one.to_str().map_or(ProxyUser::Unusable, |name| ProxyUser::Name(name.to_owned())),
                _ => ProxyUser::Unusable,
            };
            user = if user == ProxyUser::Nobody || user == name { name } else { ProxyUser::Unusable };
        }
        user
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

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn block(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn a_block_contains_what_shares_its_prefix() {
        for (text, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("10.1.2.3/32", "::ffff:10.1.2.3", "::10.1.2.3"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("::/0", "fe80::1", "127.0.0.1"),
            ("fd00::/8", "fdff::1", "fe00::"),
            ("172.16.0.0/12", "172.31.255.255", "172.32.0.0"),
        ] {
            assert!(block(text).contains(inside.parse().unwrap()), "{inside} in {text}");
            assert!(!block(text).contains(outside.parse().unwrap()), "{outside} in {text}");
        }
        assert_eq!(block("::1").to_string(), "::1/128");
        for loopback in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            assert!(Cidr::LOOPBACK.iter().any(|block| block.contains(loopback.parse().unwrap())), "{loopback}");
        }
    }

    #[test]
    fn a_block_of_half_the_internet_is_too_large() {
        for text in ["0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1", "10.0.0.0/7", "::/0", "2000::/3", "2000::/15", "fe00::/9"]
        {
            assert!(text.parse::<Cidr>().is_err() || block(text).is_too_large(), "{text}");
        }
        for text in ["10.0.0.0/8", "203.0.113.0/24", "127.0.0.1", "fd00::/8", "fc00::/7", "2001::/16", "::1"] {
            assert!(!block(text).is_too_large(), "{text}");
        }
    }

    #[test]
    fn a_block_must_be_one() {
        for text in ["", "x", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.1/8", "10.0.0.0/8/8"] {
            assert!(text.parse::<Cidr>().is_err(), "{text}");
        }
    }

    fn user(peer: &str, sent_headers: &[(&'static str, &'static [u8])]) -> ProxyUser {
        let headers = ["x-forwarded-user", "x-showcase-user"].map(HeaderName::from_static).to_vec();
        let proxies = Proxies { trusted: vec![block("10.0.0.0/8")], headers };
        let mut map = HeaderMap::new();
        map.insert(HeaderName::from_static("accept"), HeaderValue::from_static("*/*"));
        for (name, value) in sent_headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
        }
        let found = proxies.take(&mut map, peer.parse().ok());
        assert_eq!(map.len(), 1, "taken off, whoever sends them");
        found
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let alice = [("x-forwarded-user", b"alice".as_slice())];
        assert_eq!(user("10.0.0.1", &alice), ProxyUser::Name("alice".to_owned()));
        assert_eq!(user("::ffff:10.0.0.1", &alice), ProxyUser::Name("alice".to_owned()));
        for other in ["127.0.0.1", "::1", "11.0.0.1", "no address"] {
            assert_eq!(user(other, &alice), ProxyUser::Nobody, "{other}");
        }
    }

    #[test]
    fn what_cannot_be_one_name_is_unusable() {
        let said = |headers: &[(&'static str, &'static [u8])]| user("10.0.0.1", headers);
        let (forwarded, showcase) = ("x-forwarded-user", "x-showcase-user");
        assert_eq!(said(&[]), ProxyUser::Nobody);
        assert_eq!(said(&[(forwarded, b"")]), ProxyUser::Nobody);
        assert_eq!(said(&[(showcase, b"-")]), ProxyUser::Nobody);
        assert_eq!(said(&[(forwarded, b"bob"), (showcase, b"-")]), ProxyUser::Name("bob".to_owned()));
        assert_eq!(said(&[(forwarded, b"bob"), (showcase, b"bob")]), ProxyUser::Name("bob".to_owned()));
        assert_eq!(said(&[(forwarded, b"bob"), (showcase, b"alice")]), ProxyUser::Unusable);
        assert_eq!(said(&[(forwarded, b"bob"), (forwarded, b"bob")]), ProxyUser::Unusable);
        assert_eq!(said(&[(forwarded, b"b\xf6b")]), ProxyUser::Unusable);
    }
}
