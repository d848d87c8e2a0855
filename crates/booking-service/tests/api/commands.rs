//! The command line of the real program.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    fs::Permissions,
    io::{BufRead, BufReader},
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        process::CommandExt as _,
    },
    process::Command,
};

use booking_service::config::Cli;
use clap::{Command as Arguments, CommandFactory};

use serde_json::json;

use crate::{
    harness::{ALICE, BOB, CAROL, Client, Club, DAVE, DOCUMENT, SUSAN, id, postgres_schema},
    process::{Process, program, until},
};

/// The output and the exit status of a run.
pub fn outcome(command: &mut Command) -> (String, String, Option<i32>) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// The output and the exit status of `check-config`, without warnings. If the status is 78, `serve` prints the same.
pub fn check(arguments: &[&str], environment: &[(&str, &str)]) -> (String, Option<i32>) {
    let run = |command| outcome(program(arguments).arg(command).env("LOG", "error").envs(environment.iter().copied()));
    let (out, err, status) = run("check-config");
    assert_eq!(err, "");
    // `serve` refuses to start for the same errors.
    if status != Some(0) {
        let (_, err, status) = run("serve");
        assert_eq!(err.replace("booking-service: ", ""), out);
        assert_eq!(status, Some(78));
    }
    (out, status)
}

fn sign_in_faults(key: &str, faults: &impl Fn(&[&str], &[&str])) {
    fn keyed<'a>(key: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
        [&["--secret-key-file", key], arguments].concat()
    }
    let faults = |arguments: &[&str], words: &[&str]| faults(&keyed(key, arguments), words);
    let is_ok = |arguments: &[&str]| check(&keyed(key, arguments), &[]) == ("ok\n".to_owned(), Some(0));
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
    assert!(is_ok(&issuer));
    assert!(is_ok(&plain));
    // With a provider the service may listen on any address.
    let open = ["--bind", "0.0.0.0:3000"];
    assert!(is_ok(&[&issuer[..], &open, &["--public-url", "https://club.example"]].concat()));
    assert!(is_ok(&[&issuer[..], &open, &["--public-url", "http://localhost:3000"]].concat()));
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
        faults(&[&format!("--oauth-{option}"), "hunter2"], &["need --provider"]);
    }
    faults(&["--oauth-redirect-url", "https://club.example/api/callback"], &["need --provider"]);
    for more in [
        ["--oidc-trusted-audiences", "a"],
        ["--oauth-client-auth", "post"],
        ["--privileged-claim", "groups=rooms-admin"],
    ] {
        faults(&more, &["need --provider"]);
    }
    faults(&[&issuer[..], &["--oauth-client-auth", "post"]].concat(), &["--oauth-client-auth needs a client secret"]);
    let audiences = [&plain[..], &["--oidc-trusted-audiences", "a"]].concat();
    faults(&audiences, &["--oidc-trusted-audiences needs --oidc-issuer"]);
    faults(&[&issuer[..], &["--oauth-scopes", "profile"]].concat(), &["openid"]);
    let two = ["--oauth-client-secret", "hunter2", "--oauth-client-secret-file", key];
    faults(&[&issuer[..], &two].concat(), &["both set"]);
    for redirect in
        ["https://evil.example/api/callback", "http://127.0.0.1:3000/", "http://127.0.0.1:3000/api/callback?a"]
    {
        faults(&[&issuer[..], &["--oauth-redirect-url", redirect]].concat(), &["--oauth-redirect-url must begin with"]);
    }
    let below = ["--oauth-redirect-url", "http://127.0.0.1:3000/booking/api/callback"];
    assert!(is_ok(&[&issuer[..], &below].concat()));
}

/// The options of a sign-in provider and a key.
const PROVIDER_OPTIONS: [&str; 6] = [
    "--oidc-issuer",
    "https://sso.example",
    "--oauth-client-id",
    "club",
    "--secret-key",
    "0123456789abcdef0123456789abcdef",
];

#[test]
fn development_mode_needs_loopback() {
    let ok = ("ok\n".to_owned(), Some(0));
    let allowed: [&[&str]; 6] = [
        &[],
        &["--bind", "[::1]:3000"],
        &["--bind", "localhost:3000"],
        &["--public-url", "http://localhost:8080"],
        &["--public-url", "http://127.0.0.1"],
        &["--public-url", "http://[::1]:3000"],
    ];
    for arguments in allowed {
        assert_eq!(check(arguments, &[]), ok, "{arguments:?}");
    }
    let (_, err, _) = outcome(program(&["check-config"]).env("LOG", "warn"));
    assert!(err.contains("development mode: everybody on this machine can sign in as any user"), "{err}");
    let reachable: [&[&str]; 5] = [
        &["--bind", "0.0.0.0:3000"],
        &["--bind", "192.0.2.1:3000"],
        &["--public-url", "https://rooms.club.example"],
        &["--public-url", "http://localhost.club.example"],
        &["--trusted-proxies", "127.0.0.1"],
    ];
    for arguments in reachable {
        let with_key = [arguments, &PROVIDER_OPTIONS[4..]].concat();
        let (out, status) = check(&with_key, &[]);
        assert_eq!((out.lines().count(), status), (1, Some(78)), "{arguments:?}: {out}");
        assert!(out.starts_with(arguments[0]) && out.contains("without a sign-in provider"), "{out}");
        let provided = [arguments, &PROVIDER_OPTIONS, &["--public-url", "https://rooms.club.example"][..]].concat();
        if arguments[0] != "--public-url" {
            assert_eq!(check(&provided, &[]), ok, "{arguments:?}");
        }
    }
    let all = ["--bind", "0.0.0.0:3000", "--public-url", "https://rooms.club.example", "--trusted-proxies", "10.0.0.1"];
    let (out, status) = check(&all, &[]);
    assert_eq!(status, Some(78));
    for (line, word) in out.lines().zip(["--secret-key is needed", "--bind", "--public-url", "--trusted-proxies"]) {
        assert!(line.starts_with(word), "{word} in {out}");
    }
    assert_eq!(out.lines().count(), 4, "{out}");
}

#[test]
fn the_well_known_key_is_refused_and_a_provider_needs_a_key() {
    let known = ["--secret-key", "development only: anybody can read this key"];
    for arguments in [&known[..], &[&PROVIDER_OPTIONS[..4], &known].concat()] {
        let (out, status) = check(arguments, &[]);
        assert_eq!((out.lines().count(), status), (1, Some(78)), "{out}");
        assert!(out.contains("--secret-key is the well-known key"), "{out}");
    }
    let (out, status) = check(&PROVIDER_OPTIONS[..4], &[]);
    assert_eq!((out.lines().count(), status), (1, Some(78)), "{out}");
    assert!(out.starts_with("--secret-key is needed"), "{out}");
}

#[rstest]
fn the_key_is_random_at_each_start_in_development_unless_one_is_given(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (token, ..) = on(&club, &["token", "create", "--user", BOB, "--name", "test", "--scope", "write"]);
    let feed = |arguments: &[&str]| {
        let process = Process::beside(&club, arguments);
        let mut wire = process.connect();
        wire.write(&format!(
            "GET /api/users/me/ical HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
            token.trim()
        ));
        let (status, text) = wire.read_to_end();
        assert_eq!(status, 200, "{text}");
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    bearer(&club, &token).put("/api/users/me/ical", json!({})).expect(200);
    let key = ["--secret-key", "0123456789abcdef0123456789abcdef"];
    assert_eq!(feed(&key), feed(&key));
    assert_ne!(feed(&[]), feed(&[]));
}

#[test]
fn an_address_without_a_scheme_is_refused_with_what_is_missing() {
    let output = program(&["check-config", "--public-url", "rooms.club.example"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--public-url") && text.contains("begins with https:// or http://"), "{text}");
}

#[test]
fn a_value_that_cannot_be_parsed_is_refused_with_what_is_expected() {
    let cases: [(&[&str], &str); 4] = [
        (&["--drain-delay", "2s"], "not a whole number from 0 to 600"),
        (&["--rate-limit=-1"], "not a whole number from 0 to 4294967295"),
        (&["--workers", "0"], "not a whole number from 1 to 512"),
        (&["token", "revoke", "123"], "not an id as `token list` prints it"),
    ];
    for (arguments, expected) in cases {
        let (out, err, status) = outcome(&mut program(arguments));
        assert_eq!((out.as_str(), status), ("", Some(2)), "{arguments:?}");
        assert!(err.contains(expected), "{err}");
    }
}

#[test]
fn without_a_home_folder_it_is_the_root_folder() {
    assert_eq!(Process::beside(&Club::start(Sqlite), &[]).environment(), b"HOME=/\0");
}

#[test]
fn a_provider_without_a_directory_is_a_warning_unless_everybody_is_meant_to_sign_in() {
    let club = Club::start(Sqlite);
    let warns = |arguments: &[&str]| {
        let process = Process::beside(&club, arguments);
        process.log().iter().any(|line| line.contains("WARN") && line.contains("without a directory"))
    };
    assert!(warns(&PROVIDER_OPTIONS));
    assert!(!warns(&[&PROVIDER_OPTIONS[..], &["--sign-in", "anyone"]].concat()));
    assert!(!warns(&[]));
}

#[test]
fn a_trusted_proxy_with_too_many_addresses_is_refused() {
    for (block, large) in [
        ("0.0.0.0/1,128.0.0.0/1", 2),
        ("0.0.0.0/0", 1),
        ("10.0.0.0/8,2000::/3", 1),
        ("::/0", 1),
        ("10.0.0.0/8,fd00::/8,192.0.2.0/24,2001:db8::/32", 0),
    ] {
        let (out, status) = check(&[&PROVIDER_OPTIONS[..], &["--trusted-proxies", block]].concat(), &[]);
        if large == 0 {
            assert_eq!((out.as_str(), status), ("ok\n", Some(0)), "{block}");
        } else {
            assert_eq!((out.lines().count(), status), (large, Some(78)), "{block}: {out}");
            assert!(out.lines().all(|line| line.starts_with("--trusted-proxies: ")), "{out}");
        }
    }
}

#[test]
fn a_token_is_not_sent_by_plain_http_to_another_machine() {
    let arguments = |url| ["--traq-token", "0123456789abcdef", "--traq-url", url];
    for url in ["https://traq.example/api/v3", "http://127.0.0.1:3000/api/v3", "http://localhost/api/v3"] {
        assert_eq!(check(&arguments(url), &[]), ("ok\n".to_owned(), Some(0)), "{url}");
    }
    let plain = arguments("http://traq.example/api/v3");
    let (out, status) = check(&plain, &[]);
    assert_eq!((out.lines().count(), status), (1, Some(78)), "{out}");
    assert!(out.starts_with("--traq-url: ") && out.contains("--allow-insecure-upstream"), "{out}");
    assert_eq!(check(&plain, &[("ALLOW_INSECURE_UPSTREAM", "true")]), ("ok\n".to_owned(), Some(0)));
}

/// The program as a user without write access.
fn as_unprivileged_user(arguments: &[&str]) -> Command {
    let mut command = program(arguments);
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    command
}

#[test]
fn a_database_that_cannot_be_written_is_named_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("club.sqlite3");
    let url = format!("sqlite://{}", file.display());
    assert_eq!(outcome(&mut program(&["migrate", "--database-url", &url])).2, Some(0));
    let lock = folder.path().join("club.sqlite3.lock");
    for name in [&file, &lock] {
        if name.exists() {
            std::fs::set_permissions(name, Permissions::from_mode(0o444)).unwrap();
        }
    }
    // In a writable folder `migrate` succeeds: with a current schema it writes only SQLite's temporary files.
    for (mode, commands) in [(0o555, &["serve", "migrate"][..]), (0o777, &["serve"])] {
        std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        for &command in commands {
            let arguments = [command, "--bind", "127.0.0.1:0", "--log", "off", "--database-url", &url];
            let (out, err, status) = outcome(&mut as_unprivileged_user(&arguments));
            assert_eq!((out.as_str(), err.lines().count(), status), ("", 1, Some(1)), "{mode:o} {command}: {err}");
            assert!(err.contains(file.to_str().unwrap()), "{err}");
            assert!(mode == 0o777 || err.contains(": Permission denied"), "{err}");
            assert!(!err.contains(['{', '"']), "Rust debug text: {err}");
        }
    }
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_backup_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (file, backup) = (folder.path().join("club.sqlite3"), folder.path().join("backup"));
    std::fs::write(&backup, "").unwrap();
    std::fs::set_permissions(&backup, Permissions::from_mode(0o0)).unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let url = format!("sqlite://{}", file.display());
    let arguments = ["restore", backup.to_str().unwrap(), "--database-url", &url];
    let (_, err, status) = outcome(&mut as_unprivileged_user(&arguments));
    assert_eq!(status, Some(1));
    assert!(err.contains(&format!("cannot read {}: Permission denied", backup.display())), "{err}");
}

#[test]
fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/club.sqlite3", folder.path().display());
    let (_, err, status) = outcome(&mut program(&["--log", "off", "--bind", &address, "--database-url", &url]));
    assert_eq!((err.lines().count(), status), (1, Some(1)), "{err}");
    assert!(err.contains(&format!("cannot listen on {address}: Address already in use")), "{err}");
}

#[test]
fn the_service_listens_on_a_host_name() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/club.sqlite3", folder.path().display());
    let mut child = program(&["--bind", "localhost:0", "--workers", "1", "--database-url", &url]).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = log.find(|line| line.contains("listens on http://"));
    child.kill().unwrap();
    child.wait().unwrap();
    let line = line.expect("it starts");
    assert!(["http://127.0.0.1:", "http://[::1]:"].iter().any(|origin| line.contains(origin)), "{line}");
}

#[test]
fn a_stopped_service_leaves_a_complete_database_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("club.sqlite3");
    let mut process = Process::start(&["--demo", "--database-url", &format!("sqlite://{}", file.display())]);
    let log = file.with_extension("sqlite3-wal");
    assert_ne!(log.metadata().unwrap().len(), 0);
    process.signal("TERM");
    assert!(process.wait().success());
    assert!(!log.exists(), "{log:?}");
}

#[test]
fn a_log_filter_without_a_level_is_refused() {
    for (filter, level) in [("warning", "warning"), ("info,access", "access"), ("info,access=loud", "loud")] {
        let (out, err, status) = outcome(program(&["check-config", "--log", filter]).args(["--demo"]));
        assert_eq!((out.as_str(), status), ("", Some(2)), "{filter}: {err}");
        assert!(err.contains(&format!("{level:?} is no level")), "{err}");
    }
}

#[test]
fn only_serve_and_migrate_create_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let (file, directory) = (folder.path().join("club.sqlite3"), folder.path().join("club.toml"));
    std::fs::write(&directory, "[[users]]\nname = \"erin\"\ndisplayName = \"Erin\"\nstate = \"active\"\n").unwrap();
    let url = format!("sqlite://{}", file.display());
    let cases: [&[&str]; 7] = [
        &["token", "create", "--user", BOB, "--name", "x"],
        &["token", "list"],
        &["token", "revoke", "11111111-1111-1111-1111-111111111111"],
        &["user", "list"],
        &["user", "grant-privilege", BOB],
        &["user", "unlink", BOB],
        &["sync", "--directory-file", directory.to_str().unwrap()],
    ];
    for arguments in cases {
        let (out, err, status) = outcome(program(arguments).args(["--database-url", &url]));
        assert_eq!((out.as_str(), err.lines().count(), status), ("", 1, Some(1)), "{arguments:?}: {err}");
        assert!(err.contains(&format!("there is no database at {url}")), "{err}");
        assert!(!file.exists(), "{arguments:?}");
    }
    let empty = postgres_schema();
    let (_, err, status) = outcome(program(&["user", "list"]).args(["--database-url", &empty]));
    assert!(status == Some(1) && err.contains("has no tables: `serve` and `migrate` create them"), "{err}");
}

#[test]
fn the_help_of_a_command_has_its_own_options_only() {
    for (command, own) in [
        (&["token", "create"][..], &["--user", "--name", "--scope", "--expires-in"][..]),
        (&["token", "list"], &["--user"]),
        (&["copy-to"], &["--url-file"]),
        (&["serve"], &[]),
    ] {
        let (help, err, status) = outcome(program(command).arg("--help"));
        assert_eq!((err.as_str(), status), ("", Some(0)));
        assert!(help.lines().count() < 30, "{help}");
        assert!(own.iter().all(|option| help.contains(&format!("{option} <"))), "{help}");
        assert!(!help.contains("--workers") && help.contains("booking-service --help"), "{help}");
    }
}

#[test]
fn every_error_in_the_options_is_reported() {
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
    faults(&["--secret-key", "hunter2", "--secret-key-file", key], &["both set"]);
    faults(&["--secret-key-file", "/nowhere/hunter"], &["cannot read /nowhere/hunter"]);
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    faults(&["--secret-key-file", empty.to_str().unwrap()], &["is empty"]);
    faults(&["--secret-key-file", "/dev/null"], &["not a regular file"]);
    faults(&["--database-url", "mysql://club:hunter2@db/club"], &["--database-url must be"]);
    faults(&["--database-url", "sqlite::memory:"], &["in-memory"]);
    faults(&["--database-url", "sqlite://x", "--database-url-file", key], &["both set"]);
    // One of the two is easily overlooked.
    let (out, _) = check(&["--database-url-file", key], &[("DATABASE_URL", "sqlite://x")]);
    assert!(out.contains("--database-url (or DATABASE_URL) and --database-url-file"), "{out}");
    faults(&["--public-url", "ftp://club.example"], &["--public-url"]);
    faults(&["--public-url", "http://localhost/booking"], &["no path"]);
    faults(&["--public-url", "http://alice:hunter2@localhost"], &["user name"]);
    faults(&["--public-url", "https://club.example/booking"], &["no path", "not a loopback address"]);
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
fn invalid_arguments_end_with_status_2_and_a_message() {
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
fn arguments_override_the_environment_and_empty_variables_are_ignored() {
    let environment = [("SECRET_KEY", "short"), ("EVERYONE_GROUP", "")];
    assert!(check(&[], &environment).0.contains("--secret-key must have 32"));
    let long = "0123456789abcdef0123456789abcdef";
    assert_eq!(check(&["--secret-key", long], &environment).0, "ok\n");
    let names = options(&Cli::command()).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    let empty: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
    assert_eq!(check(&["--log", "error"], &empty).0, "ok\n");
    // An empty variable and a file are not two secrets.
    let file = tempfile::NamedTempFile::new().unwrap();
    let file = file.path().to_str().unwrap();
    assert!(check(&["--log", "error", "--secret-key-file", file], &empty).0.contains("is empty"));
    // Empty variables do not change the help.
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
            "allow-insecure-upstream",
            "allowed-origins",
            "club-color",
            "club-logo",
            "club-name",
            "club-url",
            "trusted-proxies",
            "static",
            "demo",
            "secret-key",
            "directory-file",
            "traq-url",
            "traq-token",
            "webhook-networks",
        ];
        let of_provider = [
            "oidc-issuer",
            "oidc-trusted-audiences",
            "privileged-claim",
            "oauth-authorize-url",
            "oauth-token-url",
            "oauth-user-url",
            "oauth-client-id",
            "oauth-client-secret",
            "provider",
            "required-claim",
            "member-domains",
            "microsoft-tenant",
            "discord-server",
            "discord-roles",
            "github-organization",
            "slack-workspace",
        ];
        let has_none = has_none.iter().chain(&of_provider).any(|option| *option == long) || long.ends_with("-file");
        assert!(default || has_none, "{long}: {about}");
    }
    // Every option has an environment variable.
    for option in command.get_arguments().filter(|option| !matches!(option.get_id().as_str(), "help" | "version")) {
        assert!(option.get_env().is_some(), "{option}");
        assert!(option.is_global_set(), "{option}");
    }
}

#[test]
fn options_may_come_before_or_after_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/club.sqlite3", folder.path().display());
    for arguments in [["--database-url", &url, "migrate"], ["migrate", "--database-url", &url]] {
        let (out, err, status) = outcome(&mut program(&arguments));
        assert_eq!((out.as_str(), status), ("", Some(0)), "{err}");
        assert!(err.ends_with(&format!("{url} is up to date\n")), "{err}");
    }
    let parse = |arguments: &[&str]| {
        let arguments = ["booking-service"].iter().chain(arguments);
        service_kit::config::parse::<Cli>(arguments).unwrap().config.database.url.unwrap().reveal().to_owned()
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

/// The real program on the database of a club.
pub fn on(club: &Club, arguments: &[&str]) -> (String, String, Option<i32>) {
    let url = club.config.database.url.as_ref().unwrap().reveal();
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
    let mut lines = list.lines();
    assert_eq!(lines.next(), Some("ID\tUSER\tSCOPE\tCREATED\tEXPIRES\tLAST USE\tNAME"));
    let rows: Vec<Vec<_>> = lines.map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 2, "{list}");
    assert_eq!((&rows[0][1..3], rows[0][4], rows[0][6]), (&[BOB, "read"][..], "no expiry", "a bot"));
    assert_eq!((&rows[1][1..3], rows[1][6]), (&[ALICE, "write"][..], "portfolio"));
    assert!(rows[1][3].ends_with("+09:00") && rows[1][4].ends_with("+09:00"), "{list}");
    assert!(!list.contains(token.trim()) && !list.contains(writing.trim()));
    // The one token of a user, without the header.
    let of = |user| {
        let list = on(&club, &["token", "list", "--user", user]).0;
        let [_, line] = list.lines().collect::<Vec<_>>()[..] else { panic!("{list}") };
        line.to_owned()
    };
    until("the use is noted", || of(BOB).split('\t').nth(5).unwrap().ends_with("+09:00"));
    let (unused, ..) = on(&club, &["token", "create", "--user", CAROL, "--name", "unused"]);
    let line = of(CAROL);
    assert_eq!(line.split('\t').skip(4).collect::<Vec<_>>(), ["no expiry", "not used", "unused"]);
    let id = line.split('\t').next().unwrap();
    assert_eq!(on(&club, &["token", "revoke", id]).2, Some(0));
    bearer(&club, &unused).get("/api/users/me").refused(401, "bad-credentials");

    let (out, err, status) = on(&club, &["token", "revoke", rows[0][0]]);
    assert_eq!((out.as_str(), status), ("", Some(0)), "{err}");
    bearer(&club, &token).get("/api/users/me").refused(401, "bad-credentials");
    bearer(&club, &writing).get("/api/users/me").expect(200);
    assert_eq!(on(&club, &["token", "list"]).0.lines().count(), 2);
    let again = on(&club, &["token", "revoke", rows[0][0]]);
    assert_eq!((again.0.as_str(), again.2), ("", Some(1)));
    assert_eq!(again.1.lines().collect::<Vec<_>>()[1..], ["booking-service: There is no such token."]);
}

#[rstest]
fn a_command_that_fails_says_so_in_one_line(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let cases: [&[&str]; 6] = [
        &["token", "create", "--user", "nobody", "--name", "x"],
        &["token", "create", "--user", BOB, "--name", " "],
        &["token", "list", "--user", "nobody"],
        &["user", "grant-privilege", "nobody"],
        &["user", "unlink", "nobody"],
        &["sync", "--directory-file", "/nowhere/club.toml"],
    ];
    for arguments in cases {
        let (out, err, status) = on(&club, arguments);
        assert_eq!((out.as_str(), status, err.lines().count()), ("", Some(1), 2), "{arguments:?}: {err}");
        if arguments.contains(&"nobody") {
            assert!(err.ends_with("booking-service: There is no user \"nobody\".\n"), "{err}");
        }
        if arguments[0] == "sync" {
            assert!(err.contains("booking-service: --directory-file: cannot read /nowhere/club.toml: "), "{err}");
        }
        // The first line names the database, without a password.
        let (name, _) = err.split_once('\n').unwrap();
        let database = club.url().trim_start_matches("postgres:///").split('?').next();
        let place = if club.is_postgres() { database } else { Some(club.url()) };
        assert!(name.starts_with("booking-service: database ") && name.contains(place.unwrap()), "{name}");
    }
    let (_, err, status) = on(&club, &["sync"]);
    assert_eq!(status, Some(78), "{err}");
    assert!(err.contains("--directory-file"), "{err}");
    // libpq's message has several lines.
    let (_, err, _) = outcome(&mut program(&["migrate", "--database-url", "postgres://club@127.0.0.1:1/club"]));
    assert!(err.lines().count() == 1 && !err.contains('\t') && err.contains("Connection refused"), "{err}");
}

#[rstest]
fn migrate_says_that_the_database_is_up_to_date(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (out, err, status) = on(&club, &["migrate"]);
    assert_eq!((out.as_str(), status), ("", Some(0)), "{err}");
    assert!(err.lines().count() == 1 && err.ends_with(" is up to date\n"), "{err}");
}

#[test]
fn the_files_of_options_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.toml");
    let malformed = folder.path().join("malformed.toml");
    std::fs::write(&malformed, "these are no members").unwrap();
    let right = folder.path().join("right.toml");
    std::fs::write(&right, "users = [{ name = \"alice\" }]").unwrap();
    let fault = |arguments: &[&str]| {
        let (out, _, status) = outcome(&mut program(&[arguments, &["check-config"]].concat()));
        (status, out)
    };
    assert_eq!(fault(&["--directory-file", right.to_str().unwrap()]), (Some(0), "ok\n".to_owned()));
    for file in [missing, malformed] {
        let file = file.to_str().unwrap();
        let (status, out) = fault(&["--directory-file", file]);
        assert_eq!((status, out.lines().count()), (Some(78), 1), "{out}");
        assert!(out.starts_with("--directory-file: ") && out.contains(file), "{out}");
    }
    let (status, out) =
        fault(&["--database-url", "postgres://club@db/club?sslmode=verify-full&sslrootcert=/no/ca.pem"]);
    assert_eq!(status, Some(78));
    assert!(out.starts_with("cannot read /no/ca.pem: "), "{out}");
    let (status, out) = fault(&["--database-url", "postgres://club@db/club?sslmod=verify-full"]);
    assert_eq!((status, out.lines().count()), (Some(78), 1), "{out}");
    assert!(out.starts_with("--database-url has the parameter \"sslmod\""), "{out}");
}

#[rstest]
fn commands_give_nothing_to_a_user_who_is_not_active(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for arguments in [&["token", "create", "--user", SUSAN, "--name", "x"][..], &["user", "grant-privilege", SUSAN]] {
        let (out, err, status) = on(&club, arguments);
        assert_eq!((out.as_str(), status), ("", Some(1)), "{arguments:?}: {err}");
        assert!(err.contains("suspended or deactivated account"), "{err}");
    }
}

#[rstest]
fn a_user_is_made_privileged(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    assert_eq!(club.by(BOB).get("/api/users/me").json()["privileged"], false);
    for said in ["bob is privileged now\n", "bob was privileged already\n"] {
        let (out, err, status) = on(&club, &["user", "grant-privilege", BOB]);
        assert_eq!((out.as_str(), status), (said, Some(0)), "{err}");
    }
    assert_eq!(club.by(BOB).get("/api/users/me").json()["privileged"], true);
}

#[rstest]
fn the_command_sync_copies_the_directory(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let file = club.folder().join("club.toml");
    std::fs::write(&file, "[[users]]\nname = \"erin\"\n\n[[groups]]\nname = \"choir\"\n").unwrap();
    let (out, err, status) = on(&club, &["sync", "--directory-file", file.to_str().unwrap()]);
    let all = "users: 1 added, 0 changed, 0 removed; groups: 1 added, 0 changed, 0 removed\n";
    assert_eq!((out.as_str(), status), (all, Some(0)), "{err}");
    std::fs::write(&file, "[[users]]\nname = \"erin\"\ndisplayName = \"E.\"\n").unwrap();
    let (out, err, _) = on(&club, &["sync", "--directory-file", file.to_str().unwrap()]);
    assert_eq!(out, "users: 0 added, 1 changed, 0 removed; groups: 0 added, 0 changed, 1 removed\n", "{err}");
    let names = club.by(BOB).get("/api/users").json();
    assert!(names.as_array().unwrap().iter().any(|user| user["name"] == "erin"), "{names}");
}

#[rstest]
fn users_are_listed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (out, err, status) = on(&club, &["user", "list"]);
    assert_eq!(status, Some(0), "{err}");
    assert_eq!(
        out.lines().collect::<Vec<_>>(),
        [
            "ID\tNAME\tSTATE\tPRIVILEGED\tDISPLAY NAME".to_owned(),
            format!("{}\talice\tactive\tprivileged\tALICE", id(ALICE)),
            format!("{}\tbob\tactive\t-\tBOB", id(BOB)),
            format!("{}\tcarol\tactive\t-\tCAROL", id(CAROL)),
            format!("{}\tdave\tactive\t-\tDAVE", id(DAVE)),
            format!("{}\tsusan\tsuspended\t-\tSUSAN", id(SUSAN)),
        ]
    );
}
