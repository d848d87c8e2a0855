//! A sign-in provider for the tests: a real server for OpenID Connect and plain OAuth 2.0. It checks that its clients
//! follow the rules, and breaks its own rules if a test says so. Both services include this file in their tests, by its
//! path.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, RwLock},
};

use base64::{Engine, prelude::BASE64_STANDARD, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use common::time::Clock;
use ring::{
    digest, hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

use crate::{
    harness::{Backend, Club},
    sign_in::CALLBACK,
};

pub const CLIENT: &str = "club";
pub const SECRET: &str = "the secret of the client & co";
/// The public address of the service, so that cookies and the redirect address do not depend on the port.
pub const PUBLIC: &str = "https://club.example";

pub const METADATA: &str = "/.well-known/openid-configuration";
pub const KEYS: &str = "/keys";
pub const TOKEN: &str = "/token";
pub const USER: &str = "/me";

/// An error in an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Closes the connection without an answer.
    Close,
    /// Reads the request and never answers.
    Stall,
    /// Answers this status with this body, as JSON.
    Status(u16, Value),
    /// Answers an HTML page.
    Html,
    /// Sends the correct answer, and then more bytes than the limit of clients.
    Huge,
    /// Sends half of the correct answer.
    Truncated,
    /// Answers a redirect.
    Redirect,
    /// Calls the answer a form.
    Form,
    /// Answers this status with the whole request in header and body.
    Quote(u16),
}

/// The signer of an ID token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Signer {
    Issuer,
    /// Another key with the id of the issuer's key.
    Other,
    /// Another key with another id.
    Unknown,
    Nobody,
    /// HMAC with the public key as the secret.
    PublicKey,
    /// HMAC with the client secret, which is not only the issuer's.
    ClientSecret,
    /// The issuer, but the token was changed after signing.
    Tampered,
    /// The issuer's Ed25519 key.
    Ed,
    /// The key to which the issuer has changed. It no longer publishes the others.
    Rotated,
}

/// The current behaviour of the provider.
pub struct Now {
    /// The claims of the user who signs in.
    pub user: Value,
    /// Claims of the ID token that are added or replaced; `null` removes a claim.
    pub claims: Value,
    /// Claims that only the user info contains.
    pub only_at_user_info: Vec<&'static str>,
    pub header: Value,
    /// Changes the correct answer of the token endpoint.
    pub token: fn(&mut Value),
    /// Whether the token endpoint answers a form instead of JSON.
    pub answers_form: bool,
    /// Whether clients send their secret in the body instead of by HTTP Basic.
    pub secret_in_body: bool,
    pub signer: Signer,
    pub metadata: Value,
    pub faults: HashMap<&'static str, Fault>,
    /// What the owner of a token finds at other paths.
    pub more: HashMap<&'static str, Value>,
    /// Whether a code is for the user of the moment at which it was given, so that several can sign in at once.
    pub keeps_users: bool,
    grants: HashMap<String, Grant>,
    codes: usize,
    /// The path of each request.
    asked: Vec<String>,
    /// Each request, and each correct answer.
    pub heard: Vec<String>,
    pub told: Vec<Value>,
    /// Connections without an answer.
    stalled: Vec<TcpStream>,
}

/// The sign-in of a code.
#[derive(Clone)]
struct Grant {
    challenge: String,
    nonce: Option<String>,
    redirect: String,
    user: Value,
}

/// The provider.
#[derive(Clone)]
pub struct Issuer {
    pub address: String,
    pub now: Arc<RwLock<Now>>,
    key: Arc<EcdsaKeyPair>,
    other: Arc<EcdsaKeyPair>,
    ed: Arc<Ed25519KeyPair>,
}

fn key_pair() -> Arc<EcdsaKeyPair> {
    let rng = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &rng).unwrap();
    Arc::new(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &rng).unwrap())
}

fn ed25519_key_pair() -> Ed25519KeyPair {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap()
}

impl Issuer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let now = Now {
            user: json!({"sub": "subject-1", "preferred_username": "newcomer", "name": "New Comer"}),
            claims: json!({}),
            only_at_user_info: Vec::new(),
            header: json!({"alg": "ES256", "kid": "ec", "typ": "JWT"}),
            token: |_| {},
            answers_form: false,
            secret_in_body: false,
            signer: Signer::Issuer,
            metadata: json!({}),
            faults: HashMap::new(),
            more: HashMap::new(),
            keeps_users: false,
            grants: HashMap::new(),
            codes: 0,
            asked: Vec::new(),
            heard: Vec::new(),
            told: Vec::new(),
            stalled: Vec::new(),
        };
        let issuer = Self {
            address: format!("http://{}", listener.local_addr().unwrap()),
            now: Arc::new(RwLock::new(now)),
            key: key_pair(),
            other: key_pair(),
            ed: Arc::new(ed25519_key_pair()),
        };
        let server = issuer.clone();
        std::thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(|stream| server.serve(stream)));
        issuer
    }

    /// Changes the behaviour.
    pub fn set(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.now.write().unwrap());
    }

    /// Sets the user who signs in.
    pub fn is_now(&self, subject: &str, name: &str) {
        self.set(|now| now.user = json!({"sub": subject, "preferred_username": name, "name": name.to_uppercase()}));
    }

    pub fn asked(&self, path: &str) -> usize {
        self.now.read().unwrap().asked.iter().filter(|asked| *asked == path).count()
    }

    pub fn options(&self) -> Vec<String> {
        let options = ["--oidc-issuer", &self.address, "--oauth-client-id", CLIENT, "--oauth-client-secret", SECRET];
        options.iter().chain(&["--public-url", PUBLIC]).map(|&option| option.to_owned()).collect()
    }

    pub fn plain_options(&self) -> Vec<String> {
        let mut options = self.options();
        let addresses = ["/authorize", TOKEN, USER].map(|path| format!("{}{path}", self.address));
        let [authorize, token, user] = addresses;
        let names = ["--oauth-authorize-url", "--oauth-token-url", "--oauth-user-url"].map(str::to_owned);
        let [a, t, u] = names;
        options.splice(..2, [a, authorize, t, token, u, user]);
        options
    }

    /// A club with this OpenID Connect provider.
    pub fn club(&self, backend: Backend) -> Club {
        start(backend, &self.options(), &[])
    }

    /// A club with this plain OAuth 2.0 provider.
    pub fn plain_club(&self, backend: Backend) -> Club {
        start(backend, &self.plain_options(), &[])
    }

    /// Does what the browser's visit does: checks the address, and returns the path of the callback.
    pub fn approve(&self, address: &str) -> String {
        let url = Url::parse(address).unwrap();
        assert_eq!(
            format!("{}{}", url.origin().ascii_serialization(), url.path()),
            format!("{}/authorize", self.address)
        );
        let sent: HashMap<_, _> = url.query_pairs().into_owned().collect();
        assert_eq!(sent["response_type"], "code", "{address}");
        assert_eq!(sent["client_id"], CLIENT, "{address}");
        assert_eq!(sent["redirect_uri"], format!("{PUBLIC}{CALLBACK}"), "{address}");
        assert_eq!(sent["code_challenge_method"], "S256", "{address}");
        assert_eq!(sent["code_challenge"].len(), 43, "{address}");
        assert!(sent["state"].len() >= 43, "{address}");
        assert!(!address.contains("secret"), "{address}");
        let mut now = self.now.write().unwrap();
        now.codes += 1;
        let code = format!("code-{}-of-the-provider", now.codes);
        let grant = Grant {
            challenge: sent["code_challenge"].clone(),
            nonce: sent.get("nonce").cloned(),
            redirect: sent["redirect_uri"].clone(),
            user: now.user.clone(),
        };
        now.grants.insert(code.clone(), grant);
        format!("{CALLBACK}?{}", query(&[("code", &code), ("state", &sent["state"])]))
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        while reader.read_line(&mut head).is_ok_and(|length| length > 2) {}
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
        };
        let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).unwrap();
        let request = format!("{head}{}", String::from_utf8_lossy(&body));
        self.set(|now| {
            now.asked.push(path.clone());
            now.heard.push(request.clone());
        });
        let fault = self.now.read().unwrap().faults.get(path.as_str()).cloned();
        let (status, answer) = match path.as_str() {
            METADATA => (200, self.metadata()),
            KEYS => (200, self.keys()),
            TOKEN => self.token(header("authorization").as_deref(), &body),
            USER if header("authorization").as_deref() == Some("Bearer access-token-1") => {
                (200, self.now.read().unwrap().user.clone())
            }
            USER => (401, json!({})),
            path => match self.now.read().unwrap().more.get(path) {
                Some(answer) if header("authorization").as_deref() == Some("Bearer access-token-1") => {
                    (200, answer.clone())
                }
                _ => (404, json!({})),
            },
        };
        let fault = match fault {
            Some(Fault::Quote(status)) => {
                let quoted =
                    json!({"error": request, "error_description": request, "id_token": request, "told": answer});
                Some(Fault::Status(status, quoted))
            }
            other => other,
        };
        self.set(|now| now.told.push(answer.clone()));
        if path == TOKEN && fault.is_none() && self.now.read().unwrap().answers_form {
            let pairs = answer.as_object().unwrap().iter();
            let pairs =
                pairs.map(|(name, value)| (name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
            let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
            return self.answer(stream, status, &body, Some(Fault::Form));
        }
        self.answer(stream, status, &answer.to_string(), fault);
    }

    fn answer(&self, mut stream: TcpStream, status: u16, body: &str, fault: Option<Fault>) {
        let json = "application/json";
        let (status, kind, length, body) = match fault {
            None => (status, json, body.len(), body.to_owned()),
            Some(Fault::Form) => {
                (status, "application/x-www-form-urlencoded; charset=utf-8", body.len(), body.to_owned())
            }
            Some(Fault::Close) => return,
            Some(Fault::Stall) => return self.now.write().unwrap().stalled.push(stream),
            Some(Fault::Status(status, body)) => (status, json, body.to_string().len(), body.to_string()),
            Some(Fault::Quote(_)) => unreachable!("it has become a status"),
            Some(Fault::Html) => (200, "text/html", 25, "<h1>Unmistakable page</h1>"[..25].to_owned()),
            Some(Fault::Huge) => (200, json, body.len() + (3 << 20), format!("{body}{}", " ".repeat(3 << 20))),
            Some(Fault::Truncated) => (200, json, body.len(), body[..body.len() / 2].to_owned()),
            Some(Fault::Redirect) => (302, json, 0, String::new()),
        };
        let location = if status == 302 { format!("Location: {}/elsewhere\r\n", self.address) } else { String::new() };
        let head = format!(
            "HTTP/1.1 {status} So\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{location}Connection: close\r\n\r\n"
        );
        // A client that has reached its limit closes the connection first.
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    }

    fn metadata(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.address);
        let mut metadata = json!({
            "issuer": self.address, "authorization_endpoint": at("/authorize"), "token_endpoint": at(TOKEN),
            "userinfo_endpoint": at(USER), "jwks_uri": at(KEYS), "response_types_supported": ["code"],
            "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["ES256", "HS256", "none"],
        });
        merge(&mut metadata, &self.now.read().unwrap().metadata);
        metadata
    }

    fn keys(&self) -> Value {
        if self.now.read().unwrap().signer == Signer::Rotated {
            return json!({"keys": [jwk(&self.other, "rotated")]});
        }
        let ed = BASE64.encode(self.ed.public_key().as_ref());
        json!({"keys": [jwk(&self.key, "ec"), {"kty": "OKP", "crv": "Ed25519", "x": ed, "kid": "ed"}]})
    }

    /// RFC 6749, section 4.1.3; RFC 7636, section 4.6. A code works once.
    fn token(&self, authorization: Option<&str>, body: &[u8]) -> (u16, Value) {
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let expected = BASE64_STANDARD.encode(format!("{}:{}", encoded(CLIENT), encoded(SECRET)));
        let sent: HashMap<_, _> = form_urlencoded::parse(body).into_owned().collect();
        let of = |name: &str| sent.get(name).cloned().unwrap_or_default();
        let is_client = if self.now.read().unwrap().secret_in_body {
            authorization.is_none() && of("client_id") == CLIENT && of("client_secret") == SECRET
        } else {
            authorization == Some(format!("Basic {expected}").as_str())
        };
        if !is_client {
            return (401, json!({"error": "invalid_client"}));
        }
        let digest = digest::digest(&digest::SHA256, of("code_verifier").as_bytes());
        let grant = self.now.write().unwrap().grants.remove(&of("code"));
        let grant = grant.filter(|grant| {
            of("grant_type") == "authorization_code"
                && of("redirect_uri") == grant.redirect
                && of("code_verifier").len() >= 43
                && BASE64.encode(digest) == grant.challenge
        });
        let Some(grant) = grant else { return (400, json!({"error": "invalid_grant"})) };
        let mut answer = json!({"access_token": "access-token-1", "token_type": "Bearer", "expires_in": 300});
        if let Some(nonce) = grant.nonce {
            answer["id_token"] = self.id_token(&nonce, &grant.user).into();
        }
        let change = self.now.read().unwrap().token;
        change(&mut answer);
        (200, answer)
    }

    fn id_token(&self, nonce: &str, user: &Value) -> String {
        let now = self.now.read().unwrap();
        let seconds = Clock::default().now().utc().timestamp();
        let at_hash = digest::digest(&digest::SHA256, b"access-token-1");
        let mut claims = json!({
            "iss": self.address, "aud": CLIENT, "iat": seconds, "exp": seconds + 300, "nonce": nonce,
            "at_hash": BASE64.encode(&at_hash.as_ref()[..16]),
        });
        merge(&mut claims, if now.keeps_users { user } else { &now.user });
        for claim in &now.only_at_user_info {
            claims.as_object_mut().unwrap().remove(*claim);
        }
        merge(&mut claims, &now.claims);
        let mut header = now.header.clone();
        let by = |key: &EcdsaKeyPair, text: &[u8]| key.sign(&SystemRandom::new(), text).unwrap().as_ref().to_vec();
        let mac =
            |secret: &[u8], text: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), text).as_ref().to_vec();
        match now.signer {
            Signer::Nobody => header = json!({"alg": "none"}),
            Signer::PublicKey | Signer::ClientSecret => header["alg"] = "HS256".into(),
            Signer::Unknown => header["kid"] = "unknown".into(),
            Signer::Rotated => header["kid"] = "rotated".into(),
            Signer::Ed => {
                header["alg"] = "EdDSA".into();
                header["kid"] = "ed".into();
                let long = digest::digest(&digest::SHA512, b"access-token-1");
                claims["at_hash"] = BASE64.encode(&long.as_ref()[..32]).into();
            }
            Signer::Issuer | Signer::Other | Signer::Tampered => {}
        }
        let text = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let signature = match now.signer {
            Signer::Issuer | Signer::Tampered => by(&self.key, text.as_bytes()),
            Signer::Ed => self.ed.sign(text.as_bytes()).as_ref().to_vec(),
            Signer::Other | Signer::Unknown | Signer::Rotated => by(&self.other, text.as_bytes()),
            Signer::Nobody => Vec::new(),
            Signer::PublicKey => mac(self.key.public_key().as_ref(), text.as_bytes()),
            Signer::ClientSecret => mac(SECRET.as_bytes(), text.as_bytes()),
        };
        if now.signer == Signer::Tampered {
            claims["preferred_username"] = "alice".into();
        }
        let text = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        format!("{text}.{}", BASE64.encode(signature))
    }
}

/// A club with these options.
pub fn start(backend: Backend, options: &[String], more: &[&str]) -> Club {
    let options: Vec<_> = options.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Club::start_with(backend, &options)
}

fn jwk(key: &EcdsaKeyPair, id: &str) -> Value {
    let point = &key.public_key().as_ref()[1..];
    let (x, y) = (BASE64.encode(&point[..32]), BASE64.encode(&point[32..]));
    json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": id, "use": "sig", "alg": "ES256"})
}

/// Adds members to an object; `null` removes a member.
fn merge(into: &mut Value, more: &Value) {
    for (name, value) in more.as_object().unwrap() {
        let into = into.as_object_mut().unwrap();
        if value.is_null() { drop(into.remove(name)) } else { drop(into.insert(name.clone(), value.clone())) }
    }
}

pub fn query(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}
