//! A load generator that costs little: HTTP/1.1 on kept connections, one request at a time on each, answers counted and
//! thrown away.

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

/// Nothing that is measured takes as long, not even everything at once where there is most.
const LIMIT: Duration = Duration::from_secs(600);

/// What ends a chunked body (RFC 9112, section 7.1); JSON and calendars have no such lines.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The answer of a service that has more to do than it can.
const OVERLOADED: u16 = 503;

/// Makes the text of the request with a number.
pub type Requests = Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>;

/// The text of a request.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: bench\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    if !body.is_empty() {
        let length = body.len().to_string();
        text.extend(["Content-Type: application/json\r\nContent-Length: ", &length, "\r\n"]);
    }
    format!("{text}\r\n{body}").into_bytes()
}

/// An answer, its body only if that was wanted.
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
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
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

    /// Sends a request and reads the whole answer.
    pub async fn exchange(&mut self, request: &[u8], keep: bool) -> io::Result<Answer> {
        timeout(LIMIT, self.ask(request, keep)).await?
    }

    async fn ask(&mut self, request: &[u8], keep: bool) -> io::Result<Answer> {
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
            if keep {
                answer.body.extend_from_slice(&self.buffer);
            }
            tail.extend_from_slice(&self.buffer[self.buffer.len().saturating_sub(LAST_CHUNK.len())..]);
            tail.drain(..tail.len().saturating_sub(LAST_CHUNK.len()));
            if expected.map_or(tail == LAST_CHUNK, |expected| answer.length >= expected) {
                if expected.is_none() {
                    answer.body = joined(&answer.body);
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

/// The content of a body in chunks (RFC 9112, section 7.1).
fn joined(mut rest: &[u8]) -> Vec<u8> {
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

/// What some connections saw in some time.
#[derive(Debug, Default)]
pub struct LoadResult {
    pub seconds: f64,
    /// Microseconds of each answer, in order.
    pub times: Vec<u32>,
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that the service had no time for.
    pub overloaded: u64,
    /// Answers on each connection.
    pub shares: Vec<u64>,
    /// Bytes of the body of one answer.
    pub length: usize,
}

impl LoadResult {
    pub fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.seconds
    }

    /// Milliseconds within which so many of a thousand answers came.
    pub fn quantile(&self, per_mille: usize) -> f64 {
        let at = self.times.len() * per_mille / 1000;
        let time = self.times.get(at.min(self.times.len().saturating_sub(1)));
        time.map_or(f64::NAN, |micros| f64::from(*micros) / 1000.0)
    }
}

/// Asks on so many connections for a time, and takes only these statuses for answers; a 503 is counted, any other
/// ends the run.
pub async fn load(
    address: &str,
    connections: usize,
    time: Duration,
    requests: &Requests,
    expected: &'static [u16],
) -> Result<LoadResult> {
    // Numbers go on from one call to the next, so that what is made once is not asked for again.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(Connection::open(address).await?);
    }
    let begun = Instant::now();
    let tasks: Vec<_> = open
        .into_iter()
        .map(|mut connection| {
            let requests = requests.clone();
            tokio::spawn(async move {
                let mut mine = LoadResult::default();
                while begun.elapsed() < time {
                    let request = requests(NEXT.fetch_add(1, Ordering::Relaxed));
                    let start = Instant::now();
                    let answer = connection.exchange(&request, false).await?;
                    let took = u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX);
                    match answer.status {
                        status if expected.contains(&status) => {
                            mine.times.push(took);
                            mine.length = answer.length;
                        }
                        OVERLOADED => mine.overloaded += 1,
                        status => return Err(io::Error::other(format!("status {status} is not expected"))),
                    }
                    *mine.statuses.entry(answer.status).or_default() += 1;
                }
                Ok(mine)
            })
        })
        .collect();
    let mut all = LoadResult::default();
    for task in tasks {
        let mine = task.await??;
        all.shares.push(mine.times.len() as u64);
        all.times.extend(mine.times);
        for (status, count) in mine.statuses {
            *all.statuses.entry(status).or_default() += count;
        }
        all.overloaded += mine.overloaded;
        all.length = all.length.max(mine.length);
    }
    all.seconds = begun.elapsed().as_secs_f64();
    all.times.sort_unstable();
    Ok(all)
}
