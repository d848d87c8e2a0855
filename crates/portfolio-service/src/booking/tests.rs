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

/// The address of a server that sends these bytes to its first client, and the head of that client's request.
fn answer_with(bytes: Vec<u8>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let request = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
        let head = lines.take_while(|line| !line.is_empty()).collect();
        stream.write_all(&bytes).ok();
        head
    });
    (address, request)
}

fn ok(body: &str) -> Vec<u8> {
    ok_with_headers(body, "")
}

/// An answer with more header lines.
fn ok_with_headers(body: &str, headers: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n{body}").into_bytes()
}

fn fetch(bytes: Vec<u8>, change: impl FnOnce(&mut Source)) -> Result<Vec<BookingEvent>, String> {
    let (page, request) = fetch_page(None, None, bytes, change);
    assert_eq!(request, "GET /api/events?limit=200 HTTP/1.1");
    page.map(|page| page.changes.into_iter().filter_map(|change| change.event).collect())
}

/// The page that the source reads from these bytes, and the request line that it has sent.
fn fetch_page(
    since: Option<&str>,
    next: Option<&NextPage>,
    bytes: Vec<u8>,
    change: impl FnOnce(&mut Source),
) -> (Result<Page, String>, String) {
    let (address, request) = answer_with(bytes);
    let mut source = options(&["--booking-url", &address, "--booking-token", "hunter2"]).unwrap().unwrap();
    change(&mut source);
    let since = since.map(|since| since.parse().unwrap());
    let page = source.page(since, next).map_err(|error| error.to_string());
    let head = request.join().unwrap();
    assert!(head.contains(&"authorization: Bearer hunter2".to_owned()), "{head:?}");
    (page, head[0].clone())
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
fn a_list_is_parsed_without_unknown_fields() {
    let events = fetch(ok(&json!([event(json!({}))]).to_string()), |_| {}).unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].since.to_string(), "2026-04-04T09:00:00Z");
    assert_eq!(events[0].hosts.iter().map(ToString::to_string).collect::<Vec<_>>(), [ONE, TWO]);
    assert_eq!(fetch(ok("[]"), |_| {}).unwrap(), []);
}

#[test]
fn a_list_of_changes_has_deleted_events() {
    let since = "2026-04-01T09:00:00.000001Z";
    let update = json!({"updatedAt": "2026-04-01T18:00:00.000002+09:00"});
    let deletion = json!({"eventId": TWO, "updatedAt": "2026-04-02T09:00:00Z", "deletedAt": "2026-04-02T09:00:00Z"});
    let answer: Vec<_> = [update, deletion, json!({})].into_iter().map(event).collect();
    let (page, request) = fetch_page(Some(since), None, ok(&Value::from(answer).to_string()), |_| {});
    assert_eq!(request, "GET /api/events?limit=200&updatedSince=2026-04-01T09%3A00%3A00.000001Z HTTP/1.1");
    let changes = page.unwrap().changes;
    let times: Vec<_> =
        changes.iter().map(|change| change.changed_at.map(|at| at.to_string()).unwrap_or_default()).collect();
    assert_eq!(times, ["2026-04-01T09:00:00.000002Z", "2026-04-02T09:00:00Z", ""]);
    let existing: Vec<_> = changes.iter().map(|change| (change.id.to_string(), change.event.is_some())).collect();
    assert_eq!(existing, [(ONE.to_owned(), true), (TWO.to_owned(), false), (ONE.to_owned(), true)]);
}

#[test]
fn a_page_links_only_to_a_next_page_of_the_same_list() {
    let body = json!([event(json!({}))]).to_string();
    let next = |link: &str| fetch_page(None, None, ok_with_headers(&body, link), |_| {}).0.map(|page| page.next);
    let query = "a=%26&limit=200&cursor=x-_";
    for link in [
        format!("Link: </api/events?{query}>; rel=\"next\"\r\n"),
        format!("Link: <events?{query}>; title=\"a\"; REL=next\r\n"),
        format!("Link: </style.css>; rel=preload, <?{query}>; rel=\"last next\", </other>; rel=prev\r\n"),
        format!("Link: </style.css>; rel=preload\r\nLink: </prefix/api/events?{query}>; rel=\"next\"\r\n"),
    ] {
        assert_eq!(next(&link), Ok(Some(NextPage(query.to_owned()))), "{link}");
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
        let error = next(&format!("Link: {link}\r\n")).expect_err(link);
        assert_eq!(error, "booking-service: the answer leads to a next page that is not at the configured address");
    }
    // The path remains the configured one.
    let (_, request) =
        fetch_page(None, Some(&NextPage(query.to_owned())), ok("[]"), |source| source.base.set_path("/x/"));
    assert_eq!(request, format!("GET /x/api/events?{query} HTTP/1.1"));
    let (empty, _) = fetch_page(None, None, ok_with_headers("[]", "Link: <?x>; rel=next\r\n"), |_| {});
    assert!(empty.unwrap_err().contains("without events"));
}

#[test]
fn a_rate_limit_says_when_to_retry() {
    let retry_after = |header: &str| {
        let head = format!("HTTP/1.1 429 Too Many Requests\r\n{header}Content-Length: 2\r\n\r\n{{}}");
        let (address, _) = answer_with(head.into_bytes());
        let source = options(&["--booking-url", &address, "--booking-token", "t"]).unwrap().unwrap();
        let error = source.page(None, None).unwrap_err();
        assert_eq!(error.to_string(), "booking-service: it answered status 429");
        error.retry_after
    };
    assert_eq!(retry_after("Retry-After: 3\r\n"), Some(Duration::from_secs(3)));
    for other in ["", "Retry-After: 3600\r\n", "Retry-After: -1\r\n", "Retry-After: Fri, 01 Jan 2027 00:00:00 GMT\r\n"]
    {
        assert_eq!(retry_after(other), None, "{other}");
    }
}

#[test]
fn any_other_answer_is_an_error_that_does_not_quote_it() {
    let list = json!([event(json!({}))]).to_string();
    let truncated = |missing: usize| {
        let mut bytes = ok(&list);
        bytes.truncate(bytes.len() - missing);
        bytes
    };
    let chunked = |rest: &str| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        format!("{head}2\r\n[]\r\n{rest}").into_bytes()
    };
    assert_eq!(fetch(chunked("0\r\n\r\n"), |_| {}).unwrap(), []);
    let with_events =
        |changes: &[Value]| ok(&Value::from(changes.iter().cloned().map(event).collect::<Vec<_>>()).to_string());
    let answers = [
        ok(""),
        ok("<html>secret</html>"),
        ok("{}"),
        ok("null"),
        ok("[{}]"),
        ok(&"[".repeat(100_000)),
        truncated(1),
        truncated(list.len() / 2),
        truncated(list.len()),
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
        with_events(&[json!({"eventId": "x"})]),
        with_events(&[json!({"eventId": "00000000-0000-0000-0000-000000000000"})]),
        with_events(&[json!({"name": null})]),
        with_events(&[json!({"name": "a\0b"})]),
        with_events(&[json!({"timeEnd": "secret"})]),
        with_events(&[json!({"timeEnd": "2026-04-04T08:59:59Z"})]),
        with_events(&[json!({"admins": "x"})]),
        with_events(&[json!({}), json!({"eventId": TWO, "admins": [1]})]),
    ];
    for answer in answers {
        let shown = String::from_utf8_lossy(&answer).chars().take(200).collect::<String>();
        let error = fetch(answer, |_| {}).expect_err(&shown);
        assert!(error.starts_with("booking-service: "), "{error}");
        assert!(!error.contains("secret") && !error.contains("hunter2") && !error.contains("127.0.0.1"), "{error}");
    }
    let error = fetch(ok(&" ".repeat(2000)), |source| source.limits.bytes = 1000).unwrap_err();
    assert!(error.contains("larger than 1000 bytes"), "{error}");
}

#[test]
fn of_an_event_as_much_is_kept_as_the_contract_allows() {
    let list = |events: &[Value]| ok(&Value::from(events.to_vec()).to_string());
    let long = json!({"name": "名".repeat(33), "description": "x".repeat(10_001), "place": "p".repeat(40)});
    let events = fetch(list(&[event(long)]), |_| {}).unwrap();
    let BookingEvent { name, description, place, .. } = &events[0];
    assert_eq!((name, description, place), (&"名".repeat(32), &"x".repeat(10_000), &"p".repeat(32)));
    // Each event has a limit of its own.
    let attendees = event(json!({"attendees": vec![ONE; 20_000]}));
    assert_eq!(fetch(list(&vec![attendees; 5]), |_| {}).unwrap().len(), 5);
    for field in ["description", "somethingNew"] {
        let endless = event(json!({field: "x".repeat(2_000_000)}));
        let error = fetch(list(&[endless]), |_| {}).unwrap_err();
        assert_eq!(error, "booking-service: an event is too long", "{field}");
    }
    let many = vec![event(json!({"description": "x".repeat(10_000)})); 2_000];
    let error = fetch(list(&many), |_| {}).unwrap_err();
    assert!(error.contains("not a list of events within the limits"), "{error}");
}

#[test]
fn a_request_fails_after_its_time_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let mut source = options(&["--booking-url", &address, "--booking-token", "t"]).unwrap().unwrap();
    assert_eq!((source.limits.connect, source.limits.request), (Duration::from_secs(3), Duration::from_secs(20)));
    source.limits.request = Duration::from_millis(100);
    assert_eq!(source.page(None, None).unwrap_err().to_string(), "booking-service: no complete answer in time");
    drop(listener);
    assert!(source.page(None, None).is_err());
}
