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
use common::problem::code;
use serde_json::json;
use url::Url;

use super::{BASE64_URL_SAFE_NO_PAD as BASE64, *};
use crate::{cached_fetch::RefreshPolicy, issuer::Issuer};

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
struct Server {
    address: String,
    answer: Arc<RwLock<Value>>,
    requests: Arc<AtomicUsize>,
}

impl Server {
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

    /// An issuer whose keys are here.
    fn issuer(&self, policy: RefreshPolicy) -> Issuer {
        Issuer::new(ISSUER.to_owned(), Some(Url::parse(&self.address).unwrap()), policy)
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

fn verifier(issuer: Issuer) -> Verifier {
    let algorithms = ["RS256", "ES256", "EdDSA"].map(|name| name.parse().unwrap()).to_vec();
    Verifier::new(issuer, Expectations { audience: "portfolio".to_owned(), others: OtherAudiences::Any, algorithms })
}

async fn name(verifier: &Verifier, token: &str, now: Timestamp) -> Result<String, VerifyError> {
    let claims = verifier.verify(token, now).await?;
    Ok(text(&claims, "preferred_username").unwrap().to_owned())
}

/// The fault of a token at the second 1000.
async fn fault(verifier: &Verifier, token: &str) -> Fault {
    match verifier.verify(token, at(1_000)).await.unwrap_err() {
        VerifyError::Refused(fault) => fault,
        VerifyError::Unavailable(problem) => panic!("{problem}"),
    }
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

#[tokio::test]
async fn tokens_of_the_issuer_are_good() {
    let (ec, ed) = (ec(), ed());
    let rsa = json!({"kty": "RSA", "n": MODULUS, "e": "AQAB", "kid": "rsa", "use": "sig"});
    let unknown = json!({"kty": "new", "kid": "new"});
    let issuer = Server::start(json!({"keys": [unknown, ec.jwk("ec"), ed.jwk("ed"), rsa]}));
    let verifier = verifier(issuer.issuer(RefreshPolicy::default()));
    assert_eq!(name(&verifier, SIGNED_WITH_RSA, at(1_000)).await.unwrap(), "alice");
    let token = ec.sign(&es256("ec"), &claims(json!({"aud": ["else", "portfolio"], "nbf": 1_000})));
    assert_eq!(name(&verifier, &token, at(1_000)).await.unwrap(), "alice");
    let header = json!({"alg": "EdDSA", "kid": "ed"});
    let token = signed(&header, &claims(json!({})), |text| ed.0.sign(text).as_ref().to_vec());
    assert_eq!(name(&verifier, &token, at(1_000)).await.unwrap(), "alice");
    // A key of its kind is alone, so it need not be named.
    let token = ec.sign(&json!({"alg": "ES256"}), &claims(json!({})));
    assert_eq!(name(&verifier, &token, at(1_000)).await.unwrap(), "alice");
    assert_eq!(issuer.requests(), 1);
}

#[tokio::test]
async fn any_other_token_is_refused() {
    let (ec, other) = (ec(), self::ec());
    let issuer = Server::start(json!({"keys": [ec.jwk("ec"), {"kty": "oct", "k": "c2VjcmV0", "kid": "secret"}]}));
    let verifier = verifier(issuer.issuer(RefreshPolicy::default()));
    let good = ec.sign(&es256("ec"), &claims(json!({})));
    assert_eq!(name(&verifier, &good, at(1_000)).await.unwrap(), "alice");

    for (changed, why) in [
        (json!({"iss": "https://evil.example"}), Fault::Issuer),
        (json!({"iss": format!("{ISSUER}/")}), Fault::Issuer),
        (json!({"iss": [ISSUER]}), Fault::Issuer),
        (json!({"iss": null}), Fault::Issuer),
        (json!({"aud": "booking"}), Fault::Audience),
        (json!({"aud": ["booking"]}), Fault::Audience),
        (json!({"aud": []}), Fault::Audience),
        (json!({"aud": {"portfolio": true}}), Fault::Audience),
        (json!({"aud": null}), Fault::Audience),
        (json!({"exp": 970}), Fault::Expired),
        (json!({"exp": "2000"}), Fault::Claim("exp")),
        (json!({"exp": 1e300}), Fault::Claim("exp")),
        (json!({"exp": -1}), Fault::Claim("exp")),
        (json!({"exp": [2000]}), Fault::Claims),
        (json!({"exp": null}), Fault::Claim("exp")),
        (json!({"nbf": 1_031}), Fault::Early),
        (json!({"nbf": "soon"}), Fault::Claim("nbf")),
    ] {
        assert_eq!(fault(&verifier, &ec.sign(&es256("ec"), &claims(changed.clone()))).await, why, "{changed}");
    }
    for good in [json!({"exp": 971}), json!({"nbf": 1_030}), json!({"nbf": 0, "azp": "a client"}), json!({"exp": 2e3})]
    {
        assert!(verifier.verify(&ec.sign(&es256("ec"), &claims(good.clone())), at(1_000)).await.is_ok(), "{good}");
    }
    for (token, why) in [
        (other.sign(&es256("ec"), &claims(json!({}))), Fault::Signature),
        (ec.sign(&es256("unknown"), &claims(json!({}))), Fault::Signature),
        (ec.sign(&json!({"alg": "EdDSA", "kid": "ec"}), &claims(json!({}))), Fault::Signature),
        (
            ec.sign(&json!({"alg": "ES256", "kid": "ec", "crit": ["b64"], "b64": true}), &claims(json!({}))),
            Fault::Extensions,
        ),
        (ec.sign(&json!({"alg": "none"}), &claims(json!({}))), Fault::Form),
        (signed(&json!({"alg": "none"}), &claims(json!({})), |_| Vec::new()), Fault::Form),
        (ec.sign(&json!({"alg": "ES384", "kid": "ec"}), &claims(json!({}))), Fault::Algorithm),
        (ec.sign(&es256("ec"), &json!(["iss", ISSUER])), Fault::Claims),
    ] {
        assert_eq!(fault(&verifier, &token).await, why, "{token}");
    }
    // A number that no reader of JSON takes.
    let text = format!("{}.{}", BASE64.encode(es256("ec").to_string()), BASE64.encode("{\"exp\": 1e999}"));
    let huge = format!("{text}.{}", BASE64.encode(ec.0.sign(&SystemRandom::new(), text.as_bytes()).unwrap()));
    assert_eq!(fault(&verifier, &huge).await, Fault::Claims);
    // The public key, or a secret that should not be in the set, as the secret of a MAC.
    for (id, secret) in [("ec", ec.0.public_key().as_ref()), ("secret", b"secret")] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let header = json!({"alg": "HS256", "kid": id});
        let token = signed(&header, &claims(json!({})), |text| hmac::sign(&key, text).as_ref().to_vec());
        assert_eq!(fault(&verifier, &token).await, Fault::Algorithm);
    }
    for token in ["", "x", "a.b.c", "....", &good[..good.len() - 4], &"x".repeat(20_000)] {
        assert!(matches!(fault(&verifier, token).await, Fault::Form | Fault::Signature), "{token}");
    }
    assert!("HS256".parse::<SignatureAlgorithm>().is_err() && "none".parse::<SignatureAlgorithm>().is_err());
}

#[tokio::test]
async fn an_id_token_belongs_to_one_sign_in_of_one_client() {
    let (ec, ed) = (ec(), ed());
    let server = Server::start(json!({"keys": [ec.jwk("ec"), ed.jwk("ed")]}));
    let expected = Expectations {
        audience: "portfolio".to_owned(),
        others: OtherAudiences::Only(vec!["project".to_owned()]),
        algorithms: SignatureAlgorithm::ALL.to_vec(),
    };
    let verifier = Verifier::new(server.issuer(RefreshPolicy::default()), expected);
    let id_claims = |changed: Value| {
        let mut claims = claims(json!({"sub": "s", "iat": 900, "nonce": "n"}));
        claims.as_object_mut().unwrap().extend(changed.as_object().unwrap().clone());
        claims
    };
    let sign_in = SignIn { nonce: "n", access_token: Some("access-token-1") };
    let verify = async |token: String| match verifier.verify_id_token(&token, sign_in, at(1_000)).await {
        Ok(_) => None,
        Err(VerifyError::Refused(fault)) => Some(fault),
        Err(VerifyError::Unavailable(problem)) => panic!("{problem}"),
    };
    // The left half of the hash of the algorithm: SHA-256, and SHA-512 for Ed25519.
    let (short, long) = ("xbDyM5Wjs8mTAhnyPZlETA", access_token_hash("access-token-1", Algorithm::EdDSA));
    for (changed, fault) in [
        (json!({}), None),
        (json!({"aud": ["portfolio", "project"], "azp": "portfolio"}), None),
        (json!({"azp": null, "nbf": null, "at_hash": null}), None),
        (json!({"at_hash": short}), None),
        (json!({"at_hash": long}), Some(Fault::AccessToken)),
        (json!({"at_hash": 5}), Some(Fault::AccessToken)),
        (json!({"aud": ["portfolio", "project", "another"]}), Some(Fault::Audience)),
        (json!({"aud": ["portfolio", 5]}), Some(Fault::Audience)),
        (json!({"aud": ["project"]}), Some(Fault::Audience)),
        (json!({"azp": "another"}), Some(Fault::Party)),
        (json!({"azp": ["portfolio"]}), Some(Fault::Party)),
        (json!({"nonce": "m"}), Some(Fault::Nonce)),
        (json!({"nonce": ["n"]}), Some(Fault::Nonce)),
        (json!({"nonce": null}), Some(Fault::Nonce)),
        (json!({"sub": 5}), Some(Fault::Claim("sub"))),
        (json!({"sub": ""}), Some(Fault::Claim("sub"))),
        (json!({"sub": null}), Some(Fault::Claim("sub"))),
        (json!({"iat": null}), Some(Fault::Claim("iat"))),
        (json!({"iat": "900"}), Some(Fault::Claim("iat"))),
    ] {
        assert_eq!(verify(ec.sign(&es256("ec"), &id_claims(changed.clone()))).await, fault, "{changed}");
    }
    let header = json!({"alg": "EdDSA", "kid": "ed", "typ": "id_token+jwt"});
    let by_ed = |claims: &Value| signed(&header, claims, |text| ed.0.sign(text).as_ref().to_vec());
    assert_eq!(verify(by_ed(&id_claims(json!({"at_hash": long})))).await, None);
    assert_eq!(verify(by_ed(&id_claims(json!({"at_hash": short})))).await, Some(Fault::AccessToken));
}

#[tokio::test]
async fn keys_are_fetched_again_but_not_too_often() {
    let (old, new) = (ec(), ec());
    let issuer = Server::start(json!({"keys": [old.jwk("old")]}));
    let policy = RefreshPolicy { interval: Duration::from_millis(300), max_age: Duration::from_mins(1) };
    let verifier = verifier(issuer.issuer(policy));
    let (before, after) = (old.sign(&es256("old"), &claims(json!({}))), new.sign(&es256("new"), &claims(json!({}))));
    for _ in 0..10 {
        assert!(name(&verifier, &before, at(0)).await.is_ok());
        assert!(name(&verifier, &after, at(0)).await.is_err());
    }
    // The first fetch, and two for the key that is not there.
    assert_eq!(issuer.requests(), 3);

    *issuer.answer.write().unwrap() = json!({"keys": [new.jwk("new")]});
    tokio::time::sleep(Duration::from_millis(350)).await;
    let results = futures_util::future::join_all((0..10).map(|_| name(&verifier, &after, at(0)))).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(issuer.requests(), 4);
    assert!(name(&verifier, &before, at(0)).await.is_err(), "the old key is out of use");
}

#[tokio::test]
async fn a_rotated_key_is_accepted_at_once() {
    let (old, new) = (ec(), ec());
    let server = Server::start(json!({"keys": [old.jwk("old")]}));
    // As in production.
    let verifier = verifier(server.issuer(RefreshPolicy::default()));
    let (before, after) = (old.sign(&es256("old"), &claims(json!({}))), new.sign(&es256("new"), &claims(json!({}))));
    assert!(name(&verifier, &before, at(0)).await.is_ok());
    *server.answer.write().unwrap() = json!({"keys": [new.jwk("new")]});
    let results = futures_util::future::join_all((0..10).map(|_| name(&verifier, &after, at(0)))).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(server.requests(), 2);
    // And once more, but an issuer is not asked for each token with a key that it does not have.
    *server.answer.write().unwrap() = json!({"keys": [old.jwk("old")]});
    assert!(name(&verifier, &before, at(0)).await.is_ok());
    for _ in 0..10 {
        assert!(name(&verifier, &after, at(0)).await.is_err());
    }
    assert_eq!(server.requests(), 3);
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_is_no_fault_of_the_token() {
    let key = ec();
    let issuer = Server::start(Value::Null);
    let policy = RefreshPolicy { interval: Duration::from_millis(50), max_age: Duration::ZERO };
    let verifier = verifier(issuer.issuer(policy));
    let token = key.sign(&es256("ec"), &claims(json!({})));
    let error = name(&verifier, &token, at(0)).await.unwrap_err();
    assert!(matches!(error, VerifyError::Unavailable(problem) if problem.code() == code::UNAVAILABLE));
    *issuer.answer.write().unwrap() = json!({"keys": [key.jwk("ec")]});
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(name(&verifier, &token, at(0)).await.is_ok());
    // Keys that were had once are good while the issuer is away.
    *issuer.answer.write().unwrap() = Value::Null;
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(name(&verifier, &token, at(0)).await.is_ok());
    assert_eq!(issuer.requests(), 3);
}

#[tokio::test]
async fn keys_asked_for_by_a_caller_who_gave_up_are_kept() {
    let key = ec();
    let issuer = Server::start(json!({"keys": [key.jwk("ec")]}));
    let verifier = verifier(issuer.issuer(RefreshPolicy::default()));
    let token = key.sign(&es256("ec"), &claims(json!({})));
    // The issuer takes its time.
    let (answer, (held, is_held), (let_go, may_go)) = (issuer.answer.clone(), mpsc::channel(), mpsc::channel::<()>());
    std::thread::spawn(move || {
        let _held = answer.write().unwrap();
        held.send(()).unwrap();
        let _ = may_go.recv();
    });
    is_held.recv().unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(50), name(&verifier, &token, at(0))).await.is_err());
    drop(let_go);
    assert!(name(&verifier, &token, at(0)).await.is_ok());
    assert_eq!(issuer.requests(), 1);
}

#[tokio::test]
async fn keys_are_found_by_discovery_when_the_issuer_is_the_right_one() {
    let key = ec();
    let keys = Server::start(json!({"keys": [key.jwk("ec")]}));
    let metadata = Server::start(json!({}));
    let token = key.sign(&es256("ec"), &claims(json!({"iss": metadata.address})));
    for (issuer, jwks_uri, is_good) in [
        ("https://evil.example", keys.address.as_str(), false),
        (metadata.address.as_str(), "http://sso.example/keys", false),
        (metadata.address.as_str(), keys.address.as_str(), true),
    ] {
        // What is not needed may have any form.
        *metadata.answer.write().unwrap() = json!({
            "issuer": issuer, "jwks_uri": jwks_uri, "token_endpoint": 5, "scopes_supported": {},
            "token_endpoint_auth_methods_supported": [null, "client_secret_post"],
        });
        let verifier = verifier(Issuer::new(metadata.address.clone(), None, RefreshPolicy::default()));
        assert_eq!(name(&verifier, &token, at(0)).await.is_ok(), is_good, "{issuer} {jwks_uri}");
        let found = verifier.issuer().metadata().await;
        assert_eq!(found.is_ok_and(|found| found.token_endpoint_auth_methods == ["client_secret_post"]), is_good);
    }
}
