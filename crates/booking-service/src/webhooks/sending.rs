//! Sends a request to a receiver.

use std::time::Duration;

use club_issuer::outbound::{
    Client, Limits,
    http::{Request, header},
};

use super::{networks::Networks, preparation::Message, results::Outcome};

/// The limits of an attempt.
const LIMITS: Limits = Limits { connect: Duration::from_secs(10), request: Duration::from_secs(15), bytes: 1024 };

/// A client for these networks.
#[must_use]
pub fn client(networks: Networks) -> Client {
    Client::restricted(LIMITS, move |address| networks.allow(address))
}

/// Sends a message and waits for the answer. Blocks.
#[must_use]
pub fn send(client: &Client, message: Message) -> Outcome {
    let failure = |answer: String| Outcome { status: None, answer, retry_after: None };
    let agent = concat!("booking-service/", env!("CARGO_PKG_VERSION"));
    let mut request = Request::post(message.url).header(header::USER_AGENT, agent);
    for (name, value) in message.headers {
        request = request.header(name, value);
    }
    let Ok(request) = request.body(message.body.into_bytes()) else {
        return failure("the address or the secret cannot be sent".to_owned());
    };
    match client.send_and_read_start(request) {
        Err(error) => failure(error.to_string()),
        Ok(answer) => {
            let retry_after = answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
            Outcome {
                status: Some(answer.status().as_u16()),
                answer: shown(answer.body()),
                retry_after: retry_after.map(str::to_owned),
            }
        }
    }
}

/// An answer as text without control characters, which no database and no page takes.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { ' ' } else { c }).collect()
}
