//! The command line of the real program.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _, process::Command};

use clap::CommandFactory as _;
use portfolio_service::config::Cli;

use crate::harness::{Backend, Club};

const TOKEN: &str = "clubbooking_0123456789_0123";

/// The options of a public service without errors.
const PUBLIC_SERVICE: [&str; 8] = [
    "--bind",
    "0.0.0.0:3001",
    "--trusted-proxies",
    "10.0.0.1",
    "--booking-url",
    "https://rooms.example",
    "--traq-url",
    "https://traq.example/api/v3",
];

/// The output without warnings and the exit status of `check-config`, which `serve` has as well when an option is wrong.
fn check(arguments: &[&str], secrets: &[(&str, &str)]) -> (String, Option<i32>) {
    let run = |command: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
        program
            .env_clear()
            .args(arguments)
            .arg(command)
            .env("ADMINS", "alice")
            .env("LOG", "error")
            .envs(secrets.iter().copied());
        let output = program.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.code())
    };
    let (out, err, status) = run("check-config");
    if status == Some(78) {
        let (_, serve_err, serve_status) = run("serve");
        assert_eq!((serve_err.replace("portfolio-service: ", ""), serve_status), (out.clone(), status));
    }
    (out + &err, status)
}

#[test]
fn a_public_service_refuses_weak_secrets() {
    let right = [("BOOKING_TOKEN", TOKEN), ("TRAQ_TOKEN", TOKEN)];
    assert_eq!(check(&PUBLIC_SERVICE, &right), ("ok\n".to_owned(), Some(0)));
    let (out, status) = check(
        &PUBLIC_SERVICE,
        &[
            ("BOOKING_TOKEN", "hunter2"),
            ("TRAQ_TOKEN", "hunter3"),
            ("DATABASE_URL", "postgres://club:postgres@db/club"),
        ],
    );
    let words = ["--database-url has a password", "--traq-token must have 16", "--booking-token must have 16"];
    assert_eq!((out.lines().count(), status), (3, Some(78)), "{out}");
    assert!(out.lines().zip(words).all(|(line, word)| line.starts_with(word)), "{out}");
    assert!(!out.contains("hunter") && !out.contains("postgres"), "{out}");
    let (out, status) = check(&PUBLIC_SERVICE, &[("DATABASE_URL", "postgres://club:hunt/er2@db/club")]);
    assert_eq!((out.lines().count(), status), (3, Some(78)), "{out}");
    assert!(out.contains("--booking-token") && out.contains("--traq-token") && !out.contains("hunt"), "{out}");
    // A service on a loopback address accepts them.
    let local = [("BOOKING_TOKEN", "x"), ("TRAQ_TOKEN", "x"), ("DATABASE_URL", "postgres://club:postgres@db/club")];
    assert_eq!(check(&PUBLIC_SERVICE[4..], &local), ("ok\n".to_owned(), Some(0)));
}

#[test]
fn a_token_is_not_sent_by_plain_http_to_another_machine() {
    let tokens = [("BOOKING_TOKEN", TOKEN), ("TRAQ_TOKEN", TOKEN)];
    for (option, token) in [("--booking-url", tokens[0]), ("--traq-url", tokens[1])] {
        for url in ["https://other.example", "http://127.0.0.1:3000", "http://localhost:3000"] {
            assert_eq!(check(&[option, url], &[token]), ("ok\n".to_owned(), Some(0)), "{url}");
        }
        let plain = [option, "http://other.example"];
        let (out, status) = check(&plain, &[token]);
        assert_eq!((out.lines().count(), status), (1, Some(78)), "{out}");
        assert!(
            out.starts_with(&format!("{option}: plain http")) && out.contains("--allow-insecure-upstream"),
            "{out}"
        );
        assert_eq!(check(&[&plain[..], &["--allow-insecure-upstream"]].concat(), &[token]).1, Some(0));
    }
}

#[test]
fn only_serve_and_migrate_create_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let (file, directory) = (folder.path().join("club.sqlite3"), folder.path().join("club.json"));
    std::fs::write(&directory, r#"{"users": [], "groups": []}"#).unwrap();
    let url = format!("sqlite://{}", file.display());
    let run = |command: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
        let output =
            program.env_clear().args(["--log", "warn", "--database-url", &url]).args(command).output().unwrap();
        (String::from_utf8(output.stderr).unwrap(), output.status.code())
    };
    let sync = ["sync", "--directory-file", directory.to_str().unwrap()];
    let (stderr, status) = run(&sync);
    assert_eq!((stderr.lines().count(), status), (1, Some(1)), "{stderr}");
    assert!(stderr.contains(&format!("there is no database at {url}")) && !file.exists(), "{stderr}");
    assert_eq!(run(&["migrate"]), (String::new(), Some(0)));
    assert_eq!(run(&sync), (format!("portfolio-service: database {url}\n"), Some(0)));
}

#[test]
fn a_portfolio_without_admins_or_a_directory_is_a_warning() {
    let environment = [("ADMINS", ""), ("LOG", "warn")];
    let (out, status) = check(&[], &environment);
    assert!(status == Some(0) && out.starts_with("ok\n") && out.contains("WARN"), "{out}");
    let warnings = ["--admins is empty", "without --directory-file, --traq-url or --booking-url"];
    assert!(warnings.iter().all(|warning| out.contains(warning)), "{out}");
    let (out, status) = check(&["--demo"], &environment);
    assert!(status == Some(0) && !warnings.iter().any(|warning| out.contains(warning)), "{out}");
}

#[test]
fn an_address_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/club.sqlite3", folder.path().display());
    let mut program = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
    let arguments = ["--log", "off", "--bind", &address, "--database-url", &url];
    let output = program.env_clear().args(arguments).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((stderr.lines().count(), output.status.code()), (1, Some(1)), "{stderr}");
    assert!(stderr.contains(&format!("cannot listen on {address}: Address already in use")), "{stderr}");
}

#[test]
fn a_secret_file_is_not_empty_and_a_readable_one_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    let (path, gone) = (file.to_str().unwrap(), folder.path().join("none"));
    let booking = ["--booking-url", "https://rooms.example", "--booking-token-file"];
    for content in [&b""[..], b" \n", b"\xff"] {
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let (out, status) = check(&[&booking[..], &[path]].concat(), &[]);
        assert!(status == Some(78) && out.starts_with("--booking-token-file: "), "{out}");
    }
    for path in [folder.path(), &gone] {
        let (out, status) = check(&[&booking[..], &[path.to_str().unwrap()]].concat(), &[]);
        assert!(status == Some(78) && out.starts_with("--booking-token-file: cannot read"), "{out}");
    }
    std::fs::write(&file, TOKEN).unwrap();
    for (mode, is_warned) in [(0o600, false), (0o640, false), (0o644, true)] {
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let (out, status) = check(&[&booking[..], &[path]].concat(), &[("LOG", "warn")]);
        let warning = format!("--booking-token-file: every user of this machine may read {path}\n");
        assert_eq!((status, out.contains(&warning)), (Some(0), is_warned), "{mode:o}: {out}");
        assert!(!out.contains(TOKEN), "{out}");
    }
}

#[test]
fn debug_output_and_help_have_no_secret() {
    let secrets = ["database-url", "traq-token", "booking-token", "secret-key", "oauth-client-secret"];
    for option in Cli::command().get_arguments() {
        let is_secret = secrets.contains(&option.get_long().unwrap_or_default());
        let name = option.get_id();
        assert_eq!(option.is_hide_env_values_set(), is_secret, "{name}: the help shows the environment");
    }
    let given: Vec<_> = secrets.iter().map(|option| format!("--{option}=canary-secret")).collect();
    let arguments = ["portfolio-service"].into_iter().chain(PUBLIC_SERVICE).chain(given.iter().map(String::as_str));
    let cli = service_kit::config::parse::<Cli>(arguments).unwrap();
    let source = cli.config.booking.source(&cli.config.directory).unwrap().unwrap();
    let shown = format!("{cli:?} {cli:#?} {source:?} {:?} {:?}", cli.config.directory(), cli.config.identity());
    assert!(shown.contains("rooms.example") && !shown.contains("canary-secret"), "{shown}");
}

#[test]
fn health_checks_the_service_at_the_bind_address() {
    let club = Club::start(Backend::Sqlite);
    let health = |bind: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
        let output = program.env_clear().args(["health", "--bind", bind]).output().unwrap();
        (String::from_utf8(output.stderr).unwrap(), output.status.code())
    };
    assert_eq!(health(club.origin(0).strip_prefix("http://").unwrap()), (String::new(), Some(0)));
    let (stderr, status) = health("127.0.0.1:1");
    assert!(stderr.starts_with("portfolio-service: http://127.0.0.1:1/readyz: "), "{stderr}");
    assert_eq!((stderr.lines().count(), status), (1, Some(1)), "{stderr}");
}
