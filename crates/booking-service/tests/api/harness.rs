//! A real service on a real database for each test, and a client that validates every answer against the OpenAPI
//! document.

use std::{
    sync::{
        atomic::{AtomicI64, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};

use actix_web::rt::System;
use booking_service::{
    config::{Cli, Config},
    schema, server,
};
use clap::Parser;
use common::time::{Clock, Timestamp};
use diesel::prelude::*;
use serde_json::Value;
use service_kit::{
    credentials,
    database::{
        AnyConnection, Url,
        types::{DbTimestamp, DbUuid},
    },
    logging,
    server::Stop,
};
use tempfile::TempDir;
use ureq::Agent;
use uuid::Uuid;

#[path = "../../../service-kit/tests/shared/client.rs"]
mod client;
pub use self::client::{Answer, Client, DOCUMENT};
#[path = "../../../service-kit/tests/shared/databases.rs"]
mod databases;
use self::databases::TestDatabase;
pub use self::databases::{Backend, postgres_schema};
use crate::process::LONG;
use booking_service::server::{INFO, MIGRATIONS};

/// The members of every test's club: sign-in names.
pub const ALICE: &str = "alice"; // privileged
pub const BOB: &str = "bob";
pub const CAROL: &str = "carol";
pub const DAVE: &str = "dave";
pub const SUSAN: &str = "susan"; // suspended
const MEMBERS: [(&str, i16, bool); 5] =
    [(ALICE, 1, true), (BOB, 1, false), (CAROL, 1, false), (DAVE, 1, false), (SUSAN, 2, false)];

/// The key of every service, unless a test gives another.
pub const KEY: &str = "0123456789-abcdefghijklmnopqrstuvwxyz";

/// A running service with its database and five members.
pub struct Club {
    services: Vec<Service>,
    /// The clock that all services share.
    pub clock: Clock,
    pub config: Config,
    hour: AtomicI64,
    url: Url,
    // Dropped before the folder, so that its connections are closed first.
    agent: Agent,
    folder: TempDir,
    /// The database that it was started on, unless the test brought one.
    _database: Option<TestDatabase>,
}

struct Service {
    address: String,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Club {
    pub fn start(backend: Backend) -> Self {
        Self::start_with(backend, &[])
    }

    /// Starts a service with additional command-line options. If they limit rates, its clock is stopped, so that no
    /// limit recovers before a slow test has reached it.
    pub fn start_with(backend: Backend, options: &[&str]) -> Self {
        let is_limited = options.iter().any(|option| option.ends_with("rate-limit"));
        Self::start_by(if is_limited { Clock::stopped() } else { Clock::default() }, backend, options)
    }

    /// Starts a service with this clock.
    pub fn start_by(clock: Clock, backend: Backend, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::new(backend, folder.path());
        let club = Self::start_on(&database.url.clone(), Some(database), folder, options, clock);
        club.add_members();
        club
    }

    /// Starts a service on a database that may already exist, without adding members.
    pub fn start_at(url: &str, folder: TempDir, options: &[&str]) -> Self {
        Self::start_on(url, None, folder, options, Clock::default())
    }

    fn start_on(url: &str, database: Option<TestDatabase>, folder: TempDir, options: &[&str], clock: Clock) -> Self {
        let mut arguments = vec!["booking-service", "--database-url", url];
        if !options.contains(&"--bind") {
            arguments.extend(["--bind", "127.0.0.1:0"]);
        }
        // No rate limits, except in tests of them.
        for option in ["--rate-limit", "--sign-in-rate-limit", "--feed-rate-limit"] {
            if !options.contains(&option) {
                arguments.extend([option, "0"]);
            }
        }
        if !options.iter().any(|option| option.starts_with("--secret-key")) {
            arguments.extend(["--secret-key", KEY]);
        }
        if !options.contains(&"--time-zone") {
            arguments.extend(["--time-zone", "Asia/Tokyo"]);
        }
        arguments.extend(["--workers", "1", "--database-connections", "4"]);
        // A slow machine is no reason for a 503.
        arguments.extend(["--database-timeout", "60", "--request-timeout", "300"]);
        arguments.extend(options);
        let mut config = Cli::try_parse_from(arguments).unwrap().config;
        config.database.checkout = LONG;
        if let Ok(filter) = std::env::var("RUST_LOG") {
            logging::start(&filter, logging::Format::Plain);
        }
        let url: Url = url.parse().unwrap();
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // The service closes a connection that has been idle for 5 seconds.
            .max_idle_age(Duration::from_secs(2))
            .build()
            .into();
        let hour = AtomicI64::new(clock.now().micros() / HOUR);
        let mut club = Self { services: Vec::new(), clock, config, hour, url, agent, folder, _database: database };
        club.start_another();
        club
    }

    /// The address of the database, as an option.
    pub fn url(&self) -> &str {
        self.config.database.url.as_ref().unwrap().reveal()
    }

    /// Stops all services, and starts one on this database.
    pub fn move_to(&mut self, url: &str) {
        self.stop_all();
        self.config.database.url = Some(url.parse().unwrap());
        self.url = url.parse().unwrap();
        self.start_another();
    }

    /// Stops all services.
    pub fn stop_all(&mut self) {
        for mut service in self.services.drain(..) {
            let stop = service.stop.clone();
            std::thread::spawn(move || System::new().block_on(stop.drain())).join().ok();
            if let Some(thread) = service.thread.take()
                && thread.join().is_err()
                && !std::thread::panicking()
            {
                panic!("the service panicked");
            }
        }
    }

    /// Starts another service on the same database, and returns its index.
    pub fn start_another(&mut self) -> usize {
        self.start_at_once(1);
        self.services.len() - 1
    }

    /// Starts this number of services on the same database at the same time.
    pub fn start_at_once(&mut self, number: usize) {
        let starting: Vec<_> = (0..number)
            .map(|_| {
                let (sender, receiver) = mpsc::channel();
                let (config, clock) = (self.config.clone(), self.clock.clone());
                let thread = std::thread::spawn(move || {
                    System::new().block_on(async move {
                        let running = server::start(&config, clock).await.unwrap();
                        sender.send((format!("http://{}", running.address), running.stop())).unwrap();
                        running.serve().await.unwrap();
                    });
                });
                (receiver, thread)
            })
            .collect();
        for (receiver, thread) in starting {
            let (address, stop) = receiver.recv().expect("the service starts");
            self.services.push(Service { address, stop, thread: Some(thread) });
        }
    }

    /// A connection for the test itself.
    pub fn connect(&self) -> AnyConnection {
        self.url.connect().unwrap()
    }

    pub fn is_postgres(&self) -> bool {
        self.url.is_postgres()
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Scheme and authority of a service.
    pub fn origin(&self, service: usize) -> &str {
        &self.services[service].address
    }

    fn add_members(&self) {
        use schema::users;
        let (conn, now) = (&mut self.connect(), DbTimestamp(self.clock.now()));
        for (name, state, privileged) in MEMBERS {
            // The demo creates its own members, which include the four active ones.
            if self.config.demo {
                if state == 1 {
                    self.add_session(name, DbUuid(club_directory::demo::member_id(name)));
                }
                continue;
            }
            diesel::insert_into(users::table)
                .values((
                    users::id.eq(id(name)),
                    users::name.eq(name),
                    users::display_name.eq(name.to_uppercase()),
                    users::icon.eq(""),
                    users::state.eq(state),
                    users::privileged.eq(privileged),
                    users::created_at.eq(now),
                    users::updated_at.eq(now),
                ))
                .execute(conn)
                .unwrap();
            self.add_session(name, id(name));
        }
    }

    fn add_session(&self, name: &str, user: DbUuid) {
        use schema::sessions;
        let now = DbTimestamp(self.clock.now());
        diesel::insert_into(sessions::table)
            .values((
                sessions::id.eq(DbUuid::new()),
                sessions::token_hash.eq(credentials::hash(&session(name))),
                sessions::user_id.eq(user),
                sessions::created_at.eq(now),
                sessions::expires_at.eq(DbTimestamp(now.plus(chrono::TimeDelta::days(3000)))),
                // Never idle, even if a test advances the clock.
                sessions::last_used_at.eq(DbTimestamp(now.plus(chrono::TimeDelta::days(3000)))),
            ))
            .execute(&mut self.connect())
            .unwrap();
    }

    /// A request by a member, with their session cookie.
    pub fn by(&self, member: &str) -> Client<'_> {
        let cookie = format!("session={}", session(member));
        Client { club: self, service: 0, headers: vec![("cookie".to_owned(), cookie)] }
    }

    /// A request without any credential.
    pub fn anonymous(&self) -> Client<'_> {
        Client { club: self, service: 0, headers: Vec::new() }
    }
}

impl Drop for Club {
    fn drop(&mut self) {
        self.stop_all();
    }
}

/// The id of a member, the same in every test.
pub fn id(member: &str) -> DbUuid {
    DbUuid(Uuid::new_v5(&Uuid::NAMESPACE_OID, member.as_bytes()))
}

fn session(member: &str) -> String {
    format!("session-of-{member}")
}

/// Checks the rules that only this service's answers follow.
fn check_own_rules(answer: &Answer, problem: Option<&Value>) {
    assert!(answer.header("x-knoq-version").is_some(), "{} has no version", answer.request);
    assert_eq!(answer.header("x-knoq-need-authorization").is_some(), answer.status == 401, "{}", answer.request);
    if let Some(problem) = problem {
        assert_eq!(problem["errors"]["message"], problem["detail"], "{problem}");
    }
}

const HOUR: i64 = 3_600_000_000;

/// The start of the current hour plus `hours`. The current hour does not change when the real clock reaches the next
/// hour during a test. It changes when the test advances its clock.
pub fn hours_from_now(club: &Club, hours: i64) -> Timestamp {
    let hour = club.clock.now().micros() / HOUR;
    let known = club.hour.load(Ordering::Relaxed);
    let hour = if (known..=known + 1).contains(&hour) { known } else { hour };
    club.hour.store(hour, Ordering::Relaxed);
    Timestamp::from_micros((hour + hours) * HOUR).unwrap()
}
