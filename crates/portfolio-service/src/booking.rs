//! The booking-service: where it is, and asking it for its events.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use common::{input::Id, time::Timestamp};
use serde::Deserialize;
use service_kit::{
    config::{Given, Secret},
    db::sql::{Moment, Uid},
    http::page::CHUNK,
};
use ureq::{Agent, Timeout};
use url::{Host, Url};

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
    pub fn token(&self) -> Given<'_> {
        Given("booking-token", self.booking_token.as_ref(), self.booking_token_file.as_deref())
    }

    /// The booking-service, if one is configured.
    ///
    /// # Errors
    /// One line saying what is wrong with the options.
    pub fn source(&self) -> Result<Option<Source>, String> {
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
pub struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "booking-service: {}", self.0)
    }
}

/// An event as the booking-service has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct Original {
    pub id: Uid,
    pub name: String,
    pub description: String,
    pub place: String,
    pub since: Moment,
    pub until: Moment,
    /// Its administrators, each once, by id.
    pub hosts: Vec<Uid>,
}

/// What the booking-service told.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    /// Events as they are now, each once.
    pub events: Vec<Original>,
    /// Events that are deleted.
    pub deleted: Vec<Uid>,
    /// Whether these are all events there are, so that one that is not among them is deleted as well.
    pub is_whole: bool,
    /// Whether it told more than it was asked for: an older one does not know how to tell only what changed.
    pub is_more: bool,
    /// When which event was last changed, by the clock of the booking-service.
    pub changed: Vec<(Timestamp, Uid)>,
}

impl Told {
    /// Whether it was told bit by bit, so that an event that moved meanwhile may be missing.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.events.len() >= CHUNK
    }

    /// The same, put right by what was told of changes after it had begun.
    pub fn put_right(&mut self, later: Self) {
        let changed: HashSet<_> = later.events.iter().map(|event| event.id).chain(later.deleted).collect();
        self.events.retain(|event| !changed.contains(&event.id));
        self.events.extend(later.events);
    }
}

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

impl ResponseEvent {
    fn updated_at(&self) -> Option<Timestamp> {
        self.updated_at.as_deref()?.parse().ok()
    }
}

impl Source {
    /// All events of the booking-service, or those that were made, changed or deleted after a moment. Takes up to the
    /// time limit; for a thread that may wait.
    ///
    /// # Errors
    /// When it cannot be reached in time, or its answer is not a whole list of events.
    pub fn events(&self, since: Option<Timestamp>) -> Result<Told, Failed> {
        let answer = self.ask(since).map_err(|error| self.describe(&error))?;
        let events: Vec<ResponseEvent> = serde_json::from_slice(&answer).map_err(|error| {
            // Only where: the message may quote the answer.
            Failed(format!("the answer is no list of events: line {}, column {}", error.line(), error.column()))
        })?;
        let events = newest(events)?;
        let is_change = |event: &ResponseEvent, since| event.updated_at().is_some_and(|at| at > since);
        let is_more = since.is_some_and(|since| !events.iter().all(|event| is_change(event, since)));
        let changed = events.iter().filter_map(|event| Some((event.updated_at()?, event.event_id.into()))).collect();
        let (deleted, present): (Vec<_>, Vec<_>) = events.into_iter().partition(|event| event.deleted_at.is_some());
        let deleted = deleted.into_iter().map(|event| event.event_id.into()).collect();
        let events = present.into_iter().map(original).collect::<Option<Vec<_>>>();
        let events = events.ok_or_else(|| Failed("the answer has an event that cannot be one".to_owned()))?;
        Ok(Told { events, deleted, is_whole: since.is_none(), is_more, changed })
    }

    fn ask(&self, since: Option<Timestamp>) -> Result<Vec<u8>, ureq::Error> {
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
        let mut address = self.base.clone();
        if let Ok(mut path) = address.path_segments_mut() {
            path.pop_if_empty().extend(["api", "events"]);
        }
        if let Some(since) = since {
            address.query_pairs_mut().append_pair("updatedSince", &since.to_string());
        }
        let agent: Agent = config.build().into();
        let request = agent.get(address.as_str()).header("Accept", "application/json");
        let mut answer = request.header("Authorization", format!("Bearer {}", self.token.reveal())).call()?;
        if answer.status() != 200 {
            return Err(ureq::Error::StatusCode(answer.status().as_u16()));
        }
        answer.body_mut().with_config().limit(self.limits.bytes).read_to_vec()
    }

    fn describe(&self, error: &ureq::Error) -> Failed {
        use ureq::Error;
        Failed(match error {
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

fn is_loopback(base: &Url) -> bool {
    match base.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Each event once. One that moved in a long list while that was sent may stand where it was and where it is now.
fn newest(told: Vec<ResponseEvent>) -> Result<Vec<ResponseEvent>, Failed> {
    let (mut events, mut places) = (Vec::<ResponseEvent>::with_capacity(told.len()), HashMap::new());
    for event in told {
        let place = *places.entry(event.event_id.0).or_insert(events.len());
        match events.get_mut(place) {
            None => events.push(event),
            Some(other) if other.updated_at() == event.updated_at() => {
                return Err(Failed("the answer has an event twice".to_owned()));
            }
            Some(other) if other.updated_at() < event.updated_at() => *other = event,
            Some(_) => {}
        }
    }
    Ok(events)
}

/// The event, unless it is one that no booking-service makes, and some database could not keep.
fn original(event: ResponseEvent) -> Option<Original> {
    let (since, until): (Timestamp, Timestamp) = (event.time_start.parse().ok()?, event.time_end.parse().ok()?);
    let texts = [&event.name, &event.description, &event.place];
    if since > until || texts.iter().any(|text| text.contains('\0')) {
        return None;
    }
    let mut hosts: Vec<_> = event.admins.into_iter().map(Uid::from).collect();
    hosts.sort_unstable();
    hosts.dedup();
    Some(Original {
        id: event.event_id.into(),
        name: event.name,
        description: event.description,
        place: event.place,
        since: Moment(since),
        until: Moment(until),
        hosts,
    })
}

#[cfg(test)]
mod tests;
