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
}

fn options(arguments: &[&str]) -> Result<Option<Source>, String> {
    let cli = Cli::try_parse_from([&["test"], arguments].concat()).map_err(|error| error.to_string())?;
    cli.booking.source()
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
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).into_bytes()
}

fn ask(bytes: Vec<u8>, change: impl FnOnce(&mut Source)) -> Result<Vec<Original>, String> {
    let (told, asked) = ask_since(None, bytes, change);
    assert_eq!(asked, "GET /api/events HTTP/1.1");
    told.map(|told| told.events)
}

fn ask_since(since: Option<&str>, bytes: Vec<u8>, change: impl FnOnce(&mut Source)) -> (Result<Told, String>, String) {
    let (address, asked) = answer_with(bytes);
    let mut source = options(&["--booking-url", &address, "--booking-token", "hunter2"]).unwrap().unwrap();
    change(&mut source);
    let since = since.map(|since| since.parse().unwrap());
    let answer = source.events(since).map_err(|failed| failed.to_string());
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
    let told = |changes: &[Value]| {
        let answer = changes.iter().cloned().map(event).collect::<Vec<_>>();
        let (told, asked) = ask_since(Some(since), ok(&Value::from(answer).to_string()), |_| {});
        assert_eq!(asked, "GET /api/events?updatedSince=2026-04-01T09%3A00%3A00.000001Z HTTP/1.1");
        told.unwrap()
    };
    let changed = json!({"updatedAt": "2026-04-01T18:00:00.000002+09:00"});
    let deleted = json!({"eventId": TWO, "updatedAt": "2026-04-02T09:00:00Z", "deletedAt": "2026-04-02T09:00:00Z"});
    let both = told(&[changed.clone(), deleted]);
    assert_eq!(both.events.iter().map(|event| event.id.to_string()).collect::<Vec<_>>(), [ONE]);
    assert_eq!(both.deleted.iter().map(ToString::to_string).collect::<Vec<_>>(), [TWO]);
    assert_eq!(both.changed.iter().max().unwrap().0.to_string(), "2026-04-02T09:00:00Z");
    assert!(!both.is_whole && !both.is_more);
    let none = told(&[]);
    assert!(none.changed.is_empty() && !none.is_whole && !none.is_more);
    // One that was not changed since tells that the question was not understood; so does one that does not say.
    for other in [json!({"eventId": TWO, "updatedAt": since}), json!({"eventId": TWO})] {
        assert!(told(&[changed.clone(), other]).is_more);
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
        list(&[json!({}), json!({})]),
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
    assert_eq!(source.events(None).unwrap_err().to_string(), "booking-service: no complete answer in time");
    drop(listener);
    assert!(source.events(None).is_err());
}

#[test]
fn an_event_that_moves_while_a_long_list_is_sent_is_told_as_it_is_in_the_end() {
    let event = |id: &str, name: &str, at: &str| {
        json!({
            "eventId": id, "name": name, "description": "", "place": "", "timeStart": "2026-04-01T09:00:00Z",
            "timeEnd": "2026-04-01T10:00:00Z", "admins": [], "updatedAt": at,
        })
    };
    let (old, new) = ("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z");
    for list in [
        json!([event(ONE, "was", old), event(TWO, "other", old), event(ONE, "is", new)]),
        json!([event(ONE, "is", new), event(TWO, "other", old), event(ONE, "was", old)]),
    ] {
        let told = ask(ok(&list.to_string()), |_| {}).unwrap();
        assert_eq!(told.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(), ["is", "other"]);
    }
    let whole = json!([event(ONE, "was", old), event(TWO, "gone", old)]);
    let mut told = ask_since(None, ok(&whole.to_string()), |_| {}).0.unwrap();
    let mut gone = event(TWO, "gone", new);
    gone["deletedAt"] = json!(new);
    let later = json!([event(ONE, "is", new), gone]);
    told.put_right(ask_since(Some(old), ok(&later.to_string()), |_| {}).0.unwrap());
    assert_eq!(told.events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(), ["is"]);
    assert!(!told.is_long());
}
