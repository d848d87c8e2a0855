//! How often a caller may do what costs more than most, or helps to guess.

use clap::Args;
use common::time::Clock;
use service_kit::http::rate_limit::RateLimit;

/// The limits that only this service has.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitOptions {
    /// Requests a minute to begin or finish a sign-in that each address may make of each replica; a whole club may sit
    /// behind one. 0 means any number.
    #[arg(global = true, long, env = "SIGN_IN_RATE_LIMIT", value_name = "N", default_value_t = 60)]
    pub sign_in_rate_limit: u32,

    /// Times a minute that each calendar feed may be fetched from each replica, and that each address may ask for feeds
    /// that are none. 0 means any number.
    #[arg(global = true, long, env = "FEED_RATE_LIMIT", value_name = "N", default_value_t = 60)]
    pub feed_rate_limit: u32,
}

/// How often a caller may do something.
pub struct Limits {
    /// Begin or finish a sign-in.
    pub sign_in: RateLimit,
    /// Fetch a calendar feed.
    pub feed: RateLimit,
}

impl Limits {
    /// The configured ones.
    #[must_use]
    pub fn new(options: &LimitOptions, clock: &Clock) -> Self {
        Self {
            sign_in: RateLimit::per_minute(options.sign_in_rate_limit, clock),
            feed: RateLimit::per_minute(options.feed_rate_limit, clock),
        }
    }
}
