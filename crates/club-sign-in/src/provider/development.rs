//! The provider of a development installation: a page on which anybody chooses a user.

use actix_web::{HttpRequest, http::header};
use chrono::TimeDelta;
use common::{problem::Problem, time::Timestamp};
use serde::{Deserialize, Serialize};
use service_kit::{credentials, database::types::DbUuid};
use url::{Host, Url, form_urlencoded};
use uuid::Uuid;

use crate::{failure::bad_login, pending::PendingSignIn, site::Site};

/// The path of the development page.
pub const DEVELOPMENT_PAGE: &str = "/dev/sign-in";

/// How long a code of the development page can be exchanged.
const CODE_LASTS: TimeDelta = TimeDelta::minutes(2);

/// The use for which the keys seal a code.
const SEAL: &str = "code";

/// The address of the page for a sign-in.
pub(super) fn address(site: &Site, req: &HttpRequest, login: &PendingSignIn) -> String {
    let origin = local_origin(site, req).unwrap_or_else(|| site.origin.clone());
    let query = query(&[("state", &login.state), ("nonce", &login.nonce)]);
    format!("{origin}{DEVELOPMENT_PAGE}?{query}")
}

/// Exchanges the code of a callback for the user who was chosen.
///
/// # Errors
/// 400 `bad-login` for a code of another sign-in, or an expired one.
pub(super) fn exchange(site: &Site, code: &str, login: &PendingSignIn, now: Timestamp) -> Result<DbUuid, Problem> {
    let choice: Option<Choice> = site.keys.open(SEAL, code).and_then(|json| serde_json::from_str(&json).ok());
    choice
        .filter(|choice| credentials::same(&choice.nonce, &login.nonce) && now.micros() < choice.expires_micros)
        .map(|choice| DbUuid(choice.user))
        .ok_or_else(bad_login)
}

/// The content of a code: the user who was chosen in the sign-in with this nonce.
#[derive(Serialize, Deserialize)]
struct Choice {
    user: Uuid,
    nonce: String,
    expires_micros: i64,
}

/// The address that finishes a sign-in as `user`, relative to the origin.
pub fn callback(site: &Site, user: DbUuid, state: &str, nonce: &str, now: Timestamp) -> String {
    let choice = Choice { user: user.0, nonce: nonce.to_owned(), expires_micros: now.plus(CODE_LASTS).micros() };
    let code = site.keys.seal(SEAL, serde_json::json!(choice).to_string());
    format!("{}?{}", site.service.callback, query(&[("code", &code), ("state", state)]))
}

/// The origin that a browser on this machine uses, or `None` for a name that is not this machine's: another site may
/// have pointed its own name here (DNS rebinding), and its page must not choose a user.
///
/// To the browser's cookies `localhost` and `127.0.0.1` are different hosts, so a sign-in stays with one of them.
pub fn local_origin(site: &Site, req: &HttpRequest) -> Option<String> {
    let authority = req.headers().get(header::HOST)?.to_str().ok()?;
    if site.origin.split_once("://").is_some_and(|(_, own)| own == authority) {
        return Some(site.origin.clone());
    }
    let url = Url::parse(&format!("http://{authority}")).ok()?;
    let is_local = match url.host()? {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    };
    is_local.then(|| url.origin().ascii_serialization())
}

fn query(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}
