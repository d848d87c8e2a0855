//! The options of webhooks.

use clap::Args;
use service_kit::{config::whole_number, http::cidr::Cidr};

use super::periods::Periods;
use crate::wall_clock::ClockTime;

/// What webhooks may reach, and when they send messages.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Messages")]
pub struct WebhookOptions {
    /// CIDR blocks that webhooks may reach although they are private, link-local, loopback or of a cloud's metadata,
    /// comma-separated. Names are resolved once for each attempt.
    #[arg(global = true, long, env = "WEBHOOK_NETWORKS", value_name = "CIDR", value_delimiter = ',')]
    pub webhook_networks: Vec<Cidr>,

    /// Time of day at which the message of the day's rooms and events is sent.
    #[arg(global = true, long, env = "DIGEST_TIME", value_name = "HH:MM", default_value = "08:00")]
    pub digest_time: ClockTime,

    /// Periods of the day in that message: name and start of each, comma-separated, and the end of the last.
    #[arg(
        global = true,
        long,
        env = "DIGEST_PERIODS",
        value_name = "PERIODS",
        default_value = "1-2 08:50,3-4 10:45,noon 12:25,5-6 13:30,7-8 15:25,9-10 17:15,18:55"
    )]
    pub digest_periods: Periods,

    /// Hours before an event or the deadline of a poll at which those who have not answered are reminded.
    #[arg(global = true, long, env = "REMINDER_HOURS", value_name = "HOURS", default_value_t = 24,
          value_parser = whole_number::<u16>(1..=720))]
    pub reminder_hours: u16,
}
