//! Rate limits of operations that are expensive or help an attacker to guess secrets.

use clap::Args;
use common::time::Clock;
use service_kit::{config::whole_number, http::rate_limit::RateLimit};

/// The limits that only this service has.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitOptions {
    /// Requests a minute that each replica accepts for one calendar feed. 0 means no limit.
    #[arg(global = true, long, env = "FEED_RATE_LIMIT", value_name = "N", default_value_t = 60,
          value_parser = whole_number(0..=u32::MAX))]
    pub feed_rate_limit: u32,
}

/// The state of these limits.
pub struct Limits {
    /// Fetching calendar feeds.
    pub feed: RateLimit,
}

impl Limits {
    /// The limits that the options configure.
    pub fn new(options: &LimitOptions, clock: &Clock) -> Self {
        Self { feed: RateLimit::per_minute(options.feed_rate_limit, clock) }
    }
}
