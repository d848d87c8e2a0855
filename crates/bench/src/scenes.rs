//! The scenes: kinds of requests to the services.

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

/// The bounds of a scene; see `docs/performance.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The bounds of every scene, and one of the ratio of p99 to p50.
    Spread,
    /// The bounds of every scene.
    General,
    /// The bounds of every scene, and those of the size of a page for people and of its processor time.
    Page,
}

/// One kind of request.
pub struct Scene {
    pub name: &'static str,
    pub service: Service,
    pub bound: Bound,
    /// The expected statuses.
    pub status: &'static [u16],
    pub requests: fn(&Facts) -> Requests,
}

/// The ids and credentials of the requests, looked up in the data.
#[derive(Debug, Clone)]
pub struct Facts {
    pub token: String,
    pub today: Timestamp,
    pub me: String,
    /// Ids. A service leaves the ids of the other one's objects empty.
    pub event: String,
    pub projects: Vec<String>,
    pub contest: String,
    pub group: String,
    pub feed: String,
    pub feeds: Vec<String>,
    pub etag: String,
    pub users: Vec<String>,
}

const OK: &[u16] = &[200];

/// The number of feeds of the scene that fetches many.
const FEEDS: usize = 100;

const fn reading(name: &'static str, service: Service, bound: Bound, requests: fn(&Facts) -> Requests) -> Scene {
    Scene { name, service, bound, status: OK, requests }
}

const fn page(name: &'static str, service: Service, requests: fn(&Facts) -> Requests) -> Scene {
    reading(name, service, Bound::Page, requests)
}

/// The number of projects of the scene that changes the members of many.
const PROJECTS: usize = 100;

/// All scenes. For each service, those that write come last, because they change what others read.
pub const ALL: [Scene; 36] = [
    reading("week", Service::Booking, Bound::Spread, |f| get(f, &f.events(7))),
    reading("calendar", Service::Booking, Bound::General, |f| get(f, &f.events(92))),
    reading("search", Service::Booking, Bound::General, |f| get(f, &format!("/api/events?dateBegin={}", f.today))),
    reading("search-none", Service::Booking, Bound::General, |f| get(f, "/api/events?search=nothing")),
    reading("rooms", Service::Booking, Bound::Spread, |f| get(f, &f.rooms())),
    reading("event", Service::Booking, Bound::Spread, |f| get(f, &f.one_event())),
    reading("my-events", Service::Booking, Bound::General, |f| get(f, "/api/users/me/events")),
    reading("groups", Service::Booking, Bound::General, |f| get(f, "/api/groups")),
    reading("users", Service::Booking, Bound::General, |f| get(f, "/api/users")),
    reading("feed", Service::Booking, Bound::General, |f| get(f, &f.feed)),
    reading("feeds", Service::Booking, Bound::General, |f| {
        let requests: Vec<_> = f.feeds.iter().map(|feed| request("GET", feed, &[], "")).collect();
        Arc::new(move |number| requests[usize::try_from(number).unwrap_or(0) % requests.len()].clone())
    }),
    page("page-start", Service::Booking, |f| get_page(f, "/")),
    page("page-events", Service::Booking, |f| get_page(f, "/events")),
    page("page-event", Service::Booking, |f| get_page(f, &format!("/events/{}", f.event))),
    page("page-event-new", Service::Booking, |f| get_page(f, "/events/new")),
    page("page-polls", Service::Booking, |f| get_page(f, "/polls")),
    page("page-groups", Service::Booking, |f| get_page(f, "/groups")),
    page("page-rooms", Service::Booking, |f| get_page(f, "/rooms")),
    page("page-me", Service::Booking, |f| get_page(f, "/me")),
    page("page-week", Service::Booking, |f| get_page(f, "/board?view=week")),
    Scene {
        name: "not-modified",
        service: Service::Booking,
        bound: Bound::General,
        status: &[304],
        requests: not_modified,
    },
    Scene { name: "answer", service: Service::Booking, bound: Bound::General, status: &[204], requests: answer },
    Scene { name: "mixed", service: Service::Booking, bound: Bound::General, status: &[200, 204], requests: mixed },
    Scene {
        name: "together",
        service: Service::Booking,
        bound: Bound::General,
        status: &[200, 201],
        requests: together,
    },
    Scene { name: "book", service: Service::Booking, bound: Bound::General, status: &[201], requests: book },
    reading("p-users", Service::Portfolio, Bound::General, |f| get(f, "/api/v1/users")),
    reading("p-user", Service::Portfolio, Bound::General, |f| get(f, &format!("/api/v1/users/{}", f.me))),
    reading("p-projects", Service::Portfolio, Bound::General, |f| get(f, "/api/v1/projects")),
    reading("p-project", Service::Portfolio, Bound::General, |f| {
        get(f, &format!("/api/v1/projects/{}", f.projects[0]))
    }),
    reading("p-contests", Service::Portfolio, Bound::General, |f| get(f, "/api/v1/contests")),
    reading("p-contest", Service::Portfolio, Bound::Spread, |f| get(f, &format!("/api/v1/contests/{}", f.contest))),
    page("page-people", Service::Portfolio, |f| get_page(f, "/people")),
    page("page-projects", Service::Portfolio, |f| get_page(f, "/projects")),
    page("page-contests", Service::Portfolio, |f| get_page(f, "/contests")),
    Scene {
        name: "p-members",
        service: Service::Portfolio,
        bound: Bound::General,
        status: &[204],
        requests: |f| put_members(f, &f.projects[..1]),
    },
    Scene {
        name: "p-members-many",
        service: Service::Portfolio,
        bound: Bound::General,
        status: &[204],
        requests: |f| put_members(f, &f.projects),
    },
];

/// Midnight UTC of today, the day that the seeded data is arranged around.
pub fn today() -> Timestamp {
    Clock::default().now().midnight()
}

impl Facts {
    /// Looks up the facts in a running service.
    pub async fn find(database: &Database, running: &Running) -> Result<Self> {
        let mut facts = Self {
            token: String::new(),
            today: today(),
            me: String::new(),
            event: String::new(),
            projects: Vec::new(),
            contest: String::new(),
            group: String::new(),
            feed: String::new(),
            feeds: Vec::new(),
            etag: String::new(),
            users: Vec::new(),
        };
        match database.service {
            Service::Booking => facts.find_in_booking(database, running).await?,
            Service::Portfolio => {
                facts.users = ids(&facts.fetch(running, "/api/v1/users").await?.0, "id");
                facts.me = facts.users.first().cloned().ok_or("no users")?;
                facts.projects = ids(&facts.fetch(running, "/api/v1/projects").await?.0, "id");
                facts.projects.truncate(PROJECTS);
                if facts.projects.is_empty() {
                    return Err("no projects".into());
                }
                let contest = ids(&facts.fetch(running, "/api/v1/contests").await?.0, "id").into_iter().next();
                facts.contest = contest.ok_or("no contests")?;
            }
        }
        Ok(facts)
    }

    async fn find_in_booking(&mut self, database: &Database, running: &Running) -> Result<()> {
        self.token = database.token("alice")?;
        let users = self.fetch(running, "/api/users").await?.0;
        let users = users.as_array().ok_or("no users")?;
        // The last one is in no group, and has as many events in every size.
        self.feed = self.feed_of(database, running, users.last().ok_or("no users")?).await?;
        for user in users.iter().take(FEEDS) {
            self.feeds.push(self.feed_of(database, running, user).await?);
        }
        self.me = text(&self.fetch(running, "/api/users/me").await?.0, "userId");
        let events = self.fetch(running, &self.events(7)).await?.0;
        self.event = ids(&events, "eventId").into_iter().next().ok_or("the week is empty")?;
        let groups = self.fetch(running, "/api/users/me/groups").await?.0;
        // The groups of the directory come last.
        groups.as_array().and_then(|ids| ids.last()?.as_str()).ok_or("no groups")?.clone_into(&mut self.group);
        Ok(())
    }

    /// The address of a user's feed, as front ends build it.
    async fn feed_of(&self, database: &Database, running: &Running, user: &Value) -> Result<String> {
        let owner = Self { token: database.token(&text(user, "name"))?, ..self.clone() };
        let secret = text(&owner.fetch(running, "/api/users/me/ical").await?.0, "secret");
        let id = text(user, "userId");
        Ok(format!("/api/ical/v1/{id}{secret}?q=user%3D%3D{id}"))
    }

    /// These facts with the present `ETag` of the week's events, which any write may change.
    pub async fn now(&self, running: &Running) -> Result<Self> {
        let etag = if self.event.is_empty() { String::new() } else { self.fetch(running, &self.events(7)).await?.1 };
        Ok(Self { etag, ..self.clone() })
    }

    /// The body and the `ETag` of an answer.
    async fn fetch(&self, running: &Running, path: &str) -> Result<(Value, String)> {
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

    /// A request to create an event of one hour, at a place or in a room.
    pub fn booking(&self, at: (&str, &str), starts_at: Timestamp, description: &str) -> Vec<u8> {
        let body = json!({
            "name": "An hour", "description": description, at.0: at.1, "groupId": self.group, "open": false,
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

fn repeat(text: Vec<u8>) -> Requests {
    Arc::new(move |_| text.clone())
}

/// Without a credential in the portfolio-service, as its visitors read.
fn get(facts: &Facts, path: &str) -> Requests {
    let anonymous = facts.token.is_empty() || path == facts.feed;
    repeat(if anonymous { request("GET", path, &[], "") } else { facts.request("GET", path, "") })
}

/// A page as a member's browser asks for it; without a credential in the portfolio-service.
fn get_page(facts: &Facts, path: &str) -> Requests {
    let (accept, bearer) = (("Accept", "text/html"), format!("Bearer {}", facts.token));
    let headers: &[_] = if facts.token.is_empty() { &[accept] } else { &[accept, ("Authorization", &bearer)] };
    repeat(request("GET", path, headers, ""))
}

fn not_modified(facts: &Facts) -> Requests {
    let bearer = format!("Bearer {}", facts.token);
    repeat(request("GET", &facts.events(7), &[("Authorization", &bearer), ("If-None-Match", &facts.etag)], ""))
}

fn answer(facts: &Facts) -> Requests {
    let path = format!("/api/events/{}/attendees/me", facts.event);
    let texts = ["attendance", "absent"]
        .map(|schedule| facts.request("PUT", &path, &json!({ "schedule": schedule }).to_string()));
    Arc::new(move |number| texts[usize::from(number % 2 == 1)].clone())
}

/// Nine reads of the week, its rooms and one event, then an answer to the event.
fn mixed(facts: &Facts) -> Requests {
    let reads = [facts.events(7), facts.rooms(), facts.one_event()].map(|path| get(facts, &path));
    let answers = answer(facts);
    Arc::new(move |number| match usize::try_from(number % 10) {
        Ok(n @ 0..9) => reads[n % reads.len()](number),
        _ => answers(number / 10),
    })
}

/// Lists, pages, and bookings with texts of many sizes.
fn together(facts: &Facts) -> Requests {
    let reads = [get(facts, &facts.events(7)), get_page(facts, "/"), get(facts, "/api/users/me/events")];
    let facts = facts.clone();
    Arc::new(move |number| {
        if let Ok(n @ 0..3) = usize::try_from(number % 4) {
            return reads[n](number);
        }
        let description = "あ".repeat(usize::try_from(number * 997 % 3000).unwrap_or(0));
        let starts_at = facts.today.plus(TimeDelta::days(40 + i64::try_from(number % 300).unwrap_or(0)));
        facts.booking(("place", &format!("Place {}", number % 997)), starts_at, &description)
    })
}

/// Bookings of many places without verified rooms, so that no booking conflicts with or waits for another.
fn book(facts: &Facts) -> Requests {
    let facts = facts.clone();
    Arc::new(move |number| {
        let days = TimeDelta::days(40 + i64::try_from(number % 300).unwrap_or(0));
        facts.booking(("place", &format!("Place {}", number % 997)), facts.today.plus(days), "")
    })
}

/// Each project in turn gets one list of members, then each gets the other one.
fn put_members(facts: &Facts, projects: &[String]) -> Requests {
    let span = json!({ "since": { "year": 2020, "semester": 0 } });
    let put = |from: usize, project: &String| {
        let members = facts.users.iter().skip(from).take(8);
        let members: Vec<_> = members.map(|user| json!({ "userId": user, "duration": span })).collect();
        let path = format!("/api/v1/projects/{project}/members");
        facts.request("PUT", &path, &json!({ "members": members }).to_string())
    };
    let requests: Vec<_> = [0, 4].iter().flat_map(|from| projects.iter().map(|project| put(*from, project))).collect();
    Arc::new(move |number| requests[usize::try_from(number).unwrap_or(0) % requests.len()].clone())
}
