//! The booking-service: where it is, and asking it for its events.

use std::{fmt, path::PathBuf, time::Duration};

use clap::Args;
use common::{input::Id, time::Timestamp};
use serde::Deserialize;
use service_kit::{
    config::{DirectoryOptions, Secret, SecretOption},
    database::types::{DbTimestamp, DbUuid},
    http::jwt::keys::is_loopback,
};
use ureq::{
    Agent, Timeout,
    http::{HeaderMap, header},
};
use url::Url;

/// Events to ask for at once. Even with 5000 members invited to each they are below the limit of one answer, 64 MiB.
pub const PAGE: usize = 200;

/// The longest wait for a booking-service that says when to ask again: by then its rate limit allows some requests.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Where events come from. Without an address there are none.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Booking")]
pub struct BookingOptions {
    /// Address of the booking-service: scheme, host, and a path if it is below one.
    #[arg(global = true, long, env = "BOOKING_URL", value_name = "URL")]
    pub booking_url: Option<Url>,

    /// API token of the booking-service; one that may only read is enough.
    #[arg(global = true, long, env = "BOOKING_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub booking_token: Option<Secret>,

    /// File that holds the API token of the booking-service.
    #[arg(global = true, long, env = "BOOKING_TOKEN_FILE", value_name = "FILE")]
    pub booking_token_file: Option<PathBuf>,

    /// Seconds between two copies of the events.
    #[arg(global = true, long, env = "BOOKING_INTERVAL", value_name = "SECONDS", default_value = "60",
          value_parser = interval)]
    pub booking_interval: Duration,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "must be a number from 0.01 to 86400".to_owned())
}

impl BookingOptions {
    /// The API token, as it was given.
    #[must_use]
    pub fn token(&self) -> SecretOption<'_> {
        SecretOption("booking-token", self.booking_token.as_ref(), self.booking_token_file.as_deref())
    }

    /// The booking-service, if one is configured.
    ///
    /// # Errors
    /// One line about the wrong option.
    pub fn source(&self, directory: &DirectoryOptions) -> Result<Option<Source>, String> {
        let token = Secret::resolve("booking-token", self.booking_token.as_ref(), self.booking_token_file.as_deref())?;
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
        Ok(Some(Source { base, token, interval: self.booking_interval, limits: Limits::default() }))
    }
}

/// A booking-service, and how often it is asked. `Debug` shows no secret.
#[derive(Debug, Clone)]
pub struct Source {
    base: Url,
    token: Secret,
    /// The time between two copies.
    pub interval: Duration,
    limits: Limits,
}

/// What one request may cost at most.
#[derive(Debug, Clone)]
struct Limits {
    /// Until connected, TLS included.
    connect: Duration,
    /// From the name lookup to the last byte of the answer.
    request: Duration,
    /// Size of the answer.
    bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(3), request: Duration::from_secs(20), bytes: 64 << 20 }
    }
}

/// Why the events could not be had: our words, in which nothing of the answer, the address or the token stands.
#[derive(Debug, PartialEq, Eq)]
pub struct Failed {
    why: String,
    /// How long to wait before the same is asked again, when the booking-service said so.
    pub wait: Option<Duration>,
}

impl Failed {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), wait: None }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "booking-service: {}", self.why)
    }
}

/// An event as the booking-service has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct Original {
    pub id: DbUuid,
    pub name: String,
    pub description: String,
    pub place: String,
    pub since: DbTimestamp,
    pub until: DbTimestamp,
    /// Its administrators, each once, by id.
    pub hosts: Vec<DbUuid>,
}

/// An event that the booking-service told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventChange {
    /// Which.
    pub id: DbUuid,
    /// When it was last changed, by the clock of the booking-service. An older one does not say.
    pub changed_at: Option<Timestamp>,
    /// As it is now, unless it is deleted.
    pub event: Option<Original>,
}

/// Some of the events. Without a next page they are the last, or all there are: an older booking-service does not know
/// pages.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// In the order of the list.
    pub told: Vec<EventChange>,
    /// What follows.
    pub next: Option<Next>,
}

/// Where a list goes on: the query of the next page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next(String);

/// An event as the booking-service answers it, so far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseEvent {
    event_id: Id,
    name: String,
    description: String,
    place: String,
    time_start: String,
    time_end: String,
    admins: Vec<Id>,
    updated_at: Option<String>,
    deleted_at: Option<String>,
}

impl Source {
    /// A page of all events of the booking-service, or of those that were made, changed or deleted after a moment: the
    /// first, or the one that another page led to. Takes up to the time limit; for a thread that may wait.
    ///
    /// # Errors
    /// When it cannot be reached in time, or its answer is not a whole page of events.
    pub fn page(&self, since: Option<Timestamp>, next: Option<&Next>) -> Result<Page, Failed> {
        let mut address = self.base.clone();
        if let Ok(mut path) = address.path_segments_mut() {
            path.pop_if_empty().extend(["api", "events"]);
        }
        if let Some(Next(query)) = next {
            address.set_query(Some(query));
        } else {
            address.query_pairs_mut().append_pair("limit", &PAGE.to_string());
            if let Some(since) = since {
                address.query_pairs_mut().append_pair("updatedSince", &since.to_string());
            }
        }
        let (headers, answer) = self.ask(&address)?;
        let events: Vec<ResponseEvent> = serde_json::from_slice(&answer).map_err(|error| {
            // Only where: the message may quote the answer.
            let (line, column) = (error.line(), error.column());
            Failed::new(format!("the answer is no list of events: line {line}, column {column}"))
        })?;
        let told = events.into_iter().map(told).collect::<Option<Vec<_>>>();
        let told = told.ok_or_else(|| Failed::new("the answer has an event that cannot be one"))?;
        let next = next_page(&address, &headers)?;
        if told.is_empty() && next.is_some() {
            return Err(Failed::new("a page without events leads to another"));
        }
        Ok(Page { told, next })
    }

    fn ask(&self, address: &Url) -> Result<(HeaderMap, Vec<u8>), Failed> {
        let mut config = Agent::config_builder()
            .timeout_connect(Some(self.limits.connect))
            .timeout_global(Some(self.limits.request))
            .http_status_as_error(false)
            // The token goes to the configured address and nowhere else.
            .max_redirects(0);
        if is_loopback(&self.base) {
            // A proxy of the environment could only reach its own loopback.
            config = config.proxy(None);
        }
        let agent: Agent = config.build().into();
        let request = agent.get(address.as_str()).header("Accept", "application/json");
        let request = request.header("Authorization", format!("Bearer {}", self.token.reveal()));
        let mut answer = request.call().map_err(|error| self.describe(&error))?;
        if answer.status() != 200 {
            let failed = self.describe(&ureq::Error::StatusCode(answer.status().as_u16()));
            return Err(Failed { wait: wait(answer.headers()), ..failed });
        }
        let body = answer.body_mut().with_config().limit(self.limits.bytes).read_to_vec();
        Ok((std::mem::take(answer.headers_mut()), body.map_err(|error| self.describe(&error))?))
    }

    fn describe(&self, error: &ureq::Error) -> Failed {
        use ureq::Error;
        Failed::new(match error {
            Error::StatusCode(401) => "it does not take the token".to_owned(),
            Error::StatusCode(status) => format!("it answered status {status}"),
            Error::BodyExceedsLimit(_) => format!("the answer is larger than {} bytes", self.limits.bytes),
            Error::Timeout(Timeout::Connect) => "no connection in time".to_owned(),
            Error::Timeout(_) => "no complete answer in time".to_owned(),
            Error::Io(cause) => cause.to_string(),
            Error::Rustls(cause) => cause.to_string(),
            Error::HostNotFound => "host not found".to_owned(),
            Error::ConnectionFailed | Error::ConnectProxyFailed(_) => "connection failed".to_owned(),
            Error::Http(_) | Error::BadUri(_) => "the configured address or token cannot be sent".to_owned(),
            _ => "the answer is not HTTP".to_owned(),
        })
    }
}

/// The next page, by the `Link` of this one (RFC 8288).
fn next_page(address: &Url, headers: &HeaderMap) -> Result<Option<Next>, Failed> {
    let elsewhere = || Failed::new("the answer leads to a next page that is not at the configured address");
    for value in headers.get_all(header::LINK) {
        for link in value.to_str().map_err(|_| elsewhere())?.split('<').skip(1) {
            let (target, parameters) = link.split_once('>').ok_or_else(elsewhere)?;
            if !parameters.split([';', ',']).any(is_next) {
                continue;
            }
            let target = address.join(target).map_err(|_| elsewhere())?;
            let is_here = target.origin() == address.origin() && target.path().ends_with("/api/events");
            // Only the query of it is followed: below a path of a proxy, the booking-service does not know its own.
            let query = target.query().filter(|_| is_here).ok_or_else(elsewhere)?;
            return Ok(Some(Next(query.to_owned())));
        }
    }
    Ok(None)
}

fn is_next(parameter: &str) -> bool {
    parameter.split_once('=').is_some_and(|(name, relations)| {
        let mut relations = relations.trim().trim_matches('"').split_ascii_whitespace();
        name.trim().eq_ignore_ascii_case("rel") && relations.any(|relation| relation.eq_ignore_ascii_case("next"))
    })
}

/// How long to wait, when the answer says so in seconds (RFC 9110, section 10.2.3) and it is not for long.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|wait| *wait <= LONGEST_WAIT)
}

/// The event, unless it is one that no booking-service makes.
fn told(event: ResponseEvent) -> Option<EventChange> {
    let id = event.event_id.into();
    let changed_at = event.updated_at.as_deref().and_then(|at| at.parse().ok());
    let event = if event.deleted_at.is_some() { None } else { Some(original(event)?) };
    Some(EventChange { id, changed_at, event })
}

/// The event, unless it is one that no booking-service makes, and some database could not keep.
fn original(event: ResponseEvent) -> Option<Original> {
    let (since, until): (Timestamp, Timestamp) = (event.time_start.parse().ok()?, event.time_end.parse().ok()?);
    let texts = [&event.name, &event.description, &event.place];
    if since > until || texts.iter().any(|text| text.contains('\0')) {
        return None;
    }
    let mut hosts: Vec<_> = event.admins.into_iter().map(DbUuid::from).collect();
    hosts.sort_unstable();
    hosts.dedup();
    Some(Original {
        id: event.event_id.into(),
        name: event.name,
        description: event.description,
        place: event.place,
        since: DbTimestamp(since),
        until: DbTimestamp(until),
        hosts,
    })
}

#[cfg(test)]
mod tests;
