//! What somebody may try at a sign-in: the attacks that both services stand, and those on the operations of this one.

#[path = "../../../service-kit/tests/shared/sign_in_attacks.rs"]
mod shared;

use serde_json::json;

use crate::{
    harness::{Backend, KEY},
    issuer::{Issuer, PUBLIC, Signer, query, start},
    process::Process,
    sign_in::{CALLBACK, both},
};

#[test]
fn nothing_in_a_request_says_where_a_browser_goes() {
    both(|backend| {
        let issuer = Issuer::start();
        let club = issuer.club(backend);
        let evil = "evil.example";
        let caller = club.anonymous().header("host", evil).header("x-forwarded-host", evil);
        let caller = caller.header("forwarded", &format!("host={evil};proto=http")).header("x-forwarded-proto", "http");
        let parameters = query(&[("redirect_uri", "https://evil.example"), ("next", "//evil.example")]);
        let begun =
            caller.post(&format!("/api/authParams?{parameters}"), json!({"redirectUri": "https://evil.example"}));
        let begun = begun.expect(201);
        let url = begun.json()["url"].as_str().unwrap().to_owned();
        assert!(!url.contains("evil") && url.contains(&query(&[("redirect_uri", &format!("{PUBLIC}{CALLBACK}"))])));
        let callback = issuer.approve(&url);
        let cookie = begun.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let answer = caller.header("cookie", &cookie).get(&format!("{callback}&{parameters}")).expect(302);
        assert_eq!(answer.header("location"), Some("/callback"));
    });
}

#[test]
fn the_log_of_a_sign_in_has_no_secret_in_it() {
    let issuer = Issuer::start();
    let club = start(Backend::Sqlite, &[], &[]);
    let options = issuer.options();
    let mut options: Vec<_> = options.iter().map(String::as_str).collect();
    options.extend(["--log", "trace", "--secret-key", KEY]);
    let mut process = Process::beside(&club, &options);
    let mut secrets = vec!["access-token-1".to_owned(), "the secret of the client".to_owned()];
    let ask = |process: &Process, head: &str| {
        let mut wire = process.connect();
        wire.write(&format!("{head}\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
        wire.read_to_end()
    };
    for signer in [Signer::Issuer, Signer::Other] {
        issuer.set(|now| now.signer = signer);
        let (status, begun) = ask(&process, "POST /api/authParams HTTP/1.1");
        assert_eq!(status, 201, "{begun}");
        let cookie = begun.split("session=").nth(1).unwrap().split(';').next().unwrap().to_owned();
        let url = begun.split("\"url\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let callback = issuer.approve(&url);
        let (status, finished) = ask(&process, &format!("GET {callback} HTTP/1.1\r\nCookie: session={cookie}"));
        assert_eq!(status, if signer == Signer::Issuer { 302 } else { 400 }, "{finished}");
        let (code, state) = callback.split_once("code=").unwrap().1.split_once("&state=").unwrap();
        let session = finished.split("session=").nth(1).unwrap_or_default().split(';').next().unwrap();
        let nonce = url.split("nonce=").nth(1).unwrap().split('&').next().unwrap();
        let found = [cookie.as_str(), code, state, session, nonce];
        secrets.extend(found.iter().filter(|text| !text.is_empty()).map(|&text| text.to_owned()));
    }
    process.signal("TERM");
    assert!(process.wait().success());
    let log = process.log().join("\n");
    assert!(log.contains("a sign-in was refused: the ID token is not signed by the provider"), "{log}");
    for line in log.lines() {
        for secret in &secrets {
            assert!(!line.contains(secret.as_str()), "{secret} in {line}");
        }
    }
}
