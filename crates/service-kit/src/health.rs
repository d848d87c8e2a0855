//! What the command `health` does: it asks a running service whether it can serve, for containers that have no other
//! program to ask with.
//!
//! It asks `/readyz` and not `/livez`: what starts after a healthy container, or sends requests to one, needs a service
//! that can answer. Nothing should be restarted for it, as that would not bring a database back; who restarts
//! containers by a probe of their own asks `/livez`.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use serde_json::Value;
use ureq::{Agent, Error};

/// Longer than the service takes to find out that its database does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Size of the answer at most.
const MOST_BYTES: u64 = 1 << 10;

/// Asks the service that listens at this address whether it can serve.
///
/// # Errors
/// One line saying why it cannot, or is not known to.
pub async fn check(bind: SocketAddr) -> Result<(), String> {
    if bind.port() == 0 {
        return Err("with port 0 in --bind nobody knows where the service listens".to_owned());
    }
    let address = reachable(bind);
    let asked = tokio::task::spawn_blocking(move || ask(address)).await;
    asked.map_err(|error| error.to_string()).flatten().map_err(|why| format!("http://{address}/readyz: {why}"))
}

/// Who listens on every address listens on loopback. By IPv4, which an unspecified IPv6 address takes as well: in many
/// containers loopback has no IPv6 address.
fn reachable(bind: SocketAddr) -> SocketAddr {
    let ip = if bind.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { bind.ip() };
    SocketAddr::new(ip, bind.port())
}

fn ask(address: SocketAddr) -> Result<(), String> {
    let config = Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(false)
        .max_redirects(0)
        // A proxy of the environment could only reach its own loopback.
        .proxy(None);
    let asked = config.build().new_agent().get(format!("http://{address}/readyz")).call();
    let mut answer = asked.map_err(|error| match error {
        Error::Timeout(_) => format!("no answer within {} s", PATIENCE.as_secs()),
        error => error.to_string(),
    })?;
    if answer.status() == 200 {
        return Ok(());
    }
    let body = answer.body_mut().with_config().limit(MOST_BYTES).read_json::<Value>().unwrap_or_default();
    let why = body["status"].as_str().unwrap_or("and does not say why");
    Err(format!("status {}, {why}", answer.status().as_u16()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_everywhere_is_asked_on_loopback() {
        for (bind, asked) in [
            ("0.0.0.0:3000", "127.0.0.1:3000"),
            ("[::]:3000", "127.0.0.1:3000"),
            ("[::1]:3000", "[::1]:3000"),
            ("10.1.2.3:80", "10.1.2.3:80"),
        ] {
            assert_eq!(reachable(bind.parse().unwrap()), asked.parse().unwrap());
        }
    }
}
