//! The public keys of an issuer: cached, and fetched again when a token names a key that is not in the cache.

use std::{fmt, time::Duration};

use common::address::{is_loopback, is_safe};
use common::problem::Problem;
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{Jwk, PublicKeyUse},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use service_kit::cached_fetch::{CachedFetch, RefreshPolicy};
use ureq::Agent;
use url::Url;

/// The location of the keys.
#[derive(Debug, Clone)]
pub enum Origin {
    /// At this address, as a JSON Web Key Set (RFC 7517).
    Set(Url),
    /// At the address in the issuer's metadata (OpenID Connect Discovery 1.0, section 4).
    Discovery {
        /// The issuer; `issuer` in its metadata must be equal.
        issuer: String,
    },
}

/// The most bytes of one answer.
const MAX_BYTES: u64 = 1 << 20;

/// The most keys of one issuer.
const MAX_KEYS: usize = 100;

struct Key {
    id: Option<String>,
    /// The algorithm that the key is restricted to (`alg`).
    algorithm: Option<String>,
    public: DecodingKey,
}

/// The keys of one issuer.
pub struct Keys {
    origin: Origin,
    cache: CachedFetch<Vec<Key>>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("origin", &self.origin).field("cache", &self.cache).finish()
    }
}

impl Keys {
    /// The keys, which are fetched when the first is needed.
    #[must_use]
    pub fn new(origin: Origin, policy: RefreshPolicy) -> Self {
        let mut config = Agent::config_builder()
            .timeout_connect(Some(Duration::from_secs(2)))
            .timeout_global(Some(Duration::from_secs(5)))
            .http_status_as_error(true)
            .max_redirects(0);
        if origin.address().is_ok_and(|url| is_loopback(&url)) {
            // A proxy of the environment could only reach its own loopback.
            config = config.proxy(None);
        }
        let agent = config.build().new_agent();
        let issuer = origin.clone();
        Self { origin, cache: CachedFetch::new("the keys of the token issuer", policy, move || issuer.fetch(&agent)) }
    }

    /// The key of a token with this key id and algorithm, if the issuer has it.
    ///
    /// # Errors
    /// 503 when the issuer's keys have never been fetched.
    pub(super) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Option<DecodingKey>, Problem> {
        self.cache.find(|keys| find(keys, id, algorithm)).await
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

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

impl Origin {
    fn address(&self) -> Result<Url, String> {
        match self {
            Self::Set(url) => Ok(url.clone()),
            Self::Discovery { issuer } => {
                let base = issuer.trim_end_matches('/');
                let url = Url::parse(&format!("{base}/.well-known/openid-configuration"));
                url.map_err(|error| format!("the issuer is no address: {error}"))
            }
        }
    }

    fn fetch(&self, agent: &Agent) -> Result<Vec<Key>, String> {
        let mut address = self.address()?;
        is_safe(&address)?;
        if let Self::Discovery { issuer } = self {
            let metadata: Metadata = get(agent, &address)?;
            if metadata.issuer != *issuer {
                return Err("the metadata is of another issuer".to_owned());
            }
            address = Url::parse(&metadata.jwks_uri).map_err(|error| format!("the keys have no address: {error}"))?;
            is_safe(&address)?;
        }
        let set: Set = get(agent, &address)?;
        // Keys that are not understood are ignored (RFC 7517, section 5).
        Ok(set.keys.into_iter().take(MAX_KEYS).filter_map(key).collect())
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

fn get<T: DeserializeOwned>(agent: &Agent, address: &Url) -> Result<T, String> {
    let mut answer = agent.get(address.as_str()).call().map_err(|error| error.to_string())?;
    let body = answer.body_mut().with_config().limit(MAX_BYTES).read_to_vec().map_err(|error| error.to_string())?;
    serde_json::from_slice(&body).map_err(|error| format!("the answer is not understood: {error}"))
}
