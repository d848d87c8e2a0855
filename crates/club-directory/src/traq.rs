//! The directory of a traQ server.

use std::collections::HashSet;
use std::time::Duration;

use common::address::is_loopback;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::{Agent, Timeout};
use url::Url;
use uuid::Uuid;

use super::snapshot::{DirectoryError, DirectoryGroup, DirectoryUser, Snapshot, UserState};

/// The limits of one read.
pub(super) struct Limits {
    /// Until connected, TLS included.
    pub(super) connect: Duration,
    /// From the name lookup to the last byte of one answer.
    pub(super) request: Duration,
    /// How often the same request is sent.
    pub(super) attempts: u32,
    /// The pause after the first failed attempt; after the second it is twice as long, and so on.
    pub(super) pause: Duration,
    /// Size of one answer.
    pub(super) bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            request: Duration::from_secs(10),
            attempts: 3,
            pause: Duration::from_millis(250),
            bytes: 32 << 20,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct User {
    id: Uuid,
    name: String,
    display_name: String,
    state: i64,
    #[serde(default)]
    bot: bool,
}

#[derive(Deserialize)]
struct Group {
    id: Uuid,
    name: String,
    #[serde(default)]
    description: String,
    members: Vec<Member>,
    #[serde(default)]
    admins: Vec<Uuid>,
}

#[derive(Deserialize)]
struct Member {
    id: Uuid,
}

pub(super) struct Client<'a> {
    agent: Agent,
    base: Url,
    authorization: String,
    limits: &'a Limits,
}

impl<'a> Client<'a> {
    pub(super) fn new(base: &Url, token: &str, limits: &'a Limits) -> Self {
        let mut base = base.clone();
        // Icons are addresses for everyone, so they must not carry a password. Neither call can fail where it matters:
        // an address that has no host has no password either.
        let _ = base.set_username("").and_then(|()| base.set_password(None));
        base.set_query(None);
        base.set_fragment(None);

        let mut config = Agent::config_builder()
            .timeout_connect(Some(limits.connect))
            .timeout_global(Some(limits.request))
            .http_status_as_error(false)
            // The token goes to the configured address and nowhere else.
            .max_redirects(0);
        if is_loopback(&base) {
            // A proxy of the environment could only reach its own loopback.
            config = config.proxy(None);
        }
        Self { agent: config.build().new_agent(), base, authorization: format!("Bearer {token}"), limits }
    }

    pub(super) fn read(&self) -> Result<Snapshot, DirectoryError> {
        let users: Vec<User> = self.get("users", Some("include-suspended=true"))?;
        let groups: Vec<Group> = self.get("groups", None)?;

        let users = users.into_iter().filter(|user| !user.bot).map(|user| self.user(user));
        let users = users.collect::<Result<Vec<_>, _>>()?;
        let user_ids: HashSet<Uuid> = users.iter().map(|user| user.id).collect();
        let groups = groups.into_iter().map(|group| DirectoryGroup {
            id: group.id,
            name: group.name,
            description: group.description,
            admins: only(&user_ids, group.admins.into_iter()),
            members: only(&user_ids, group.members.into_iter().map(|member| member.id)),
        });
        Ok(Snapshot { groups: groups.collect(), users })
    }

    fn user(&self, user: User) -> Result<DirectoryUser, DirectoryError> {
        let Some(state) = UserState::from_number(user.state) else {
            let fault = format!("the user {:?} has the unknown state {}", user.name, user.state);
            return Err(DirectoryError::Unfit(fault));
        };
        Ok(DirectoryUser {
            id: user.id,
            icon: Some(self.address(&["public", "icon", &user.name]).into()),
            name: user.name,
            display_name: user.display_name,
            real_name: None,
            state,
        })
    }

    fn address(&self, segments: &[&str]) -> Url {
        let mut address = self.base.clone();
        // Fails for addresses such as `mailto:`, which the request then refuses.
        if let Ok(mut path) = address.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        address
    }

    /// Fetches one list. Retries after a temporary failure.
    #[expect(clippy::disallowed_methods, reason = "runs on a blocking thread, which waits for the server anyway")]
    fn get<T: DeserializeOwned>(&self, list: &'static str, query: Option<&str>) -> Result<T, DirectoryError> {
        let mut address = self.address(&[list]);
        address.set_query(query);
        let mut attempt = 1;
        let body = loop {
            match self.get_once(&address) {
                Ok(body) => break body,
                Err(error) => {
                    let retry = attempt < self.limits.attempts && is_temporary(&error);
                    let error = self.describe(list, &error);
                    if !retry {
                        return Err(error);
                    }
                    log::warn!("{error}; trying again");
                    std::thread::sleep(self.limits.pause * attempt);
                    attempt += 1;
                }
            }
        };
        serde_json::from_slice(&body).map_err(|error| {
            // Only the place: the message may quote the answer.
            let place = format!("not the expected JSON at line {}, column {}", error.line(), error.column());
            DirectoryError::Malformed(answer(list), place)
        })
    }

    fn get_once(&self, address: &Url) -> Result<Vec<u8>, ureq::Error> {
        let request = self.agent.get(address.as_str()).header("Authorization", &self.authorization);
        let mut answer = request.header("Accept", "application/json").call()?;
        if answer.status() != 200 {
            return Err(ureq::Error::StatusCode(answer.status().as_u16()));
        }
        answer.body_mut().with_config().limit(self.limits.bytes).read_to_vec()
    }

    /// The error in our own words, because the library's may quote the server.
    fn describe(&self, list: &'static str, error: &ureq::Error) -> DirectoryError {
        use ureq::Error;
        let reason = match error {
            Error::StatusCode(status) => return DirectoryError::Status(list, *status),
            Error::BodyExceedsLimit(_) => return DirectoryError::TooLarge(answer(list), self.limits.bytes),
            Error::Timeout(Timeout::Connect) => "no connection in time".into(),
            Error::Timeout(_) => "no complete answer in time".into(),
            Error::Io(cause) => cause.to_string(),
            Error::Rustls(cause) => cause.to_string(),
            Error::HostNotFound => "host not found".into(),
            Error::ConnectionFailed | Error::ConnectProxyFailed(_) => "connection failed".into(),
            Error::Http(_) | Error::BadUri(_) => "the configured address or token cannot be sent".into(),
            _ => "the answer is not HTTP".into(),
        };
        DirectoryError::Unreachable(list, reason)
    }
}

fn answer(list: &str) -> String {
    format!("the answer to the request for the {list}")
}

/// A request that exceeded its time limit is not sent again, because that would triple the longest wait.
fn is_temporary(error: &ureq::Error) -> bool {
    use ureq::Error;
    match error {
        Error::StatusCode(status) => *status == 429 || *status >= 500,
        Error::Io(_) | Error::HostNotFound | Error::ConnectionFailed | Error::Timeout(Timeout::Connect) => true,
        _ => false,
    }
}

/// The ids that are in `user_ids`, each once. The others are bots, or users added between the two requests.
fn only(user_ids: &HashSet<Uuid>, ids: impl Iterator<Item = Uuid>) -> Vec<Uuid> {
    let mut seen = HashSet::new();
    ids.filter(|id| user_ids.contains(id) && seen.insert(*id)).collect()
}

#[cfg(test)]
mod tests;
