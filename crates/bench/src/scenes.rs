//! The scenes: what is asked of the services.

use std::sync::Arc;

use chrono::TimeDelta;
use common::time::{Clock, Timestamp};
use serde_json::{Value, json};

use crate::{
    Result,
    database::{Database, Service},
    http::{Connection, Requests, request},
    program::Running,
};

/// What is held to which bounds; see `docs/performance.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The ratio of p99 to p50.
    Spread,
    /// None but those that every scene has.
    General,
}

/// One kind of request.
pub struct Scene {
    pub name: &'static str,
    pub service: Service,
    pub bound: Bound,
    /// The only good answer.
    pub status: &'static [u16],
    pub requests: fn(&Facts) -> Requests,
}

/// What the requests name, looked up in the data.
#[derive(Debug, Clone)]
pub struct Facts {
    pub token: String,
    pub today: Timestamp,
    pub me: String,
    /// An event, a contest and a user; a project; as far as the service has them.
    pub event: String,
    pub project: String,
    pub contest: String,
    pub group: String,
    pub feed: String,
    pub feed_user: String,
    pub etag: String,
    pub users: Vec<String>,
}

const OK: &[u16] = &[200];

const fn reading(name: &'static str, service: Service, bound: Bound, requests: fn(&Facts) -> Requests) -> Scene {
    Scene { name, service, bound, status: OK, requests }
}

/// All of them; those that write come last, as they change what others read.
pub const ALL: [Scene; 18] = [
    reading("week", Service::Booking, Bound::Spread, |f| get(f, &f.events(7))),
    reading("month", Service::Booking, Bound::General, |f| get(f, &f.events(31))),
    reading("rooms", Service::Booking, Bound::Spread, |f| get(f, &f.rooms())),
    reading("event", Service::Booking, Bound::Spread, |f| get(f, &f.one_event())),
    reading("my-events", Service::Booking, Bound::General, |f| get(f, "/api/users/me/events")),
    reading("groups", Service::Booking, Bound::General, |f| get(f, "/api/groups")),
    reading("users", Service::Booking, Bound::General, |f| get(f, "/api/users")),
    reading("feed", Service::Booking, Bound::General, |f| get(f, &f.feed)),
    Scene {
        name: "not-modified",
        service: Service::Booking,
        bound: Bound::General,
        status: &[304],
        requests: not_modified,
    },
    Scene { name: "answer", service: Service::Booking, bound: Bound::General, status: &[204], requests: answer },
    Scene { name: "book", service: Service::Booking, bound: Bound::General, status: &[201], requests: book },
    reading("p-users", Service::Portfolio, Bound::General, |f| get(f, "/api/v1/users")),
    reading("p-user", Service::Portfolio, Bound::General, |f| get(f, &format!("/api/v1/users/{}", f.me))),
    reading("p-projects", Service::Portfolio, Bound::General, |f| get(f, "/api/v1/projects")),
    reading("p-project", Service::Portfolio, Bound::General, |f| get(f, &format!("/api/v1/projects/{}", f.project))),
    reading("p-contests", Service::Portfolio, Bound::General, |f| get(f, "/api/v1/contests")),
    reading("p-contest", Service::Portfolio, Bound::Spread, |f| get(f, &format!("/api/v1/contests/{}", f.contest))),
    Scene {
        name: "p-members",
        service: Service::Portfolio,
        bound: Bound::General,
        status: &[204],
        requests: put_members,
    },
];

/// Midnight UTC of today: the day that everything was seeded around.
pub fn today() -> Timestamp {
    let now = Clock::default().now();
    now.plus(-TimeDelta::microseconds(now.micros().rem_euclid(86_400_000_000)))
}

impl Facts {
    /// Looks them up in a service that runs.
    pub async fn find(database: &Database, running: &Running) -> Result<Self> {
        let mut facts = Self {
            token: String::new(),
            today: today(),
            me: String::new(),
            event: String::new(),
            project: String::new(),
            contest: String::new(),
            group: String::new(),
            feed: String::new(),
            feed_user: String::new(),
            etag: String::new(),
            users: Vec::new(),
        };
        match database.service {
            Service::Booking => facts.find_in_booking(database, running).await?,
            Service::Portfolio => {
                facts.users = ids(&facts.ask(running, "/api/v1/users").await?.0, "id");
                facts.me = facts.users.first().cloned().ok_or("no users")?;
                let project = ids(&facts.ask(running, "/api/v1/projects").await?.0, "id").into_iter().next();
                facts.project = project.ok_or("no projects")?;
                let contest = ids(&facts.ask(running, "/api/v1/contests").await?.0, "id").into_iter().next();
                facts.contest = contest.ok_or("no contests")?;
            }
        }
        Ok(facts)
    }

    async fn find_in_booking(&mut self, database: &Database, running: &Running) -> Result<()> {
        self.token = database.token("alice")?;
        let (users, _) = self.ask(running, "/api/users").await?;
        let last = users.as_array().and_then(|users| users.last()).ok_or("no users")?;
        let (last, name) = (text(last, "userId"), text(last, "name"));
        self.me = text(&self.ask(running, "/api/users/me").await?.0, "userId");
        let events = self.ask(running, &self.events(7)).await?.0;
        self.event = ids(&events, "eventId").into_iter().next().ok_or("the week is empty")?;
        let groups = self.ask(running, "/api/users/me/groups").await?.0;
        // The last are the directory's.
        groups.as_array().and_then(|ids| ids.last()?.as_str()).ok_or("no groups")?.clone_into(&mut self.group);
        let owner = Self { token: database.token(&name)?, ..self.clone() };
        let secret = text(&owner.ask(running, "/api/users/me/ical").await?.0, "secret");
        self.feed = format!("/api/ical/v1/{last}{secret}");
        self.feed_user = last;
        Ok(())
    }

    /// The same with the tag that the week has now; each write elsewhere gives it another, as every 304 tells a client.
    pub async fn now(&self, running: &Running) -> Result<Self> {
        let etag = if self.event.is_empty() { String::new() } else { self.ask(running, &self.events(7)).await?.1 };
        Ok(Self { etag, ..self.clone() })
    }

    /// The body and the tag of an answer.
    async fn ask(&self, running: &Running, path: &str) -> Result<(Value, String)> {
        let mut connection = Connection::open(&running.address).await?;
        let answer = connection.exchange(&get(self, path)(0), true).await?;
        if answer.status != 200 {
            return Err(format!("GET {path} was answered {}", answer.status).into());
        }
        Ok((serde_json::from_slice(&answer.body)?, answer.header("etag").unwrap_or_default().to_owned()))
    }

    fn events(&self, days: i64) -> String {
        format!("/api/events?dateBegin={}&dateEnd={}", self.today, self.today.plus(TimeDelta::days(days)))
    }

    fn rooms(&self) -> String {
        format!("/api/rooms?dateBegin={}&dateEnd={}", self.today, self.today.plus(TimeDelta::days(7)))
    }

    fn one_event(&self) -> String {
        format!("/api/events/{}", self.event)
    }

    /// The text of a request with the caller's credential.
    pub fn request(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        if self.token.is_empty() {
            return request(method, path, &[("X-Forwarded-User", "alice")], body);
        }
        request(method, path, &[("Authorization", &format!("Bearer {}", self.token))], body)
    }

    /// An event of an hour's length at a place or in a room.
    pub fn booking(&self, at: (&str, &str), starts_at: Timestamp) -> Vec<u8> {
        let body = json!({
            "name": "An hour", "description": "", at.0: at.1, "groupId": self.group, "open": false,
            "sharedRoom": false, "admins": [self.me], "tags": [{"name": "tag 1"}, {"name": "tag 2"}],
            "timeStart": starts_at, "timeEnd": starts_at.plus(TimeDelta::hours(1)),
        });
        self.request("POST", "/api/events", &body.to_string())
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn ids(list: &Value, field: &str) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|item| text(item, field)).collect()
}

fn same(text: Vec<u8>) -> Requests {
    Arc::new(move |_| text.clone())
}

/// As anybody may in the portfolio, which is what its visitors do.
fn get(facts: &Facts, path: &str) -> Requests {
    let anonymous = facts.token.is_empty() || path == facts.feed;
    same(if anonymous { request("GET", path, &[], "") } else { facts.request("GET", path, "") })
}

fn not_modified(facts: &Facts) -> Requests {
    let bearer = format!("Bearer {}", facts.token);
    same(request("GET", &facts.events(7), &[("Authorization", &bearer), ("If-None-Match", &facts.etag)], ""))
}

fn answer(facts: &Facts) -> Requests {
    let path = format!("/api/events/{}/attendees/me", facts.event);
    let texts = ["attendance", "absent"]
        .map(|schedule| facts.request("PUT", &path, &json!({ "schedule": schedule }).to_string()));
    Arc::new(move |number| texts[usize::from(number % 2 == 1)].clone())
}

/// At places that nobody confirms, where nothing conflicts; many of them, so that none is waited for.
fn book(facts: &Facts) -> Requests {
    let facts = facts.clone();
    Arc::new(move |number| {
        let days = TimeDelta::days(40 + i64::try_from(number % 300).unwrap_or(0));
        facts.booking(("place", &format!("Place {}", number % 997)), facts.today.plus(days))
    })
}

fn put_members(facts: &Facts) -> Requests {
    let path = format!("/api/v1/projects/{}/members", facts.project);
    let span = json!({ "since": { "year": 2020, "semester": 0 } });
    let texts = [0, 4].map(|from| {
        let members = facts.users.iter().skip(from).take(8);
        let members: Vec<_> = members.map(|user| json!({ "userId": user, "duration": span })).collect();
        facts.request("PUT", &path, &json!({ "members": members }).to_string())
    });
    Arc::new(move |number| texts[usize::from(number % 2 == 1)].clone())
}
