//! A client of the booking-service's list of events, and its options.

mod answer;

use std::{fmt, path::PathBuf, time::Duration};

use clap::Args;
use club_issuer::outbound::{
    Client, Limits, RequestError,
    http::{HeaderMap, header},
};
use common::time::Timestamp;
use service_kit::config::{DirectoryOptions, Secret, SecretOption, absolute_url};
use url::Url;

pub use self::answer::{BookingEvent, EventChange};

/// Events of a page. With 5000 attendees each, a page is still smaller than the limit of an answer, 64 MiB.
pub const PAGE_SIZE: usize = 200;

/// The longest `Retry-After` that is respected. A rate limit allows some requests again within this time.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

/// The source of events. Without a URL there are no events.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Booking")]
pub struct BookingOptions {
    /// URL of the booking-service, with its path prefix if it has one.
    #[arg(global = true, long, env = "BOOKING_URL", value_name = "URL", value_parser = absolute_url)]
    pub booking_url: Option<Url>,

    /// API token of the booking-service; scope `read` is enough.
    #[arg(global = true, long, env = "BOOKING_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    #[arg(allow_hyphen_values = true)]
    pub booking_token: Option<Secret>,

    /// File that contains the API token of the booking-service.
    #[arg(global = true, long, env = "BOOKING_TOKEN_FILE", value_name = "FILE")]
    pub booking_token_file: Option<PathBuf>,

    /// Seconds between two updates of the copy of the booking-service's events.
    #[arg(global = true, long, env = "BOOKING_INTERVAL", value_name = "SECONDS", default_value = "60",
          value_parser = interval)]
    pub booking_interval: Duration,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "must be a number from 0.01 to 86400".to_owned())
}

impl BookingOptions {
    /// The API token or its file.
    pub fn token(&self) -> SecretOption<'_> {
        SecretOption("booking-token", self.booking_token.as_ref(), self.booking_token_file.as_deref())
    }

    /// The users and groups of the booking-service, if one is configured.
    pub fn directory(&self, options: &DirectoryOptions) -> Result<Option<club_directory::Source>, String> {
        let of_source = |Source { mut base, token, .. }: Source| {
            if let Ok(mut path) = base.path_segments_mut() {
                path.pop_if_empty().push("api");
            }
            club_directory::Source::Booking { base, token: token.reveal().to_owned() }
        };
        Ok(self.source(options)?.map(of_source))
    }

    /// The booking-service, if one is configured.
    pub fn source(&self, directory: &DirectoryOptions) -> Result<Option<Source>, String> {
        let token = self.token().resolve()?;
        let (base, token) = match (&self.booking_url, token) {
            (Some(base), Some(token)) => (base.clone(), token),
            (Some(_), None) => return Err("--booking-url needs --booking-token or --booking-token-file".to_owned()),
            (None, Some(_)) => return Err("--booking-token needs --booking-url".to_owned()),
            (None, None) => return Ok(None),
        };
        let is_plain = base.username().is_empty() && base.password().is_none();
        if !matches!(base.scheme(), "http" | "https") || !is_plain || base.query().is_some() {
            return Err("--booking-url must be an http or https address without user-info and query".to_owned());
        }
        directory.check_upstream("--booking-url", &base)?;
        Ok(Some(Source { base, token, interval: self.booking_interval, limits: LIMITS }))
    }
}

/// A booking-service. `Debug` does not show the token.
#[derive(Debug, Clone)]
pub struct Source {
    base: Url,
    token: Secret,
    /// The time between two updates of the copy.
    pub interval: Duration,
    limits: Limits,
}

/// The limits of one request.
const LIMITS: Limits = Limits { connect: Duration::from_secs(3), request: Duration::from_secs(20), bytes: 64 << 20 };

/// A request that failed. The message quotes neither the answer nor the address nor the token.
#[derive(Debug, PartialEq, Eq)]
pub struct FetchError {
    message: String,
    /// The time to wait before the request is repeated, if the booking-service sends one.
    pub retry_after: Option<Duration>,
}

impl FetchError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry_after: None }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "booking-service: {}", self.message)
    }
}

/// A page of a list. Older versions of the booking-service send the whole list as one page.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// In the order of the list.
    pub changes: Vec<EventChange>,
    /// The next page, unless this is the last one.
    pub next: Option<NextPage>,
}

/// The query string of the next page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextPage(String);

impl Source {
    /// Fetches a page of all events, or of those that were created, changed or deleted after `since`: the first page,
    /// or the `next` of another page. Blocks for up to 20 seconds.
    ///
    /// # Errors
    /// When the booking-service cannot be reached in time, or its answer is not a complete page of events.
    pub fn page(&self, since: Option<Timestamp>, next: Option<&NextPage>) -> Result<Page, FetchError> {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["api", "events"]);
        }
        if let Some(NextPage(query)) = next {
            url.set_query(Some(query));
        } else {
            url.query_pairs_mut().append_pair("limit", &PAGE_SIZE.to_string());
            if let Some(since) = since {
                url.query_pairs_mut().append_pair("updatedSince", &since.to_string());
            }
        }
        let client = Client::new(self.limits);
        let answer = client.get_unread(&url, Some(self.token.reveal()));
        let (head, body) = answer.map_err(|error| FetchError::new(error.to_string()))?.into_parts();
        check_status(head.status.as_u16(), &head.headers)?;
        let changes = answer::read(body).map_err(|error| {
            // Only the position: the message of the error may quote the answer.
            let (line, column) = (error.line(), error.column());
            if error.is_io() {
                return FetchError::new(client.reading_error(error.into()).to_string());
            }
            FetchError::new(format!(
                "the answer is not a list of events within the limits: line {line}, column {column}"
            ))
        })?;
        let headers = head.headers;
        let next = next_page(&url, &headers)?;
        if changes.is_empty() && next.is_some() {
            return Err(FetchError::new("a page without events has a link to a next page"));
        }
        Ok(Page { changes, next })
    }
}

/// Refuses an answer with another status than 200.
fn check_status(status: u16, headers: &HeaderMap) -> Result<(), FetchError> {
    let message = match status {
        200 => return Ok(()),
        401 => "it does not accept the token".to_owned(),
        status => RequestError::Status(status).to_string(),
    };
    Err(FetchError { message, retry_after: retry_after(headers) })
}

/// The next page, from the `Link` headers of this one (RFC 8288).
fn next_page(url: &Url, headers: &HeaderMap) -> Result<Option<NextPage>, FetchError> {
    let bad_link = || FetchError::new("the answer leads to a next page that is not at the configured address");
    for value in headers.get_all(header::LINK) {
        for link in value.to_str().map_err(|_| bad_link())?.split('<').skip(1) {
            let (target, parameters) = link.split_once('>').ok_or_else(bad_link)?;
            if !parameters.split([';', ',']).any(is_next) {
                continue;
            }
            let target = url.join(target).map_err(|_| bad_link())?;
            let is_same_list = target.origin() == url.origin() && target.path().ends_with("/api/events");
            // Only its query is used: the booking-service does not know a path prefix that a reverse proxy removes.
            let query = target.query().filter(|_| is_same_list).ok_or_else(bad_link)?;
            return Ok(Some(NextPage(query.to_owned())));
        }
    }
    Ok(None)
}

/// Whether a parameter of a link is `rel` with the relation `next`.
fn is_next(parameter: &str) -> bool {
    parameter.split_once('=').is_some_and(|(name, relations)| {
        let mut relations = relations.trim().trim_matches('"').split_ascii_whitespace();
        name.trim().eq_ignore_ascii_case("rel") && relations.any(|relation| relation.eq_ignore_ascii_case("next"))
    })
}

/// `Retry-After` in seconds (RFC 9110, section 10.2.3), if it is at most [`MAX_RETRY_AFTER`].
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|time| *time <= MAX_RETRY_AFTER)
}

#[cfg(test)]
mod tests;
