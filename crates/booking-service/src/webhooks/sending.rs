//! Sends a request to a receiver.

use std::{cmp::Reverse, time::Duration};

use club_issuer::outbound::{
    Client, Limits,
    http::{Request, header},
};
use percent_encoding::percent_decode_str;
use regex::RegexBuilder;
use url::Url;

use super::{networks::Networks, preparation::Message, results::Outcome};

/// The limits of an attempt.
const LIMITS: Limits = Limits { connect: Duration::from_secs(10), request: Duration::from_secs(15), bytes: 1024 };

/// The least length of a word of an address that may be secret.
const SECRET_LENGTH: usize = 4;

/// A client for these networks.
pub fn client(networks: Networks) -> Client {
    Client::restricted(LIMITS, move |address| networks.allow(address))
}

/// Sends a message and waits for the answer. Blocks.
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

/// An answer as text, without control characters, which no database and no page takes, and without the words of the
/// address that may be secret: those of its path and its query, in upper or lower case, however a receiver writes what
/// is between them.
fn shown(bytes: &[u8], address: &Url) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text: String =
        text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { ' ' } else { c }).collect();
    let encoded = format!("{}?{}", address.path(), address.query().unwrap_or_default());
    let decoded = percent_decode_str(&encoded).decode_utf8_lossy();
    let words = [&*encoded, &*decoded].into_iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
    let mut words: Vec<&str> = words.filter(|word| word.chars().count() >= SECRET_LENGTH).collect();
    words.sort_unstable_by_key(|word| Reverse(word.len()));
    if words.is_empty() {
        return text;
    }
    let pattern = words.iter().map(|word| regex::escape(word)).collect::<Vec<_>>().join("|");
    let Ok(secrets) = RegexBuilder::new(&pattern).case_insensitive(true).build() else { return String::new() };
    let mut text = secrets.replace_all(&text, "…").into_owned();
    // Only the start of an answer is read, so the last word may be cut.
    let ends_with = |text: &str, start: &str| {
        let end = text.len().checked_sub(start.len()).and_then(|from| text.get(from..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(start))
    };
    let starts = words.iter().flat_map(|word| word.char_indices().skip(SECRET_LENGTH).map(|(end, _)| &word[..end]));
    if let Some(start) = starts.filter(|start| ends_with(&text, start)).max_by_key(|start| start.len()) {
        text.truncate(text.len() - start.len());
        text.push('…');
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
            br#"{"path": "/catch/123456/abcdef/?key=other-secret&a=b", "ids": ["123456", "ABCDEF"], "a": "b"}"#;
        let expected = r#"{"path": "/…/…/…/?key=…-…&a=b", "ids": ["…", "…"], "a": "b"}"#;
        assert_eq!(shown(echoed, address), expected);
        assert_eq!(shown(br#""\/catch\/123456\/abcdef""#, address), r#""\/…\/…\/…""#);
        assert_eq!(shown(b"no other-secr", address), "no …-…", "the answer was cut within it");
        // A receiver may decode the address, and write it as HTML.
        let address = "https://hooks.example/services/T00B00?sig=abcDEF123456%2Bxyz7890%27123456%3D";
        let echoed = b"No route /services/T00B00?sig=abcDEF123456+xyz7890&#x27;123456=";
        assert_eq!(shown(echoed, address), "No route /…/…?sig=…+…&#x27;…=");
        assert_eq!(shown(b"invalid_payload", address), "invalid_payload");
    }
}
