//! The middleware and the routes of every service.

use std::{
    io::Read,
    sync::{RwLock, atomic::Ordering},
    time::{Duration, Instant},
};

use common::problem::code;

use crate::server::{Connection, PARTS, Server};

/// Waits until a condition holds.
#[track_caller]
fn until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_mins(1), "not in time");
    }
}

fn decoded(mut body: &[u8], coding: &str) -> String {
    let mut text = String::new();
    let read = match coding {
        "br" => brotli::Decompressor::new(body, 4096).read_to_string(&mut text),
        "zstd" => zstd::Decoder::new(body).unwrap().read_to_string(&mut text),
        _ => flate2::read::GzDecoder::new(&mut body).read_to_string(&mut text),
    };
    read.unwrap();
    text
}

#[test]
fn a_valid_request_id_is_echoed_and_an_invalid_one_replaced() {
    let server = Server::start();
    let id = |sent: &str| {
        let answer = server.send(&format!("GET /livez HTTP/1.1\r\nX-Request-Id: {sent}"), b"");
        answer.header("x-request-id").unwrap().to_owned()
    };
    let longest = "a".repeat(128);
    for sane in ["1", "0198c0de-0000-7000-8000-000000000001", "a.B_c-9", &longest] {
        assert_eq!(id(sane), sane);
    }
    let too_long = "a".repeat(129);
    for odd in ["", "two words", "ünï", "a\"b", "a=b", "<script>", &too_long] {
        let new = id(odd);
        assert_ne!(new, odd);
        assert_eq!(new.len(), 36, "{odd}");
    }
    assert_ne!(server.get("/livez").header("x-request-id"), server.get("/livez").header("x-request-id"));
}

#[test]
fn head_is_get_without_the_body() {
    let server = Server::start();
    for path in ["/livez", "/things?deep=true", "/large", "/openapi.json", "/nowhere", "/things?deep=1", "/panic"] {
        let (get, head) = (server.get(path), server.send(&format!("HEAD {path} HTTP/1.1"), b""));
        assert_eq!(head.status, get.status, "{path}");
        let fixed = |headers: &std::collections::HashMap<String, String>| {
            let mut headers = headers.clone();
            headers.retain(|name, _| !matches!(name.as_str(), "date" | "x-request-id"));
            headers
        };
        assert_eq!(fixed(&head.headers), fixed(&get.headers), "{path}");
        assert_eq!(head.header("content-length"), Some(get.body.len().to_string().as_str()), "{path}");
        for coding in ["gzip", "br", "zstd"] {
            let send = |method| server.send(&format!("{method} {path} HTTP/1.1\r\nAccept-Encoding: {coding}"), b"");
            assert_eq!(fixed(&send("HEAD").headers), fixed(&send("GET").headers), "{path} in {coding}");
        }
    }
    // No body follows: the next answer on the connection begins after the head.
    let mut connection = server.connect();
    for _ in 0..3 {
        connection.write("HEAD /large HTTP/1.1", b"");
        assert_eq!(connection.read(true).status, 200);
    }
    // The body is not even created.
    for (method, coding, made) in [("HEAD", "identity", 0), ("HEAD", "zstd", 0), ("GET", "identity", 3)] {
        connection.write(&format!("{method} /parts HTTP/1.1\r\nAccept-Encoding: {coding}"), b"");
        let answer = connection.read(method == "HEAD");
        assert_eq!((answer.status, answer.header("transfer-encoding")), (200, Some("chunked")));
        assert_eq!(PARTS.load(Ordering::Relaxed), made, "{method}");
    }
}

#[test]
fn unknown_paths_and_methods_are_problems() {
    let server = Server::start();
    for path in ["/", "/nowhere", "/things/", "/problems/nothing", "/docs/nothing", "/%00", "//livez"] {
        server.get(path).refused(404, "not-found");
    }
    let refused = |request: &str| {
        let answer = server.send(&format!("{request} HTTP/1.1\r\nContent-Length: 0"), b"");
        answer.refused(405, "method-not-allowed");
        answer.header("allow").map(str::to_owned)
    };
    for path in ["/livez", "/readyz", "/metrics", "/problems", "/problems/conflict", "/openapi.json", "/docs", "/docs/"]
    {
        for method in ["POST", "DELETE", "OPTIONS", "BREW"] {
            assert_eq!(refused(&format!("{method} {path}")).as_deref(), Some("GET, HEAD"), "{method} {path}");
        }
    }
}

#[test]
fn every_answer_has_the_security_headers() {
    let server = Server::start();
    for path in ["/livez", "/nowhere", "/panic", "/docs/", "/refused", "/large"] {
        let answer = server.get(path);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(answer.header("x-test-version"), Some("7"), "{path}");
        assert!(answer.header("cache-control").is_some(), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("http"), "{path}: {policy}");
        assert!(answer.header("server").is_none() && answer.header("x-powered-by").is_none(), "{path}");
    }
    let refused = server.get("/refused");
    refused.refused(401, "not-signed-in");
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    assert_eq!(server.get("/livez").header("www-authenticate"), None);
}

#[test]
fn an_internal_error_has_no_details() {
    let server = Server::start();
    for (path, status, code) in [("/broken", 500, "internal-error"), ("/away", 503, "unavailable")] {
        let answer = server.get(path);
        answer.refused(status, code);
        assert!(!answer.text().contains("hunter2") && !answer.text().contains("SELECT"), "{}", answer.text());
        assert_eq!(answer.header("retry-after").is_some(), status == 503);
    }
}

#[test]
fn a_panic_is_a_500_and_the_service_continues() {
    let server = Server::start();
    let mut connection = server.connect();
    for _ in 0..3 {
        // The same worker and the same connection.
        connection.write("GET /panic HTTP/1.1", b"");
        let answer = connection.read(false);
        answer.refused(500, "internal-error");
        assert!(!answer.text().contains("on purpose"));
        connection.write("GET /livez HTTP/1.1", b"");
        assert_eq!(connection.read(false).status, 200);
    }
    assert!(server.get("/metrics").text().contains("route=\"/panic\",status=\"500\"} 3\n"));
}

#[test]
fn a_request_that_takes_too_long_is_503() {
    let server = Server::start_with(&[], |options| options.request_timeout = 1);
    let answer = server.get("/never");
    answer.refused(503, "unavailable");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert!(server.get("/metrics").text().contains("route=\"/never\",status=\"503\"} 1\n"));
}

/// The log records of a request.
fn logged(id: &str) -> Vec<String> {
    log::set_logger(&LOG).ok();
    log::set_max_level(log::LevelFilter::Info);
    LOG.0.read().unwrap().iter().filter(|line| line.contains(id)).cloned().collect()
}

static LOG: Records = Records(RwLock::new(Vec::new()));

struct Records(RwLock<Vec<String>>);

impl log::Log for Records {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let fields = ["status", "code", "request_id", "cause"].map(|name| record.key_values().get(name.into()));
        self.0.write().unwrap().push(format!("{} {} {fields:?}", record.target(), record.args()));
    }

    fn flush(&self) {}
}

#[test]
fn a_client_that_goes_away_before_its_answer_is_logged_and_counted() {
    let id = "went-away";
    assert!(logged(id).is_empty());
    let server = Server::start();
    let mut connection = server.connect();
    connection.write("GET /livez HTTP/1.1", b"");
    connection.write(&format!("GET /never HTTP/1.1\r\nX-Request-Id: {id}"), b"");
    // A connection that is closed with an unread answer is reset.
    connection.wait();
    let text = || server.get("/metrics").text();
    until(|| text().contains("http_requests_in_flight 2\n"));
    drop(connection);
    until(|| text().contains("route=\"/never\",status=\"499\"} 1\n"));
    assert!(text().contains("http_requests_in_flight 1\n"));
    let lines = logged(id);
    assert!(lines.len() == 1 && lines[0].starts_with("access request [Some(499)"), "{lines:?}");
}

#[test]
fn a_truncated_answer_is_logged_and_counted_as_an_error() {
    assert!(logged("broke-off").is_empty());
    let server = Server::start();
    for coding in ["identity", "gzip"] {
        let id = format!("broke-off-{coding}");
        let mut connection = server.connect();
        connection.write(&format!("GET /breaks HTTP/1.1\r\nX-Request-Id: {id}\r\nAccept-Encoding: {coding}"), b"");
        let answer = connection.read_to_end();
        // The encoder buffers such a short beginning, so the client receives nothing.
        assert!(coding == "gzip" || answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(!answer.ends_with("\r\n0\r\n\r\n"), "{answer}");
        let lines = logged(&id);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("access request, answer truncated [Some(500)"), "{lines:?}");
        assert!(lines[0].contains("the second part is gone"), "{lines:?}");
    }
    assert!(server.get("/metrics").text().contains("route=\"/breaks\",status=\"500\"} 2\n"));
}

#[test]
fn answers_are_compressed_as_the_client_prefers() {
    let server = Server::start();
    let plain = server.get("/large");
    assert_eq!(plain.header("content-encoding"), None);
    let get = |path: &str, accepted: &str| {
        server.send(&format!("GET {path} HTTP/1.1\r\nX-Request-Id: same\r\nAccept-Encoding: {accepted}"), b"")
    };
    for (accepted, coding) in [
        ("gzip", "gzip"),
        ("br", "br"),
        ("gzip, deflate, br", "br"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("zstd;q=0.9, br;q=0.8, gzip", "gzip"),
        ("zstd;q=0, BR", "br"),
    ] {
        let answer = get("/large", accepted);
        assert_eq!(answer.header("content-encoding"), Some(coding), "{accepted}");
        assert!(answer.header("vary").unwrap().to_lowercase().contains("accept-encoding"), "{accepted}");
        assert_eq!(answer.header("content-type"), plain.header("content-type"), "{accepted}");
        assert_eq!(decoded(&answer.body, coding), plain.text(), "{accepted}");
        assert!(answer.body.len() < plain.body.len() / 10, "{accepted}");
    }
    // A client that accepts nothing is better served with the plain answer than with none (RFC 9110, section 12.5.3).
    for accepted in ["", "*", "identity", "identity, gzip;q=0.5", "unheard-of", "*;q=0", "gzip;q=0"] {
        assert_eq!(get("/large", accepted).header("content-encoding"), None, "{accepted}");
    }
    for short in ["/livez", "/nowhere", "/things?deep=1"] {
        let answer = get(short, "gzip, deflate, br, zstd");
        assert_eq!(answer.header("content-encoding"), None, "{short}");
        assert_eq!(answer.header("content-length"), Some(&*answer.body.len().to_string()), "{short}");
    }
    get("/panic", "gzip").refused(500, "internal-error");
}

#[test]
fn without_allowed_origins_there_is_no_cors() {
    let server = Server::start();
    let answer = server.send("GET /livez HTTP/1.1\r\nOrigin: https://app.example", b"");
    assert!(answer.headers.keys().all(|name| !name.starts_with("access-control")), "{answer:?}");
    let preflight = "OPTIONS /livez HTTP/1.1\r\nOrigin: https://app.example\r\nAccess-Control-Request-Method: GET";
    let answer = server.send(preflight, b"");
    answer.refused(405, "method-not-allowed");
    assert!(answer.headers.keys().all(|name| !name.starts_with("access-control")), "{answer:?}");
}

#[test]
fn allowed_origins_may_read_and_send_credentials_and_others_may_not() {
    let server = Server::start_with(&["--allowed-origins", "https://app.example,http://localhost:8080"], |_| {});
    for path in ["/livez", "/nowhere", "/refused"] {
        for origin in ["https://app.example", "http://localhost:8080"] {
            let answer = server.send(&format!("GET {path} HTTP/1.1\r\nOrigin: {origin}"), b"");
            assert_eq!(answer.header("access-control-allow-origin"), Some(origin), "{path}");
            assert_eq!(answer.header("access-control-allow-credentials"), Some("true"), "{path}");
            let exposed = answer.header("access-control-expose-headers").unwrap();
            for name in [
                "Date",
                "ETag",
                "Idempotency-Replayed",
                "Link",
                "Location",
                "Retry-After",
                "X-Request-Id",
                "WWW-Authenticate",
            ] {
                assert!(exposed.split(',').any(|one| one.trim().eq_ignore_ascii_case(name)), "{path}: {exposed}");
            }
            assert!(answer.header("vary").unwrap().contains("Origin"), "{path}");
        }
        for origin in ["https://evil.example", "https://app.example.evil.example", "null", "HTTPS://APP.EXAMPLE"] {
            let answer = server.send(&format!("GET {path} HTTP/1.1\r\nOrigin: {origin}"), b"");
            assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
        }
    }
    let preflight = |origin: &str| {
        let head = format!(
            "OPTIONS /livez HTTP/1.1\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: PATCH\r\n\
             Access-Control-Request-Headers: content-type, if-match"
        );
        server.send(&head, b"")
    };
    let answer = preflight("https://app.example");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(answer.header("access-control-allow-credentials"), Some("true"));
    let allowed = answer.header("access-control-allow-headers").unwrap();
    assert!(allowed.contains("content-type") && allowed.contains("if-match"), "{allowed}");
    assert!(answer.header("access-control-allow-methods").unwrap().contains("PATCH"));
    assert!(answer.header("x-request-id").is_some());
    let answer = preflight("https://evil.example");
    answer.refused(403, "cross-site-request");
    assert_eq!(answer.header("access-control-allow-origin"), None);
    let of_method = "OPTIONS /livez HTTP/1.1\r\nOrigin: https://app.example\r\nAccess-Control-Request-Method: QUERY";
    let answer = server.send(of_method, b"");
    answer.refused(400, "bad-request");
    assert!(answer.text().contains("Requested method is not allowed"), "{answer:?}");
}

#[test]
fn path_ids_are_uuids_in_any_case_and_not_nil() {
    let server = Server::start();
    let upper = "0198C0DE-0000-7000-8000-00000000000A";
    assert_eq!(server.get(&format!("/things/{upper}")).text(), upper.to_lowercase());
    let long = "a".repeat(2000);
    for bad in
        ["x", "00000000-0000-0000-0000-000000000000", "0198c0de000070008000000000000001", "%7Bx%7D", "%C3%A9", &long]
    {
        let answer = server.get(&format!("/things/{bad}"));
        assert_eq!(answer.violations("invalid-parameter"), [("thingID".to_owned(), "not-a-uuid".to_owned())], "{bad}");
    }
    // The name after the id is not an id, so it is no violation.
    let answer = server.get("/things/x/tags/music");
    assert_eq!(answer.violations("invalid-parameter"), [("thingID".to_owned(), "not-a-uuid".to_owned())]);
    assert_eq!(server.get(&format!("/things/{upper}/tags/%E9%9F%B3%2F%20")).text(), "音/ ");
    // Invalid UTF-8 becomes a replacement character.
    assert_eq!(server.get(&format!("/things/{upper}/tags/%FF")).text(), "\u{fffd}");
}

#[test]
fn every_query_parameter_that_cannot_be_used_is_named() {
    let server = Server::start();
    let named = |query: &str| {
        let found = server.get(&format!("/things?{query}")).violations("invalid-parameter");
        found.into_iter().map(|(name, code)| format!("{name} {code}")).collect::<Vec<_>>()
    };
    assert_eq!(named("deep=yes&owner=x"), ["deep wrong-type", "owner not-a-uuid"]);
    assert_eq!(named("deep=true&deep=true"), ["deep duplicate"]);
    // An empty value counts as absent, and unknown parameters are ignored, also when they come twice.
    assert_eq!(server.get("/things?deep=&x=1&x=2").json()["deep"], false);
    assert_eq!(server.get("/things?deep").json()["deep"], false);
    assert_eq!(server.get("/things?unknown=1&deep=true").json()["deep"], true);
    assert_eq!(server.get("/things?&&").json()["deep"], false);
}

#[test]
fn the_routes_of_every_service_answer() {
    let server = Server::start();
    assert_eq!(server.get("/livez").status, 200);
    assert_eq!(server.get("/readyz").status, 200);
    let all = server.get("/problems").json();
    assert_eq!(all.as_array().unwrap().len(), code::ALL.len());
    for code in code::ALL {
        let one = server.get(&format!("/problems/{}", code.name)).json();
        assert_eq!((&one["name"], &one["status"]), (&code.name.into(), &code.status.into()));
        assert!(!one["title"].as_str().unwrap().is_empty() && !one["about"].as_str().unwrap().is_empty());
    }
    assert_eq!(server.get("/docs").header("location"), Some("/docs/"));
}

#[test]
fn malformed_http_is_refused_and_other_requests_are_answered() {
    let server = Server::start();
    for garbage in ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nA B\r\n\r\n"] {
        let mut connection = Connection::to(server.address);
        connection.write_more(garbage.as_bytes());
        assert_eq!(connection.read(true).status, 400, "{garbage:?}");
    }
    assert_eq!(server.get("/livez").status, 200);
}
