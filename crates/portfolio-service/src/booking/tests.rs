use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    thread::{self, JoinHandle},
};

use clap::Parser;
use serde_json::{Value, json};

use super::*;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    booking: BookingOptions,
    #[command(flatten)]
    directory: DirectoryOptions,
}

fn options(arguments: &[&str]) -> Result<Option<Source>, String> {
    let cli = Cli::try_parse_from([&["test"], arguments].concat()).map_err(|error| error.to_string())?;
    cli.booking.source(&cli.directory)
}

/// A server that sends these bytes to the first who asks, and what it was asked.
fn answer_with(bytes: Vec<u8>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
        let asked = lines.take_while(|line| !line.is_empty()).collect();
        stream.write_all(&bytes).ok();
        asked
    });
    (address, asked)
}

fn ok(body: &str) -> Vec<u8> {
    linked(body, "")
}

/// With more lines of the head.
fn linked(body: &str, head: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{head}Connection: close\r\n\r\n{body}").into_bytes()
}

fn ask(bytes: Vec<u8>, change: impl FnOnce(&mut Source)) -> Result<Vec<Original>, String> {
    let (page, asked) = ask_for(None, None, bytes, change);
    assert_eq!(asked, "GET /api/events?limit=200 HTTP/1.1");
    page.map(|page| page.told.into_iter().filter_map(|told| told.event).collect())
}

fn ask_for(
    since: Option<&str>,
    next: Option<&Next>,
    bytes: Vec<u8>,
    change: impl FnOnce(&mut Source),
) -> (Result<Page, String>, String) {
    let (address, asked) = answer_with(bytes);
    let mut source = options(&["--booking-url", &address, "--booking-token", "hunter2"]).unwrap().unwrap();
    change(&mut source);
    let since = since.map(|since| since.parse().unwrap());
    let answer = source.page(since, next).map_err(|failed| failed.to_string());
    let asked = asked.join().unwrap();
    assert!(asked.contains(&"authorization: Bearer hunter2".to_owned()), "{asked:?}");
    (answer, asked[0].clone())
}

const ONE: &str = "0198c0de-0000-7000-8000-000000000001";
const TWO: &str = "0198c0de-0000-7000-8000-000000000002";

fn event(change: Value) -> Value {
    let mut event = json!({
        "eventId": ONE, "name": "Rust evening", "description": "", "place": "S516", "sharedRoom": false, "tags": [],
        "timeStart": "2026-04-04T18:00:00+09:00", "timeEnd": "2026-04-04T20:00:00+09:00", "admins": [TWO, ONE, TWO],
    });
    let Value::Object(change) = change else { panic!("{change} is no object") };
    for (name, value) in change {
        event[name] = value;
    }
    event
}

#[test]
fn options_need_each_other() {
    assert!(options(&[]).unwrap().is_none());
    let secret = ["--booking-token", "hunter2"];
    let source =
        options(&[&["--booking-url", "https://b.example/x/", "--booking-interval", "0.05"][..], &secret].concat());
    let source = source.unwrap().unwrap();
    assert_eq!(source.interval, Duration::from_millis(50));
    assert!(!format!("{source:?}").contains("hunter2"));
    assert!(options(&["--booking-url", "https://b.example"]).is_err());
    assert!(options(&secret).is_err());
    for bad in ["ftp://b.example", "https://me:pw@b.example", "https://b.example?x=1", "b.example"] {
        assert!(options(&[&["--booking-url", bad][..], &secret].concat()).is_err(), "{bad}");
    }
    for bad in ["0", "-1", "x", "1e9", "NaN"] {
        assert!(options(&["--booking-interval", bad]).is_err(), "{bad}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "hunter2\n").unwrap();
    let path = file.path().to_str().unwrap();
    assert!(options(&["--booking-url", "https://b.example", "--booking-token-file", path]).unwrap().is_some());
}

#[test]
fn a_list_is_read_as_far_as_it_matters() {
    let events = ask(ok(&json!([event(json!({}))]).to_string()), |_| {}).unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].since.to_string(), "2026-04-04T09:00:00Z");
    assert_eq!(events[0].hosts.iter().map(ToString::to_string).collect::<Vec<_>>(), [ONE, TWO]);
    assert_eq!(ask(ok("[]"), |_| {}).unwrap(), []);
}

#[test]
fn changes_are_told_with_what_is_deleted() {
    let since = "2026-04-01T09:00:00.000001Z";
    let changed = json!({"updatedAt": "2026-04-01T18:00:00.000002+09:00"});
    let deleted = json!({"eventId": TWO, "updatedAt": "2026-04-02T09:00:00Z", "deletedAt": "2026-04-02T09:00:00Z"});
    let answer: Vec<_> = [changed, deleted, json!({})].into_iter().map(event).collect();
    let (page, asked) = ask_for(Some(since), None, ok(&Value::from(answer).to_string()), |_| {});
    assert_eq!(asked, "GET /api/events?limit=200&updatedSince=2026-04-01T09%3A00%3A00.000001Z HTTP/1.1");
    let told = page.unwrap().told;
    let at: Vec<_> = told.iter().map(|told| told.changed_at.map(|at| at.to_string()).unwrap_or_default()).collect();
    assert_eq!(at, ["2026-04-01T09:00:00.000002Z", "2026-04-02T09:00:00Z", ""]);
    let there: Vec<_> = told.iter().map(|told| (told.id.to_string(), told.event.is_some())).collect();
    assert_eq!(there, [(ONE.to_owned(), true), (TWO.to_owned(), false), (ONE.to_owned(), true)]);
}

#[test]
fn a_page_leads_to_the_next_at_the_same_address_and_to_no_other() {
    let body = json!([event(json!({}))]).to_string();
    let next = |link: &str| ask_for(None, None, linked(&body, link), |_| {}).0.map(|page| page.next);
    let query = "a=%26&limit=200&cursor=x-_";
    for link in [
        format!("Link: </api/events?{query}>; rel=\"next\"\r\n"),
        format!("Link: <events?{query}>; title=\"a\"; REL=next\r\n"),
        format!("Link: </style.css>; rel=preload, <?{query}>; rel=\"last next\", </other>; rel=prev\r\n"),
        format!("Link: </style.css>; rel=preload\r\nLink: </prefix/api/events?{query}>; rel=\"next\"\r\n"),
    ] {
        assert_eq!(next(&link), Ok(Some(Next(query.to_owned()))), "{link}");
    }
    for link in ["", "Link: </style.css>; rel=preload; title=next\r\n", "Link: </api/events?x>; rel=prev\r\n"] {
        assert_eq!(next(link), Ok(None), "{link}");
    }
    for link in [
        "<http://127.0.0.2/api/events?x>; rel=next",
        "<http://127.0.0.1:1/api/events?x>; rel=next",
        "<//other.example/api/events?x>; rel=next",
        "<https://127.0.0.1/api/events?x>; rel=next",
        "</api/version?x>; rel=next",
        "</api/events>; rel=next",
        "</api/events?x; rel=next",
        "</api/events?\u{e9}>; rel=next",
    ] {
        let failed = next(&format!("Link: {link}\r\n")).expect_err(link);
        assert_eq!(failed, "booking-service: the answer leads to a next page that is not at the configured address");
    }
    // The path stays the configured one.
    let (_, asked) = ask_for(None, Some(&Next(query.to_owned())), ok("[]"), |source| source.base.set_path("/x/"));
    assert_eq!(asked, format!("GET /x/api/events?{query} HTTP/1.1"));
    let (empty, _) = ask_for(None, None, linked("[]", "Link: <?x>; rel=next\r\n"), |_| {});
    assert!(empty.unwrap_err().contains("without events"));
}

#[test]
fn one_that_limits_how_often_says_when_to_ask_again() {
    let wait = |retry: &str| {
        let head = format!("HTTP/1.1 429 Too Many Requests\r\n{retry}Content-Length: 2\r\n\r\n{{}}");
        let (address, _) = answer_with(head.into_bytes());
        let source = options(&["--booking-url", &address, "--booking-token", "t"]).unwrap().unwrap();
        let failed = source.page(None, None).unwrap_err();
        assert_eq!(failed.to_string(), "booking-service: it answered status 429");
        failed.wait
    };
    assert_eq!(wait("Retry-After: 3\r\n"), Some(Duration::from_secs(3)));
    for other in ["", "Retry-After: 3600\r\n", "Retry-After: -1\r\n", "Retry-After: Fri, 01 Jan 2027 00:00:00 GMT\r\n"]
    {
        assert_eq!(wait(other), None, "{other}");
    }
}

#[test]
fn whatever_else_it_answers_is_an_error_that_quotes_nothing() {
    let whole = json!([event(json!({}))]).to_string();
    let cut = |at: usize| {
        let mut bytes = ok(&whole);
        bytes.truncate(bytes.len() - at);
        bytes
    };
    let chunked = |rest: &str| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        format!("{head}2\r\n[]\r\n{rest}").into_bytes()
    };
    assert_eq!(ask(chunked("0\r\n\r\n"), |_| {}).unwrap(), []);
    let list = |changes: &[Value]| ok(&Value::from(changes.iter().cloned().map(event).collect::<Vec<_>>()).to_string());
    let answers = [
        ok(""),
        ok("<html>secret</html>"),
        ok("{}"),
        ok("null"),
        ok("[{}]"),
        ok(&"[".repeat(100_000)),
        cut(1),
        cut(whole.len() / 2),
        cut(whole.len()),
        chunked(""),
        chunked("5\r\nab"),
        b"HTTP/1.1 200 OK\r\nContent-Le".to_vec(),
        b"secret".to_vec(),
        Vec::new(),
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 2\r\n\r\n[]".to_vec(),
        b"HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\n\r\n[]".to_vec(),
        b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n[]".to_vec(),
        b"HTTP/1.1 503 secret\r\nContent-Length: 2\r\n\r\n[]".to_vec(),
        list(&[json!({"eventId": "x"})]),
        list(&[json!({"eventId": "00000000-0000-0000-0000-000000000000"})]),
        list(&[json!({"name": null})]),
        list(&[json!({"name": "a\0b"})]),
        list(&[json!({"timeEnd": "secret"})]),
        list(&[json!({"timeEnd": "2026-04-04T08:59:59Z"})]),
        list(&[json!({"admins": "x"})]),
        list(&[json!({}), json!({"eventId": TWO, "admins": [1]})]),
    ];
    for answer in answers {
        let shown = String::from_utf8_lossy(&answer).chars().take(200).collect::<String>();
        let failed = ask(answer, |_| {}).expect_err(&shown);
        assert!(failed.starts_with("booking-service: "), "{failed}");
        assert!(!failed.contains("secret") && !failed.contains("hunter2") && !failed.contains("127.0.0.1"), "{failed}");
    }
    let failed = ask(ok(&" ".repeat(2000)), |source| source.limits.bytes = 1000).unwrap_err();
    assert!(failed.contains("larger than 1000 bytes"), "{failed}");
}

#[test]
fn nobody_waits_longer_than_the_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let mut source = options(&["--booking-url", &address, "--booking-token", "t"]).unwrap().unwrap();
    assert_eq!((source.limits.connect, source.limits.request), (Duration::from_secs(3), Duration::from_secs(20)));
    source.limits.request = Duration::from_millis(100);
    assert_eq!(source.page(None, None).unwrap_err().to_string(), "booking-service: no complete answer in time");
    drop(listener);
    assert!(source.page(None, None).is_err());
}
