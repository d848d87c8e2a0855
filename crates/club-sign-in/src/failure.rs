//! The problems of a sign-in that cannot be finished.

use std::fmt::Display;

use common::problem::{Problem, code};

use crate::codes;

/// The details of some problems.
const UNUSABLE_ACCOUNT: &str =
    "The sign-in provider does not describe the account as this service needs it. Tell the operator of the service.";
const UNAVAILABLE: &str =
    "The sign-in provider does not answer, or its answer is not understood. Try again in a minute.";
const BUSY: &str = "The sign-in provider has a fault or too much to do. Sign in again in a minute.";
const CANCELLED: &str = "The sign-in was cancelled at the sign-in provider, or it does not let this account in.";

/// The answer to every sign-in that cannot be finished. It does not say why: that would only help an attacker.
pub(crate) fn bad_login() -> Problem {
    Problem::new(codes::BAD_LOGIN)
}

/// Like [`bad_login`], with the reason in the log.
pub(crate) fn refused(reason: &str) -> Problem {
    log::warn!("a sign-in was refused: {reason}");
    bad_login()
}

/// Like [`refused`], for an account of which the provider does not say what this service needs.
pub(crate) fn unusable_account(reason: &str) -> Problem {
    refused(reason).detail(UNUSABLE_ACCOUNT)
}

/// 503: the provider does not work. The cause is logged.
pub(crate) fn unavailable(cause: impl Display) -> Problem {
    Problem::new(code::UNAVAILABLE).detail(UNAVAILABLE).because(cause)
}

/// 503: this service is not registered properly at the provider. The cause is logged.
pub(crate) fn misconfigured(cause: impl Display) -> Problem {
    Problem::new(codes::SIGN_IN_MISCONFIGURED).because(cause)
}

/// The refusal of an authorization endpoint in the query of a callback (RFC 6749, section 4.1.2.1; OpenID Connect Core
/// 1.0, section 3.1.2.6). The log does not quote unknown errors, because anybody can send any text.
pub(crate) fn refused_by_provider(error: Option<&str>) -> Problem {
    let known = error.and_then(known_error);
    known.unwrap_or_else(|| refused("the provider sends neither a code nor a known error"))
}

/// The refusal of a token endpoint (RFC 6749, section 5.2).
pub(crate) fn refused_by_token_endpoint(error: &str) -> Problem {
    // The code is the one thing in the request that came from the browser.
    let of_code = matches!(error, "invalid_grant" | "invalid_request");
    let known = if of_code { None } else { known_error(error) };
    known.unwrap_or_else(|| refused(&format!("the provider refuses the code with {error}")))
}

/// The problem of an error that does not depend on the browser's request.
fn known_error(error: &str) -> Option<Problem> {
    let detail = match error {
        "invalid_client"
        | "invalid_request"
        | "invalid_scope"
        | "unauthorized_client"
        | "unsupported_grant_type"
        | "unsupported_response_type"
        // GitHub's names.
        | "incorrect_client_credentials"
        | "redirect_uri_mismatch" => {
            return Some(misconfigured(format!("the sign-in provider refuses with {error}")));
        }
        "server_error" | "temporarily_unavailable" => BUSY,
        "access_denied"
        | "account_selection_required"
        | "consent_required"
        | "interaction_required"
        | "login_required" => CANCELLED,
        _ => return None,
    };
    log::warn!("the sign-in provider refuses with {error}");
    Some(bad_login().detail(detail))
}

/// Whether signing in again may help.
pub(crate) fn may_be_repeated(problem: &Problem) -> bool {
    problem.code() != codes::SIGN_IN_MISCONFIGURED
}

/// The key of the text that says what [`explanation`](Problem::explanation) says, if the code does not say that.
pub(crate) fn text_key(problem: &Problem) -> Option<&'static str> {
    match problem.explanation().as_str() {
        UNUSABLE_ACCOUNT => Some("sign-in-unusable-account"),
        UNAVAILABLE => Some("sign-in-unavailable"),
        BUSY => Some("sign-in-busy"),
        CANCELLED => Some("sign-in-cancelled"),
        _ => None,
    }
}
