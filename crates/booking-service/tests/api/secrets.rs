//! No secret leaves the service: not in the log at the most verbose level, not in answers, not in metrics. The database
//! contains no usable secret.

#[path = "../../../service-kit/tests/shared/canary.rs"]
mod canary;

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::{
    auth::{ApiToken, TOKEN_PREFIX},
    schema::{api_tokens, sessions, spent_logins},
};
use chrono::TimeDelta;
use diesel::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::{
    credentials::{self, Keys},
    database::{
        Url,
        types::{DbTimestamp, DbUuid},
    },
};
use url::form_urlencoded;

use self::canary::{
    Canary, Program, RecordingClient, as_text, assert_found, database_that_refuses, dump, echo, find_canaries, header,
    hex, is_in, walk,
};
use crate::{
    harness::{ALICE, BOB, Club, id},
    issuer::{Fault, Issuer, KEYS, METADATA, SECRET, Signer, TOKEN, query},
    process::program,
};

const KEY: &str = "canary-key-of-the-installation-7f3a91";
const SESSION: &str = "canary-session-of-alice-0c55e2";
const BAD_SESSION: &str = "canary-session-of-nobody-93b1d4";
const DIRECTORY: &str = "canary-directory-token-b8/+&=2e61";
const PASSWORD: &str = "canary-database-password-5d20af";
/// The most verbose level, also for the targets that the log omits by default.
const VERBOSE: &str = "trace,ureq=trace,ureq_proto::client=trace,ureq::run=trace,actix_web::types::path=trace";
const STRAY: &str = "canary-stray-secret-4e8c17";
const WEBHOOK_PATH: &str = "canary-webhook-path-51ab07";
const WEBHOOK_QUERY: &str = "canary-webhook-query-77c0d9";
const BASIC: &str = "canary-user:canary-password-a96f03";

/// A well-formed token with this text.
fn token(text: &str) -> String {
    let start = format!("{TOKEN_PREFIX}_{text}");
    let token = format!("{start}_{}", hex(&credentials::hash(&start)[..4]));
    assert!(ApiToken::parse(TOKEN_PREFIX, &token).is_some());
    token
}

/// Gives Alice a session and a token with known secrets.
fn add_credentials(club: &Club, token: &str) {
    let (conn, now) = (&mut club.connect(), DbTimestamp(club.clock.now()));
    let until = DbTimestamp(now.plus(TimeDelta::days(1)));
    diesel::insert_into(sessions::table)
        .values((
            sessions::id.eq(DbUuid::new()),
            sessions::token_hash.eq(credentials::hash(SESSION)),
            sessions::user_id.eq(id(ALICE)),
            sessions::created_at.eq(now),
            sessions::expires_at.eq(until),
            sessions::last_used_at.eq(now),
        ))
        .execute(conn)
        .unwrap();
    diesel::insert_into(api_tokens::table)
        .values((
            api_tokens::id.eq(DbUuid::new()),
            api_tokens::token_hash.eq(credentials::hash(token)),
            api_tokens::user_id.eq(id(ALICE)),
            api_tokens::name.eq("canary"),
            api_tokens::scope.eq("write"),
            api_tokens::created_at.eq(now),
        ))
        .execute(conn)
        .unwrap();
}

/// The address of the club's database, with a password if its kind supports one.
fn with_password(club: &Club) -> String {
    let url = club.config.database.url.as_ref().unwrap().reveal();
    if club.is_postgres() { format!("{url}&password={PASSWORD}") } else { url.to_owned() }
}

/// The secrets of one sign-in that are known outside the service.
struct SignIn {
    cookie: String,
    callback: String,
    state: String,
}

impl SignIn {
    fn begin(client: &RecordingClient, issuer: &Issuer, canaries: &mut Vec<Canary>) -> Self {
        let (status, answer) = client.send_unrecorded("POST", "/api/authParams", &[("User-Agent", STRAY)], b"");
        assert_eq!(status, 201, "{answer}");
        let cookie = header(&answer, "set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        let address = body["url"].as_str().unwrap();
        let sent = |name: &str| {
            let pairs = form_urlencoded::parse(address.split('?').nth(1).unwrap().as_bytes());
            pairs.into_owned().find(|(found, _)| found == name).unwrap().1
        };
        let callback = issuer.approve(address);
        let code = callback.split(['=', '&']).nth(1).unwrap().to_owned();
        let state = sent("state");
        canaries.push(Canary::new("sealed sign-in", cookie.split_once('=').unwrap().1));
        canaries.push(Canary::new("code", code));
        canaries.push(Canary::new("state", &*state));
        canaries.push(Canary::new("nonce", sent("nonce")));
        Self { cookie, callback, state }
    }

    /// Sends the callback with this path, as a program and as a browser.
    fn end(&self, client: &RecordingClient, path: &str) -> Vec<(u16, String)> {
        let accepts = ["application/json", "text/html"];
        let send = |accept| client.send("GET", path, &[("Cookie", self.cookie.as_str()), ("Accept", accept)], b"");
        accepts.map(send).into()
    }
}

/// Every way in which a sign-in ends.
fn sign_in(client: &RecordingClient, issuer: &Issuer, canaries: &mut Vec<Canary>) {
    for path in [METADATA, KEYS] {
        issuer.set(|now| drop(now.faults.insert(path, Fault::Quote(400))));
        let (status, _) = client.send("POST", "/api/authParams", &[("Cookie", &format!("session={SESSION}"))], b"");
        assert_eq!(status, 503);
    }
    issuer.set(|now| now.faults.clear());
    // The provider is asked again only after a second.
    let mut first = None;
    crate::process::until("the provider is asked again", || {
        let (status, answer) = client.send_unrecorded("POST", "/api/authParams", &[], b"");
        first = Some(answer);
        status == 201
    });
    let quoted = [Fault::Quote(200), Fault::Quote(400), Fault::Quote(401), Fault::Quote(302), Fault::Quote(503)];
    let faults = [Fault::Close, Fault::Html, Fault::Huge, Fault::Truncated, Fault::Redirect];
    for fault in quoted.into_iter().chain(faults) {
        let login = SignIn::begin(client, issuer, canaries);
        issuer.set(|now| drop(now.faults.insert(TOKEN, fault.clone())));
        for (status, answer) in login.end(client, &login.callback) {
            assert!([400, 503].contains(&status), "{fault:?}: {answer}");
        }
        issuer.set(|now| now.faults.clear());
    }
    for signer in [Signer::Other, Signer::Unknown, Signer::Nobody, Signer::ClientSecret, Signer::Tampered] {
        let login = SignIn::begin(client, issuer, canaries);
        issuer.set(|now| now.signer = signer);
        let (status, answer) = login.end(client, &login.callback).remove(0);
        assert!([400, 503].contains(&status), "{signer:?}: {answer}");
    }
    issuer.set(|now| now.signer = Signer::Issuer);
    let login = SignIn::begin(client, issuer, canaries);
    for bad in [
        query(&[("state", &login.state), ("error", STRAY), ("error_description", STRAY)]),
        query(&[("state", &login.state), ("error", "access_denied"), ("error_description", STRAY)]),
        query(&[("state", &login.state), ("code", STRAY), ("code", STRAY)]),
        query(&[("state", &login.state), ("code", STRAY), ("iss", STRAY)]),
        query(&[("state", STRAY), ("code", STRAY)]),
        STRAY.to_owned(),
    ] {
        for (status, answer) in login.end(client, &format!("/api/callback?{bad}")) {
            assert_eq!(status, 400, "{answer}");
        }
    }
    client.send("GET", &login.callback, &[("Referer", &format!("https://club.example{}", login.callback))], b"");
    let (status, answer) = login.end(client, &login.callback).remove(0);
    assert_eq!(status, 302, "{answer}");
    let cookie = header(&answer, "set-cookie").unwrap().split(';').next().unwrap();
    canaries.push(Canary::new("session of the sign-in", cookie.split_once('=').unwrap().1));
    // The secrets between the service and the provider.
    assert_eq!(client.send("GET", "/api/users/me", &[("Cookie", cookie)], b"").0, 200);
    let now = issuer.now.read().unwrap();
    for said in now.told.iter().filter_map(|told| told["id_token"].as_str()) {
        canaries.extend(said.split('.').filter(|part| part.len() > 40).map(|part| Canary::new("ID token", part)));
    }
    for heard in now.heard.iter().filter(|heard| heard.starts_with("POST /token")) {
        let form = form_urlencoded::parse(heard.split("\r\n\r\n").nth(1).unwrap().as_bytes()).into_owned();
        let verifier = form.into_iter().find(|(name, _)| name == "code_verifier").unwrap().1;
        canaries.push(Canary::new("code verifier", verifier));
    }
    canaries.push(Canary::new("client secret", SECRET));
    canaries.push(Canary::new("access token", "access-token-1"));
    let heard = now.heard.concat();
    assert!(heard.contains("code_verifier=") && heard.contains("authorization: Basic ") && now.told.len() > 5);
}

/// The secrets that the service returns to their owner.
fn own_secrets(client: &RecordingClient, canaries: &mut Vec<Canary>) -> String {
    let cookie = format!("session={SESSION}");
    let mine = |method: &str, path: &str, body: Value| {
        let headers = [("Cookie", cookie.as_str()), ("Content-Type", "application/json")];
        let (status, answer) = client.send_unrecorded(method, path, &headers, body.to_string().as_bytes());
        assert!(status < 300, "{answer}");
        serde_json::from_str::<Value>(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    };
    let secret = mine("GET", "/api/users/me/ical", json!({}))["secret"].as_str().unwrap().to_owned();
    let made = mine("POST", "/api/users/me/tokens", json!({"name": "made", "scope": "read"}));
    let made = made["token"].as_str().unwrap();
    let feed = format!("/api/ical/v1/{}{secret}", id(ALICE));
    for (path, expected) in [
        (feed.clone(), 200),
        (format!("{feed}?token={secret}"), 200),
        (format!("{feed}/"), 404),
        (format!("/api/ical/v1/{secret}"), 404),
        (format!("/api/ical/v1/{}{STRAY}", id(ALICE)), 404),
        (format!("/api/ical/v1/{}{secret}", id(BOB)), 404),
    ] {
        assert_eq!(client.send("GET", &path, &[("Referer", &format!("https://club.example{path}"))], b"").0, expected);
        client.send("POST", &path, &[], b"");
    }
    canaries.push(Canary::new("path of a webhook", WEBHOOK_PATH));
    canaries.push(Canary::new("query of a webhook", WEBHOOK_QUERY));
    for (format, kind, path) in [("standard", "event.created", ""), ("slack", "announcement", WEBHOOK_PATH)] {
        let url = format!("https://localhost:1/{path}?key={WEBHOOK_QUERY}");
        let hook =
            mine("POST", "/api/webhooks", json!({"name": "hook", "url": url, "format": format, "types": [kind]}));
        if let Some(secret) = hook["secret"].as_str() {
            canaries.push(Canary::new("secret of a webhook", secret));
        }
        let hook = format!("/api/webhooks/{}", hook["webhookId"].as_str().unwrap());
        mine("POST", &format!("{hook}/test"), json!({}));
        crate::process::until("the webhook is tried", || {
            mine("GET", &format!("{hook}/deliveries"), json!({}))[0]["attempts"] != 0
        });
    }
    canaries.push(Canary::new("feed secret", &*secret));
    canaries.push(Canary::new("token that was made", made));
    made.to_owned()
}

/// Takes seconds: every operation is called with each kind of credential, at the most verbose level of the log.
#[rstest]
#[case(Sqlite, "plain", 200)]
#[case(Postgres, "json", 403)]
fn no_secret_leaves(#[case] backend: Backend, #[case] format: &str, #[case] status: u16) {
    let club = Club::start(backend);
    let (right, wrong) = (token(&format!("canary-token-{format}-2b7d")), token("canary-bad-token-81fe"));
    add_credentials(&club, &right);
    let mut canaries: Vec<_> = [
        ("key of the installation", KEY),
        ("session", SESSION),
        ("bad session", BAD_SESSION),
        ("token", &right),
        ("bad token", &wrong),
        ("directory token", DIRECTORY),
        ("stray secret", STRAY),
        ("password of another scheme", BASIC),
    ]
    .map(|(name, text)| Canary::new(name, text))
    .into();
    let (issuer, (directory, asked)) = (Issuer::start(), echo(status));
    // The service asks the issuer when it starts.
    issuer.set(|now| drop(now.faults.insert(METADATA, Fault::Quote(400))));
    let folder = tempfile::tempdir().unwrap();
    let mut command = program(&["--bind", "127.0.0.1:0", "--workers", "1", "--database-connections", "2"]);
    command.args(["--rate-limit", "0", "--sign-in-rate-limit", "0", "--feed-rate-limit", "0"]);
    command.args(["--webhook-networks", "127.0.0.0/8,::1/128"]);
    command
        .args(["--log", VERBOSE, "--log-format", format, "--traq-url", &directory, "--sign-in", "anyone"])
        .args(issuer.options());
    command.env("SECRET_KEY", KEY).env("TRAQ_TOKEN", DIRECTORY).env("DATABASE_URL", with_password(&club));
    let running = Program::start(command, folder.path());
    let client = RecordingClient::new(running.address());

    sign_in(&client, &issuer, &mut canaries);
    let made = own_secrets(&client, &mut canaries);
    let basic = format!("Basic {}", base64(BASIC));
    walk(
        &client,
        &[
            ("Cookie", format!("session={SESSION}")),
            ("Authorization", format!("Bearer {right}")),
            ("Cookie", format!("session={BAD_SESSION}")),
            ("Authorization", format!("Bearer {wrong}")),
            ("Authorization", basic),
            ("Authorization", wrong.clone()),
        ],
        STRAY,
        &["getIcalSecret", "resetIcalSecret", "createToken"],
    );
    let (_, metrics) = client.send("GET", "/metrics", &[], b"");
    let log = running.terminate();
    let url: Url = club.config.database.url.as_ref().unwrap().reveal().parse().unwrap();
    let kept = dump(&url, &mut club.connect());

    // The search finds secrets where they are expected.
    let sent = client.requests.borrow();
    let of_callers = [
        "session",
        "bad session",
        "token",
        "bad token",
        "stray secret",
        "code",
        "state",
        "sealed sign-in",
        "session of the sign-in",
        "feed secret",
        "password of another scheme",
    ];
    let is_of_callers = |canary: &&Canary| of_callers.contains(&canary.name);
    let callers: Vec<_> = canaries.iter().filter(is_of_callers).cloned().collect();
    let right_codes = issuer.now.read().unwrap().heard.join("\n");
    assert_found("what was sent", &format!("{sent}{right_codes}"), &callers);
    let provider = ["client secret", "code verifier"];
    let provider: Vec<_> = canaries.iter().filter(|canary| provider.contains(&canary.name)).cloned().collect();
    // RFC 6749, section 2.3.1: encoded as a form before it is encoded as base64.
    let heard: String = right_codes
        .lines()
        .map(|line| match line.split_once("Basic ") {
            Some((_, said)) => decoded(said),
            None => line.to_owned(),
        })
        .collect();
    assert_found("what the provider heard", &heard, &provider);
    let heard: String = asked.try_iter().collect();
    assert_found("what the directory heard", &heard, &[Canary::new("directory token", DIRECTORY)]);
    let sealed = canaries.iter().find(|canary| canary.name == "sealed sign-in").unwrap();
    let sealed = sealed.text.strip_prefix("login.").unwrap();
    assert!(Keys::new(&KEY.parse().unwrap()).open("login", sealed).is_some());
    for secret in [right.as_str(), &made] {
        assert!(is_in(&kept, &credentials::hash(secret)), "tokens are kept as hashes");
    }
    assert!(spent_logins::table.count().get_result::<i64>(&mut club.connect()).unwrap() > 0);
    assert!(log.contains("TRACE") && log.contains("actix_http::h1"), "the log is not whole");

    // The search finds no secret elsewhere.
    let answered = client.answers.borrow();
    let places = [("log", log.as_str()), ("metrics", &metrics), ("answers", &answered), ("database", &kept)];
    let mut leaks: Vec<_> = places.iter().flat_map(|(name, text)| find_canaries(name, text, &canaries)).collect();
    leaks.extend(find_canaries("log", &log, &[Canary::new("database password", PASSWORD)]));
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
}

fn base64(text: &str) -> String {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    BASE64_STANDARD.encode(text)
}

fn decoded(text: &str) -> String {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    as_text(&BASE64_STANDARD.decode(text.trim()).unwrap())
}

#[test]
fn the_password_of_a_database_that_does_not_answer_or_does_not_take_it_is_not_shown() {
    let (refusing, told) = database_that_refuses();
    // A port without a listener.
    let down = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for (address, asks) in [(&refusing, true), (&down, false)] {
        for format in ["plain", "json"] {
            for command in [&["serve"][..], &["migrate"], &["token", "list"]] {
                let folder = tempfile::tempdir().unwrap();
                let mut program = program(&["--bind", "127.0.0.1:0", "--log", "trace", "--log-format", format]);
                program.env("DATABASE_URL", format!("postgres://club:{PASSWORD}@{address}/club?sslmode=disable"));
                program.args(command);
                let (status, output) = Program::start(program, folder.path()).wait_for_exit();
                assert_eq!(status, Some(1), "{output}");
                let leaks = find_canaries("output", &output, &[Canary::new("database password", PASSWORD)]);
                assert!(leaks.is_empty() && output.contains("booking-service: "), "{leaks:?} {output}");
                let heard: String = told.try_iter().collect();
                assert_eq!(heard.contains(PASSWORD), asks, "{output}");
            }
        }
    }
}
