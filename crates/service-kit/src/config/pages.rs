//! The options of the pages.

use clap::Args;
use url::Url;

use super::web_address::{absolute_url, is_web_address};

/// What the service's own pages show.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Pages")]
pub struct PageOptions {
    /// Name of the club, on every page of the service and in its feeds.
    #[arg(global = true, long, env = "CLUB_NAME", value_name = "NAME")]
    pub club_name: Option<String>,

    /// Address of the club's own site, to which every page of the service links.
    #[arg(global = true, long, env = "CLUB_URL", value_name = "URL", value_parser = absolute_url)]
    pub club_url: Option<Url>,
}

impl PageOptions {
    /// The fault of these options, as one line.
    pub(super) fn fault(&self) -> Option<String> {
        let is_wrong = self.club_url.as_ref().is_some_and(|url| !is_web_address(url));
        is_wrong.then(|| "--club-url must be an http or https address".to_owned())
    }
}
