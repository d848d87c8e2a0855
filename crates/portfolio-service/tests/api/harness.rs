//! A real service on a real database for each test, and a client that checks every answer against the OpenAPI document.

use std::{sync::mpsc, thread::JoinHandle, time::Duration};

use actix_web::rt::System;
use clap::Parser;
use common::time::Clock;
use diesel::prelude::*;
use portfolio_service::{
    config::{Cli, Config},
    schema, server,
};
use serde_json::{Value, json};
use service_kit::{
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
use portfolio_service::server::{INFO, MIGRATIONS};

/// The sign-in names of the members of every club.
pub const ALICE: &str = "alice"; // an admin
pub const BOB: &str = "bob";
pub const CAROL: &str = "carol";
pub const DAVE: &str = "dave";
pub const SUSAN: &str = "susan"; // suspended
pub const DORA: &str = "dora"; // deactivated
const MEMBERS: [(&str, i16); 6] = [(ALICE, 1), (BOB, 1), (CAROL, 1), (DAVE, 1), (SUSAN, 2), (DORA, 0)];

/// The key of every installation.
const KEY: &str = "0123456789-abcdefghijklmnopqrstuvwxyz";

/// A running service with its database and six members.
pub struct Club {
    services: Vec<Service>,
    /// The clock of all services.
    pub clock: Clock,
    pub config: Config,
    url: Url,
    // Dropped before the folder.
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

    /// Starts one with more options, as on the command line. If they limit rates, its clock is stopped, so that no limit
    /// recovers before a slow test has reached it.
    pub fn start_with(backend: Backend, options: &[&str]) -> Self {
        let is_limited = options.iter().any(|option| option.ends_with("rate-limit"));
        Self::start_by(if is_limited { Clock::stopped() } else { Clock::default() }, backend, options)
    }

    /// Starts one with this clock.
    pub fn start_by(clock: Clock, backend: Backend, options: &[&str]) -> Self {
        if options.contains(&"--booking-url") {
            // Without a directory, the users would be those of the booking-service.
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("members.json");
            std::fs::write(&file, members().to_string()).unwrap();
            let database = TestDatabase::new(backend, folder.path());
            let options = [options, &["--directory-file", file.to_str().unwrap()]].concat();
            return Self::start_on(&database.url.clone(), Some(database), folder, &options, clock);
        }
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::new(backend, folder.path());
        let club = Self::start_on(&database.url.clone(), Some(database), folder, options, clock);
        club.add_members();
        club
    }

    /// Starts one without members.
    pub fn start_empty(backend: Backend, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::new(backend, folder.path());
        Self::start_on(&database.url.clone(), Some(database), folder, options, Clock::default())
    }

    /// Starts one on a database that may exist already.
    pub fn start_at(url: &str, folder: TempDir, options: &[&str]) -> Self {
        Self::start_on(url, None, folder, options, Clock::default())
    }

    fn start_on(url: &str, database: Option<TestDatabase>, folder: TempDir, options: &[&str], clock: Clock) -> Self {
        let mut arguments = vec!["portfolio-service", "--database-url", url, "--bind", "127.0.0.1:0"];
        arguments.extend(["--workers", "1", "--database-connections", "4", "--time-zone", "Asia/Tokyo"]);
        arguments.extend(["--admins", ALICE]);
        // A slow machine is no reason for a 503.
        arguments.extend(["--database-timeout", "60", "--request-timeout", "300"]);
        // Without a limit, except in tests of rate limits.
        if !options.contains(&"--rate-limit") {
            arguments.extend(["--rate-limit", "0"]);
        }
        arguments.extend(["--sign-in-rate-limit", "0", "--secret-key", KEY]);
        arguments.extend(options);
        let mut config = Cli::try_parse_from(arguments).unwrap().config;
        config.database.checkout = Duration::from_mins(1);
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
        let mut club = Self { services: Vec::new(), clock, config, url, agent, folder, _database: database };
        club.start_another();
        club
    }

    /// The URL of the database.
    pub fn url(&self) -> &str {
        self.config.database.url.as_ref().unwrap().reveal()
    }

    /// Starts another service on the same database, and returns its index.
    pub fn start_another(&mut self) -> usize {
        let (ready, started) = mpsc::channel();
        let (config, clock) = (self.config.clone(), self.clock.clone());
        let thread = std::thread::spawn(move || {
            System::new().block_on(async move {
                let running = server::start(&config, clock).await.unwrap();
                ready.send((format!("http://{}", running.address), running.stop())).unwrap();
                running.serve().await.unwrap();
            });
        });
        let (address, stop) = started.recv().expect("the service starts");
        self.services.push(Service { address, stop, thread: Some(thread) });
        self.services.len() - 1
    }

    /// Stops one service.
    pub fn stop(&mut self, service: usize) {
        let service = &mut self.services[service];
        let stop = service.stop.clone();
        std::thread::spawn(move || System::new().block_on(stop.drain())).join().ok();
        if let Some(thread) = service.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the service panicked");
        }
    }

    /// Stops all services, and starts one.
    pub fn restart(&mut self) {
        self.stop_all();
        self.start_another();
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
        (0..self.services.len()).for_each(|service| self.stop(service));
        self.services.clear();
    }

    /// A new connection to the database.
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
        for (name, state) in MEMBERS {
            diesel::insert_into(users::table)
                .values((
                    users::id.eq(id(name)),
                    users::name.eq(name),
                    users::real_name.eq(real_name(name)),
                    users::state.eq(state),
                    users::created_at.eq(now),
                    users::updated_at.eq(now),
                ))
                .execute(conn)
                .unwrap();
        }
    }

    /// A client of a member, whose name is in the header of the proxy.
    pub fn by(&self, member: &str) -> Client<'_> {
        self.anonymous().header("x-forwarded-user", member)
    }

    /// A client without credentials.
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

/// The directory of these members.
fn members() -> Value {
    let member =
        |(name, state): (&str, i16)| json!({"id": id(name), "name": name, "realName": real_name(name), "state": state});
    json!({"users": MEMBERS.map(member), "groups": []})
}

/// The real name of a member, which no answer shows until its owner publishes it.
pub fn real_name(member: &str) -> String {
    format!("real name of {member}")
}

/// Checks the rules for answers of this service only.
fn check_own_rules(answer: &Answer, problem: Option<&Value>) {
    assert_eq!(answer.header("www-authenticate").is_some(), answer.status == 401, "{}", answer.request);
    if let Some(problem) = problem {
        assert_eq!(problem["message"], problem["detail"], "{problem}");
    }
}
