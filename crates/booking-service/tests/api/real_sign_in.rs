//! Sign-in with a real provider, request by request and in a real browser.

use std::net::TcpListener;

use serde_json::{Value, json};
use url::Url;

use crate::{
    harness::{ALICE, Answer, BOB, Backend, Club, SUSAN, id},
    sign_in::SIGN_IN_AGAIN,
};

#[path = "../../../service-kit/tests/shared/nginx.rs"]
mod nginx;
#[allow(dead_code, reason = "not every crate's tests need all of it")]
#[path = "../../../service-kit/tests/shared/provider.rs"]
pub mod real;
use self::{
    nginx::Nginx,
    real::{Jar, Provider, Registered, chromium, parameter},
};

const HTML: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// A free address for a service. It must be known before the start, because the redirect address is registered at the
/// provider. Nothing else uses ports of this host.
fn free_address() -> String {
    TcpListener::bind("127.0.0.3:0").unwrap().local_addr().unwrap().to_string()
}

/// A service that is a new client of the provider, by OpenID Connect unless the options replace this.
fn club(backend: Backend, provider: &Provider, method: &str, options: &[&str]) -> Club {
    let address = free_address();
    let client = provider.register(&format!("http://{address}/api/callback"), method, "RS256");
    let mut all = vec!["--bind", &address];
    if options.is_empty() {
        all.extend(["--oidc-issuer", &provider.issuer]);
    }
    all.extend(options);
    club_of(&client, backend, &all)
}

fn club_of(client: &Registered, backend: Backend, options: &[&str]) -> Club {
    let secret = client.secret.as_ref().map(|secret| ["--oauth-client-secret", secret]);
    let own = [Some(["--oauth-client-id", &client.id]), secret].into_iter().flatten().flatten();
    let all: Vec<_> = own.chain(options.iter().copied()).collect();
    Club::start_with(backend, &all)
}

/// A browser that does not render pages.
struct Browser<'club> {
    club: &'club Club,
    provider: &'club Provider,
    jar: Jar,
}

impl<'club> Browser<'club> {
    fn new(club: &'club Club, provider: &'club Provider) -> Self {
        Self { club, provider, jar: Jar::default() }
    }

    fn send(&mut self, method: &str, path: &str) -> Answer {
        let cookies = self.jar.cookies(path.split('?').next().unwrap());
        let client = self.club.anonymous().header("accept", HTML);
        let client = if cookies.is_empty() { client } else { client.header("cookie", &cookies) };
        let answer = client.send(method, path, None);
        let set = answer.headers.iter().filter(|(name, _)| name == "set-cookie");
        self.jar.keep(set.map(|(_, value)| value.as_str()));
        answer
    }

    /// Signs in at the provider, and returns the path of the callback.
    fn come_back_as(&mut self, user: &str) -> String {
        let begun = self.send("POST", "/api/authParams").expect(201).json();
        let address = format!("{}&login_hint={user}", begun["url"].as_str().unwrap());
        assert!(address.starts_with(&self.provider.issuer), "{address}");
        let back = self.provider.visit(&mut self.jar, &address).unwrap();
        assert_eq!(back.origin().ascii_serialization(), self.club.origin(0));
        assert_eq!(back.path(), "/api/callback");
        format!("{}?{}", back.path(), back.query().unwrap())
    }

    fn sign_in(&mut self, user: &str) -> Value {
        let callback = self.come_back_as(user);
        let answer = self.send("GET", &callback).expect(302);
        assert_eq!(answer.header("location"), Some("/callback"));
        self.send("GET", "/api/users/me").expect(200).json()
    }

    /// Asserts that this callback is refused with a page that links back, and that no user is signed in.
    #[track_caller]
    fn is_refused(&mut self, status: u16, callback: &str) {
        let page = self.send("GET", callback).expect(status).text();
        assert!(page.contains(SIGN_IN_AGAIN), "{page}");
        self.send("GET", "/api/users/me").expect(401);
    }
}

fn with_parameter(path: &str, name: &str, value: &str) -> String {
    let mut address = Url::parse("http://club.example").unwrap().join(path).unwrap();
    let others: Vec<_> = address.query_pairs().into_owned().filter(|(found, _)| found != name).collect();
    address.query_pairs_mut().clear().extend_pairs(others).append_pair(name, value);
    format!("{}?{}", address.path(), address.query().unwrap())
}

fn code(path: &str) -> String {
    parameter(&Url::parse("http://club.example").unwrap().join(path).unwrap(), "code").unwrap()
}

#[test]
fn members_and_newcomers_sign_in_at_public_and_confidential_clients() {
    let provider = Provider::start();
    for (backend, method) in [(Backend::Sqlite, "none"), (Backend::Postgres, "client_secret_basic")] {
        let club = club(backend, &provider, method, &[]);
        let bob = Browser::new(&club, &provider).sign_in(BOB);
        assert_eq!(bob["userId"], json!(id(BOB)));

        let is_listed = || club.by(ALICE).get("/api/users").expect(200).text().contains("erika");
        assert!(!is_listed());
        let erika = Browser::new(&club, &provider).sign_in("erika");
        assert_eq!((&erika["name"], &erika["displayName"]), (&json!("erika"), &json!("erika by name")));
        assert_eq!((&erika["state"], &erika["privileged"]), (&json!(1), &json!(false)));
        assert!(is_listed());
        let mut again = Browser::new(&club, &provider);
        assert_eq!(again.sign_in("erika"), erika);
        // The provider has a session with this browser, so the hint has no effect.
        assert_eq!(again.sign_in(BOB), erika);

        let mut susan = Browser::new(&club, &provider);
        let callback = susan.come_back_as(SUSAN);
        susan.is_refused(403, &callback);
    }
}

#[test]
fn users_sign_in_at_a_strict_plain_oauth_server() {
    let provider = Provider::start();
    let address = |path: &str| format!("{}/{path}", provider.issuer);
    let (authorize, token, user) = (address("auth"), address("token"), address("me"));
    let options = ["--oauth-authorize-url", &authorize, "--oauth-token-url", &token, "--oauth-user-url", &user];
    let claims = ["--oauth-scopes", "openid profile", "--oauth-id-claim", "sub"];
    let name = ["--oauth-name-claim", "preferred_username"];
    let options = [&options[..], &claims, &name].concat();
    for method in ["none", "client_secret_basic"] {
        let club = club(Backend::Sqlite, &provider, method, &options);
        assert_eq!(Browser::new(&club, &provider).sign_in(BOB)["userId"], json!(id(BOB)));
        assert_eq!(Browser::new(&club, &provider).sign_in("erika")["name"], "erika");
    }
}

#[test]
fn a_refused_sign_in_ends_at_a_page_that_links_back() {
    let provider = Provider::start();
    let club = club(Backend::Sqlite, &provider, "client_secret_basic", &[]);
    let mut browser = Browser::new(&club, &provider);
    let denied = browser.come_back_as("deny");
    assert!(denied.contains("error=access_denied"), "{denied}");
    browser.is_refused(400, &denied);
    // The same browser can try again.
    assert_eq!(browser.sign_in(BOB)["name"], BOB);

    // A code of another sign-in does not match this sign-in's verifier.
    let mut thief = Browser::new(&club, &provider);
    let stolen = code(&Browser::new(&club, &provider).come_back_as(ALICE));
    let own = thief.come_back_as(BOB);
    thief.is_refused(400, &with_parameter(&own, "code", &stolen));

    let mut victim = Browser::new(&club, &provider);
    let callback = victim.come_back_as(BOB);
    Browser::new(&club, &provider).is_refused(400, &callback);
    for (name, value) in [("state", "x"), ("iss", "https://evil.example"), ("code", "x")] {
        let mut other = Browser { jar: victim.jar.clone(), ..Browser::new(&club, &provider) };
        other.is_refused(400, &with_parameter(&callback, name, value));
    }
    victim.send("GET", &callback).expect(302);
    let before = victim.send("GET", "/api/users/me").expect(200).json();
    victim.send("GET", &callback).expect(400);
    assert_eq!(victim.send("GET", "/api/users/me").expect(200).json(), before, "a replay signs nobody out");
}

#[test]
fn a_client_with_a_wrong_secret_signs_nobody_in() {
    let (provider, address) = (Provider::start(), free_address());
    let client = provider.register(&format!("http://{address}/api/callback"), "client_secret_basic", "RS256");
    let forger = Registered { secret: Some("guessed".to_owned()), ..client };
    let club = club_of(&forger, Backend::Sqlite, &["--bind", &address, "--oidc-issuer", &provider.issuer]);
    let mut browser = Browser::new(&club, &provider);
    let callback = browser.come_back_as(BOB);
    let page = browser.send("GET", &callback).expect(503).text();
    assert!(page.contains("not set up correctly") && !page.contains("Sign in again"), "{page}");
    browser.send("GET", "/api/users/me").expect(401);
}

/// A site as it may be: the pages of a front end, and the service under the same origin.
struct Site {
    origin: String,
    provider: Provider,
    _club: Club,
    _nginx: Nginx,
}

impl Site {
    fn start(backend: Backend) -> Self {
        let (provider, service) = (Provider::start(), free_address());
        let front = include_str!("../../../service-kit/tests/real/front.html");
        let site = format!(
            "location / {{ root .; default_type text/html; try_files /front =404; }}
            location /api/ {{ proxy_pass http://{service}; proxy_set_header Host $http_host; }}"
        );
        let nginx = Nginx::start(&site, &[("front", front)]);
        let origin = format!("http://{}", nginx.address);
        let client = provider.register(&format!("{origin}/api/callback"), "none", "RS256");
        let options = ["--bind", &service, "--public-url", &origin, "--oidc-issuer", &provider.issuer];
        let club = club_of(&client, backend, &options);
        Self { origin, provider, _club: club, _nginx: nginx }
    }

    /// What a real browser sees that runs this program, and for which the provider gets this hint.
    fn in_chromium(&self, program: &str, hint: &str, more: &[(&str, &str)]) -> Value {
        chromium(program, &[&[("ORIGIN", &*self.origin), ("HINT", hint)], more].concat())
    }
}

/// Takes seconds: two browsers sign in, with real redirects.
#[test]
fn a_real_browser_signs_in() {
    let program = include_str!("../../../service-kit/tests/real/browser.mjs");
    let site = Site::start(Backend::Sqlite);
    let (origin, issuer) = (&site.origin, &site.provider.issuer);
    let seen = site.in_chromium(program, BOB, &[]);
    assert_eq!((&seen["title"], &seen["says"]), (&json!("部室予約"), &json!(BOB)), "{seen}");
    let visited: Vec<_> = seen["visited"].as_array().unwrap().iter().map(|address| address.as_str().unwrap()).collect();
    assert_eq!(visited[..2], [&format!("{origin}/"), &format!("{issuer}/auth")], "{seen}");
    assert_eq!(visited[visited.len() - 2..], [&format!("{origin}/api/callback"), &format!("{origin}/callback")]);
    // Scripts of the page cannot read the cookie.
    assert_eq!(seen["script"], "");
    let cookies = seen["cookies"].as_array().unwrap();
    let session = cookies.iter().find(|cookie| cookie["name"] == "session").unwrap();
    assert_eq!((&session["httpOnly"], &session["sameSite"]), (&json!(true), &json!("Lax")), "{session}");
    assert_eq!((&session["path"], &session["secure"]), (&json!("/"), &json!(false)), "{session}");

    let denied = site.in_chromium(program, "deny", &[]);
    let link = json!(["Sign in again", format!("{origin}/sign-in?to=%2F")]);
    assert!(denied["links"].as_array().unwrap().contains(&link), "{denied}");
}

/// Takes seconds: six browsers sign in, with real redirects.
#[test]
fn tabs_and_pages_that_begin_several_sign_ins_at_once_all_end_signed_in() {
    let program = include_str!("../../../service-kit/tests/real/tabs.mjs");
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let site = Site::start(backend);
        for (tabs, each) in [(1, "6"), (2, "2"), (5, "1")] {
            let seen = site.in_chromium(program, BOB, &[("TABS", &tabs.to_string()), ("EACH", each)]);
            let all = json!(vec![BOB; tabs]);
            assert_eq!((&seen["says"], &seen["later"]), (&all, &all), "{tabs} tabs with {each} each: {seen}");
        }
    }
}

#[test]
fn a_page_whose_name_is_rebound_to_this_machine_cannot_use_a_development_installation() {
    let club = Club::start(Backend::Sqlite);
    let port = club.origin(0).rsplit(':').next().unwrap();
    let requests = json!([["/api/authParams", {"method": "POST"}], ["/dev/sign-in"], ["/api/version"], ["/nowhere"]]);
    let program = include_str!("../../../service-kit/tests/real/rebinding.mjs");
    let seen = chromium(program, &[("PORT", port), ("REQUESTS", &requests.to_string())]);
    assert_eq!(seen["other"], json!({"opened": 421, "fetched": [421, 421, 421, 421], "cookies": []}), "{seen}");
    // The same page by a name of this machine.
    assert_eq!(
        (&seen["own"]["opened"], &seen["own"]["fetched"]),
        (&json!(404), &json!([201, 200, 200, 404])),
        "{seen}"
    );
}
