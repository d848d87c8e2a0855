//! Blocks of addresses.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

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
    pub fn is_too_large(&self) -> bool {
        let shortest = if self.0.addr().is_ipv4() { 8 } else { 16 };
        self.0.prefix_len() < shortest && !PRIVATE.contains(&self.0)
    }

    /// Whether the address is in the block. An IPv4-mapped IPv6 address counts as the IPv4 address.
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

#[cfg(test)]
mod tests {
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
}
