//! Sends a request to a receiver.

use std::time::Duration;

use url::Url;

use club_issuer::outbound::{
    Client, Limits,
    http::{Request, header},
};

use super::{networks::Networks, preparation::Message, results::Outcome};

/// The limits of an attempt.
const LIMITS: Limits = Limits { connect: Duration::from_secs(10), request: Duration::from_secs(15), bytes: 1024 };

/// The least length of a part of an address that may be secret.
const SECRET_LENGTH: usize = 6;

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
    let Ok(address) = Url::parse(&message.url) else { return failure("the address cannot be sent to".to_owned()) };
    let mut request = Request::post(address.as_str()).header(header::USER_AGENT, agent);
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
                answer: shown(answer.body(), &address),
                retry_after: retry_after.map(str::to_owned),
            }
        }
    }
}

/// An answer as text, without control characters, which no database and no page takes, and without the parts of the
/// address that may be secret: its path, and what is long in it and in its query.
fn shown(bytes: &[u8], address: &Url) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut text: String =
        text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { ' ' } else { c }).collect();
    let values =
        address.query().unwrap_or_default().split('&').map(|pair| pair.split_once('=').map_or(pair, |it| it.1));
    if address.path().len() > 1 {
        text = text.replace(address.path(), "…");
    }
    for secret in address.path().split('/').chain(values).filter(|part| part.len() >= SECRET_LENGTH) {
        text = text.replace(secret, "…");
        // Only the start of an answer is read.
        let cut = (SECRET_LENGTH / 2..secret.len()).rev().find(|length| text.ends_with(&secret[..*length]));
        if let Some(length) = cut {
            text.truncate(text.len() - length);
            text.push('…');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_shown_as_text_without_the_secrets_of_the_address() {
        let shown = |answer: &[u8], address: &str| shown(answer, &address.parse().unwrap());
        assert_eq!(shown(b"\xff\0\x1b[31m ok\n", "https://club.example/"), "\u{fffd}  [31m ok\n");
        let address = "https://hooks.example/catch/123456/abcdef/?key=other-secret&a=b";
        let echoed =
            br#"{"path": "/catch/123456/abcdef/?key=other-secret&a=b", "ids": ["123456", "abcdef"], "a": "b"}"#;
        assert_eq!(shown(echoed, address), r#"{"path": "…?key=…&a=b", "ids": ["…", "…"], "a": "b"}"#);
        assert_eq!(shown(br#""\/catch\/123456\/abcdef""#, address), r#""\/catch\/…\/…""#);
        assert_eq!(shown(b"no other-secr", address), "no …", "the answer was cut within it");
    }
}
