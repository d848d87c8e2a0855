//! Random secrets, which are shown once and stored as hashes, and encrypted cookies.

use std::{fmt, sync::Arc};

use actix_web::cookie::{self, Cookie, CookieJar};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use prometheus_client::metrics::counter::Counter;
use rand::{TryRngCore, rngs::OsRng};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{error::Error, secret::Secret};

/// 256 random bits as 43 URL-safe characters.
pub fn random_secret() -> Result<String, Error> {
    let mut bytes = [0; 32];
    OsRng.try_fill_bytes(&mut bytes).map_err(|error| Error::Unavailable(error.to_string()))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// The hash under which a random secret is stored. As the secret has full entropy, it needs no salt and no slow hash.
pub fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret.as_bytes()).to_vec()
}

/// Whether two texts are equal, in constant time.
pub fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// Whether this is the [hash] of a secret, in constant time.
pub fn is_hash_of(hash_at_rest: &[u8], secret: &str) -> bool {
    hash(secret).ct_eq(hash_at_rest).into()
}

/// The keys of the installation. New secrets are made with the present key. Secrets of former keys are still valid, so
/// a key can be replaced without interruption.
#[derive(Clone)]
pub struct Keys {
    present: Key,
    former: Arc<[Key]>,
    former_uses: Counter,
}

/// The keys derived from one line of the service's secret.
#[derive(Clone)]
struct Key {
    cookies: cookie::Key,
    derivation: Vec<u8>,
}

/// The index of a key; the present one is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyIndex(usize);

impl Keys {
    /// Keys of the configured secret.
    pub fn new(secret: &Secret) -> Self {
        let mut lines = Self::lines(secret).map(Key::new);
        let present = lines.next().unwrap_or_else(|| Key::new(secret.reveal()));
        Self { present, former: lines.collect(), former_uses: Counter::default() }
    }

    /// The keys that a secret holds, one in each line: the present one, then former ones.
    pub fn lines(secret: &Secret) -> impl Iterator<Item = &str> {
        secret.reveal().lines().filter(|line| !line.trim().is_empty())
    }

    /// How many secrets of former keys have been accepted.
    pub fn former_uses(&self) -> &Counter {
        &self.former_uses
    }

    /// A secret of 43 URL-safe characters that only the owner of the key can compute from the parts.
    pub fn derive(&self, parts: &[&str]) -> String {
        self.present.derive(parts)
    }

    /// Like [`derive`](Self::derive), with the key at this index.
    pub fn derive_by(&self, KeyIndex(index): KeyIndex, parts: &[&str]) -> String {
        self.all().nth(index).unwrap_or(&self.present).derive(parts)
    }

    /// Whether `secret` was derived from the parts with one of the keys.
    pub fn has_derived(&self, parts: &[&str], secret: &str) -> bool {
        self.first(|key| same(&key.derive(parts), secret).then_some(())).is_some()
    }

    /// `value` encrypted and authenticated for the use `name`.
    pub fn seal(&self, name: &str, value: String) -> String {
        let mut jar = CookieJar::new();
        jar.private_mut(&self.present.cookies).add(Cookie::new(name.to_owned(), value));
        jar.get(name).map(|cookie| cookie.value().to_owned()).unwrap_or_default()
    }

    /// The value that was sealed for the use `name`; `None` if it was not sealed with one of the keys.
    pub fn open(&self, name: &str, sealed: &str) -> Option<String> {
        self.open_by(name, sealed).map(|(_, value)| value)
    }

    /// Like [`open`](Self::open), with the index of the key.
    pub fn open_by(&self, name: &str, sealed: &str) -> Option<(KeyIndex, String)> {
        self.first(|key| {
            let cookie = Cookie::new(name.to_owned(), sealed.to_owned());
            CookieJar::new().private(&key.cookies).decrypt(cookie).map(|cookie| cookie.value().to_owned())
        })
    }

    fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.present).chain(self.former.iter())
    }

    fn first<T>(&self, find: impl Fn(&Key) -> Option<T>) -> Option<(KeyIndex, T)> {
        let result = self.all().enumerate().find_map(|(index, key)| Some((KeyIndex(index), find(key)?)));
        if result.as_ref().is_some_and(|(index, _)| *index != KeyIndex::default()) {
            self.former_uses.inc();
        }
        result
    }
}

impl Key {
    fn new(secret: &str) -> Self {
        let derivation = mac(secret.as_bytes(), &["derivation"]);
        let cookies = [mac(&derivation, &["cookies", "1"]), mac(&derivation, &["cookies", "2"])].concat();
        Self { cookies: cookie::Key::from(&cookies), derivation }
    }

    fn derive(&self, parts: &[&str]) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(mac(&self.derivation, parts))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys([hidden])")
    }
}

/// HMAC-SHA-256 over the parts, each with its length before it, so that no two lists of parts are the same bytes.
fn mac(key: &[u8], parts: &[&str]) -> Vec<u8> {
    // HMAC takes keys of any length; the error type exists for other algorithms.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(secret: &str) -> Keys {
        Keys::new(&secret.parse().unwrap())
    }

    #[test]
    fn a_sealed_value_opens_only_for_its_use_and_key() {
        let sealed = keys("a").seal("login", "state".to_owned());
        assert!(!sealed.contains("state"));
        assert_eq!(keys("a").open("login", &sealed).as_deref(), Some("state"));
        assert_eq!(keys("a").open("other", &sealed), None);
        assert_eq!(keys("b").open("login", &sealed), None);
        assert_eq!(keys("a").open("login", "garbage"), None);
    }

    #[test]
    fn a_former_key_verifies_and_makes_nothing() {
        let (old, both, new) = (keys("old"), keys("new\n\nold\r\n"), keys("new"));
        let (sealed, secret) = (old.seal("login", "state".to_owned()), old.derive(&["feed"]));
        let (which, opened) = both.open_by("login", &sealed).unwrap();
        assert_eq!((which, opened.as_str(), both.derive_by(which, &["feed"])), (KeyIndex(1), "state", secret.clone()));
        assert!(both.has_derived(&["feed"], &secret) && !both.has_derived(&["other"], &secret));
        assert_eq!(both.former_uses().get(), 2);
        assert!(new.open("login", &sealed).is_none() && !new.has_derived(&["feed"], &secret));
        let (sealed, secret) = (both.seal("login", "state".to_owned()), both.derive(&["feed"]));
        assert_eq!(new.open_by("login", &sealed), Some((KeyIndex(0), "state".to_owned())));
        assert!(new.has_derived(&["feed"], &secret) && both.has_derived(&["feed"], &secret));
        assert_eq!((both.former_uses().get(), new.former_uses().get()), (2, 0));
        assert!(old.open("login", &sealed).is_none());
    }

    #[test]
    fn derived_secrets_depend_on_every_part() {
        let secret = keys("a").derive(&["feed", "1"]);
        assert_eq!(secret.len(), 43);
        assert_eq!(secret, keys("a").derive(&["feed", "1"]));
        assert_ne!(secret, keys("a").derive(&["feed1", ""]));
        assert_ne!(secret, keys("b").derive(&["feed", "1"]));
    }
}
