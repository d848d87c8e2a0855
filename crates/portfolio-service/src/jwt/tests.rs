use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    sync::{
        Arc, RwLock,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use ::ring::{
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use serde_json::json;
use url::Url;

use super::*;

/// Of a key that was made for the one token below and thrown away.
const MODULUS: &str = "ssIh7sLRRsIyTzD2P0iO9p5ts2Us22dahbS9OCm1qzMdnEQR0Wv_VSST__J7QBEKog3Hr3mcVblW4jh_Bhn0UdSmPxfIwNK7bmi6\
    kVIUAgM22JJHuuXKCUU7CLUJYiC1SdnNBhi5JvhqCozgnQ2r8JZ1Xki8m_Fv5s6lpDalgIkAWDYz1-HEbk2Gk8LxXsNh5eJ8Hqnt\
    YVD-bVTWRf6pf-hqYox2DwqilXk2kXVb53raGvgDUUsvbYI2iEg63s4gGj82tZSWYh6od7s3AlTW3Hwp9TS6TpIF08NAxEhrrPmi\
    DEgUQ74Wbxu9yiXmGJV6oJe6iwHfp3Sx9WPhHTKnaQ";

const SIGNED_WITH_RSA: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6InJzYSJ9.eyJpc3MiOiJodHRwczovL3Nzby5leGFtcGxlIiwiYXVkIjo\
    icG9ydGZvbGlvIiwicHJlZmVycmVkX3VzZXJuYW1lIjoiYWxpY2UiLCJleHAiOjMyNTAzNjgwMDAwfQ.cRIO15OZ4K00O9hExd4v\
    jnfDjOOupTY-fg3M3a7_GH_eO8d8mJs2lqjd5bufJDTUuui-d45YpILZ9fAabCDYAlwe6-R8m5xRMFDYijJLRKSaz763FUjnHh-p\
    6LEoiDTfON5_zV9j5T0752u9fHfiZOO2nGW6V3Zr0Js45EuWKn3YDkmMW2e-bbYpp2B44KsUAiMPzpi9qADqawlY-lEWt5sZ6Pzv\
    f2xvETiOZUpUZx4bbOdlr4XFa15cLdIO_bESVnRHvky0McFS8FQh6N3Eih4qZL_6ZJAZloSXiJp0J1jhm4J0xL99BCGidQFGmjIT\
    ncLGcRIHkqnFPYimD5FMNQ";

const ISSUER: &str = "https://sso.example";

/// A real server that answers every request with the same JSON, and counts them.
struct Issuer {
    address: String,
    answer: Arc<RwLock<Value>>,
    requests: Arc<AtomicUsize>,
}

impl Issuer {
    fn start(answer: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (answer, requests) = (Arc::new(RwLock::new(answer)), Arc::new(AtomicUsize::new(0)));
        let (given, counted) = (answer.clone(), requests.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                lines.map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
                counted.fetch_add(1, Ordering::SeqCst);
                let body = given.read().unwrap().to_string();
                let status = if body == "null" { "500 Oops" } else { "200 OK" };
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
            }
        });
        Self { address, answer, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    fn keys(&self) -> Origin {
        Origin::Set(Url::parse(&self.address).unwrap())
    }
}

struct Ec(EcdsaKeyPair);
struct Ed(Ed25519KeyPair);

fn ec() -> Ec {
    let rng = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &rng).unwrap();
    Ec(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &rng).unwrap())
}

fn ed() -> Ed {
    Ed(Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap().as_ref()).unwrap())
}

impl Ec {
    fn jwk(&self, id: &str) -> Value {
        let point = &self.0.public_key().as_ref()[1..];
        let (x, y) = (BASE64.encode(&point[..32]), BASE64.encode(&point[32..]));
        json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": id, "use": "sig", "alg": "ES256"})
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        signed(header, claims, |text| self.0.sign(&SystemRandom::new(), text).unwrap().as_ref().to_vec())
    }
}

impl Ed {
    fn jwk(&self, id: &str) -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "x": BASE64.encode(self.0.public_key().as_ref()), "kid": id})
    }
}

fn signed(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let text = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
    format!("{text}.{}", BASE64.encode(sign(text.as_bytes())))
}

fn verifier(origin: Origin, policy: RefreshPolicy) -> Verifier {
    let algorithms = ["RS256", "ES256", "EdDSA"].map(|name| name.parse().unwrap()).to_vec();
    let expected = Expectations {
        issuer: ISSUER.to_owned(),
        audience: "portfolio".to_owned(),
        name_claim: "preferred_username".to_owned(),
        algorithms,
    };
    Verifier::with_policy(expected, origin, policy)
}

#[expect(clippy::needless_pass_by_value, reason = "so that callers can write the object in place")]
fn claims(changed: Value) -> Value {
    let mut claims = json!({"iss": ISSUER, "aud": "portfolio", "preferred_username": "alice", "exp": 2_000});
    for (name, value) in changed.as_object().unwrap() {
        claims[name] = value.clone();
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        }
    }
    claims
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000).unwrap()
}

fn es256(id: &str) -> Value {
    json!({"alg": "ES256", "kid": id})
}

#[actix_web::test]
async fn tokens_of_the_issuer_are_good() {
    let (ec, ed) = (ec(), ed());
    let rsa = json!({"kty": "RSA", "n": MODULUS, "e": "AQAB", "kid": "rsa", "use": "sig"});
    let unknown = json!({"kty": "new", "kid": "new"});
    let issuer = Issuer::start(json!({"keys": [unknown, ec.jwk("ec"), ed.jwk("ed"), rsa]}));
    let verifier = verifier(issuer.keys(), RefreshPolicy::default());
    assert_eq!(verifier.name(SIGNED_WITH_RSA, at(1_000)).await.unwrap(), "alice");
    let token = ec.sign(&es256("ec"), &claims(json!({"aud": ["else", "portfolio"], "nbf": 1_000})));
    assert_eq!(verifier.name(&token, at(1_000)).await.unwrap(), "alice");
    let header = json!({"alg": "EdDSA", "kid": "ed"});
    let token = signed(&header, &claims(json!({})), |text| ed.0.sign(text).as_ref().to_vec());
    assert_eq!(verifier.name(&token, at(1_000)).await.unwrap(), "alice");
    // A key of its kind is alone, so it need not be named.
    let token = ec.sign(&json!({"alg": "ES256"}), &claims(json!({})));
    assert_eq!(verifier.name(&token, at(1_000)).await.unwrap(), "alice");
    assert_eq!(issuer.requests(), 1);
}

#[actix_web::test]
async fn any_other_token_is_refused() {
    let (ec, other) = (ec(), self::ec());
    let issuer = Issuer::start(json!({"keys": [ec.jwk("ec"), {"kty": "oct", "k": "c2VjcmV0", "kid": "secret"}]}));
    let verifier = verifier(issuer.keys(), RefreshPolicy::default());
    let good = ec.sign(&es256("ec"), &claims(json!({})));
    assert_eq!(verifier.name(&good, at(1_000)).await.unwrap(), "alice");

    let refuse = async |token: String, why: &str| {
        let problem = verifier.name(&token, at(1_000)).await.unwrap_err();
        assert_eq!(problem.code(), code::BAD_CREDENTIALS, "{token}");
        assert!(problem.explanation().contains(why), "{problem}");
    };
    for (changed, why) in [
        (json!({"iss": "https://evil.example"}), "issuer"),
        (json!({"iss": format!("{ISSUER}/")}), "issuer"),
        (json!({"iss": [ISSUER]}), "issuer"),
        (json!({"iss": null}), "issuer"),
        (json!({"aud": "booking"}), "audience"),
        (json!({"aud": ["booking"]}), "audience"),
        (json!({"aud": null}), "audience"),
        (json!({"exp": 940}), "expired"),
        (json!({"exp": "2000"}), "expired"),
        (json!({"exp": null}), "expired"),
        (json!({"nbf": 1_061}), "yet"),
        (json!({"nbf": "soon"}), "yet"),
        (json!({"preferred_username": 5}), "name"),
        (json!({"preferred_username": null}), "name"),
    ] {
        refuse(ec.sign(&es256("ec"), &claims(changed)), why).await;
    }
    refuse(other.sign(&es256("ec"), &claims(json!({}))), "signed by the issuer").await;
    refuse(ec.sign(&es256("unknown"), &claims(json!({}))), "signed by the issuer").await;
    refuse(ec.sign(&json!({"alg": "EdDSA", "kid": "ec"}), &claims(json!({}))), "signed by the issuer").await;
    let extended = json!({"alg": "ES256", "kid": "ec", "crit": ["b64"], "b64": true});
    refuse(ec.sign(&extended, &claims(json!({}))), "extensions").await;
    refuse(ec.sign(&json!({"alg": "none"}), &claims(json!({}))), "JSON Web Token").await;
    refuse(signed(&json!({"alg": "none"}), &claims(json!({})), |_| Vec::new()), "JSON Web Token").await;
    refuse(ec.sign(&json!({"alg": "ES384", "kid": "ec"}), &claims(json!({}))), "algorithm").await;
    // The public key, or a secret that should not be in the set, as the secret of a MAC.
    for (id, secret) in [("ec", ec.0.public_key().as_ref()), ("secret", b"secret")] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let header = json!({"alg": "HS256", "kid": id});
        let token = signed(&header, &claims(json!({})), |text| hmac::sign(&key, text).as_ref().to_vec());
        refuse(token, "algorithm").await;
    }
    for token in ["", "x", "a.b.c", "....", &good[..good.len() - 4], &"x".repeat(20_000)] {
        let problem = verifier.name(token, at(1_000)).await.unwrap_err();
        assert_eq!(problem.code(), code::BAD_CREDENTIALS, "{token}");
    }
    assert!("HS256".parse::<SignatureAlgorithm>().is_err() && "none".parse::<SignatureAlgorithm>().is_err());
}

#[actix_web::test]
async fn keys_are_fetched_again_but_not_too_often() {
    let (old, new) = (ec(), ec());
    let issuer = Issuer::start(json!({"keys": [old.jwk("old")]}));
    let policy = RefreshPolicy { min_interval: Duration::from_millis(300), max_age: Duration::from_mins(1) };
    let verifier = verifier(issuer.keys(), policy);
    let (before, after) = (old.sign(&es256("old"), &claims(json!({}))), new.sign(&es256("new"), &claims(json!({}))));
    for _ in 0..10 {
        assert!(verifier.name(&before, at(0)).await.is_ok());
        assert!(verifier.name(&after, at(0)).await.is_err());
    }
    assert_eq!(issuer.requests(), 1);

    *issuer.answer.write().unwrap() = json!({"keys": [new.jwk("new")]});
    tokio::time::sleep(Duration::from_millis(350)).await;
    let results = futures_util::future::join_all((0..10).map(|_| verifier.name(&after, at(0)))).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(issuer.requests(), 2);
    assert!(verifier.name(&before, at(0)).await.is_err(), "the old key is out of use");
}

#[actix_web::test]
async fn an_issuer_that_does_not_answer_is_no_fault_of_the_token() {
    let key = ec();
    let issuer = Issuer::start(Value::Null);
    let policy = RefreshPolicy { min_interval: Duration::from_millis(50), max_age: Duration::ZERO };
    let verifier = verifier(issuer.keys(), policy);
    let token = key.sign(&es256("ec"), &claims(json!({})));
    assert_eq!(verifier.name(&token, at(0)).await.unwrap_err().code(), code::UNAVAILABLE);
    *issuer.answer.write().unwrap() = json!({"keys": [key.jwk("ec")]});
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(verifier.name(&token, at(0)).await.is_ok());
    // Keys that were had once are good while the issuer is away.
    *issuer.answer.write().unwrap() = Value::Null;
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(verifier.name(&token, at(0)).await.is_ok());
    assert_eq!(issuer.requests(), 3);
}

#[actix_web::test]
async fn keys_asked_for_by_a_caller_who_gave_up_are_kept() {
    let key = ec();
    let issuer = Issuer::start(json!({"keys": [key.jwk("ec")]}));
    let verifier = verifier(issuer.keys(), RefreshPolicy::default());
    let token = key.sign(&es256("ec"), &claims(json!({})));
    // The issuer takes its time.
    let (answer, (held, is_held), (let_go, may_go)) = (issuer.answer.clone(), mpsc::channel(), mpsc::channel::<()>());
    std::thread::spawn(move || {
        let _held = answer.write().unwrap();
        held.send(()).unwrap();
        let _ = may_go.recv();
    });
    is_held.recv().unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(50), verifier.name(&token, at(0))).await.is_err());
    drop(let_go);
    assert!(verifier.name(&token, at(0)).await.is_ok());
    assert_eq!(issuer.requests(), 1);
}

#[actix_web::test]
async fn keys_are_found_by_discovery_when_the_issuer_is_the_right_one() {
    let key = ec();
    let keys = Issuer::start(json!({"keys": [key.jwk("ec")]}));
    let metadata = Issuer::start(json!({}));
    let origin = Origin::Discovery { issuer: metadata.address.clone() };
    let token = key.sign(&es256("ec"), &claims(json!({"iss": metadata.address})));
    for (issuer, jwks_uri, is_good) in [
        ("https://evil.example", keys.address.as_str(), false),
        (metadata.address.as_str(), "http://sso.example/keys", false),
        (metadata.address.as_str(), keys.address.as_str(), true),
    ] {
        *metadata.answer.write().unwrap() = json!({"issuer": issuer, "jwks_uri": jwks_uri});
        let mut verifier = verifier(origin.clone(), RefreshPolicy::default());
        verifier.expected.issuer.clone_from(&metadata.address);
        assert_eq!(verifier.name(&token, at(0)).await.is_ok(), is_good, "{issuer} {jwks_uri}");
    }
}
