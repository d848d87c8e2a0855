//! A sign-in provider and options that do not fit each other: the log of the start says so, and the page of a failed
//! sign-in in words for the person who reads it.

use serde_json::json;

use crate::{
    harness::{Backend, KEY},
    issuer::{Fault, Issuer, METADATA, PUBLIC, TOKEN, query},
    process::Process,
    sign_in::{Browser, HTML, begin, sign_in},
};

// The database plays no part in these.

fn start(options: &[String]) -> (tempfile::TempDir, Process) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/club.sqlite3", folder.path().display());
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    (folder, Process::start(&[&["--database-url", &url, "--secret-key", KEY], &options[..]].concat()))
}

#[test]
fn the_log_of_the_start_names_what_the_provider_must_know() {
    let issuer = Issuer::start();
    let (_folder, mut process) = start(&issuer.options());
    let expected = format!(
        "public URL {PUBLIC}, redirect address {PUBLIC}/api/callback, sign-in at the issuer {}",
        issuer.address
    );
    if !process.log().iter().any(|line| line.ends_with(&expected)) {
        process.until_it_logs(&expected);
    }
    let (_folder, mut process) = start(&issuer.plain_options());
    let expected = format!("public URL {PUBLIC}, redirect address {PUBLIC}/api/callback, sign-in at a plain OAuth");
    if !process.log().iter().any(|line| line.contains(&expected)) {
        process.until_it_logs(&expected);
    }
}

#[test]
fn another_issuer_in_the_metadata_is_a_warning_that_names_both() {
    let issuer = Issuer::start();
    let other = format!("{}/", issuer.address);
    issuer.set(|now| now.metadata = json!({ "issuer": other }));
    let (_folder, mut process) = start(&issuer.options());
    let expected = format!("unexpected issuer URI `{other}` (expected `{}`)", issuer.address);
    let line = process.log().iter().find(|line| line.contains(&expected)).cloned();
    let line = line.unwrap_or_else(|| process.until_it_logs(&expected));
    assert!(line.contains(" WARN ") && line.contains("--oidc-issuer"), "{line}");
}

#[test]
fn the_start_does_not_wait_for_the_metadata() {
    let issuer = Issuer::start();
    issuer.set(|now| drop(now.faults.insert(METADATA, Fault::Stall)));
    let (_folder, mut process) = start(&issuer.options());
    assert_eq!(process.get("/readyz").0, 200);
    process.until_it_logs("metadata and keys of the sign-in provider cannot be fetched: no complete answer in time");
}

#[test]
fn a_client_that_the_provider_refuses_is_no_reason_to_try_again() {
    let issuer = Issuer::start();
    let club = issuer.club(Backend::Sqlite);
    for error in ["invalid_client", "unauthorized_client", "invalid_scope"] {
        issuer.set(|now| drop(now.faults.insert(TOKEN, Fault::Status(401, json!({ "error": error })))));
        sign_in(&mut Browser::new(&club), &issuer).refused(503, "sign-in-misconfigured");
        let page = sign_in(&mut Browser { accept: HTML, ..Browser::new(&club) }, &issuer).expect(503).text();
        assert!(page.contains("not set up correctly") && !page.contains("Sign in again"), "{page}");
    }
}

#[test]
fn the_page_of_a_failed_sign_in_says_what_went_wrong() {
    let issuer = Issuer::start();
    let club = issuer.club(Backend::Sqlite);
    let page_after = |error: &str| {
        let mut browser = Browser { accept: HTML, ..Browser::new(&club) };
        let callback = issuer.approve(&begin(&mut browser));
        let (path, sent) = callback.split_once('?').unwrap();
        let state = sent.split('&').find_map(|pair| pair.strip_prefix("state=")).unwrap();
        browser.get(&format!("{path}?{}&state={state}", query(&[("error", error)])))
    };
    for (error, status, words, may_be_repeated) in [
        ("access_denied", 400, "cancelled at the sign-in provider", true),
        ("server_error", 400, "has a fault or too much to do", true),
        ("unauthorized_client", 503, "not set up correctly", false),
        ("anything", 400, "It was begun in another browser", true),
    ] {
        let page = page_after(error).expect(status).text();
        assert!(page.contains(words) && page.contains("Sign in again") == may_be_repeated, "{error}: {page}");
    }
    issuer.set(|now| drop(now.faults.insert(TOKEN, Fault::Close)));
    let page = sign_in(&mut Browser { accept: HTML, ..Browser::new(&club) }, &issuer).expect(503).text();
    assert!(page.contains("The sign-in provider does not answer") && !page.contains("Retry-After"), "{page}");
}
