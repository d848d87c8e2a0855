//! JSON bodies.

use serde_json::json;

use crate::server::Server;

const GOOD: &str = r#"{"name":"S516","ownerId":"0198c0de-0000-7000-8000-000000000001"}"#;

#[test]
fn all_violations_are_reported_with_their_pointers() {
    let server = Server::start();
    let violations = |body: serde_json::Value| {
        let found = server.post("/things", body.to_string().as_bytes()).violations("invalid-body");
        found.into_iter().map(|(place, code)| format!("{place} {code}")).collect::<Vec<_>>()
    };
    assert_eq!(violations(json!({})), ["/name required", "/ownerId required"]);
    assert_eq!(violations(json!({"name": " ", "ownerId": "x"})), ["/name blank", "/ownerId not-a-uuid"]);
    assert_eq!(violations(json!({"name": 5, "ownerId": null})), ["/name wrong-type", "/ownerId required"]);
    assert_eq!(violations(json!({"name": "123456789", "ownerId": {}})), ["/name length", "/ownerId wrong-type"]);
    assert_eq!(violations(json!([])), [" wrong-type"]);
    assert_eq!(violations(json!("text")), [" wrong-type"]);
    let unknown = r#"{"unknown":null,"name":"S516","ownerId":"0198C0DE-0000-7000-8000-000000000001"}"#;
    assert_eq!(server.post("/things", unknown.as_bytes()).json()["name"], "S516");
}

#[test]
fn malformed_json_is_refused_with_line_and_column() {
    let server = Server::start();
    let detail = |body: &[u8]| {
        let problem = server.post("/things", body).refused(400, "malformed-json");
        problem["detail"].as_str().unwrap().to_owned()
    };
    assert!(detail(b"{\n  \"name\": oops}").contains("line 2, column 11"));
    assert!(detail(b"").contains("line 1, column 0"));
    for bad in
        [&b"{"[..], b"{\"a\":1,}", b"\xff\xfe", b"{} {}", b"{'a':1}", b"NaN", b"\"\\ud800\"", b"{\"a\":\"\x00\"}"]
    {
        assert!(detail(bad).contains("line 1"), "{bad:?}");
    }
    // Deep nesting neither overflows the stack nor is quoted in the answer.
    let deep = "[".repeat(100_000);
    assert!(!detail(deep.as_bytes()).contains("[["));
    let twice = r#"{"name":"a","name":"b","ownerId":"0198c0de-0000-7000-8000-000000000001"}"#;
    assert_eq!(server.post("/things", twice.as_bytes()).status, 200);
}

#[test]
fn the_media_type_is_json_or_not_given() {
    let server = Server::start();
    let send = |kind: &str| {
        let head = format!("POST /things HTTP/1.1\r\n{kind}Content-Length: {}", GOOD.len());
        server.send(&head, GOOD.as_bytes())
    };
    for fine in ["", "Content-Type: application/json\r\n", "Content-Type: Application/JSON; charset=utf-8\r\n"] {
        assert_eq!(send(fine).status, 200, "{fine}");
    }
    for other in
        ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", "multipart/form-data; boundary=x"]
    {
        send(&format!("Content-Type: {other}\r\n")).refused(415, "unsupported-media-type");
    }
    // A compressed body is an unsupported media type, not malformed JSON.
    let compressed = send("Content-Encoding: gzip\r\n");
    compressed.refused(415, "unsupported-media-type");
    assert_eq!(send("Content-Encoding: identity\r\n").status, 200);
}

#[test]
fn a_body_may_be_left_out_where_it_is_optional() {
    let server = Server::start();
    let sent = |head: &str, body: &str| {
        let head = format!("PATCH /things HTTP/1.1\r\n{head}Content-Length: {}", body.len());
        server.send(&head, body.as_bytes())
    };
    assert_eq!(sent("", "").json()["sent"], false);
    assert_eq!(sent("Content-Type: application/json\r\n", "").json()["sent"], false);
    assert_eq!(server.send("PATCH /things HTTP/1.1", b"").json()["sent"], false);
    assert_eq!(sent("", GOOD).json()["sent"], true);
    sent("", "{").refused(400, "malformed-json");
    sent("Content-Type: text/plain\r\n", GOOD).refused(415, "unsupported-media-type");
}

#[test]
fn a_body_has_a_mebibyte_at_most() {
    let server = Server::start();
    let limit = 1 << 20;
    let padded = |length: usize| format!("{GOOD}{}", " ".repeat(length - GOOD.len()));
    assert_eq!(server.post("/things", padded(limit).as_bytes()).status, 200);
    // Refused because of its declared length, before it is sent.
    let head = format!("POST /things HTTP/1.1\r\nContent-Length: {}", limit + 1);
    server.send(&head, b"").refused(413, "payload-too-large");
    // A client that sends the complete body before it reads also receives the answer.
    server.send(&head, padded(limit + 1).as_bytes()).refused(413, "payload-too-large");
    // Without a declared length, refused as soon as it is too large.
    let chunk = |length: usize| format!("{length:x}\r\n{}\r\n", " ".repeat(length));
    let head = "POST /things HTTP/1.1\r\nTransfer-Encoding: chunked";
    server.send(head, chunk(limit + 1).as_bytes()).refused(413, "payload-too-large");
    let fine = format!("{}{:x}\r\n{GOOD}\r\n0\r\n\r\n", chunk(limit - GOOD.len()), GOOD.len());
    assert_eq!(server.send(head, fine.as_bytes()).status, 200);
    assert_eq!(server.get("/livez").status, 200);
}

#[test]
fn a_body_that_never_ends_is_408_and_one_that_breaks_off_harms_nobody() {
    let server = Server::start_with(&["--request-timeout", "1"], |_| {});
    let mut slow = server.connect();
    slow.write("POST /things HTTP/1.1\r\nContent-Length: 100", b"{\"name\":");
    let mut broken = server.connect();
    broken.write("POST /things HTTP/1.1\r\nContent-Length: 100", b"{\"name\":");
    drop(broken);
    assert_eq!(server.get("/livez").status, 200);
    slow.read(false).refused(408, "request-timeout");
}
