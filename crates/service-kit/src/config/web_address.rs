//! Addresses in options.

use url::{ParseError, Url};

/// Reads an absolute URL.
pub fn absolute_url(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| match error {
        ParseError::RelativeUrlWithoutBase => "an address begins with https:// or http://".to_owned(),
        error => error.to_string(),
    })
}

/// Whether browsers can open this address.
pub(super) fn is_web_address(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.host().is_some()
}
