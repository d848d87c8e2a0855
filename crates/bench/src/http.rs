//! A load generator that takes little processor time: HTTP/1.1 on persistent connections, with one request at a time on
//! each. Answers are counted and discarded.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};

use crate::Result;

/// The time limit of one request. Even the longest list of the largest club takes less.
const TIMEOUT: Duration = Duration::from_mins(10);

/// The end of a chunked body (RFC 9112, section 7.1). JSON and calendars do not contain it.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Returns the text of the n-th request.
pub type Requests = Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>;

/// The text of a request.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    if !body.is_empty() {
        let length = body.len().to_string();
        text.extend(["Content-Type: application/json\r\nContent-Length: ", &length, "\r\n"]);
    }
    format!("{text}\r\n{body}").into_bytes()
}

/// An answer. `body` is empty unless the caller asks for it. `length` is the size of the body as it was sent.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    pub length: usize,
}

impl Answer {
    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

/// A connection.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub async fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(1 << 16) })
    }

    /// Sends a request and reads the answer to its end. Keeps the body only with `keep_body`.
    pub async fn exchange(&mut self, request: &[u8], keep_body: bool) -> io::Result<Answer> {
        timeout(TIMEOUT, self.send(request, keep_body)).await?
    }

    async fn send(&mut self, request: &[u8], keep_body: bool) -> io::Result<Answer> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let end = loop {
            self.read().await?;
            if let Some(end) = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        let status = head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        let mut answer = Answer { status, head, body: Vec::new(), length: 0 };
        let expected: Option<usize> = match answer.header("content-length") {
            _ if status == 204 || status == 304 => Some(0),
            length => length.and_then(|length| length.parse().ok()),
        };
        self.buffer.drain(..end);
        let mut tail = Vec::new();
        loop {
            answer.length += self.buffer.len();
            if keep_body {
                answer.body.extend_from_slice(&self.buffer);
            }
            tail.extend_from_slice(&self.buffer[self.buffer.len().saturating_sub(LAST_CHUNK.len())..]);
            tail.drain(..tail.len().saturating_sub(LAST_CHUNK.len()));
            if expected.map_or(tail == LAST_CHUNK, |expected| answer.length >= expected) {
                if expected.is_none() {
                    answer.body = join_chunks(&answer.body);
                }
                return Ok(answer);
            }
            self.buffer.clear();
            self.read().await?;
        }
    }

    async fn read(&mut self) -> io::Result<()> {
        self.buffer.reserve(1 << 14);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// The content of a chunked body (RFC 9112, section 7.1).
fn join_chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(rest.len());
    while let Some(end) = rest.windows(2).position(|bytes| bytes == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let Some(chunk) = size.filter(|size| *size > 0).and_then(|size| rest.get(end + 2..end + 2 + size)) else {
            break;
        };
        body.extend_from_slice(chunk);
        rest = rest.get(end + 2 + chunk.len() + 2..).unwrap_or_default();
    }
    body
}

/// The answers on some connections during some time.
#[derive(Debug, Default)]
pub struct LoadResult {
    pub seconds: f64,
    /// The time of each expected answer in microseconds, sorted.
    pub times: Vec<u32>,
    pub statuses: BTreeMap<u16, u64>,
    /// The number of expected answers on each connection.
    pub shares: Vec<u64>,
}

impl LoadResult {
    pub fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.seconds
    }

    /// The time in milliseconds within which `per_mille` of a thousand answers came.
    pub fn quantile(&self, per_mille: usize) -> f64 {
        let at = self.times.len() * per_mille / 1000;
        let time = self.times.get(at.min(self.times.len().saturating_sub(1)));
        time.map_or(f64::NAN, |micros| f64::from(*micros) / 1000.0)
    }
}

/// The request with the content codings that every browser accepts.
fn as_browser(mut request: Vec<u8>) -> Vec<u8> {
    let end = request.windows(2).position(|bytes| bytes == b"\r\n").map_or(0, |at| at + 2);
    request.splice(end..end, *b"Accept-Encoding: gzip, deflate, br, zstd\r\n");
    request
}

/// Sends requests on this many connections for `time`. Any status that is not expected is an error: a run in which the
/// service refuses something has no figures.
pub async fn load(
    address: &str,
    connections: usize,
    time: Duration,
    requests: &Requests,
    expected: &'static [u16],
) -> Result<LoadResult> {
    // Numbers continue from one call to the next, so that no request that creates something is repeated.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(Connection::open(address).await?);
    }
    let started = Instant::now();
    let tasks: Vec<_> = open
        .into_iter()
        .map(|mut connection| {
            let requests = requests.clone();
            tokio::spawn(async move {
                let mut result = LoadResult::default();
                while started.elapsed() < time {
                    let request = as_browser(requests(NEXT.fetch_add(1, Ordering::Relaxed)));
                    let start = Instant::now();
                    let answer = connection.exchange(&request, false).await?;
                    let micros = u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX);
                    match answer.status {
                        status if expected.contains(&status) => {
                            result.times.push(micros);
                        }
                        status => return Err(io::Error::other(format!("status {status} is not expected"))),
                    }
                    *result.statuses.entry(answer.status).or_default() += 1;
                }
                Ok(result)
            })
        })
        .collect();
    let mut all = LoadResult::default();
    for task in tasks {
        let result = task.await??;
        all.shares.push(result.times.len() as u64);
        all.times.extend(result.times);
        for (status, count) in result.statuses {
            *all.statuses.entry(status).or_default() += count;
        }
    }
    all.seconds = started.elapsed().as_secs_f64();
    all.times.sort_unstable();
    Ok(all)
}
