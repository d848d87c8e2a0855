//! Protection of a service in development mode against DNS rebinding (contract, "Development mode").

use std::net::IpAddr;

use actix_web::{
    Error,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{header, uri::Authority},
    middleware::Next,
};
use common::problem::{Problem, code};

use super::app_state;
use crate::error::Failure;

/// Answers 421 in development mode unless `Host` is a loopback name. A page of another site whose name leads to this
/// machine could otherwise use the service as its own.
pub async fn loopback_host<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let is_development = app_state(&req)?.answer_options.is_development;
    let host = req.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if is_development && !is_loopback(host) {
        return Ok(req.error_response(Failure(Problem::new(code::MISDIRECTED))));
    }
    Ok(next.call(req).await?.map_into_boxed_body())
}

/// Whether this `Host`, with or without a port, is a name of this machine itself.
fn is_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    !host.contains('@')
        && (name.eq_ignore_ascii_case("localhost")
            || address.parse().is_ok_and(|address: IpAddr| address.is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        for host in ["localhost", "LOCALHOST:3000", "127.0.0.1", "127.8.8.8:80", "[::1]", "[::1]:3000"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:3000",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]:80",
            "user@localhost",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
