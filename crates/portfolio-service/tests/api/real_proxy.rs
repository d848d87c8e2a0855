//! Who a request is from, behind a real reverse proxy and past it.

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

/// The address from which the proxy comes that the service believes.
const PROXY: &str = "127.0.0.2";

/// Who has a password at the proxy: their name.
const USERS: &str = "alice:{PLAIN}alice\nbob:{PLAIN}bob\n";

fn nginx(server: &str) -> Nginx {
    Nginx::start(server, &[("users", USERS)])
}

/// A service that believes the proxy at [`PROXY`] and nobody else.
fn club() -> Club {
    Club::start_with(Backend::Sqlite, &["--trusted-proxies", &format!("{PROXY}/32")])
}

/// Everybody signs in; the name goes on as the service wants it, and from the address that it believes.
fn signs_in(club: &Club) -> String {
    format!(
        "location / {{
            auth_basic club; auth_basic_user_file users;
            proxy_pass {}; proxy_bind {PROXY}; proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-User $remote_user; proxy_set_header X-Showcase-User \"\";
        }}",
        club.origin(0)
    )
}

/// Sends a request with exactly these lines in its head, and answers its status and what comes back, an object.
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

/// Who the service says it is that sends these lines: a name, or the code of the refusal.
fn who(address: SocketAddr, lines: &[String]) -> String {
    let (status, body) = send(address, "GET /api/v1/users/me", lines);
    let said = if status == 200 { &body["name"] } else { &body["code"] };
    said.as_str().map_or_else(|| status.to_string(), str::to_owned)
}

fn direct(club: &Club) -> SocketAddr {
    club.origin(0).strip_prefix("http://").unwrap().parse().unwrap()
}

fn password(member: &str) -> String {
    format!("Authorization: Basic {}", BASE64.encode(format!("{member}:{member}")))
}

/// The ways in which somebody may claim to be Alice.
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
fn whoever_signs_in_at_the_proxy_is_who_they_are_whatever_they_send() {
    let club = club();
    for underscores in ["off", "on"] {
        let proxy = nginx(&format!("underscores_in_headers {underscores}; {}", signs_in(&club)));
        assert_eq!(who(proxy.address, &[]), "401", "nginx itself refuses");
        assert_eq!(who(proxy.address, &[password(BOB)]), BOB);
        assert_eq!(who(proxy.address, &[password(ALICE)]), ALICE);
        for claim in claims() {
            assert_eq!(who(proxy.address, &claim), "401", "{claim:?}");
            let lines = [claim.clone(), vec![password(BOB)]].concat();
            assert_eq!(who(proxy.address, &lines), BOB, "underscores {underscores}: {claim:?}");
        }
    }
}

#[test]
fn a_page_writes_through_the_proxy_and_another_sites_page_does_not() {
    let club = club();
    let proxy = nginx(&signs_in(&club));
    let edit = |member: &str, origin: &str| {
        let more = ["Content-Type: application/json", "Content-Length: 11", &format!("Origin: {origin}")];
        let mut lines: Vec<_> = more.iter().map(|line| (*line).to_owned()).collect();
        // The body, behind the empty line that ends the head.
        lines.extend([password(BOB), "\r\n{\"bio\":\"x\"}".to_owned()]);
        let (status, problem) = send(proxy.address, &format!("PATCH /api/v1/users/{}", id(member)), &lines);
        (status, problem["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(edit(BOB, &format!("http://{}", proxy.address)), (204, String::new()));
    assert_eq!(edit(CAROL, &format!("http://{}", proxy.address)), (403, "forbidden".to_owned()));
    assert_eq!(edit(BOB, "https://evil.example"), (403, "cross-site-request".to_owned()));
}

#[test]
fn whoever_comes_past_the_proxy_is_nobody() {
    let club = club();
    let proxy = nginx(&signs_in(&club));
    assert_eq!(who(proxy.address, &[password(BOB)]), BOB);
    // One that signs people in just as well, but is not the configured one; and one that passes on whatever it is sent.
    let stranger = signs_in(&club).replace(&format!("proxy_bind {PROXY};"), "proxy_set_header Authorization \"\";");
    let stranger = nginx(&stranger);
    let relay = nginx(&format!(
        "underscores_in_headers on;
        location / {{ proxy_pass {}; proxy_set_header X-Forwarded-For \"{PROXY}\"; }}",
        club.origin(0)
    ));
    for claim in claims() {
        assert_eq!(who(direct(&club), &claim), "not-signed-in", "{claim:?}");
        assert_eq!(who(relay.address, &claim), "not-signed-in", "through a relay: {claim:?}");
        let signed_in = [claim.clone(), vec![password(BOB)]].concat();
        assert_eq!(who(stranger.address, &signed_in), "not-signed-in", "through a stranger: {claim:?}");
    }
}

#[test]
fn who_need_not_sign_in_at_the_proxy_is_nobody_there() {
    let club = club();
    // Without `auth_basic`, $remote_user is whatever name was sent; so an open location has to say that there is none.
    let proxy = nginx(&format!(
        "underscores_in_headers on;
        location / {{
            proxy_pass {}; proxy_bind {PROXY}; proxy_set_header Authorization \"\";
            proxy_set_header X-Forwarded-User \"\"; proxy_set_header X-Showcase-User \"\";
        }}",
        club.origin(0)
    ));
    for claim in claims() {
        assert_eq!(who(proxy.address, &claim), "not-signed-in", "{claim:?}");
        assert_eq!(who(proxy.address, &[claim.clone(), vec![password(ALICE)]].concat()), "not-signed-in", "{claim:?}");
    }
}

#[test]
fn a_header_that_the_proxy_forgot_to_take_off_makes_nobody_somebody_else() {
    let club = club();
    let forgetful = signs_in(&club).replace("proxy_set_header X-Showcase-User \"\";", "");
    let proxy = nginx(&forgetful);
    assert_eq!(who(proxy.address, &[password(BOB), "X-Showcase-User: alice".to_owned()]), "bad-credentials");
    assert_eq!(who(proxy.address, &[password(BOB), "X-Showcase-User: bob".to_owned()]), BOB);
    // Who believes one header only has the other taken off all the same.
    let proxies = format!("{PROXY}/32");
    let options = ["--trusted-proxies", &proxies, "--identity-headers", "X-Forwarded-User"];
    let one_header = Club::start_with(Backend::Sqlite, &options);
    let proxy = nginx(&forgetful.replace(club.origin(0), one_header.origin(0)));
    assert_eq!(who(proxy.address, &[password(BOB), "X-Showcase-User: alice".to_owned()]), BOB);
}
