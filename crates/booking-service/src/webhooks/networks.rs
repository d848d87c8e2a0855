//! The networks that webhooks may reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use service_kit::http::cidr::Cidr;
use url::{Host, Url};

/// The networks that webhooks may reach.
#[derive(Debug, Clone)]
pub struct Networks {
    /// Listed by the operator.
    pub listed: Vec<Cidr>,
    /// In development mode receivers are on this machine.
    pub is_development: bool,
}

impl Networks {
    /// Whether a webhook may connect to an address of the network.
    pub fn allow(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address)
            || self.listed.iter().any(|block| block.contains(address))
            || (self.is_development && address.is_loopback())
    }

    /// Reads the address of a webhook. The addresses of its name are checked by each attempt.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, address: &str) -> Result<Url, String> {
        let url: Url = address.parse().map_err(|_| "must be an absolute https address".to_owned())?;
        let host = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            _ => None,
        };
        let is_allowed_http = url.scheme() == "http" && self.is_development && common::address::is_loopback(&url);
        if url.scheme() != "https" && !is_allowed_http {
            return Err("must be an https address".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err("must have no user name, password or fragment".to_owned());
        }
        // What pages and answers show in place of the secret part.
        if address.contains('…') {
            return Err("must be the whole address, or the one that is shown".to_owned());
        }
        if host.is_some_and(|address| !self.allow(address)) {
            return Err("is not in a network that webhooks may reach (--webhook-networks)".to_owned());
        }
        Ok(url)
    }
}

/// Whether an address belongs to the public internet (IANA's registries of special-purpose addresses), and not to the
/// services that clouds have for their machines.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

#[expect(clippy::unnested_or_patterns, reason = "one block a line")]
fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        [0 | 10 | 127, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [192, 168, ..]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [224..=255, ..]
            // Azure's service for its machines.
            | [168, 63, 129, 16]
    )
}

/// Only global unicast addresses, without protocols, documentation, and 6to4, which contains an IPv4 address.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x2002, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        [first, ..] => (0x2000..=0x3fff).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(listed: &[&str], is_development: bool) -> Networks {
        Networks { listed: listed.iter().map(|block| block.parse().unwrap()).collect(), is_development }
    }

    #[test]
    fn only_public_and_listed_addresses_are_allowed() {
        for public in ["1.1.1.1", "93.184.216.34", "100.63.255.255", "172.32.0.1", "2606:4700::1111", "::ffff:1.1.1.1"]
        {
            assert!(networks(&[], false).allow(public.parse().unwrap()), "{public}");
        }
        let private = [
            "0.0.0.0",
            "10.1.2.3",
            "127.0.0.1",
            "127.8.8.8",
            "100.64.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.168.1.1",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001:db8::1",
        ];
        for private in private {
            let address = private.parse().unwrap();
            assert!(!networks(&[], false).allow(address), "{private}");
            assert_eq!(networks(&[], true).allow(address), address.to_canonical().is_loopback(), "{private}");
            assert!(networks(&["0.0.0.0/0", "::/0"], false).allow(address), "{private}");
        }
        assert!(networks(&["10.0.0.0/8"], false).allow("::ffff:10.1.2.3".parse().unwrap()));
    }

    #[test]
    fn addresses_are_https_and_public() {
        for good in ["https://club.example/hook?x=1", "https://1.1.1.1:8443/"] {
            assert!(networks(&[], false).check(good).is_ok(), "{good}");
        }
        let bad = [
            "",
            "hook",
            "ftp://club.example/",
            "http://club.example/",
            "http://127.0.0.1/",
            "https://a:b@club.example/",
            "https://club.example/#x",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0177.0.0.1/",
            "https://127.1/",
            "https://[::1]/",
            "https://[::ffff:7f00:1]/",
            "https://169.254.169.254/latest",
            "https://10.0.0.1/",
            "https://0x7f.1/",
            "https://127。0。0。1/",
            "https://１２７.0.0.1/",
            "https://%31%32%37.0.0.1/",
            "https://127.0.0.1./",
            "https://[64:ff9b::7f00:1]/",
            "https://[2002:7f00:1::]/",
            "https://token@club.example/",
        ];
        for bad in bad {
            assert!(networks(&[], false).check(bad).is_err(), "{bad}");
        }
        assert!(networks(&[], true).check("http://127.0.0.1:3000/").is_ok());
        assert!(networks(&[], true).check("http://club.example/").is_err());
        assert!(networks(&["10.0.0.0/8"], false).check("https://10.0.0.1/").is_ok());
    }
}
