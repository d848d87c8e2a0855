//! What a sign-in needs of the answer of a token endpoint. Providers take liberties with the rest: numbers as text,
//! `null`, a missing `token_type`, an error with status 200, a form instead of JSON. None of that ends a sign-in.

use club_issuer::{
    Claims,
    outbound::http::{Response, StatusCode, header},
};
use serde_json::{Value, json};
use url::form_urlencoded;

/// The tokens of a sign-in. An empty one counts as absent.
#[derive(Debug)]
pub struct Tokens {
    /// For the address that describes the user.
    pub access_token: Option<String>,
    /// Of OpenID Connect.
    pub id_token: Option<String>,
}

/// The most characters of the name of an error.
const MAX_ERROR_LEN: usize = 64;

/// The answer with the needed members only, in the form that the library for OAuth 2.0 accepts (RFC 6749, sections 5.1
/// and 5.2). An answer that is understood in no way stays as it is.
pub fn reduce(answer: Response<Vec<u8>>) -> Response<Vec<u8>> {
    let Some(members) = members(&answer) else { return answer };
    let text = |name: &str| members.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (status, body) = match members.get("error") {
        Some(error) if !matches!(error, Value::Null | Value::Bool(false)) && error != "" => {
            (StatusCode::BAD_REQUEST, json!({"error": error.as_str().map_or(UNNAMED, name_of_error)}))
        }
        _ if answer.status().is_success() && (text("access_token").is_some() || text("id_token").is_some()) => {
            let access_token = text("access_token").unwrap_or_default();
            let body = json!({"access_token": access_token, "token_type": "Bearer", "id_token": text("id_token")});
            (StatusCode::OK, body)
        }
        _ => return answer,
    };
    let mut reduced = Response::new(body.to_string().into_bytes());
    *reduced.status_mut() = status;
    reduced
}

/// The name of an error that has no name, or one that must not be shown.
pub const UNNAMED: &str = "unnamed_error";

/// The name of an error, for the log. A text that could quote a code or a token is not one.
fn name_of_error(text: &str) -> &str {
    let is_name = text.len() <= MAX_ERROR_LEN && text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if is_name && !text.is_empty() { text } else { UNNAMED }
}

fn members(answer: &Response<Vec<u8>>) -> Option<Claims> {
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.to_ascii_lowercase().starts_with("application/x-www-form-urlencoded") {
        let pairs = form_urlencoded::parse(answer.body()).into_owned();
        return Some(pairs.map(|(name, value)| (name, Value::String(value))).collect());
    }
    serde_json::from_slice(answer.body()).ok()
}
