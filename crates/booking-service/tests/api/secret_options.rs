//! Options with secrets.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

use booking_service::config::Cli;
use clap::CommandFactory;

use crate::{
    commands::{check, outcome},
    process::program,
};

/// Valid options of a service with a public address.
const OPEN: [&str; 8] = [
    "--bind",
    "0.0.0.0:3000",
    "--public-url",
    "https://club.example",
    "--oidc-issuer",
    "https://sso.example",
    "--oauth-client-id",
    "club",
];
const KEY: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn weak_secrets_are_refused_on_public_addresses() {
    let faults = |secrets: &[(&str, &str)], words: &[&str]| {
        let (out, status) = check(&OPEN, secrets);
        let lines: Vec<_> = out.lines().collect();
        assert_eq!((lines.len(), status), (words.len(), Some(78)), "{secrets:?}: {out}");
        for (line, word) in lines.iter().zip(words) {
            assert!(line.contains(word), "{secrets:?}: {word:?} in {line}");
            assert!(secrets.iter().all(|(_, secret)| !line.contains(secret)), "{line}");
        }
    };
    let key = ("SECRET_KEY", KEY);
    assert_eq!(check(&OPEN, &[key]), ("ok\n".to_owned(), Some(0)));
    faults(&[], &["--secret-key is needed"]);
    faults(&[("SECRET_KEY", "development only: anybody can read this key")], &["--secret-key is the well-known key"]);
    faults(&[("SECRET_KEY", &"xyz".repeat(20))], &["--secret-key must have 6 different characters"]);
    // Former keys, on further lines, follow the same rules.
    assert_eq!(check(&OPEN, &[("SECRET_KEY", &format!("{KEY}\n\nan-older-key-{KEY}\n"))]).1, Some(0));
    faults(&[("SECRET_KEY", &format!("{KEY}\nhunter2"))], &["--secret-key, former key 1, must have 32 characters"]);
    faults(&[("SECRET_KEY", &format!("{KEY}\n{}", "xyz".repeat(20)))], &["former key 1, must have 6 different"]);
    faults(&[key, ("OAUTH_CLIENT_SECRET", "hunter2-hunter2")], &["--oauth-client-secret must have 16 characters"]);
    for password in ["postgres", "change-me", "CLUB-user"] {
        let url = format!("postgres://club-user:{password}@db/club");
        let known = check(&OPEN, &[key, ("DATABASE_URL", &url)]);
        assert_eq!(known.1, Some(78));
        assert!(known.0.starts_with("--database-url has a password") && !known.0.contains(password), "{}", known.0);
        assert_eq!(check(&[], &[("DATABASE_URL", &url)]).1, Some(0));
    }
    // All errors at once.
    faults(
        &[
            ("SECRET_KEY", "hunter2"),
            ("OAUTH_CLIENT_SECRET", "hunter3"),
            ("TRAQ_URL", "https://traq.example/api/v3"),
            ("TRAQ_TOKEN", "hunter4"),
            ("DATABASE_URL", "postgres://club:hunter5%@db/club"),
        ],
        &[
            "--database-url is not understood",
            "--secret-key must have 32",
            "--traq-token must have 16",
            "--oauth-client-secret must have 16",
        ],
    );
    let with_password = [("TRAQ_URL", "https://club:hunter2@traq.example/api/v3"), ("TRAQ_TOKEN", KEY), key];
    let (out, status) = check(&OPEN, &with_password);
    assert!(status == Some(78) && out.starts_with("--traq-url must have no user name") && !out.contains("hunter2"));
}

#[test]
fn empty_secret_files_are_refused_and_readable_ones_give_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    let path = file.to_str().unwrap();
    let gone = folder.path().join("none");
    for option in ["--secret-key-file", "--oauth-client-secret-file", "--traq-token-file", "--database-url-file"] {
        let arguments = |path| {
            let key = if option == "--secret-key-file" { &[][..] } else { &["--secret-key", KEY] };
            [&["--oidc-issuer", "https://sso.example", "--oauth-client-id", "club"], key, &[option, path][..]].concat()
        };
        for (content, word) in [(&b""[..], "is empty"), (b" \n\n", "is empty"), (b"\xff\xfe", "cannot read")] {
            std::fs::write(&file, content).unwrap();
            std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
            let (out, status) = check(&arguments(path), &[]);
            assert!(status == Some(78) && out.starts_with(&format!("{option}: ")) && out.contains(word), "{out}");
        }
        std::fs::write(&file, format!("{KEY}\nanother-{KEY}\n")).unwrap();
        let (out, status) = check(&arguments(path), &[]);
        // Only the keys of the installation may be several.
        let refusal = format!("{option}: a secret has one line\n");
        let expected = if option == "--secret-key-file" { ("ok\n".to_owned(), 0) } else { (refusal, 78) };
        assert_eq!((out, status), (expected.0, Some(expected.1)));
        for path in [folder.path(), &gone] {
            let (out, status) = check(&arguments(path.to_str().unwrap()), &[]);
            assert!(status == Some(78) && out.starts_with(&format!("{option}: cannot read")), "{out}");
        }
    }
    std::fs::write(&file, KEY).unwrap();
    for (mode, is_warned) in [(0o600, false), (0o640, false), (0o644, true)] {
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let (out, err, status) = outcome(program(&["--secret-key-file", path, "check-config"]).env("LOG", "warn"));
        assert_eq!((out.as_str(), status), ("ok\n", Some(0)));
        let warning = format!("--secret-key-file: every user of this machine may read {path}\n");
        assert_eq!(err.contains(&warning), is_warned, "{mode:o}: {err}");
        assert!(!err.contains(KEY), "{err}");
    }
}

#[test]
fn debug_output_of_the_options_has_no_secret() {
    let command = Cli::command();
    let is_secret = |option: &&clap::Arg| {
        let long = option.get_long().unwrap_or_default();
        let is_named = ["secret", "token", "key", "password", "database-url"].iter().any(|word| long.contains(word));
        is_named && !long.ends_with("-file") && !long.ends_with("-token-url")
    };
    let secrets: Vec<_> = command.get_arguments().filter(is_secret).map(|option| option.get_long().unwrap()).collect();
    assert_eq!(secrets.len(), 4, "{secrets:?}");
    for option in command.get_arguments() {
        let is_hidden = secrets.contains(&option.get_long().unwrap_or_default());
        assert_eq!(option.is_hide_env_values_set(), is_hidden, "{option}: the help shows the environment");
    }
    let given: Vec<_> = secrets.iter().map(|option| format!("--{option}=canary-secret")).collect();
    let given = given.iter().map(String::as_str);
    let more = ["--oidc-issuer=https://sso.example", "--oauth-client-id=club", "--traq-url=https://traq.example"];
    let cli = service_kit::config::parse::<Cli>(["booking-service"].into_iter().chain(more).chain(given)).unwrap();
    let provider = cli.config.provider().unwrap().unwrap();
    assert_eq!(provider.client_secret.as_ref().unwrap().reveal(), "canary-secret");
    let shown = format!("{cli:?} {cli:#?} {provider:?} {:?}", cli.config.directory());
    assert!(shown.contains("https://sso.example") && !shown.contains("canary-secret"), "{shown}");
}
