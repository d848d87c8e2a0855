//! The identity of callers behind a real reverse proxy, and of requests that bypass it.

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use serde_json::Value;

use crate::harness::{ALICE, BOB, Backend, CAROL, Club, id};

#[path = "../../../service-kit/tests/shared/nginx.rs"]
mod nginx;
use self::nginx::Nginx;

/// The address of the proxy that the service trusts.
const PROXY: &str = "127.0.0.2";

/// The users of the proxy, whose passwords are their names.
const USERS: &str = "alice:{PLAIN}alice\nbob:{PLAIN}bob\n";

fn nginx(server: &str) -> Nginx {
    Nginx::start(server, &[("users", USERS)])
}

/// A service that trusts only the proxy at [`PROXY`].
fn club() -> Club {
    Club::start_with(Backend::Sqlite, &["--trusted-proxies", &format!("{PROXY}/32")])
}

/// The configuration of a proxy that requires sign-in and sends the name to the service from the trusted address.
fn with_sign_in(club: &Club) -> String {
    format!(
        "location / {{
            auth_basic club; auth_basic_user_file users;
            proxy_pass {}; proxy_bind {PROXY}; proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-User $remote_user; proxy_set_header X-Showcase-User \"\";
        }}",
        club.origin(0)
    )
}

/// Sends a request with exactly these header lines, and returns the status and the JSON object of the answer.
fn send(address: SocketAddr, request: &str, lines: &[String]) -> (u16, Value) {
    let mut head = format!("{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for line in lines {
        write!(head, "{line}\r\n").unwrap();
    }
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.find('{').and_then(|at| serde_json::from_str(&answer[at..=answer.rfind('}')?]).ok());
    (status, body.unwrap_or_default())
}

/// The name of the caller in the answer to a request with these header lines, or the code of the problem.
fn caller(address: SocketAddr, lines: &[String]) -> String {
    let (status, body) = send(address, "GET /api/v1/users/me", lines);
    let text = if status == 200 { &body["name"] } else { &body["code"] };
    text.as_str().map_or_else(|| status.to_string(), str::to_owned)
}

fn direct(club: &Club) -> SocketAddr {
    club.origin(0).strip_prefix("http://").unwrap().parse().unwrap()
}

fn password(member: &str) -> String {
    format!("Authorization: Basic {}", BASE64.encode(format!("{member}:{member}")))
}

/// Header lines with which a client may claim to be Alice.
fn claims() -> Vec<Vec<String>> {
    [
        &["X-Forwarded-User: alice"][..],
        &["X-Forwarded-User: alice", "X-Forwarded-User: alice"],
        &["x-forwarded-user: alice", "X-FORWARDED-USER: alice"],
        &["x-fOrWaRdEd-uSeR: alice"],
        &["X-Forwarded-User:alice", "X-Forwarded-User:"],
        &["X_Forwarded_User: alice"],
        &["X-Forwarded_User: alice", "x_forwarded-user: alice"],
        &["X-Showcase-User: alice"],
        &["X-Showcase-User: alice", "X_Showcase_User: alice", "X-Forwarded-User: alice"],
        &["X-Forwarded-User: alice", "X-Forwarded-For: 127.0.0.2"],
        &["X-Forwarded-User: alice", "X-Forwarded-For: 127.0.0.2", "X-Real-IP: 127.0.0.2"],
        &["X-Forwarded-User: alice", "Forwarded: for=127.0.0.2;by=127.0.0.2"],
        &["X-Forwarded-User: alice", "Via: 1.1 127.0.0.2", "Connection: X-Forwarded-For"],
    ]
    .iter()
    .map(|lines| lines.iter().map(|line| (*line).to_owned()).collect())
    .collect()
}

#[test]
fn a_user_of_the_proxy_cannot_claim_another_name() {
    let club = club();
    for underscores in ["off", "on"] {
        let proxy = nginx(&format!("underscores_in_headers {underscores}; {}", with_sign_in(&club)));
        assert_eq!(caller(proxy.address, &[]), "401", "nginx itself refuses");
        assert_eq!(caller(proxy.address, &[password(BOB)]), BOB);
        assert_eq!(caller(proxy.address, &[password(ALICE)]), ALICE);
        for claim in claims() {
            assert_eq!(caller(proxy.address, &claim), "401", "{claim:?}");
            let lines = [claim.clone(), vec![password(BOB)]].concat();
            assert_eq!(caller(proxy.address, &lines), BOB, "underscores {underscores}: {claim:?}");
        }
    }
}

#[test]
fn a_page_writes_through_the_proxy_and_another_sites_page_does_not() {
    let club = club();
    let proxy = nginx(&with_sign_in(&club));
    let edit = |member: &str, origin: &str| {
        let more = ["Content-Type: application/json", "Content-Length: 11", &format!("Origin: {origin}")];
        let mut lines: Vec<_> = more.iter().map(|line| (*line).to_owned()).collect();
        // The body follows the empty line after the head.
        lines.extend([password(BOB), "\r\n{\"bio\":\"x\"}".to_owned()]);
        let (status, problem) = send(proxy.address, &format!("PATCH /api/v1/users/{}", id(member)), &lines);
        (status, problem["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(edit(BOB, &format!("http://{}", proxy.address)), (204, String::new()));
    assert_eq!(edit(CAROL, &format!("http://{}", proxy.address)), (403, "forbidden".to_owned()));
    assert_eq!(edit(BOB, "https://evil.example"), (403, "cross-site-request".to_owned()));
}

#[test]
fn requests_that_bypass_the_proxy_are_anonymous() {
    let club = club();
    let proxy = nginx(&with_sign_in(&club));
    assert_eq!(caller(proxy.address, &[password(BOB)]), BOB);
    // A proxy with sign-in at another address, and a proxy that forwards all headers.
    let stranger = with_sign_in(&club).replace(&format!("proxy_bind {PROXY};"), "proxy_set_header Authorization \"\";");
    let stranger = nginx(&stranger);
    let relay = nginx(&format!(
        "underscores_in_headers on;
        location / {{ proxy_pass {}; proxy_set_header X-Forwarded-For \"{PROXY}\"; }}",
        club.origin(0)
    ));
    for claim in claims() {
        assert_eq!(caller(direct(&club), &claim), "not-signed-in", "{claim:?}");
        assert_eq!(caller(relay.address, &claim), "not-signed-in", "through a relay: {claim:?}");
        let signed_in = [claim.clone(), vec![password(BOB)]].concat();
        assert_eq!(caller(stranger.address, &signed_in), "not-signed-in", "through a stranger: {claim:?}");
    }
}

#[test]
fn requests_to_a_location_without_sign_in_are_anonymous() {
    let club = club();
    // Without `auth_basic`, $remote_user is the name that the client sends, so such a location must clear the header.
    let proxy = nginx(&format!(
        "underscores_in_headers on;
        location / {{
            proxy_pass {}; proxy_bind {PROXY}; proxy_set_header Authorization \"\";
            proxy_set_header X-Forwarded-User \"\"; proxy_set_header X-Showcase-User \"\";
        }}",
        club.origin(0)
    ));
    for claim in claims() {
        assert_eq!(caller(proxy.address, &claim), "not-signed-in", "{claim:?}");
        assert_eq!(
            caller(proxy.address, &[claim.clone(), vec![password(ALICE)]].concat()),
            "not-signed-in",
            "{claim:?}"
        );
    }
}

#[test]
fn a_header_that_the_proxy_does_not_clear_gives_no_other_name() {
    let club = club();
    let forgetful = with_sign_in(&club).replace("proxy_set_header X-Showcase-User \"\";", "");
    let proxy = nginx(&forgetful);
    assert_eq!(caller(proxy.address, &[password(BOB), "X-Showcase-User: alice".to_owned()]), "bad-credentials");
    assert_eq!(caller(proxy.address, &[password(BOB), "X-Showcase-User: bob".to_owned()]), BOB);
    // A service that trusts only one header ignores the other.
    let proxies = format!("{PROXY}/32");
    let options = ["--trusted-proxies", &proxies, "--identity-headers", "X-Forwarded-User"];
    let one_header = Club::start_with(Backend::Sqlite, &options);
    let proxy = nginx(&forgetful.replace(club.origin(0), one_header.origin(0)));
    assert_eq!(caller(proxy.address, &[password(BOB), "X-Showcase-User: alice".to_owned()]), BOB);
}

#[test]
fn the_shipped_nginx_sends_only_the_language_of_the_cookies() {
    let club = club();
    let shipped = include_str!("../../../../deploy/nginx/http.conf");
    let map = &shipped[shipped.find("map $cookie_language").unwrap()..];
    let identity = include_str!("../../../../deploy/nginx/identity.conf");
    let cookie = identity.lines().find(|line| line.contains("proxy_set_header Cookie $language;")).unwrap();
    // The last service sees what it gets: an echo of the header.
    let server = format!(
        "location /echo {{ return 200 \"{{$http_cookie}}\"; }}
        location / {{ proxy_pass {}; {cookie} }}
        location /seen {{ proxy_pass http://$server_addr:$server_port/echo; {cookie} }}",
        club.origin(0)
    );
    let nginx = Nginx::start_with(map, &server, &[]);
    for (sent, seen) in [
        ("language=ja", "{language=ja}"),
        ("__Host-portfolio=secret; language=en; session=secret", "{language=en}"),
        ("language=secret", "{}"),
        ("session=secret", "{}"),
    ] {
        assert_eq!(text(nginx.address, "GET /seen", sent), seen, "{sent}");
    }
    assert!(text(nginx.address, "GET /people", "session=secret; language=ja").contains("<html lang=\"ja\">"));
}

/// The body of the answer to a request with these cookies.
fn text(address: SocketAddr, request: &str, cookies: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{request} HTTP/1.0\r\nHost: {address}\r\nCookie: {cookies}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn nginx_counts_the_requests_of_an_ipv6_network_together() {
    let shipped = include_str!("../../../../deploy/nginx/http.conf");
    let begin = shipped.find("map $binary_remote_addr").unwrap();
    let end = begin + shipped[begin..].find("limit_conn_log_level").unwrap();
    let http = shipped[begin..end].replace("limit_conn clients 100;", "limit_conn clients 2;");
    // The client says which address it has.
    let server = "set_real_ip_from 127.0.0.1; real_ip_header X-Client;
        location / { proxy_pass http://unix:silent; proxy_connect_timeout 60s; }";
    let nginx = Nginx::start_with(&http, server, &[]);
    let begin = |client: &str| {
        let mut stream = TcpStream::connect(nginx.address).unwrap();
        let head = format!("POST / HTTP/1.1\r\nHost: x\r\nX-Client: {client}\r\nContent-Length: 9\r\n\r\nbody");
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    // nginx waits for the rest of each body, unless it refuses the request.
    let refused = |clients: [&str; 3]| {
        let mut streams = clients.map(begin);
        let mut status = [0; 12];
        streams[2].write_all(b" rest").unwrap();
        streams[2].read_exact(&mut status).unwrap();
        status.ends_with(b"429")
    };
    assert!(refused(["2001:db8:1:2::1", "2001:db8:1:2:ffff::a00", "2001:db8:1:2:3:4:5:6"]));
    assert!(refused(["2001:db8:1:a00::1", "2001:db8:1:a00::2", "2001:db8:1:a00::3"]));
    assert!(refused(["10.0.0.1"; 3]));
    assert!(!refused(["2001:db8:2:1::1", "2001:db8:2:2::1", "2001:db8:2:3::1"]));
    assert!(!refused(["10.0.1.1", "10.0.1.2", "10.0.1.3"]));
    assert!(!refused(["::ffff:10.0.2.1", "::ffff:10.0.2.2", "::ffff:10.0.2.3"]));
}
