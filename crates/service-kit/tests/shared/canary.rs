//! Canaries: secrets that are sent to every operation of a running program and must then appear nowhere. Both services
//! include this file in their tests, by its path.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    fs::{self, File},
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD},
};
use diesel::{QueryableByName, RunQueryDsl as _, sql_query, sql_types::Text};
use serde_json::{Value, json};
use service_kit::database::{AnyConnection, Url};
use url::form_urlencoded;

use crate::harness::DOCUMENT;

/// The time limit of every wait. Nothing here takes as long unless it hangs.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The number of first bytes by which the search finds candidates.
const PREFIX: usize = 8;

/// The number of bytes of each request that are recorded. Larger bodies only repeat the same text.
const MAX_RECORDED: usize = 4096;

/// A secret and its name.
#[derive(Debug, Clone)]
pub struct Canary {
    pub name: &'static str,
    pub text: String,
}

impl Canary {
    pub fn new(name: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        assert!(text.len() >= 12, "{name}: {text:?} is short enough to appear by chance");
        Self { name, text }
    }
}

/// Converts bytes to a text, one character for each byte, so that texts can be searched for in any bytes.
pub fn as_text(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// All encodings in which a text may have been written.
fn forms(text: &str) -> Vec<(&'static str, String)> {
    let each = |write: fn(&u8) -> String| text.as_bytes().iter().map(write).collect::<String>();
    let json = json!(text).to_string();
    let numbers = text.as_bytes().iter().map(u8::to_string);
    let mut forms = vec![
        ("plain", as_text(text.as_bytes())),
        ("percent-encoded", form_urlencoded::byte_serialize(text.as_bytes()).collect()),
        (
            "percent-encoded with spaces",
            each(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(*byte).to_string(),
                _ => format!("%{byte:02X}"),
            }),
        ),
        ("percent-encoded throughout", each(|byte| format!("%{byte:02X}"))),
        ("JSON", json[1..json.len() - 1].to_owned()),
        ("JSON throughout", each(|byte| format!("\\u{byte:04x}"))),
        ("debug", format!("{text:?}").trim_matches('"').to_owned()),
        ("hex", each(|byte| format!("{byte:02x}"))),
        ("upper-case hex", each(|byte| format!("{byte:02X}"))),
        ("numbers", numbers.collect::<Vec<_>>().join(", ")),
    ];
    for before in 0..3 {
        let bytes = [&b"\0\0"[..before], text.as_bytes()].concat();
        for engine in [&BASE64_STANDARD_NO_PAD, &BASE64_URL_SAFE_NO_PAD] {
            // Without the characters that also depend on the bytes before and after.
            let encoded = engine.encode(&bytes);
            forms.push(("base64", encoded[[0, 2, 3][before]..bytes.len() / 3 * 4].to_owned()));
        }
    }
    forms.sort_by(|(_, a), (_, b)| a.cmp(b));
    forms.dedup_by(|(_, a), (_, b)| a == b);
    forms
}

/// Finds the canaries in a text: the first occurrence of each encoding of each canary, with the text around it.
pub fn find_canaries(place: &str, text: &str, canaries: &[Canary]) -> Vec<String> {
    // One pass over the text, which may be large, for any number of canaries.
    let mut by_start: HashMap<Vec<u8>, Vec<(&str, &str, String)>> = HashMap::new();
    for canary in canaries {
        for (form, written) in forms(&canary.text) {
            let start = written.as_bytes()[..PREFIX].to_vec();
            by_start.entry(start).or_default().push((canary.name, form, written));
        }
    }
    let starts: BTreeSet<_> = by_start.keys().map(|start| start[0]).collect();
    let starts: Vec<_> = (0..=u8::MAX).map(|byte| starts.contains(&byte)).collect();
    let mut found = Vec::new();
    for (at, window) in text.as_bytes().windows(PREFIX).enumerate() {
        if !starts[usize::from(window[0])] {
            continue;
        }
        let Some(candidates) = by_start.get_mut(window) else { continue };
        candidates.retain(|(name, form, written)| {
            let is_here = text[at..].starts_with(written);
            if is_here {
                let before: String = text[..at].chars().rev().take(160).collect();
                let before: String = before.chars().rev().collect();
                let after: String = text[at..].chars().take(written.len() + 60).collect();
                found.push(format!("{place}: {name} ({form}) in …{before}{after}…"));
            }
            !is_here
        });
    }
    found
}

/// Asserts that the text has each canary. This shows that the search finds what is there.
pub fn assert_found(place: &str, text: &str, canaries: &[Canary]) {
    let found = find_canaries(place, text, canaries);
    for Canary { name, .. } in canaries {
        assert!(found.iter().any(|line| line.starts_with(&format!("{place}: {name} ("))), "{place}: no {name}");
    }
}

/// The program as a process, with its complete output.
pub struct Program {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Program {
    /// Starts it; the output goes to files in this folder.
    pub fn start(mut command: Command, folder: &Path) -> Self {
        let (out, err) = (folder.join("output"), folder.join("errors"));
        command.stdin(Stdio::null());
        let child = command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap()).spawn().unwrap();
        Self { child, out, err }
    }

    /// Waits until it listens, and returns the address: `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        let mut address = None;
        until("the program listens", || {
            let log = as_text(&fs::read(&self.err).unwrap());
            let rest = log.split_once("listens on http://").map(|(_, rest)| rest.to_owned());
            address = rest.and_then(|rest| rest.split_once(',').map(|(address, _)| address.to_owned()));
            address.is_some()
        });
        address.unwrap()
    }

    /// Its output so far.
    pub fn output(&self) -> String {
        [&self.out, &self.err].map(|file| as_text(&fs::read(file).unwrap())).concat()
    }

    /// Sends it SIGTERM, waits until it ends, and returns its output.
    pub fn terminate(mut self) -> String {
        let signal = Command::new("sh").args(["-c", &format!("kill -TERM {}", self.child.id())]).status();
        assert!(signal.unwrap().success());
        self.wait();
        self.output()
    }

    /// Waits until it ends by itself, and returns its status and its output.
    pub fn wait_for_exit(mut self) -> (Option<i32>, String) {
        (self.wait(), self.output())
    }

    fn wait(&mut self) -> Option<i32> {
        let mut status = None;
        until("the program ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Waits until a condition holds.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    let (_keep, never) = mpsc::channel::<()>();
    while !is_so() {
        assert!(begun.elapsed() < TIMEOUT, "not so in time: {what}");
        let _ = never.recv_timeout(Duration::from_millis(5));
    }
}

/// A client of a running program that records requests and answers.
pub struct RecordingClient {
    pub address: String,
    pub requests: RefCell<String>,
    pub answers: RefCell<String>,
}

impl RecordingClient {
    pub fn new(address: String) -> Self {
        Self { address, requests: RefCell::default(), answers: RefCell::default() }
    }

    /// Sends these bytes, and returns all bytes until the server closes the connection.
    pub fn send_bytes(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        self.requests.borrow_mut().push_str(&as_text(&bytes[..bytes.len().min(MAX_RECORDED)]));
        // A server that receives too much closes the connection early, and its answer may be lost.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        as_text(&answer)
    }

    /// Sends a request and returns status and answer, which is not recorded because it may have a secret for the
    /// caller.
    pub fn send_unrecorded(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        if !body.is_empty() {
            head.extend(["Content-Length: ", &body.len().to_string(), "\r\n"]);
        }
        let answer = self.send_bytes(&[head.as_bytes(), b"\r\n", body].concat());
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        (status, answer)
    }

    /// Sends a request and records the answer.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        let (status, answer) = self.send_unrecorded(method, path, headers, body);
        self.record(&answer);
        (status, answer)
    }

    /// Records an answer, without the cookies that it sets.
    pub fn record(&self, answer: &str) {
        let is_recorded = |line: &&str| !line.to_ascii_lowercase().starts_with("set-cookie:");
        self.answers.borrow_mut().extend(answer.split_inclusive('\n').filter(is_recorded));
    }
}

/// The value of a header of an answer.
#[allow(dead_code, reason = "the portfolio-service sets no cookies")]
pub fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next().unwrap();
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Sends requests to every operation of the document and to other paths, with each of these headers as credential, and
/// with `stray` in every place in which a client may send a secret by mistake. The operations with an id in `shown`
/// answer a secret of the caller, so their bodies are not recorded.
pub fn walk(client: &RecordingClient, credentials: &[(&str, String)], stray: &str, shown: &[&str]) {
    let referer = format!("https://club.example/?token={stray}");
    let spaced = format!("{stray} {stray}");
    let lost = [
        ("Referer", referer.as_str()),
        ("User-Agent", stray),
        ("X-Api-Key", stray),
        // With a space it is not a valid request id. A valid one is echoed and logged by design.
        ("X-Request-Id", &spaced),
        ("Accept", "text/html"),
    ];
    let mut operations = Vec::new();
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        operations.extend(item.as_object().unwrap().iter().map(|(method, about)| (method.to_uppercase(), path, about)));
    }
    // The operation that ends the session comes last.
    operations.sort_by_key(|(_, path, _)| path.ends_with("/logout"));
    let mut statuses = BTreeSet::new();
    for (method, path, about) in operations {
        let filled = |value: &str| {
            let parts = path.split('/').map(|part| if part.starts_with('{') { value } else { part });
            parts.collect::<Vec<_>>().join("/")
        };
        let right = filled("0198c0de-0000-7000-8000-000000000001");
        let query = format!("{right}?token={stray}&access_token={stray}");
        let content = about["requestBody"]["content"].as_object().and_then(|content| content.iter().next());
        let kind = content.map_or("application/json", |(kind, _)| kind.as_str());
        let bodies = content.map_or_else(Vec::new, |(_, content)| bodies(&content["example"], stray));
        let no_body = Vec::new();
        // A secret in the answer to its owner is no leak.
        let is_shown = about["operationId"].as_str().is_some_and(|id| shown.contains(&id));
        let send = |method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]| {
            let (status, answer) = client.send_unrecorded(method, path, headers, body);
            let head = answer.split("\r\n\r\n").next().unwrap();
            client.record(if is_shown && status < 300 { head } else { &answer });
            status
        };
        for (name, value) in credentials {
            for body in bodies.iter().chain(bodies.is_empty().then_some(&no_body)) {
                let headers = [&[(*name, value.as_str()), ("Content-Type", kind)], &lost[..]].concat();
                statuses.insert(send(&method, &query, &headers, body));
            }
        }
        let (name, value) = &credentials[0];
        let headers = [&[(*name, value.as_str()), ("Content-Type", kind)], &lost[..4]].concat();
        let body = bodies.first().unwrap_or(&no_body);
        // Answers that are stored for a retry are part of the database, which is searched as well.
        let retried = [&headers[..], &[("Idempotency-Key", stray)]].concat();
        send(&method, &query, &retried, body);
        send(&method, &query, &retried, body);
        for path in [filled(stray), format!("{right}/{stray}"), format!("{right}%2F{stray}")] {
            send(&method, &path, &headers, body);
        }
        for parameter in about["parameters"].as_array().into_iter().flatten() {
            if parameter["in"] == "query" {
                send(&method, &format!("{right}?{}={stray}", parameter["name"].as_str().unwrap()), &headers, body);
            }
        }
        send(stray, &right, &headers, body);
        if content.is_some() {
            send(&method, &right, &[(*name, value), ("Content-Type", "text/plain")], body);
            send(&method, &right, &[(*name, value), ("Content-Type", stray)], body);
            let large = format!("{{\"name\": \"{}\"}}", stray.repeat((2 << 20) / stray.len() + 1));
            send(&method, &right, &headers, large.as_bytes());
        }
    }
    // If all requests were refused, the search would show nothing.
    assert!([200, 400, 401, 404].iter().all(|status| statuses.contains(status)), "{statuses:?}");
    let (name, value) = &credentials[0];
    let headers = [&[(*name, value.as_str())], &lost[..]].concat();
    for path in ["/", "/docs", "/docs/", "/metrics", "/openapi.json", "/problems", "/livez", "/readyz", "/nowhere"] {
        for path in [path.to_owned(), format!("{path}?token={stray}"), format!("{path}/{stray}")] {
            for method in ["GET", "HEAD", "POST", "OPTIONS", stray] {
                client.send(method, &path, &headers, b"");
            }
        }
    }
    for broken in [
        format!("{stray}\r\n\r\n"),
        format!("GET /?token={stray} HTTP/9.9\r\n\r\n"),
        format!("GET /?token={stray} HTTP/1.1\r\nHost: a\r\nHost: {stray}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: a\r\nCookie {stray}\r\n\r\n"),
        format!("GET /\0{stray} HTTP/1.1\r\nHost: a\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: session={stray}{}\r\n\r\n", "x".repeat(200_000)),
        format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{stray}\r\n"),
        format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer \u{fc}{stray}\r\n\r\n"),
    ] {
        let answer = client.send_bytes(broken.as_bytes());
        client.record(&answer);
    }
}

/// Bodies with `stray` in unexpected places, and malformed ones.
fn bodies(example: &Value, stray: &str) -> Vec<Vec<u8>> {
    let mut bodies = vec![format!("{{\"name\": \"{stray}").into_bytes(), json!(stray).to_string().into_bytes()];
    match example {
        Value::Object(members) => {
            let mut more = example.clone();
            more["token"] = stray.into();
            more["nested"] = json!({"secret": [stray], stray: 1});
            let wrong: Value = members.keys().map(|name| (name.clone(), json!([stray]))).collect();
            bodies.extend([more.to_string().into_bytes(), wrong.to_string().into_bytes()]);
        }
        Value::String(table) => {
            let (head, rows) = table.split_once('\n').unwrap();
            bodies.push(format!("{},{stray}\n{}", head.trim_end(), rows.replace('\n', &format!(",{stray}\n"))).into());
            bodies.push(format!("{table}\n{stray},{stray},{stray},{stray},{stray}\n").into());
            bodies.push(format!("{stray}\n{table}").into());
        }
        _ => {}
    }
    bodies
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    text: String,
}

/// The content of the database: the bytes of SQLite's files, or every row of every table of PostgreSQL's schema.
pub fn dump(url: &Url, conn: &mut AnyConnection) -> String {
    if let Some(file) = url.file() {
        let name = file.file_name().unwrap().to_str().unwrap();
        let files = fs::read_dir(file.parent().unwrap()).unwrap().map(Result::unwrap);
        let files = files.filter(|entry| entry.file_name().to_str().is_some_and(|found| found.starts_with(name)));
        return files.map(|entry| as_text(&fs::read(entry.path()).unwrap())).collect();
    }
    let tables = "SELECT tablename::text AS text FROM pg_tables WHERE schemaname = current_schema()";
    let tables: Vec<Row> = sql_query(tables).load(conn).unwrap();
    assert!(tables.len() > 5);
    let rows = tables.iter().flat_map(|table| {
        let rows: Vec<Row> = sql_query(format!("SELECT t::text AS text FROM {} t", table.text)).load(conn).unwrap();
        rows
    });
    rows.map(|row| row.text + "\n").collect()
}

/// Bytes as hexadecimal digits.
#[allow(dead_code, reason = "the portfolio-service keeps no hashes")]
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Whether a dump of the database has a hash.
#[allow(dead_code, reason = "the portfolio-service keeps no hashes")]
pub fn is_in(dump: &str, hash: &[u8]) -> bool {
    dump.contains(&as_text(hash)) || dump.contains(&hex(hash))
}

/// A server of PostgreSQL's protocol that asks for a password in clear text and refuses it, and a channel with the
/// passwords that it has received.
pub fn database_that_refuses() -> (String, mpsc::Receiver<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, passwords) = mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut talk = || -> std::io::Result<()> {
                let mut length = [0; 4];
                stream.read_exact(&mut length)?;
                let mut start = vec![0; u32::from_be_bytes(length) as usize - 4];
                stream.read_exact(&mut start)?;
                // AuthenticationCleartextPassword.
                stream.write_all(b"R\0\0\0\x08\0\0\0\x03")?;
                stream.read_exact(&mut [0])?;
                stream.read_exact(&mut length)?;
                let mut password = vec![0; u32::from_be_bytes(length) as usize - 4];
                stream.read_exact(&mut password)?;
                let fields = "SFATAL\0C28P01\0Mpassword authentication failed for user \"club\"\0\0";
                stream.write_all(b"E")?;
                stream.write_all(&(u32::try_from(fields.len()).unwrap() + 4).to_be_bytes())?;
                stream.write_all(fields.as_bytes())?;
                let _ = sender.send(as_text(&password));
                Ok(())
            };
            let _ = talk();
        }
    });
    (address, passwords)
}

/// A server that answers every request with this status and quotes the head of the request in the head and body of its
/// answer, and a channel with the heads that it has received.
pub fn echo(status: u16) -> (String, mpsc::Receiver<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, heads) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = std::io::BufReader::new(&stream);
            let mut head = String::new();
            while std::io::BufRead::read_line(&mut reader, &mut head).is_ok_and(|length| length > 2) {}
            let quoted = json!([{"error": head, "error_description": head}]).to_string();
            let line = head.replace("\r\n", " ");
            let _ = (&stream).write_all(
                format!(
                    "HTTP/1.1 {status} {line}\r\nX-Quoted: {line}\r\nSet-Cookie: quoted={line}\r\nLocation: /{}\r\n\
                     Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{quoted}",
                    line.replace(' ', "%20"),
                    quoted.len()
                )
                .as_bytes(),
            );
            let _ = sender.send(head);
        }
    });
    (address, heads)
}
