//! The directory of a traQ server.

use std::collections::HashSet;
use std::time::Duration;

use club_issuer::outbound::{self, RequestError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;
use uuid::Uuid;

use super::snapshot::{DirectoryError, DirectoryGroup, DirectoryUser, Snapshot, UserState};

/// The limits of one read.
pub(super) struct Limits {
    /// Of one request.
    pub(super) request: outbound::Limits,
    /// How often the same request is sent.
    pub(super) attempts: u32,
    /// The pause after the first failed attempt; after the second it is twice as long, and so on.
    pub(super) pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request: outbound::Limits {
                connect: Duration::from_secs(3),
                request: Duration::from_secs(10),
                bytes: 32 << 20,
            },
            attempts: 3,
            pause: Duration::from_millis(250),
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
    http: outbound::Client,
    base: Url,
    token: &'a str,
    limits: &'a Limits,
}

impl<'a> Client<'a> {
    pub(super) fn new(base: &Url, token: &'a str, limits: &'a Limits) -> Self {
        let mut base = base.clone();
        // Icons are addresses for everyone, so they must not carry a password. Neither call can fail where it matters:
        // an address that has no host has no password either.
        let _ = base.set_username("").and_then(|()| base.set_password(None));
        base.set_query(None);
        base.set_fragment(None);
        Self { http: outbound::Client::new(limits.request), base, token, limits }
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
        Ok(Snapshot { groups: groups.collect(), users, privileged: None })
    }

    fn user(&self, user: User) -> Result<DirectoryUser, DirectoryError> {
        let Some(state) = UserState::from_number(user.state) else {
            let fault = format!("the user {:?} has the unknown state {}", user.name, user.state);
            return Err(DirectoryError::Unfit(fault));
        };
        Ok(DirectoryUser {
            id: user.id,
            icon: Some(self.address(&["public", "icon", &user.name]).into()),
            email: None,
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
    pub(super) fn get<T: DeserializeOwned>(
        &self,
        list: &'static str,
        query: Option<&str>,
    ) -> Result<T, DirectoryError> {
        let mut address = self.address(&[list]);
        address.set_query(query);
        let mut attempt = 1;
        let body = loop {
            match self.get_once(&address) {
                Ok(body) => break body,
                Err(error) => {
                    let retry = attempt < self.limits.attempts && error.is_temporary();
                    let error = describe(list, &error);
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

    fn get_once(&self, address: &Url) -> Result<Vec<u8>, RequestError> {
        let answer = self.http.get(address, Some(self.token))?;
        if answer.status() != 200 {
            return Err(RequestError::Status(answer.status().as_u16()));
        }
        Ok(answer.into_body())
    }
}

fn describe(list: &'static str, error: &RequestError) -> DirectoryError {
    match error {
        RequestError::Status(status) => DirectoryError::Status(list, *status),
        RequestError::TooLarge(limit) => DirectoryError::TooLarge(answer(list), *limit),
        error => DirectoryError::Unreachable(list, error.to_string()),
    }
}

fn answer(list: &str) -> String {
    format!("the answer to the request for the {list}")
}

/// The ids that are in `user_ids`, each once. The others are bots, or users added between the two requests.
pub(super) fn only(user_ids: &HashSet<Uuid>, ids: impl Iterator<Item = Uuid>) -> Vec<Uuid> {
    let mut seen = HashSet::new();
    ids.filter(|id| user_ids.contains(id) && seen.insert(*id)).collect()
}

#[cfg(test)]
mod tests;
