//! The address of the client that a request comes from, also behind reverse proxies.

use std::{
    future::{Ready, ready},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Once,
};

use actix_web::{
    FromRequest, HttpRequest,
    dev::Payload,
    http::header::{HeaderMap, HeaderName},
    web::Data,
};

use super::cidr::Cidr;
use crate::error::Failure;

/// The header to which each proxy appends the address it received the request from.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Whether the log has a warning about a proxy that is not trusted.
static UNTRUSTED: Once = Once::new();

/// The reverse proxies whose `X-Forwarded-For` is trusted, in the application's data.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(pub Vec<Cidr>);

/// The client's address. It is the peer's address, unless the peer is a trusted proxy: then it is the last address of
/// all `X-Forwarded-For` lines that is not a trusted proxy itself. Earlier addresses may be invented by the client.
/// Without a readable address there, the proxy counts as the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientIp(pub IpAddr);

impl ClientIp {
    /// The address of the client that sent `req`.
    pub fn extract(req: &HttpRequest) -> Self {
        let trusted = req.app_data::<Data<TrustedProxies>>().map_or(&[][..], |trusted| &trusted.0);
        Self::behind(req, trusted)
    }

    fn behind(req: &HttpRequest, trusted: &[Cidr]) -> Self {
        // Only a Unix socket has no peer address, and the service listens on TCP alone.
        let peer = req.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
        Self(forwarded(peer, req.headers(), trusted).unwrap_or(peer).to_canonical())
    }
}

fn forwarded(peer: IpAddr, headers: &HeaderMap, trusted: &[Cidr]) -> Option<IpAddr> {
    let is_trusted = |address: IpAddr| trusted.iter().any(|block| block.contains(address));
    if !is_trusted(peer) {
        if headers.contains_key(FORWARDED_FOR) {
            UNTRUSTED.call_once(|| {
                log::warn!(
                    "ignoring X-Forwarded-For from {peer}: if this is a reverse proxy, name it in --trusted-proxies, or \
                     all clients behind it share one rate limit"
                );
            });
        }
        return None;
    }
    let lines: Vec<_> = headers.get_all(FORWARDED_FOR).collect();
    for line in lines.into_iter().rev() {
        // The beginning of a line may be anything that the client sent.
        for part in line.as_bytes().rsplit(|byte| *byte == b',') {
            let address = read(str::from_utf8(part).ok()?.trim())?;
            if !is_trusted(address) {
                return Some(address);
            }
        }
    }
    None
}

/// An address, also with a port or in brackets, as some proxies write it.
fn read(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))
}

impl FromRequest for ClientIp {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self::extract(req)))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    /// The address of a client behind `10.0.0.0/8` and `fd00::/8`.
    fn address(peer: &str, lines: &[&str]) -> String {
        let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
        address_of_bytes(peer, &lines)
    }

    fn address_of_bytes(peer: &str, lines: &[&[u8]]) -> String {
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|block| block.parse().unwrap());
        let mut req = TestRequest::default().peer_addr(SocketAddr::new(peer.parse().unwrap(), 4711));
        for line in lines {
            req = req.append_header((FORWARDED_FOR, *line));
        }
        ClientIp::behind(&req.to_http_request(), &trusted).0.to_string()
    }

    #[test]
    fn only_a_trusted_proxy_says_whom_it_got_a_request_from() {
        assert_eq!(address("192.0.2.1", &[]), "192.0.2.1");
        assert_eq!(address("192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
        assert_eq!(address("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(address("10.0.0.1", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(address("fd00::1", &["2001:db8::7"]), "2001:db8::7");
        // A socket for both kinds of addresses shows those of IPv4 so.
        assert_eq!(address("::ffff:10.0.0.1", &["::ffff:198.51.100.7"]), "198.51.100.7");
        assert_eq!(address("::ffff:192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
    }

    #[test]
    fn the_last_address_that_is_no_proxy_counts_and_not_what_the_client_made_up() {
        assert_eq!(address("10.0.0.1", &["203.0.113.9, 198.51.100.7"]), "198.51.100.7");
        assert_eq!(address("10.0.0.1", &["203.0.113.9, 198.51.100.7,10.0.0.2 , fd00::2"]), "198.51.100.7");
        assert_eq!(address("10.0.0.1", &["203.0.113.9", "198.51.100.7", "10.0.0.2"]), "198.51.100.7");
        assert_eq!(address("10.0.0.1", &["nonsense, 198.51.100.7"]), "198.51.100.7");
        assert_eq!(address_of_bytes("10.0.0.1", &[b"n\xf6nsense, 198.51.100.7"]), "198.51.100.7");
        // Nobody but proxies.
        assert_eq!(address("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.1");
    }

    #[test]
    fn ports_and_brackets_are_read_and_what_cannot_be_read_is_nobody() {
        for (text, read) in [
            ("198.51.100.7:8080", "198.51.100.7"),
            ("[2001:db8::7]:8080", "2001:db8::7"),
            ("[2001:db8::7]", "2001:db8::7"),
            ("2001:db8::7", "2001:db8::7"),
        ] {
            assert_eq!(address("10.0.0.1", &[text]), read);
        }
        for garbage in ["", ",", "unknown", "198.51.100.7,", "for=198.51.100.7", "198.51.100.256", "198.51.100.7/32"] {
            assert_eq!(address("10.0.0.1", &[garbage]), "10.0.0.1", "{garbage:?}");
        }
        assert_eq!(address("10.0.0.1", &["198.51.100.7", "garbage"]), "10.0.0.1");
    }
}
