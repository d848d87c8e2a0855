//! The identity of callers.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
    thread::ScopedJoinHandle,
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use chrono::TimeDelta;
use diesel::prelude::*;
use portfolio_service::schema::users;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};

use crate::{
    builders::project,
    harness::{ALICE, Answer, BOB, CAROL, Client, Club, DOCUMENT, id},
    objects::Objects,
};

const ME: &str = "/api/v1/users/me";

fn me(client: &Client<'_>) -> Answer {
    client.get(ME)
}

/// The answer to a request that no HTTP library sends.
fn raw(club: &Club, request: &[u8]) -> String {
    let address = club.origin(0).strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn edit(client: &Client<'_>) -> Answer {
    client.patch(&format!("/api/v1/users/{}", id(BOB)), json!({"bio": "x"}))
}

/// The main part of a page, or all of another answer.
pub fn main_part(answer: &str) -> String {
    let main = answer.split("<main").last().unwrap().split("</main>").next().unwrap();
    // But for the links of members.
    let mut parts = main.split("<div class=\"actions\"><a class=\"button\"");
    let beginning = parts.next().unwrap().to_owned();
    parts.fold(beginning, |main, part| main + part.split_once("</div>").unwrap().1)
}

#[rstest]
fn whose_name_is_no_sign_in_name_reads_like_anybody_and_does_nothing_else(
    #[values(Sqlite, Postgres)] backend: Backend,
) {
    let club = Club::start(backend);
    project(&club, BOB, "robot");
    let too_long = "x".repeat(33);
    let header = |name: &str| club.anonymous().header("x-forwarded-user", name);
    let names =
        ["bob smith", "taro yamada@example.ac.jp", "b\u{e9}", "山田", &too_long, "bob,alice", "../bob", " bob\u{a0}"];
    let all = names.map(header);
    for client in all {
        me(&client).refused(401, "bad-credentials");
        edit(&client).refused(401, "bad-credentials");
        for path in ["/api/v1/users", "/api/v1/projects", "/projects", "/"] {
            let answer = client.get(path);
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(main_part(&answer.text()), main_part(&club.anonymous().get(path).text()));
        }
    }
    // A proxy may forward the credential by which it has identified the user.
    let forwarded = header("taro yamada@example.ac.jp").header("authorization", "Basic x");
    me(&forwarded).refused(401, "bad-credentials");
    forwarded.get("/api/v1/users").expect(200);
    let twice = club.by(BOB).header("x-forwarded-user", ALICE);
    let two = club.by(BOB).header("x-showcase-user", ALICE);
    for client in [twice, two] {
        edit(&client).refused(401, "bad-credentials");
        client.get("/api/v1/users").refused(401, "bad-credentials");
    }
    // Bytes that are no UTF-8.
    for (path, status) in [("/api/v1/projects", 200), (ME, 401)] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Forwarded-User: ");
        let answer = raw(&club, &[head.as_bytes(), b"\xff\xfe\r\n\r\n"].concat());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    me(&club.anonymous().header("x-showcase-user", BOB)).expect(200);
    for nobody in ["", "-"] {
        me(&club.anonymous().header("x-showcase-user", nobody)).refused(401, "not-signed-in");
    }
    // The name of the header is case-insensitive. Similar names are other headers.
    me(&club.anonymous().header("X-FORWARDED-User", BOB)).expect(200);
    for other in ["x_forwarded_user", "x-forwarded_user", "x-forwarded-user-", "x-forwarded-for", "remote-user"] {
        me(&club.anonymous().header(other, BOB)).refused(401, "not-signed-in");
    }
    // Sign-in names are case-sensitive.
    me(&club.by("Bob")).refused(404, "not-found");
}

#[rstest]
fn a_bad_credential_is_401_at_every_operation(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let client = club.anonymous().header("authorization", "Bearer x");
    let mut objects = Objects::new();
    objects.grow(&club, 1);
    for (template, item) in DOCUMENT["paths"].as_object().unwrap() {
        let path = &objects.paths(template, true)[0];
        for method in item.as_object().unwrap().keys() {
            client.send(&method.to_uppercase(), path, None).refused(401, "bad-credentials");
        }
    }
}

#[rstest]
fn a_bad_credential_is_401_whatever_else_is_wrong(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let client = club.anonymous().header("authorization", "Bearer x");
    let mut objects = Objects::new();
    objects.grow(&club, 1);
    for (template, item) in DOCUMENT["paths"].as_object().unwrap() {
        let path = &objects.paths(template, true)[0];
        for method in item.as_object().unwrap().keys().map(|method| method.to_uppercase()) {
            client.send(&method, &format!("{path}?limit=0"), None).refused(401, "bad-credentials");
            // The client sends no body with a `GET`.
            if method == "GET" {
                continue;
            }
            for (media_type, body) in [("application/json", "{"), ("application/json", "[1]"), ("text/plain", "x")] {
                let client = client.clone().header("content-type", media_type);
                client.send_bytes(&method, path, body.into()).refused(401, "bad-credentials");
            }
        }
    }
}

#[rstest]
fn a_proxied_write_must_not_come_from_another_site(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    edit(&club.by(BOB).header("origin", "https://evil.example")).refused(403, "cross-site-request");
    edit(&club.by(BOB).header("sec-fetch-site", "cross-site")).refused(403, "cross-site-request");
    edit(&club.by(BOB).header("sec-fetch-site", "same-origin")).expect(204);
    edit(&club.by(BOB).header("origin", club.origin(0))).expect(204);
    club.by(BOB).header("origin", "https://evil.example").get("/api/v1/users").expect(200);
}

#[rstest]
fn a_token_without_a_configured_issuer_is_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let client = club.anonymous().header("authorization", "Bearer x.y.z");
    me(&client).refused(401, "bad-credentials");
    client.get("/api/v1/users").refused(401, "bad-credentials");
    // A proxy may forward its own credential.
    me(&club.by(BOB).header("authorization", "Basic Ym9iOmI=")).expect(200);
}

#[test]
fn the_header_is_trusted_only_from_the_configured_proxies() {
    for (proxies, is_trusted) in [("127.0.0.0/8,::1", true), ("10.0.0.0/8,192.168.0.1", false)] {
        let club = Club::start_with(Backend::Sqlite, &["--trusted-proxies", proxies]);
        if is_trusted {
            me(&club.by(BOB)).expect(200);
        } else {
            me(&club.by(BOB)).refused(401, "not-signed-in");
            me(&club.by("not a name")).refused(401, "not-signed-in");
            edit(&club.by(BOB)).refused(401, "not-signed-in");
            let forged = club.by(BOB).header("x-forwarded-for", "10.0.0.1").header("forwarded", "for=10.0.0.1");
            me(&forged).refused(401, "not-signed-in");
        }
    }
    let club = Club::start_with(Backend::Sqlite, &["--identity-headers", "X-Member"]);
    me(&club.by(BOB)).refused(401, "not-signed-in");
    me(&club.anonymous().header("x-member", BOB)).expect(200);
}

/// A token issuer: a key, and a server that publishes it.
pub struct Issuer {
    key: EcdsaKeyPair,
    pub address: String,
}

impl Issuer {
    pub fn start() -> Self {
        let rng = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &rng).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &rng).unwrap();
        let point = key.public_key().as_ref()[1..].to_vec();
        let (x, y) = (BASE64.encode(&point[..32]), BASE64.encode(&point[32..]));
        let keys = json!({"keys": [{"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "k", "use": "sig"}]});
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let metadata = json!({"issuer": address, "jwks_uri": format!("{address}/keys")});
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
                let body = if head[0].starts_with("GET /keys ") { keys.to_string() } else { metadata.to_string() };
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
            }
        });
        Self { key, address }
    }

    pub fn token(&self, claims: &Value) -> String {
        let header = json!({"alg": "ES256", "kid": "k"});
        let text = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let signature = self.key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", BASE64.encode(signature.as_ref()))
    }
}

#[rstest]
fn a_verified_address_names_the_user_of_the_directory(#[values(Sqlite, Postgres)] backend: Backend) {
    let issuer = Issuer::start();
    let options = ["--oidc-issuer", &issuer.address, "--oidc-audience", "portfolio", "--oidc-name-claim", "email"];
    let more = ["--trusted-proxies", "127.0.0.1", "--identity-headers", "X-Forwarded-Email", "--admins", ALICE];
    let club = Club::start_with(backend, &[&options[..], &more].concat());
    let row = users::table.filter(users::name.eq(ALICE));
    diesel::update(row).set(users::email.eq("alice@club.example")).execute(&mut club.connect()).unwrap();
    let by_proxy = |address: &str| club.anonymous().header("x-forwarded-email", address);
    for address in ["alice@club.example", "Alice@CLUB.example"] {
        assert_eq!(me(&by_proxy(address)).json()["name"], ALICE);
        // Admins are known by their sign-in names.
        by_proxy(address).get("/api/v1/audit").expect(200);
    }
    for stranger in ["alice@club.example.evil", "bob@club.example"] {
        assert!(matches!(me(&by_proxy(stranger)).status, 403 | 404));
    }
    for none in [ALICE, BOB, "alice", "a@b", "alice@club.example, bob@club.example"] {
        me(&by_proxy(none)).refused(401, "bad-credentials");
    }
    // An address in the header of names, or in a claim of names, is none.
    me(&club.anonymous().header("x-forwarded-user", "alice@club.example")).refused(401, "not-signed-in");
    let by_token = |claims: Value| {
        let expires = club.clock.now().utc().timestamp() + 300;
        let base = json!({"iss": issuer.address, "aud": "portfolio", "sub": "s", "exp": expires});
        let mut all = base.as_object().unwrap().clone();
        all.extend(claims.as_object().unwrap().clone());
        club.anonymous().header("authorization", &format!("Bearer {}", issuer.token(&Value::Object(all))))
    };
    let verified = by_token(json!({"email": "alice@club.example", "email_verified": true}));
    assert_eq!(me(&verified).json()["name"], ALICE);
    for claims in [
        json!({"email": "alice@club.example"}),
        json!({"email": "alice@club.example", "email_verified": false}),
        json!({"email": ALICE, "email_verified": true}),
        json!({"preferred_username": ALICE}),
    ] {
        me(&by_token(claims)).refused(401, "bad-credentials");
    }
}

#[test]
fn with_identity_headers_none_no_header_is_trusted() {
    let issuer = Issuer::start();
    let options = ["--oidc-issuer", &issuer.address, "--oidc-audience", "portfolio", "--trusted-proxies", "127.0.0.1"];
    let club = Club::start_with(Backend::Sqlite, &[&options[..], &["--identity-headers", "none"]].concat());
    for header in ["x-forwarded-user", "x-showcase-user", "none"] {
        me(&club.anonymous().header(header, ALICE)).refused(401, "not-signed-in");
    }
}

#[test]
fn a_token_of_the_issuer_identifies_the_caller() {
    let issuer = Issuer::start();
    let options = ["--oidc-issuer", &issuer.address, "--oidc-audience", "portfolio", "--trusted-proxies", "127.0.0.1"];
    let club = Club::start_with(Backend::Sqlite, &options);
    let expires = club.clock.now().utc().timestamp() + 600;
    let claims =
        |name: &str| json!({"iss": issuer.address, "aud": "portfolio", "exp": expires, "preferred_username": name});
    let by = |token: &str| club.anonymous().header("authorization", &format!("bearer {token}"));
    let bob = issuer.token(&claims(BOB));
    assert_eq!(me(&by(&bob)).expect(200).json()["name"], BOB);
    // Unlike a cookie, a browser does not send a token with requests of other sites.
    edit(&by(&bob).header("origin", "https://evil.example")).expect(204);
    edit(&by(&issuer.token(&claims(CAROL)))).refused(403, "forbidden");
    edit(&by(&issuer.token(&claims(ALICE)))).expect(204);
    me(&by(&issuer.token(&claims("nobody")))).refused(404, "not-found");
    let unnamed = issuer.token(&claims("taro yamada@example.ac.jp"));
    me(&by(&unnamed)).refused(401, "bad-credentials");
    by(&unnamed).get("/api/v1/users").expect(200);
    me(&by(&bob).header("x-forwarded-user", BOB)).expect(200);
    me(&by(&bob).header("x-forwarded-user", ALICE)).refused(401, "bad-credentials");

    let mut other = claims(BOB);
    other["aud"] = json!("booking");
    let other = issuer.token(&other);
    for bad in [other.as_str(), &Issuer::start().token(&claims(BOB)), "x", "", &bob[..bob.len() - 2]] {
        edit(&by(bad)).refused(401, "bad-credentials");
        by(bad).get("/api/v1/users").refused(401, "bad-credentials");
    }
    me(&by(&bob).header("authorization", &format!("Bearer {bob}"))).refused(401, "bad-credentials");
    me(&club.anonymous().header("authorization", "Basic Ym9iOmI=")).refused(401, "bad-credentials");
    club.clock.advance(TimeDelta::minutes(12));
    me(&by(&bob)).refused(401, "bad-credentials");
}

#[rstest]
fn a_claim_of_the_token_makes_an_admin(#[values(Sqlite, Postgres)] backend: Backend) {
    let issuer = Issuer::start();
    let options = ["--oidc-issuer", &issuer.address, "--oidc-audience", "portfolio", "--trusted-proxies", "127.0.0.1"];
    let club = Club::start_with(backend, &[&options[..], &["--admin-claim", "groups=portfolio-admin"]].concat());
    let edit = |name: &str, groups: Value| {
        let expires = club.clock.now().utc().timestamp() + 600;
        let claims = json!({
            "iss": issuer.address, "aud": "portfolio", "exp": expires, "preferred_username": name, "groups": groups,
        });
        self::edit(&club.anonymous().header("authorization", &format!("Bearer {}", issuer.token(&claims))))
    };
    // Given and taken with each token. Those of --admins stay.
    edit(CAROL, json!(["other"])).refused(403, "forbidden");
    edit(CAROL, json!(["other", "portfolio-admin"])).expect(204);
    edit(CAROL, json!("portfolio-admin")).expect(204);
    edit(CAROL, json!(null)).refused(403, "forbidden");
    edit(ALICE, json!([])).expect(204);
    // Nobody who is not a member.
    edit("nobody", json!(["portfolio-admin"])).refused(403, "forbidden");
    // A proxy's header has no claims.
    self::edit(&club.by(CAROL)).refused(403, "forbidden");
}

#[test]
fn the_times_of_a_token_are_checked_with_half_a_minute_of_leeway() {
    let issuer = Issuer::start();
    let club = Club::start_with(
        Backend::Sqlite,
        &["--oidc-issuer", &issuer.address, "--oidc-audience", "portfolio", "--oidc-algorithms", "ES256"],
    );
    let now = club.clock.now().utc().timestamp();
    for (claims, is_good) in [
        (json!({"exp": now + 60, "nbf": now + 20}), true),
        (json!({"exp": now + 60, "nbf": now + 50}), false),
        (json!({"exp": now - 10}), true),
        (json!({"exp": now - 50}), false),
        (json!({"exp": 1e300}), false),
        (json!({"exp": now + 60, "nbf": [now]}), false),
        (json!({"exp": now + 60, "iat": "now"}), false),
        (json!({"exp": now + 60, "preferred_username": [BOB]}), false),
    ] {
        let mut all = json!({"iss": issuer.address, "aud": ["other", "portfolio"], "preferred_username": BOB});
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        let answer = me(&club.anonymous().header("authorization", &format!("Bearer {}", issuer.token(&all))));
        assert_eq!(answer.status, if is_good { 200 } else { 401 }, "{claims} {answer:?}");
    }
}

#[test]
fn a_bad_token_is_401_before_a_malformed_query_even_while_the_keys_are_fetched() {
    let issuer = Issuer::start();
    let options = ["--oidc-issuer", &issuer.address, "--oidc-audience", "portfolio"];
    let club = Club::start_with(Backend::Sqlite, &options);
    let token = format!("Bearer {}", Issuer::start().token(&json!({})));
    let bad = club.anonymous().header("authorization", &token);
    bad.get("/api/v1/users?limit=0").refused(401, "bad-credentials");
}

#[test]
fn an_unreachable_issuer_is_503_only_for_tokens() {
    let options =
        ["--oidc-issuer", "https://sso.example", "--oidc-audience", "a", "--jwks-url", "http://127.0.0.1:9/k"];
    let club = Club::start_with(Backend::Sqlite, &options);
    let issuer = Issuer::start();
    let token = format!("Bearer {}", issuer.token(&json!({})));
    let answer = me(&club.anonymous().header("authorization", &token));
    assert!(answer.header("retry-after").is_some());
    answer.refused(503, "unavailable");
    club.anonymous().get("/api/v1/users").expect(200);
    me(&club.by(BOB)).refused(401, "not-signed-in");
}

/// Takes seconds: it waits for the time-out of a request for the keys.
#[test]
fn an_issuer_that_does_not_answer_delays_only_requests_with_tokens() {
    let others_are_served = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let keys = format!("http://{}/keys", listener.local_addr().unwrap());
        let options = ["--oidc-issuer", "https://sso.example", "--oidc-audience", "a", "--jwks-url", &keys];
        let club = Club::start_with(Backend::Sqlite, &options);
        let token = format!("Bearer {}", Issuer::start().token(&json!({})));
        let by_token = || me(&club.anonymous().header("authorization", &token)).refused(503, "unavailable");
        let are_served = std::thread::scope(|scope| {
            let tokens = [(); 10].map(|()| scope.spawn(by_token));
            // The service requests the keys on this connection and gets no answer.
            let _connection = listener.accept().unwrap();
            for _ in 0..20 {
                club.anonymous().get("/api/v1/users").expect(200);
            }
            let are_served = !tokens.iter().any(ScopedJoinHandle::is_finished);
            for token in tokens {
                token.join().unwrap();
            }
            are_served
        });
        // One request was for all of them. A second later another one may be made.
        listener.set_nonblocking(true).unwrap();
        assert!(std::iter::from_fn(|| listener.accept().ok()).count() < 4);
        // Later tokens are not delayed again within that second.
        let is_refused_at_once = || {
            let begun = Instant::now();
            by_token();
            begun.elapsed() < Duration::from_secs(2)
        };
        assert!((0..10).any(|_| is_refused_at_once()), "every token waits for the issuer");
        are_served
    };
    // The request for the keys ends after 5 seconds; a machine with other work may be too slow for that, but not always.
    assert!((0..5).any(|_| others_are_served()), "they waited as long as the tokens");
}

/// Runs a command and returns its status and its output without warnings.
fn check(options: &[&str]) -> (i32, String) {
    run("error", options)
}

fn run(log: &str, options: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
    let done = command
        .env_clear()
        .envs([("ADMINS", "alice"), ("LOG", log)])
        .args(["--database-url", "sqlite:///nowhere/x"])
        .args(options)
        .output()
        .unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.code().unwrap(), String::from_utf8(said).unwrap())
}

#[test]
fn a_public_service_needs_a_source_of_identity() {
    let public = ["--bind", "0.0.0.0:0"];
    for command in ["check-config", "serve"] {
        let (status, said) = check(&[&public[..], &[command]].concat());
        assert_eq!(status, 78, "{said}");
        assert!(said.contains("--bind 0.0.0.0:0") && said.contains("--trusted-proxies"), "{said}");
    }
    for (options, status, fault) in [
        (&["--trusted-proxies", "10.0.0.0/8"][..], 0, "ok"),
        (&["--trusted-proxies", "10.0.0.0/8", "--identity-headers", "none"], 78, "--identity-headers"),
        (&["--trusted-proxies", "10.0.0.0/8,0.0.0.0/0"], 78, "0.0.0.0/0 is larger than /8"),
        (&["--trusted-proxies", "0.0.0.0/1,128.0.0.0/1"], 78, "128.0.0.0/1 is larger than /8"),
        (&["--trusted-proxies", "fd00::/8"], 0, "ok"),
        (&["--trusted-proxies", "::/0"], 78, "::/0 is larger than /8 (IPv4) or /16 (IPv6)"),
        (&["--oidc-issuer", "https://sso.example", "--oidc-audience", "a"], 0, "ok"),
        (&["--oidc-issuer", "https://sso.example"], 78, "--oidc-audience"),
        (&["--oidc-audience", "a"], 78, "--oidc-issuer"),
        (&["--trusted-proxies", "10.0.0.0/8", "--jwks-url", "https://sso.example"], 78, "--oidc-issuer"),
        (&["--oidc-issuer", "http://sso.example", "--oidc-audience", "a"], 78, "only https"),
        (&["--oidc-issuer", "sso", "--oidc-audience", "a"], 78, "--oidc-issuer"),
        (&["--trusted-proxies", "10.0.0.0/8", "--admins", "alice,b b"], 78, "\"b b\""),
        (&["--trusted-proxies", "10.0.0.1/8"], 2, "bits behind"),
        (&["--oidc-algorithms", "HS256"], 2, "HS256"),
        (&["--admin-claim", "groups"], 2, "CLAIM=VALUE"),
        (&["--trusted-proxies", "10.0.0.0/8", "--admin-claim", "groups=a"], 78, "--oidc-issuer"),
    ] {
        let (found, said) = check(&[&public[..], options, &["check-config"]].concat());
        assert_eq!(found, status, "{options:?}: {said}");
        assert!(said.contains(fault), "{options:?}: {said}");
    }
    assert_eq!(check(&["check-config"]), (0, "ok\n".to_owned()));
}

#[test]
fn development_mode_is_allowed_only_on_loopback_addresses() {
    let (status, said) = run("warn", &["check-config"]);
    assert!(
        status == 0 && said.contains("development mode: every client on this machine can act as any user"),
        "{said}"
    );
    for allowed in [&["--public-url", "http://localhost:8080"][..], &["--bind", "localhost:3001"]] {
        assert_eq!(check(&[allowed, &["check-config"]].concat()), (0, "ok\n".to_owned()), "{allowed:?}");
    }
    let without_identity = ["--trusted-proxies", "127.0.0.1", "--identity-headers", "none"];
    let provided = ["--oidc-issuer", "https://sso.example", "--oidc-audience", "a"];
    for reachable in
        [&["--bind", "0.0.0.0:3001"][..], &["--public-url", "https://portfolio.club.example"], &without_identity]
    {
        for command in ["check-config", "serve"] {
            let (status, said) = check(&[reachable, &[command]].concat());
            assert_eq!((status, said.lines().count()), (78, 1), "{reachable:?}: {said}");
            assert!(said.contains(reachable[0]) && said.contains("anybody could act as anyone"), "{said}");
        }
        assert_eq!(check(&[reachable, &provided, &["check-config"]].concat()), (0, "ok\n".to_owned()));
    }
    // An authenticating proxy on this machine is the usual installation.
    let proxied = ["--trusted-proxies", "127.0.0.1", "--public-url", "https://portfolio.club.example", "check-config"];
    assert_eq!(check(&proxied), (0, "ok\n".to_owned()));
}
