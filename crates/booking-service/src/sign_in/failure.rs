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

/// 503: the provider does not work, or this service is not registered there properly. The cause is logged.
pub(super) fn unavailable(cause: impl Display) -> Problem {
    Problem::new(code::UNAVAILABLE).because(cause)
}
