//! The command line of the real program.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{fs::Permissions, os::unix::fs::PermissionsExt as _, process::Command};

use booking_service::config::Cli;
use clap::{Command as Arguments, CommandFactory};

use serde_json::json;

use crate::{
    harness::{ALICE, BOB, CAROL, Client, Club, DOCUMENT},
    process::{program, until},
};

/// What a run printed and its exit status.
pub fn outcome(command: &mut Command) -> (String, String, Option<i32>) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// What `check-config` printed, and its exit status; where that is 78, `serve` says the same.
pub fn check(arguments: &[&str], environment: &[(&str, &str)]) -> (String, Option<i32>) {
    let (out, err, status) = outcome(program(arguments).arg("check-config").envs(environment.iter().copied()));
    assert_eq!(err, "");
    // What check-config finds is what keeps serve from starting.
    if status != Some(0) {
        let (_, err, status) = outcome(program(arguments).envs(environment.iter().copied()));
        assert_eq!(err.replace("booking-service: ", ""), out);
        assert_eq!(status, Some(78));
    }
    (out, status)
}

fn sign_in_faults(key: &str, faults: &impl Fn(&[&str], &[&str])) {
    let issuer = ["--oidc-issuer", "https://sso.example", "--oauth-client-id", "club"];
    let plain = [
        "--oauth-client-id",
        "club",
        "--oauth-authorize-url",
        "https://sso.example/a",
        "--oauth-token-url",
        "https://sso.example/t",
        "--oauth-user-url",
        "https://sso.example/u",
    ];
    let ok = ("ok\n".to_owned(), Some(0));
    assert_eq!(check(&issuer, &[]), ok);
    assert_eq!(check(&plain, &[]), ok);
    // With a provider the service may be reached from elsewhere.
    let open = ["--bind", "0.0.0.0:3000", "--secret-key-file", key];
    assert_eq!(check(&[&issuer[..], &open, &["--public-url", "https://club.example"]].concat(), &[]), ok);
    assert_eq!(check(&[&issuer[..], &open, &["--public-url", "http://localhost:3000"]].concat(), &[]), ok);
    faults(&[&issuer[..], &open].concat(), &["--public-url must be an https address"]);
    faults(&[&issuer[..], &["--public-url", "http://club.example"]].concat(), &["--public-url must be an https"]);

    faults(&issuer[..2], &["--oauth-client-id is needed"]);
    faults(&["--oidc-issuer", "http://sso.example", "--oauth-client-id", "x"], &["--oidc-issuer: only https"]);
    faults(&["--oidc-issuer", "sso.example", "--oauth-client-id", "x"], &["--oidc-issuer"]);
    faults(&["--oidc-issuer", "https://sso.example?a=b", "--oauth-client-id", "x"], &["no query"]);
    faults(&[&issuer[..], &plain[2..4]].concat(), &["--oidc-issuer and --oauth-authorize-url are both given"]);
    faults(&plain[..6], &["--oauth-user-url is missing"]);
    faults(&plain[..4], &["--oauth-token-url, --oauth-user-url is missing"]);
    let by_http = [&plain[..6], &["--oauth-user-url", "http://sso.example/u"]].concat();
    faults(&by_http, &["--oauth-user-url: only https"]);
    for option in ["client-id", "client-secret", "scopes", "name-claim", "id-claim"] {
        faults(&[&format!("--oauth-{option}"), "hunter2"], &["need --oidc-issuer"]);
    }
    faults(&["--oauth-redirect-url", "https://club.example/api/callback"], &["need --oidc-issuer"]);
    faults(&[&issuer[..], &["--oauth-scopes", "profile"]].concat(), &["openid"]);
    let two = ["--oauth-client-secret", "hunter2", "--oauth-client-secret-file", key];
    faults(&[&issuer[..], &two].concat(), &["both given"]);
    for redirect in
        ["https://evil.example/api/callback", "http://127.0.0.1:3000/", "http://127.0.0.1:3000/api/callback?a"]
    {
        faults(&[&issuer[..], &["--oauth-redirect-url", redirect]].concat(), &["--oauth-redirect-url must begin with"]);
    }
    let below = ["--oauth-redirect-url", "http://127.0.0.1:3000/booking/api/callback"];
    assert_eq!(check(&[&issuer[..], &below].concat(), &[]), ok);
}

#[test]
fn every_fault_of_the_options_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "0123456789abcdef0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&key, Permissions::from_mode(0o640)).unwrap();
    let key = key.to_str().unwrap();
    assert_eq!(check(&[], &[]), ("ok\n".to_owned(), Some(0)));
    assert_eq!(check(&["--secret-key-file", key], &[]), ("ok\n".to_owned(), Some(0)));

    let faults = |arguments: &[&str], words: &[&str]| {
        let (out, status) = check(arguments, &[]);
        assert_eq!(status, Some(78), "{arguments:?}: {out}");
        assert_eq!(out.lines().count(), words.len(), "{arguments:?}: {out}");
        for (line, word) in out.lines().zip(words) {
            assert!(line.contains(word), "{arguments:?}: {word:?} in {line}");
            assert!(!line.contains("hunter2"), "{line}");
        }
    };
    faults(&["--bind", "0.0.0.0:3000", "--secret-key-file", key], &["sign-in provider"]);
    faults(&["--bind", "[::]:3000"], &["--secret-key is needed", "sign-in provider"]);
    faults(&["--secret-key", "hunter2"], &["32 characters"]);
    faults(&["--secret-key", "hunter2", "--secret-key-file", key], &["both given"]);
    faults(&["--secret-key-file", "/nowhere/hunter"], &["cannot read /nowhere/hunter"]);
    faults(&["--secret-key-file", "/dev/null"], &["is empty"]);
    faults(&["--database-url", "mysql://club:hunter2@db/club"], &["--database-url must be"]);
    faults(&["--database-url", "sqlite::memory:"], &["in-memory"]);
    faults(&["--database-url", "sqlite://x", "--database-url-file", key], &["both given"]);
    faults(&["--public-url", "ftp://club.example"], &["--public-url"]);
    faults(&["--public-url", "https://club.example/booking"], &["no path"]);
    faults(&["--allowed-origins", "https://club.example/,null,*"], &["club.example/", "null", "*"]);
    faults(&["--everyone-group", " "], &["--everyone-group"]);
    faults(&["--traq-url", "https://traq.example/api/v3"], &["--traq-token"]);
    sign_in_faults(key, &faults);
    faults(
        &[
            "--secret-key",
            "short",
            "--database-url",
            "?",
            "--public-url",
            "data:x",
            "--directory-file",
            "a",
            "--traq-url",
            "http://b",
            "--traq-token",
            "c",
        ],
        &["--public-url", "--database-url", "--secret-key", "--directory-file and --traq-url"],
    );
}

#[test]
fn what_is_no_option_ends_with_status_2_and_says_why() {
    let bad: &[(&[&str], &str)] = &[
        (&["--time-zone", "Mars/Olympus"], "--time-zone"),
        (&["--bind", "3000"], "--bind"),
        (&["--workers", "0"], "--workers"),
        (&["--shutdown-timeout", "601"], "--shutdown-timeout"),
        (&["--log-format", "xml"], "--log-format"),
        (&["--unknown"], "--unknown"),
        (&["brew"], "brew"),
        (&["token", "create", "--user", "x"], "--name"),
        (&["token", "revoke", "x"], "<id>"),
    ];
    for (arguments, word) in bad {
        let (out, err, status) = outcome(&mut program(arguments));
        assert_eq!((out.as_str(), status), ("", Some(2)), "{arguments:?}");
        assert!(err.to_lowercase().contains(word), "{word} in {err}");
    }
}

#[test]
fn the_environment_counts_unless_it_is_empty_and_arguments_go_first() {
    let environment = [("SECRET_KEY", "short"), ("EVERYONE_GROUP", "")];
    assert!(check(&[], &environment).0.contains("--secret-key must have 32"));
    let long = "0123456789abcdef0123456789abcdef";
    assert_eq!(check(&["--secret-key", long], &environment).0, "ok\n");
    let names = options(&Cli::command()).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    let empty: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
    assert_eq!(check(&[], &empty).0, "ok\n");
    // An empty variable beside a file is no second secret.
    assert!(check(&["--secret-key-file", "/dev/null"], &empty).0.contains("is empty"));
    // The help stays whole.
    let (help, ..) = outcome(program(&["--help"]).envs(empty.iter().copied()));
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(names.iter().all(|name| help.contains(&format!("[env: {name}"))), "{help}");
    for yes in ["1", "true", "yes"] {
        assert_eq!(check(&[], &[("DEMO", yes)]).0, "ok\n");
    }
}

/// Every option of the root command, and its environment variable.
fn options(command: &Arguments) -> Vec<(String, String)> {
    let all = command.get_arguments().filter_map(|option| option.get_long().zip(option.get_env()));
    all.map(|(long, env)| (long.to_owned(), env.to_str().unwrap().to_owned())).collect()
}

#[test]
fn help_names_every_option_with_its_variable_and_default_and_no_secret() {
    let secrets = ["SECRET_KEY", "DATABASE_URL", "TRAQ_TOKEN", "OAUTH_CLIENT_SECRET"];
    let environment = secrets.map(|variable| (variable, "hunter2"));
    let (help, _, status) = outcome(program(&["--help"]).envs(environment));
    assert_eq!(status, Some(0));
    assert!(!help.contains("hunter2"));
    let command = Cli::command();
    assert!(options(&command).len() >= 20);
    for (long, env) in options(&command) {
        let about = help.split(&format!("--{long} ")).nth(1).or_else(|| help.split(&format!("--{long}\n")).nth(1));
        let about = about.unwrap_or_else(|| panic!("--{long} is not in {help}")).split("\n      --").next().unwrap();
        assert!(about.contains(&format!("[env: {env}")), "{long}: {about}");
        let default = about.replace('\n', " ").contains("[default: ");
        let has_none = [
            "allowed-origins",
            "trusted-proxies",
            "static",
            "demo",
            "secret-key",
            "directory-file",
            "traq-url",
            "traq-token",
        ];
        let of_provider = [
            "oidc-issuer",
            "oauth-authorize-url",
            "oauth-token-url",
            "oauth-user-url",
            "oauth-client-id",
            "oauth-client-secret",
        ];
        let has_none = has_none.iter().chain(&of_provider).any(|option| *option == long) || long.ends_with("-file");
        assert!(default || has_none, "{long}: {about}");
    }
    // Every option of ours can be given by the environment.
    for option in command.get_arguments().filter(|option| !matches!(option.get_id().as_str(), "help" | "version")) {
        assert!(option.get_env().is_some(), "{option}");
        assert!(option.is_global_set(), "{option}");
    }
}

#[test]
fn options_stand_before_or_after_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/club.sqlite3", folder.path().display());
    for arguments in [["--database-url", &url, "migrate"], ["migrate", "--database-url", &url]] {
        let (out, err, status) = outcome(&mut program(&arguments));
        assert_eq!((out.as_str(), status), ("", Some(0)), "{err}");
    }
    let parse = |arguments: &[&str]| {
        let arguments = ["booking-service"].iter().chain(arguments);
        service_kit::config::parse::<Cli>(arguments).unwrap().config.database_url.unwrap().reveal().to_owned()
    };
    assert_eq!(parse(&["token", "create", "--user", "x", "--name", "y", "--database-url", "sqlite://a"]), "sqlite://a");
    assert_eq!(parse(&["--database-url", "sqlite://a", "serve"]), "sqlite://a");
    assert_eq!(parse(&["user", "--database-url", "sqlite://a", "grant-privilege", "x"]), "sqlite://a");
}

#[test]
fn the_document_and_the_version_are_printed() {
    let (out, err, status) = outcome(&mut program(&["openapi"]));
    assert_eq!((err.as_str(), status), ("", Some(0)));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap(), *DOCUMENT);
    assert!(out.starts_with("{\n  \"openapi\": \"3.1.") && out.ends_with("}\n"));
    let (out, ..) = outcome(&mut program(&["--version"]));
    assert_eq!(out, format!("booking-service {}\n", env!("CARGO_PKG_VERSION")));
}

fn on(club: &Club, arguments: &[&str]) -> (String, String, Option<i32>) {
    let url = club.config.database_url.as_ref().unwrap().reveal();
    outcome(program(arguments).args(["--database-url", url, "--time-zone", "Asia/Tokyo"]))
}

fn bearer<'club>(club: &'club Club, token: &str) -> Client<'club> {
    club.anonymous().header("authorization", &format!("Bearer {}", token.trim()))
}

#[rstest]
fn tokens_are_made_listed_and_revoked(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (token, err, status) = on(&club, &["token", "create", "--user", BOB, "--name", "a bot"]);
    assert_eq!((token.lines().count(), status), (1, Some(0)), "{err}");
    assert!(!err.contains(token.trim()));
    assert_eq!(bearer(&club, &token).get("/api/users/me").expect(200).json()["name"], BOB);
    bearer(&club, &token).post("/api/tags", json!({"name": "music"})).refused(403, "insufficient-scope");

    let more = ["token", "create", "--user", ALICE, "--name", "portfolio", "--scope", "write", "--expires-in", "7"];
    let (writing, ..) = on(&club, &more);
    bearer(&club, &writing).post("/api/tags", json!({"name": "music"})).expect(201);

    let (list, ..) = on(&club, &["token", "list"]);
    let rows: Vec<Vec<_>> = list.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 2, "{list}");
    assert_eq!((&rows[0][1..3], rows[0][4], rows[0][6]), (&[BOB, "read"][..], "never", "a bot"));
    assert_eq!((&rows[1][1..3], rows[1][6]), (&[ALICE, "write"][..], "portfolio"));
    assert!(rows[1][3].ends_with("+09:00") && rows[1][4].ends_with("+09:00"), "{list}");
    assert!(!list.contains(token.trim()) && !list.contains(writing.trim()));
    assert_eq!(on(&club, &["token", "list", "--user", BOB]).0.lines().count(), 1);
    let used = || on(&club, &["token", "list", "--user", BOB]).0.split('\t').nth(5).unwrap().to_owned();
    until("the use is noted", || used().ends_with("+09:00"));
    let (unused, ..) = on(&club, &["token", "create", "--user", CAROL, "--name", "unused"]);
    let line = on(&club, &["token", "list", "--user", CAROL]).0;
    assert_eq!(line.trim_end().split('\t').skip(4).collect::<Vec<_>>(), ["never", "never", "unused"]);
    let id = line.split('\t').next().unwrap();
    assert_eq!(on(&club, &["token", "revoke", id]).2, Some(0));
    bearer(&club, &unused).get("/api/users/me").refused(401, "bad-credentials");

    let (out, err, status) = on(&club, &["token", "revoke", rows[0][0]]);
    assert_eq!((out.as_str(), status), ("", Some(0)), "{err}");
    bearer(&club, &token).get("/api/users/me").refused(401, "bad-credentials");
    bearer(&club, &writing).get("/api/users/me").expect(200);
    assert_eq!(on(&club, &["token", "list"]).0.lines().count(), 1);
    let again = on(&club, &["token", "revoke", rows[0][0]]);
    assert_eq!(again, (String::new(), "booking-service: There is no such token.\n".to_owned(), Some(1)));
}

#[rstest]
fn a_command_that_fails_says_so_in_one_line(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let cases: [&[&str]; 5] = [
        &["token", "create", "--user", "nobody", "--name", "x"],
        &["token", "create", "--user", BOB, "--name", " "],
        &["token", "list", "--user", "nobody"],
        &["user", "grant-privilege", "nobody"],
        &["sync", "--directory-file", "/nowhere/club.toml"],
    ];
    for arguments in cases {
        let (out, err, status) = on(&club, arguments);
        assert_eq!((out.as_str(), status, err.lines().count()), ("", Some(1), 1), "{arguments:?}: {err}");
    }
    let (_, err, status) = on(&club, &["sync"]);
    assert_eq!(status, Some(78), "{err}");
    assert!(err.contains("--directory-file"), "{err}");
}

#[rstest]
fn a_user_is_made_privileged(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    assert_eq!(club.by(BOB).get("/api/users/me").json()["privileged"], false);
    for _ in 0..2 {
        let (out, err, status) = on(&club, &["user", "grant-privilege", BOB]);
        assert_eq!((out.as_str(), status), ("", Some(0)), "{err}");
    }
    assert_eq!(club.by(BOB).get("/api/users/me").json()["privileged"], true);
}

#[rstest]
fn the_directory_is_brought_in(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let file = club.folder().join("club.toml");
    std::fs::write(&file, "[[users]]\nname = \"erin\"\ndisplayName = \"Erin\"\nstate = \"active\"\n").unwrap();
    let (out, err, status) = on(&club, &["sync", "--directory-file", file.to_str().unwrap()]);
    assert_eq!((out.as_str(), status), ("", Some(0)), "{err}");
    let names = club.by(BOB).get("/api/users").json();
    assert!(names.as_array().unwrap().iter().any(|user| user["name"] == "erin"), "{names}");
}
