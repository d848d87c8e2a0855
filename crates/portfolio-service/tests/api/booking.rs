//! The real booking-service on a database of its own, and a false one that answers as told.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use actix_web::rt::System;
use booking_service::{
    auth::Scope,
    config::{Cli, Config},
    schema::users,
    server,
    sign_in::tokens,
};
use clap::Parser;
use common::time::Clock;
use diesel::prelude::*;
use serde_json::{Value, json};
use service_kit::{
    db::{
        Url,
        sql::{Moment, Uid},
    },
    server::Stop,
};
use tempfile::TempDir;

use crate::harness::{ALICE, BOB, CAROL, id};

/// Asks again and again, until it is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    let (_keep, never) = mpsc::channel::<()>();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "not so in time: {what}");
        let _ = never.recv_timeout(Duration::from_millis(5));
    }
}

/// The group of everybody.
const EVERYONE: &str = "11111111-1111-1111-1111-111111111111";

/// A running booking-service that knows Alice, Bob and Carol by the ids they have here.
pub struct Booking {
    config: Config,
    /// Stays the same over restarts.
    pub address: SocketAddr,
    running: Option<(Stop, JoinHandle<()>)>,
    /// Alice's, to read; and Bob's.
    tokens: (String, String),
    _folder: TempDir,
}

impl Booking {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/booking.sqlite3", folder.path().display());
        let arguments = ["booking-service", "--database-url", &url, "--bind", "127.0.0.1:0", "--workers", "1"];
        let config = Cli::try_parse_from(arguments).unwrap().config;
        let address = config.server.bind;
        let mut booking = Self { config, address, running: None, tokens: Default::default(), _folder: folder };
        booking.resume();
        let (conn, now) = (&mut url.parse::<Url>().unwrap().connect().unwrap(), Moment(Clock::default().now()));
        for name in [ALICE, BOB, CAROL] {
            let user = (
                (users::id.eq(id(name)), users::name.eq(name), users::display_name.eq(name), users::icon.eq("")),
                (users::state.eq(1_i16), users::privileged.eq(false)),
                (users::created_at.eq(now), users::updated_at.eq(now)),
            );
            diesel::insert_into(users::table).values(user).execute(conn).unwrap();
        }
        let mut token =
            |name: &str, scope| tokens::create(conn, name, "test", scope, None, now.0).unwrap().reveal().to_owned();
        // What copies needs no more than to read.
        booking.tokens = (token(ALICE, Scope::Read), token(BOB, Scope::Write));
        booking
    }

    /// The options of a portfolio-service that copies from here.
    pub fn options(&self) -> Vec<String> {
        options(&format!("http://{}", self.address), &self.tokens.0)
    }

    /// Starts it again where it was.
    pub fn resume(&mut self) {
        let (ready, started) = mpsc::channel();
        let config = self.config.clone();
        let thread = std::thread::spawn(move || {
            System::new().block_on(async move {
                let running = server::start(&config, Clock::default()).await.unwrap();
                ready.send((running.address, running.stop())).unwrap();
                running.serve().await.unwrap();
            });
        });
        let (address, stop) = started.recv().expect("the booking-service starts");
        self.address = address;
        self.config.server.bind = address;
        self.running = Some((stop, thread));
    }

    /// Stops it; nobody listens there now.
    pub fn stop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            std::thread::spawn(move || System::new().block_on(stop.drain())).join().unwrap();
            thread.join().unwrap();
        }
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let agent: ureq::Agent = ureq::Agent::config_builder().proxy(None).http_status_as_error(false).build().into();
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header("authorization", format!("Bearer {}", self.tokens.1))
            .header("content-type", "application/json");
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let mut answer = agent.run(request.body(body).unwrap()).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        assert!(answer.status().is_success(), "{method} {path}: {} {text}", answer.status());
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn body(name: &str, place: &str, hosts: &[&str]) -> Value {
        json!({
            "name": name, "description": format!("about {name}"), "sharedRoom": false, "place": place,
            "timeStart": "2030-04-04T18:00:00+09:00", "timeEnd": "2030-04-04T20:00:00+09:00", "groupId": EVERYONE,
            "admins": hosts.iter().map(|host| id(host)).collect::<Vec<_>>(),
        })
    }

    /// Bob declares an event of these hosts; its id.
    pub fn declare(&self, name: &str, hosts: &[&str]) -> String {
        let made = self.send("POST", "/api/events", Some(&Self::body(name, "S516", hosts)));
        made["eventId"].as_str().unwrap().to_owned()
    }

    /// Bob, a host, changes an event.
    pub fn change(&self, event: &str, name: &str, place: &str, hosts: &[&str]) {
        self.send("PUT", &format!("/api/events/{event}"), Some(&Self::body(name, place, hosts)));
    }

    /// Bob, a host, deletes an event.
    pub fn delete(&self, event: &str) {
        self.send("DELETE", &format!("/api/events/{event}"), None);
    }
}

impl Drop for Booking {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The options of a portfolio-service that copies from this address, twenty times a second.
pub fn options(address: &str, token: &str) -> Vec<String> {
    ["--booking-url", address, "--booking-token", token, "--booking-interval", "0.05"].map(str::to_owned).into()
}

/// What the false booking-service does with who asks.
#[derive(Debug, Clone)]
pub enum Manner {
    /// Sends these bytes.
    Answer(Vec<u8>),
    /// Sends the first of these bytes, then nothing for as long as it runs.
    Stall(Vec<u8>),
}

impl Manner {
    /// A whole answer with status 200.
    pub fn json(body: &Value) -> Self {
        let body = body.to_string();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        Self::Answer((head + &body).into_bytes())
    }
}

/// An event as the booking-service answers it, so far as it matters.
pub fn answered(event: Uid, name: &str, hosts: &[&str]) -> Value {
    json!({
        "eventId": event, "name": name, "description": "", "place": "S516", "timeStart": "2030-04-04T09:00:00Z",
        "timeEnd": "2030-04-04T11:00:00Z", "admins": hosts.iter().map(|host| id(host)).collect::<Vec<_>>(),
    })
}

/// A false booking-service.
pub struct False {
    pub address: String,
    manner: Arc<RwLock<Manner>>,
    asked: Arc<RwLock<Vec<String>>>,
    ended: Arc<AtomicBool>,
}

impl False {
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let this =
            Self { address, manner: Arc::new(RwLock::new(manner)), asked: Arc::default(), ended: Arc::default() };
        let (manner, asked, ended) = (this.manner.clone(), this.asked.clone(), this.ended.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let (manner, asked) = (manner.clone(), asked.clone());
                std::thread::spawn(move || serve(&stream.unwrap(), &manner, &asked));
            }
        });
        this
    }

    pub fn now(&self, manner: Manner) {
        *self.manner.write().unwrap_or_else(PoisonError::into_inner) = manner;
    }

    /// The tokens of all who asked so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it is asked `times` times more.
    #[track_caller]
    pub fn until_asked(&self, times: usize) {
        let before = self.asked().len();
        until("the booking-service is asked", || self.asked().len() >= before + times);
    }
}

impl Drop for False {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        TcpStream::connect(self.address.trim_start_matches("http://")).ok();
    }
}

fn serve(stream: &TcpStream, manner: &RwLock<Manner>, asked: &RwLock<Vec<String>>) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let token = lines.find_map(|line| line.strip_prefix("authorization: Bearer ").map(str::to_owned));
    let Some(token) = token else { return };
    for _ in lines {}
    // What it will do is settled before it counts, so that whoever waits for the count knows what was done.
    let manner = manner.read().unwrap_or_else(PoisonError::into_inner).clone();
    asked.write().unwrap_or_else(PoisonError::into_inner).push(token);
    let mut stream = stream;
    match manner {
        Manner::Answer(bytes) => drop(stream.write_all(&bytes)),
        Manner::Stall(bytes) => {
            stream.write_all(&bytes).ok();
            // Until the other side gives up.
            stream.read_exact(&mut [0]).ok();
        }
    }
}
