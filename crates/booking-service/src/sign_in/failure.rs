//! The problems of a sign-in that cannot be finished.

use std::fmt::Display;

use common::problem::{Problem, code};

use crate::codes;

/// The answer to every sign-in that cannot be finished. It does not say why: that would only help an attacker.
pub(super) fn bad_login() -> Problem {
    Problem::new(codes::BAD_LOGIN)
}

/// Like [`bad_login`], with the reason in the log.
pub(super) fn refused(reason: &str) -> Problem {
    log::warn!("a sign-in was refused: {reason}");
    bad_login()
}

/// 503: the provider does not work. The cause is logged.
pub(super) fn unavailable(cause: impl Display) -> Problem {
    let detail = "The sign-in provider does not answer, or its answer is not understood. Try again in a minute.";
    Problem::new(code::UNAVAILABLE).detail(detail).because(cause)
}

/// 503: this service is not registered properly at the provider. The cause is logged.
pub(super) fn misconfigured(cause: impl Display) -> Problem {
    Problem::new(codes::SIGN_IN_MISCONFIGURED).because(cause)
}

/// The refusal of an authorization endpoint in the query of a callback (RFC 6749, section 4.1.2.1; OpenID Connect Core
/// 1.0, section 3.1.2.6). The log does not quote other errors, because anybody can send any text.
pub(super) fn refused_by_provider(error: Option<&str>) -> Problem {
    let one_of = |errors: &[&'static str]| errors.iter().find(|&&one| error == Some(one)).copied();
    if let Some(error) =
        one_of(&["invalid_request", "invalid_scope", "unauthorized_client", "unsupported_response_type"])
    {
        return misconfigured(format!("the sign-in provider refuses with {error}"));
    }
    let (error, detail) = if let Some(error) = one_of(&["server_error", "temporarily_unavailable"]) {
        (error, "The sign-in provider has a fault or too much to do. Sign in again in a minute.")
    } else if let Some(error) = one_of(&[
        "access_denied",
        "account_selection_required",
        "consent_required",
        "interaction_required",
        "login_required",
    ]) {
        (error, "The sign-in was cancelled at the sign-in provider, or it does not let this account in.")
    } else {
        return refused("the provider sends neither a code nor a known error");
    };
    log::warn!("the sign-in provider refuses with {error}");
    bad_login().detail(detail)
}

/// Whether signing in again may help.
pub(super) fn may_be_repeated(problem: &Problem) -> bool {
    problem.code() != codes::SIGN_IN_MISCONFIGURED
}

/// What the page of a failed sign-in says. Other explanations are for programs.
pub(super) fn words(problem: &Problem) -> String {
    if problem.code() == code::INTERNAL {
        "The sign-in failed by a fault of this service. Try again; if that does not help, tell the operator.".to_owned()
    } else if problem.code() == code::UNAVAILABLE && problem.explanation() == code::UNAVAILABLE.about {
        "The service is very busy, or its database does not answer. Try again in a minute.".to_owned()
    } else {
        problem.explanation()
    }
}
