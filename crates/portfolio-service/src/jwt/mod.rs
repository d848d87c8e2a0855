//! Bearer tokens of an OpenID Connect issuer: JSON Web Tokens (RFC 7519) signed with one of the issuer's keys.
//!
//! * The algorithm must be on the list, which can only hold public-key algorithms. This refuses `none` and tokens that
//!   use a public key as a shared secret.
//! * `iss`, `aud` and `exp` are required and checked; `nbf` is checked if present.
//! * The [keys](keys::Keys) are fetched on a blocking thread and cached. They are fetched again for an unknown key id,
//!   but not more often than a limit.

pub mod keys;
mod ring;

use std::collections::BTreeMap;

use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde_json::Value;
use service_kit::cached_fetch::RefreshPolicy;

use self::keys::{Keys, Origin};

/// Seconds by which the clocks of issuer and service may differ.
const LEEWAY: f64 = 60.0;

/// The most bytes of a token.
const MAX_BYTES: usize = 16 << 10;

/// The requirements on a token.
#[derive(Debug, Clone)]
pub struct Expectations {
    /// The issuer, equal to `iss`.
    pub issuer: String,
    /// The audience, one of `aud`.
    pub audience: String,
    /// The claim that holds the sign-in name.
    pub name_claim: String,
    /// The allowed signature algorithms.
    pub algorithms: Vec<SignatureAlgorithm>,
}

/// A signature algorithm with a public key (RFC 7518, section 3.1; RFC 8037).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureAlgorithm(Algorithm);

impl SignatureAlgorithm {
    /// The names of all supported algorithms.
    pub const ALL: [&str; 9] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
}

impl std::str::FromStr for SignatureAlgorithm {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let algorithm = Self::ALL.contains(&name).then(|| name.parse().ok()).flatten();
        algorithm.map(Self).ok_or_else(|| format!("{name:?} is none of {}", Self::ALL.join(", ")))
    }
}

/// Checks tokens.
#[derive(Debug)]
pub struct Verifier {
    expected: Expectations,
    keys: Keys,
}

type Claims = BTreeMap<String, Value>;

impl Verifier {
    /// A verifier that has not fetched any key yet.
    #[must_use]
    pub fn new(expected: Expectations, origin: Origin) -> Self {
        Self::with_policy(expected, origin, RefreshPolicy::default())
    }

    /// A verifier with other intervals, for tests.
    #[must_use]
    pub fn with_policy(expected: Expectations, origin: Origin, policy: RefreshPolicy) -> Self {
        ring::install();
        Self { keys: Keys::new(origin, policy), expected }
    }

    /// The sign-in name in a token that is valid at `now`.
    ///
    /// # Errors
    /// 401 `bad-credentials` for any other token; 503 when the issuer's keys have never been fetched.
    pub async fn name(&self, token: &str, now: Timestamp) -> Result<String, Problem> {
        let refused = |detail: &str| Problem::new(code::BAD_CREDENTIALS).detail(detail);
        let malformed = || refused("The token is no signed JSON Web Token.");
        if token.len() > MAX_BYTES {
            return Err(malformed());
        }
        let header = decode_header(token).map_err(|_| malformed())?;
        // A token with critical extensions is refused, as none is supported (RFC 7515, section 4.1.11).
        if header.crit.is_some() {
            return Err(refused("The token has extensions that are not understood."));
        }
        if !self.expected.algorithms.contains(&SignatureAlgorithm(header.alg)) {
            return Err(refused("The token is signed by an algorithm that is not accepted."));
        }
        let unsigned = || refused("The token is not signed by the issuer.");
        let key = self.keys.find(header.kid.as_deref(), header.alg).await?.ok_or_else(unsigned)?;
        // The library checks only the signature. The service checks the claims, against its own clock, and refuses a
        // claim of a wrong type.
        let mut only_signature = Validation::new(header.alg);
        only_signature.required_spec_claims.clear();
        only_signature.validate_exp = false;
        only_signature.validate_aud = false;
        let claims = decode::<Claims>(token, &key, &only_signature).map_err(|_| unsigned())?.claims;
        self.expected.check(&claims, now).map_err(refused)?;
        match claims.get(&self.expected.name_claim) {
            Some(Value::String(name)) => Ok(name.clone()),
            _ => Err(refused("The token does not contain the sign-in name.")),
        }
    }
}

impl Expectations {
    fn check(&self, claims: &Claims, now: Timestamp) -> Result<(), &'static str> {
        let now = now.utc().timestamp_millis();
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of any year to come are exact")]
        let now = now as f64 / 1000.0;
        if claims.get("iss").and_then(Value::as_str) != Some(&self.issuer) {
            return Err("The token is of another issuer.");
        }
        let is_audience = match claims.get("aud") {
            Some(Value::String(audience)) => *audience == self.audience,
            Some(Value::Array(audiences)) => audiences.iter().any(|audience| audience.as_str() == Some(&self.audience)),
            _ => false,
        };
        if !is_audience {
            return Err("The token is for another audience.");
        }
        match claims.get("exp").and_then(Value::as_f64) {
            Some(expires) if now < expires + LEEWAY => {}
            _ => return Err("The token has expired."),
        }
        match claims.get("nbf").map(Value::as_f64) {
            None => Ok(()),
            Some(Some(begins)) if begins - LEEWAY <= now => Ok(()),
            Some(_) => Err("The token is not valid yet."),
        }
    }
}

#[cfg(test)]
mod tests;
