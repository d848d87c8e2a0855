//! A real receiver of webhooks on this machine.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, RwLock, mpsc},
    time::Duration,
};

use serde_json::Value;

use crate::process::until;

/// How to answer a request.
#[derive(Debug, Clone)]
pub enum Reaction {
    /// With this status and these headers, each with a line feed.
    Status(u16, &'static str),
    /// Not, unless the test [answers](Receiver::answer_in).
    Hang,
    /// With 10 GB.
    Huge,
    /// With a byte a second, in the head or in the body.
    Trickle(&'static str),
    /// With chunks without end.
    Chunks,
    /// With 500 and the path of the request.
    Echo,
    /// By closing the connection.
    Close,
}

/// A request that has arrived.
#[derive(Debug, Clone)]
pub struct Arrived {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Arrived {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

#[derive(Default)]
struct State {
    arrived: Vec<Arrived>,
    reactions: VecDeque<Reaction>,
    held: Vec<TcpStream>,
}

/// A server that keeps what arrives. It answers 204, unless it is told otherwise.
#[derive(Clone)]
pub struct Receiver {
    pub address: String,
    state: Arc<RwLock<State>>,
}

impl Receiver {
    pub fn start() -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn listen(listener: TcpListener) -> Self {
        let address = format!("http://{}", listener.local_addr().unwrap());
        let receiver = Self { address, state: Arc::default() };
        let state = receiver.state.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let state = state.clone();
                std::thread::spawn(move || take(connection, &state));
            }
        });
        receiver
    }

    /// Reacts so to the next requests.
    pub fn react(&self, reactions: impl IntoIterator<Item = Reaction>) {
        self.state.write().unwrap().reactions.extend(reactions);
    }

    /// Answers the requests that hang with 204, after a time.
    pub fn answer_in(&self, time: Duration) {
        let state = self.state.clone();
        std::thread::spawn(move || {
            pause(time);
            for mut connection in state.write().unwrap().held.drain(..) {
                let _ = connection.write_all(b"HTTP/1.1 204 X\r\nconnection: close\r\n\r\n");
            }
        });
    }

    /// Closes the connections of the requests that hang.
    pub fn fail_now(&self) {
        self.state.write().unwrap().held.clear();
    }

    /// What has arrived.
    pub fn arrived(&self) -> Vec<Arrived> {
        self.state.write().unwrap().arrived.clone()
    }

    /// Waits until this number of requests has arrived, and returns them.
    #[track_caller]
    pub fn wait_for(&self, number: usize) -> Vec<Arrived> {
        until(&format!("{number} requests arrive: {:?}", self.arrived()), || self.arrived().len() >= number);
        let arrived = self.arrived();
        assert_eq!(arrived.len(), number, "{arrived:?}");
        arrived
    }
}

/// Blocks the thread of a connection.
fn pause(time: Duration) {
    let (_keep, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(time);
}

fn take(connection: TcpStream, state: &RwLock<State>) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or("0", |(_, value)| value);
    let echoed = path.clone();
    let mut body = vec![0; length.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let reaction = {
        let mut state = state.write().unwrap();
        state.arrived.push(Arrived { path, headers, body });
        state.reactions.pop_front().unwrap_or(Reaction::Status(204, ""))
    };
    let mut writer = connection;
    match reaction {
        Reaction::Status(status, headers) => {
            let body = if status == 204 { "" } else { "answer\u{0} of the receiver" };
            let headers = headers.replace('\n', "\r\n");
            let length = body.len();
            write!(
                writer,
                "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
            )
            .ok()?;
        }
        Reaction::Hang => state.write().unwrap().held.push(writer),
        Reaction::Huge => {
            write!(writer, "HTTP/1.1 200 X\r\ncontent-length: 10000000000\r\n\r\n").ok()?;
            while writer.write_all(&[b'x'; 8192]).is_ok() {}
        }
        Reaction::Trickle(start) => {
            writer.write_all(start.as_bytes()).ok()?;
            while writer.write_all(b"x").is_ok() {
                pause(Duration::from_secs(1));
            }
        }
        Reaction::Chunks => {
            write!(writer, "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n").ok()?;
            while writer.write_all(b"1\r\nx\r\n").is_ok() {}
        }
        Reaction::Echo => {
            let length = echoed.len();
            write!(writer, "HTTP/1.1 500 X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{echoed}").ok()?;
        }
        Reaction::Close => {}
    }
    Some(())
}
