//! The addresses to which secrets may be sent.

use url::{Host, Url};

/// Checks that nobody else can read or change what is sent to and from an address.
///
/// # Errors
/// When the address is neither https nor http on this machine, or contains a user name or password, which would be
/// shown.
pub fn is_safe(address: &Url) -> Result<(), String> {
    if !address.username().is_empty() || address.password().is_some() {
        return Err("an address with a user name or password is not safe".to_owned());
    }
    match address.scheme() {
        "https" => Ok(()),
        "http" if is_loopback(address) => Ok(()),
        _ => Err("only https addresses, and http ones of this machine, are safe".to_owned()),
    }
}

/// Whether an address is of this machine.
pub fn is_loopback(address: &Url) -> bool {
    match address.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
