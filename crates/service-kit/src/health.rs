//! The command `health`: asks a running service whether it is ready, for containers that have no other HTTP client.
//!
//! It asks `/readyz`, because whatever starts after a healthy container, or sends requests to one, needs a service that
//! can answer. A failure is no reason for a restart, which does not bring a database back; a probe that restarts
//! containers asks `/livez`.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use serde_json::Value;
use ureq::{Agent, Error};

use crate::config::BindAddress;

/// Longer than the service takes to notice that its database does not answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Largest size of the answer.
const MAX_BYTES: u64 = 1 << 10;

/// Asks the service that listens at this address whether it is ready.
pub async fn check(bind: &BindAddress) -> Result<(), String> {
    let addresses = bind.addresses();
    let address = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first()).copied();
    let address = address.filter(|address| address.port() != 0);
    let address = reachable(address.ok_or("with port 0 in --bind the port of the service is unknown")?);
    let answer = tokio::task::spawn_blocking(move || ask(address)).await;
    answer.map_err(|error| error.to_string()).flatten().map_err(|why| format!("http://{address}/readyz: {why}"))
}

/// The address to connect to: loopback for a service that listens on every address. It is IPv4, which a service on the
/// unspecified IPv6 address accepts too, because loopback has no IPv6 address in many containers.
fn reachable(bind: SocketAddr) -> SocketAddr {
    let ip = if bind.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { bind.ip() };
    SocketAddr::new(ip, bind.port())
}

fn ask(address: SocketAddr) -> Result<(), String> {
    let config = Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false)
        .max_redirects(0)
        // A proxy of the environment could only reach its own loopback.
        .proxy(None);
    let response = config.build().new_agent().get(format!("http://{address}/readyz")).call();
    let mut answer = response.map_err(|error| match error {
        Error::Timeout(_) => format!("no answer within {} s", TIMEOUT.as_secs()),
        error => error.to_string(),
    })?;
    if answer.status() == 200 {
        return Ok(());
    }
    let body = answer.body_mut().with_config().limit(MAX_BYTES).read_json::<Value>().unwrap_or_default();
    let why = body["status"].as_str().unwrap_or("and does not say why");
    Err(format!("status {}, {why}", answer.status().as_u16()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_everywhere_is_asked_on_loopback() {
        for (bind, response) in [
            ("0.0.0.0:3000", "127.0.0.1:3000"),
            ("[::]:3000", "127.0.0.1:3000"),
            ("[::1]:3000", "[::1]:3000"),
            ("10.1.2.3:80", "10.1.2.3:80"),
        ] {
            assert_eq!(reachable(bind.parse().unwrap()), response.parse().unwrap());
        }
    }
}
