//! The option `--bind`.

use std::{
    fmt,
    net::{SocketAddr, ToSocketAddrs as _},
    str::FromStr,
};

/// The address to listen on, as a number or a name: `127.0.0.1:3000`, `localhost:3000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindAddress {
    text: String,
    addresses: Vec<SocketAddr>,
}

impl BindAddress {
    /// The addresses that the name resolves to, at least one.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Whether only this machine can reach all of the addresses.
    pub fn is_loopback(&self) -> bool {
        self.addresses.iter().all(|address| address.ip().is_loopback())
    }
}

impl FromStr for BindAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let addresses: Vec<_> =
            text.to_socket_addrs().map_err(|error| format!("{error}; an example is 127.0.0.1:3000"))?.collect();
        if addresses.is_empty() {
            return Err("the name has no address".to_owned());
        }
        Ok(Self { text: text.to_owned(), addresses })
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
