//! No secret appears in the log at its most verbose level, in an answer, in the metrics, or in the database.

#[path = "../../../service-kit/tests/shared/canary.rs"]
mod canary;

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::process::Command;

use serde_json::json;
use service_kit::database::Url;

use self::canary::{
    Canary, Program, RecordingClient, assert_found, database_that_refuses, dump, echo, find_canaries, walk,
};
use crate::{
    harness::{ALICE, BOB, Club},
    identity::Issuer,
};

const BOOKING: &str = "clubbooking_canary/+&=booking-token-d83f_0a1b2c3d";
const DIRECTORY: &str = "canary-directory-token-b8/+&=2e61";
const COOKIE: &str = "canary-cookie-of-the-proxy-0c55e2";
const PASSWORD: &str = "canary-database-password-5d20af";
/// The most verbose level, also for the targets that are filtered by default.
const VERBOSE_LOG: &str = "trace,ureq=trace,ureq_proto::client=trace,ureq::run=trace,actix_web::types::path=trace";
const STRAY: &str = "canary-stray-secret-4e8c17";
const BASIC: &str = "canary-basic-credential-a96f03";

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
    command.env_clear().args(arguments);
    command
}

/// A token of the issuer.
fn token(club: &Club, issuer: &Issuer, name: &str, audience: &str) -> String {
    let expires = club.clock.now().utc().timestamp() + 600;
    issuer.token(&json!({"iss": issuer.address, "aud": audience, "exp": expires, "preferred_username": name}))
}

/// The long parts of a token. Each of them is secret.
fn parts(name: &'static str, token: &str) -> Vec<Canary> {
    token.split('.').filter(|part| part.len() > 40).map(|part| Canary::new(name, part)).collect()
}

#[rstest]
#[case(Sqlite, "plain", 200)]
#[case(Postgres, "json", 403)]
fn secrets_appear_nowhere(#[case] backend: Backend, #[case] format: &str, #[case] status: u16) {
    let club = Club::start(backend);
    let issuer = Issuer::start();
    let (right, other) = (token(&club, &issuer, ALICE, "club"), token(&club, &issuer, BOB, "others"));
    let forged = token(&club, &Issuer::start(), ALICE, "club");
    let mut canaries: Vec<_> = [
        ("token of the booking-service", BOOKING),
        ("directory token", DIRECTORY),
        ("cookie", COOKIE),
        ("stray secret", STRAY),
        ("credential of another scheme", BASIC),
    ]
    .map(|(name, text)| Canary::new(name, text))
    .into();
    canaries.extend(parts("token", &right));
    canaries.extend(parts("token for others", &other));
    canaries.extend(parts("forged token", &forged));
    let ((directory, directory_requests), (booking, booking_requests)) = (echo(status), echo(status));
    let folder = tempfile::tempdir().unwrap();
    let mut command = program(&["--bind", "127.0.0.1:0", "--workers", "1", "--database-connections", "2"]);
    command.args(["--rate-limit", "0", "--admins", ALICE, "--oidc-audience", "club"]);
    command.args(["--trusted-proxies", "10.0.0.0/8", "--oidc-issuer", &issuer.address]);
    command.args(["--log", VERBOSE_LOG, "--log-format", format, "--traq-url", &directory]);
    command.args(["--booking-url", &booking, "--booking-interval", "0.1"]);
    let url = if club.is_postgres() { format!("{}&password={PASSWORD}", club.url()) } else { club.url().into() };
    command.env("DATABASE_URL", url).env("BOOKING_TOKEN", BOOKING).env("TRAQ_TOKEN", DIRECTORY);
    let running = Program::start(command, folder.path());
    let client = RecordingClient::new(running.address());
    let me = [("Authorization", format!("Bearer {right}"))].map(|(name, value)| (name, value));
    let me: Vec<_> = me.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (status, answer) = client.send("GET", "/api/v1/users/me", &me, b"");
    assert_eq!(status, 200, "{answer}");
    walk(
        &client,
        &[
            ("Authorization", format!("Bearer {right}")),
            ("Authorization", format!("Bearer {other}")),
            ("Authorization", format!("Bearer {forged}")),
            ("Authorization", format!("Basic {BASIC}")),
            ("Authorization", BASIC.to_owned()),
            ("Authorization", format!("Bearer {STRAY}.{STRAY}.{STRAY}")),
            ("Cookie", format!("_oauth2_proxy={COOKIE}; session={COOKIE}")),
            ("X-Forwarded-User", STRAY.to_owned()),
            ("X-Forwarded-Access-Token", right.clone()),
        ],
        STRAY,
        &[],
    );
    // Only a trusted proxy's header is read.
    let (_, metrics) = client.send("GET", "/metrics", &[], b"");
    let log = running.terminate();
    let database = dump(&club.url().parse::<Url>().unwrap(), &mut club.connect());

    // The search finds the secrets where they are expected.
    let sent = client.requests.borrow();
    let of_others = |canary: &&Canary| !canary.name.contains("booking-service") && canary.name != "directory token";
    let callers: Vec<_> = canaries.iter().filter(of_others).cloned().collect();
    assert_found("what was sent", &sent, &callers);
    let requests: String = directory_requests.try_iter().collect();
    assert_found("requests to the directory", &requests, &[Canary::new("directory token", DIRECTORY)]);
    let requests: String = booking_requests.try_iter().collect();
    assert_found("requests to the booking-service", &requests, &[Canary::new("booking token", BOOKING)]);
    assert!(database.contains(ALICE), "the dump is not whole");
    assert!(log.contains("TRACE") && log.contains("actix_http::h1"), "the log is not whole");

    // They are nowhere else.
    let answered = client.answers.borrow();
    let places = [("log", log.as_str()), ("metrics", &metrics), ("answers", &answered), ("database", &database)];
    let mut leaks: Vec<_> = places.iter().flat_map(|(name, text)| find_canaries(name, text, &canaries)).collect();
    leaks.extend(find_canaries("log", &log, &[Canary::new("database password", PASSWORD)]));
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
}

#[test]
fn the_password_of_a_database_that_does_not_answer_or_does_not_take_it_is_not_shown() {
    let (refusing, told) = database_that_refuses();
    // Nobody listens there any more.
    let down = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for (address, asks) in [(&refusing, true), (&down, false)] {
        for format in ["plain", "json"] {
            for command in ["serve", "migrate"] {
                let folder = tempfile::tempdir().unwrap();
                let mut program =
                    program(&["--bind", "127.0.0.1:0", "--log", "trace", "--log-format", format, command]);
                program.env("DATABASE_URL", format!("postgres://club:{PASSWORD}@{address}/club?sslmode=disable"));
                let (status, output) = Program::start(program, folder.path()).wait_for_exit();
                assert_eq!(status, Some(1), "{output}");
                let leaks = find_canaries("output", &output, &[Canary::new("database password", PASSWORD)]);
                assert!(leaks.is_empty() && output.contains("portfolio-service: "), "{leaks:?} {output}");
                let heard: String = told.try_iter().collect();
                assert_eq!(heard.contains(PASSWORD), asks, "{output}");
            }
        }
    }
}
