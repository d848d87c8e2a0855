//! The sign-in name that an authenticating reverse proxy says in a header: believed only from the configured
//! addresses, taken off every request before anything else can read it.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use actix_web::http::header::{HeaderMap, HeaderName};

/// A block of addresses, such as `10.0.0.0/8`, `fd00::/8` or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    base: IpAddr,
    bits: u32,
}

/// The address as a number, with the number of its bits.
fn number(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (address.to_bits().into(), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

/// The leading `bits` of a number that has `width` of them.
fn network(number: u128, bits: u32, width: u32) -> u128 {
    number.checked_shr(width - bits).unwrap_or(0)
}

impl Cidr {
    /// The addresses of this machine itself.
    pub const LOOPBACK: [Self; 2] = [
        Self { base: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), bits: 8 },
        Self { base: IpAddr::V6(Ipv6Addr::LOCALHOST), bits: 128 },
    ];

    /// Whether every address of its kind is in the block.
    #[must_use]
    pub fn is_everybody(&self) -> bool {
        self.bits == 0
    }

    /// Whether the address is in the block. An IPv4 address that came by an IPv6 socket is an IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let ((base, width), (address, other)) = (number(self.base), number(address.to_canonical()));
        width == other && network(base, self.bits, width) == network(address, self.bits, width)
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (base, bits) = text.split_once('/').map_or((text, None), |(base, bits)| (base, Some(bits)));
        let base: IpAddr = base.parse().map_err(|_| format!("{text:?} is no address or block such as 10.0.0.0/8"))?;
        let (address, width) = number(base);
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= width),
            None => Some(width),
        };
        let bits = bits.ok_or_else(|| format!("{text:?}: the prefix must be 0 to {width}"))?;
        // More than the prefix says is likely a slip of the pen, and would open a wider door than it looks like.
        if bits < width && address != network(address, bits, width).checked_shl(width - bits).unwrap_or(0) {
            return Err(format!("{text:?}: the address has bits behind its prefix"));
        }
        Ok(Self { base, bits })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

/// Which headers carry the sign-in name, and from whom.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    /// Who is believed.
    pub trusted: Vec<Cidr>,
    /// In which headers.
    pub headers: Vec<HeaderName>,
}

/// What the proxy says about the caller. The middleware `proxy_user` puts it into the extensions of each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyUser {
    /// Nothing: no header, an empty one or `-`, or one from somebody who is not believed.
    Nobody,
    /// The caller has this name.
    Name(String),
    /// Two different names, a header twice, or no text.
    Unusable,
}

impl Proxies {
    /// What the headers say, left where they are.
    #[must_use]
    pub fn read(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> ProxyUser {
        if !peer.is_some_and(|peer| self.trusted.iter().any(|block| block.contains(peer))) {
            return ProxyUser::Nobody;
        }
        let mut named = ProxyUser::Nobody;
        for header in &self.headers {
            let values: Vec<_> = headers.get_all(header).collect();
            let name = match values.as_slice() {
                [] => continue,
                // What some proxies send of visitors who did not sign in.
                [one] if matches!(one.as_bytes(), b"" | b"-") => continue,
                [one] => one.to_str().map_or(ProxyUser::Unusable, |name| ProxyUser::Name(name.to_owned())),
                _ => ProxyUser::Unusable,
            };
            named = if named == ProxyUser::Nobody || named == name { name } else { ProxyUser::Unusable };
        }
        named
    }

    /// Takes the headers off and says what they said.
    pub fn take(&self, headers: &mut HeaderMap, peer: Option<IpAddr>) -> ProxyUser {
        let named = self.read(headers, peer);
        for header in &self.headers {
            headers.remove(header);
        }
        named
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
    fn a_block_must_be_one() {
        for text in ["", "x", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.1/8", "10.0.0.0/8/8"] {
            assert!(text.parse::<Cidr>().is_err(), "{text}");
        }
    }

    fn named(peer: &str, sent: &[(&'static str, &'static [u8])]) -> ProxyUser {
        let headers = ["x-forwarded-user", "x-showcase-user"].map(HeaderName::from_static).to_vec();
        let proxies = Proxies { trusted: vec![block("10.0.0.0/8")], headers };
        let mut map = HeaderMap::new();
        map.insert(HeaderName::from_static("accept"), HeaderValue::from_static("*/*"));
        for (name, value) in sent {
            map.append(HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
        }
        let found = proxies.take(&mut map, peer.parse().ok());
        assert_eq!(map.len(), 1, "taken off, whoever sent them");
        found
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let alice = [("x-forwarded-user", b"alice".as_slice())];
        assert_eq!(named("10.0.0.1", &alice), ProxyUser::Name("alice".to_owned()));
        assert_eq!(named("::ffff:10.0.0.1", &alice), ProxyUser::Name("alice".to_owned()));
        for other in ["127.0.0.1", "::1", "11.0.0.1", "no address"] {
            assert_eq!(named(other, &alice), ProxyUser::Nobody, "{other}");
        }
    }

    #[test]
    fn what_cannot_be_one_name_is_unusable() {
        let said = |sent: &[(&'static str, &'static [u8])]| named("10.0.0.1", sent);
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
