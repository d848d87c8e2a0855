//! The metadata and the keys of an issuer (OpenID Connect Discovery 1.0, RFC 8414, RFC 7517), cached.

use std::{fmt, time::Duration};

use common::{
    address::is_safe,
    problem::{Problem, code},
};
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{Jwk, PublicKeyUse},
};
use serde_json::{Map, Value};
use url::Url;

use crate::{
    cached_fetch::{CachedFetch, RefreshPolicy},
    outbound::{Client, Limits, RequestError},
};

/// The limits of one request to an issuer.
pub const LIMITS: Limits = Limits { connect: Duration::from_secs(2), request: Duration::from_secs(5), bytes: 1 << 20 };

/// The most keys of one issuer.
const MAX_KEYS: usize = 100;

/// The most characters of an issuer's own name in the log.
const MAX_ISSUER_LEN: usize = 500;

/// An issuer of tokens.
pub struct Issuer {
    name: String,
    cache: CachedFetch<Description>,
}

/// What is known of an issuer.
#[derive(Default)]
struct Description {
    metadata: Metadata,
    keys: Vec<Key>,
}

/// The metadata of an issuer. A member that is missing, or has another form, is `None`.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    /// Where a browser is sent. Safe.
    pub authorization_endpoint: Option<Url>,
    /// Where a code is exchanged. Whoever sends a request there checks whether it is safe.
    pub token_endpoint: Option<Url>,
    /// Where the owner of an access token is described; likewise.
    pub userinfo_endpoint: Option<Url>,
    /// How a client may authenticate at the token endpoint. Empty when the metadata does not say.
    pub token_endpoint_auth_methods: Vec<String>,
    /// The claims that the issuer may send. Empty when the metadata does not say.
    pub claims: Vec<String>,
    /// Whether callbacks name the issuer (RFC 9207).
    pub names_itself: bool,
}

struct Key {
    id: Option<String>,
    /// The algorithm that the key is restricted to (`alg`).
    algorithm: Option<String>,
    public: DecodingKey,
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("name", &self.name).field("cache", &self.cache).finish()
    }
}

impl Issuer {
    /// An issuer of which nothing has been fetched yet. With `keys`, the address of its keys, it needs no metadata.
    pub fn new(name: String, keys: Option<Url>, policy: RefreshPolicy) -> Self {
        let (issuer, client) = (name.clone(), Client::new(LIMITS));
        let fetch = move || match &keys {
            Some(address) => Ok(Description { keys: fetch_keys(&client, address)?, ..Description::default() }),
            None => discover(&client, &issuer),
        };
        Self { name, cache: CachedFetch::new("metadata and keys of the sign-in provider", policy, fetch) }
    }

    /// The issuer, as in its metadata and tokens.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The metadata.
    ///
    /// # Errors
    /// 503 when it has never been fetched.
    pub async fn metadata(&self) -> Result<Metadata, Problem> {
        let metadata = self.cache.find(|description| Some(description.metadata.clone())).await?;
        metadata.ok_or_else(|| Problem::new(code::UNAVAILABLE).because("the issuer has no metadata"))
    }

    /// The key of a token with this key id and algorithm, if the issuer has it.
    ///
    /// # Errors
    /// 503 when the keys have never been fetched.
    pub(crate) async fn key(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Option<DecodingKey>, Problem> {
        self.cache.find(|description| find(&description.keys, id, algorithm)).await
    }
}

fn find(keys: &[Key], id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
    let required = format!("{algorithm:?}");
    let mut candidates = keys.iter().filter(|key| {
        key.public.family() == algorithm.family() && key.algorithm.as_ref().is_none_or(|name| *name == required)
    });
    let key = match id {
        Some(id) => candidates.find(|key| key.id.as_deref() == Some(id))?,
        // A token need not name its key if only one key is possible.
        None => candidates.next().filter(|_| candidates.next().is_none())?,
    };
    Some(key.public.clone())
}

fn discover(client: &Client, issuer: &str) -> Result<Description, String> {
    let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let address = Url::parse(&address).map_err(|error| format!("the issuer is no address: {error}"))?;
    let answer = fetch(client, &address)?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    match text("issuer") {
        Some(found) if found == issuer => {}
        Some(found) => {
            let found: String = found.chars().take(MAX_ISSUER_LEN).collect();
            return Err(format!(
                "unexpected issuer URI `{found}` (expected `{issuer}`); --oidc-issuer must be the same to the last \
                 character"
            ));
        }
        None => return Err("the metadata does not name the issuer".to_owned()),
    }
    let url = |name: &str| text(name).and_then(|text| Url::parse(text).ok());
    let authorization_endpoint = url("authorization_endpoint");
    if let Some(address) = &authorization_endpoint {
        is_safe(address).map_err(|why| format!("authorization_endpoint: {why}"))?;
    }
    let texts = |name: &str| {
        let values = answer.get(name).and_then(Value::as_array).into_iter().flatten();
        values.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let metadata = Metadata {
        authorization_endpoint,
        token_endpoint: url("token_endpoint"),
        userinfo_endpoint: url("userinfo_endpoint"),
        token_endpoint_auth_methods: texts("token_endpoint_auth_methods_supported"),
        claims: texts("claims_supported"),
        names_itself: answer.get("authorization_response_iss_parameter_supported") == Some(&Value::Bool(true)),
    };
    let keys = url("jwks_uri").ok_or("the metadata has no address of the keys")?;
    Ok(Description { metadata, keys: fetch_keys(client, &keys)? })
}

fn fetch_keys(client: &Client, address: &Url) -> Result<Vec<Key>, String> {
    match fetch(client, address)?.remove("keys") {
        // Keys that are not understood are ignored (RFC 7517, section 5).
        Some(Value::Array(keys)) => Ok(keys.into_iter().take(MAX_KEYS).filter_map(key).collect()),
        _ => Err("the keys are no key set".to_owned()),
    }
}

fn key(value: Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    if jwk.common.public_key_use.as_ref().is_some_and(|key_use| *key_use != PublicKeyUse::Signature) {
        return None;
    }
    let algorithm = jwk.common.key_algorithm.map(|algorithm| algorithm.to_string());
    Some(Key { public: DecodingKey::from_jwk(&jwk).ok()?, id: jwk.common.key_id, algorithm })
}

fn fetch(client: &Client, address: &Url) -> Result<Map<String, Value>, String> {
    is_safe(address)?;
    let answer = client.get(address, None).map_err(|error| error.to_string())?;
    if answer.status() != 200 {
        return Err(RequestError::Status(answer.status().as_u16()).to_string());
    }
    // The words of the error may quote the answer.
    serde_json::from_slice(answer.body()).map_err(|_| "the answer is not understood".to_owned())
}
