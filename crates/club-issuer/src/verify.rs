//! Verification of tokens: JSON Web Tokens (RFC 7519) that an issuer has signed with one of its keys.
//!
//! * The algorithm must be on the list, which can only hold public-key algorithms. This refuses `none` and tokens that
//!   use a public key as a shared secret.
//! * `iss`, `aud` and `exp` are required, `nbf` is checked if present. An ID token also has `sub`, `iat` and the nonce of
//!   one sign-in; `azp` and `at_hash` are checked if present. The header's `typ` may be anything.
//! * A claim of another form than the standards say is a fault of the token.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use common::{problem::Problem, time::Timestamp};
use jsonwebtoken::{Algorithm, Validation, decode, decode_header, errors::ErrorKind};
use ring::digest;
use serde_json::{Map, Value};

use crate::issuer::Issuer;

/// Seconds by which the clocks of issuer and service may differ.
const LEEWAY: f64 = 30.0;

/// The end of the year 9999, in seconds. A later time is a mistake, such as milliseconds.
const MAX_TIME: f64 = 253_402_300_800.0;

/// The most bytes of a token.
const MAX_BYTES: usize = 16 << 10;

/// The claims of a token.
pub type Claims = Map<String, Value>;

/// The requirements on every token.
#[derive(Debug, Clone)]
pub struct Expectations {
    /// The audience, one of `aud`.
    pub audience: String,
    /// Who else the token may be for.
    pub others: OtherAudiences,
    /// The allowed signature algorithms.
    pub algorithms: Vec<SignatureAlgorithm>,
}

/// The audiences that a token may have besides the expected one.
#[derive(Debug, Clone)]
pub enum OtherAudiences {
    /// Any. For an access token, which clients pass on.
    Any,
    /// Only these. For an ID token (OpenID Connect Core 1.0, section 3.1.3.7).
    Only(Vec<String>),
}

/// The sign-in to which an ID token must belong.
#[derive(Debug, Clone, Copy)]
pub struct SignIn<'a> {
    /// The nonce that was sent with the sign-in.
    pub nonce: &'a str,
    /// The access token that came with the ID token.
    pub access_token: Option<&'a str>,
}

/// A signature algorithm with a public key (RFC 7518, section 3.1; RFC 8037).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureAlgorithm(Algorithm);

impl SignatureAlgorithm {
    /// All supported algorithms.
    pub const ALL: [Self; 9] = [
        Self(Algorithm::RS256),
        Self(Algorithm::RS384),
        Self(Algorithm::RS512),
        Self(Algorithm::PS256),
        Self(Algorithm::PS384),
        Self(Algorithm::PS512),
        Self(Algorithm::ES256),
        Self(Algorithm::ES384),
        Self(Algorithm::EdDSA),
    ];
}

impl fmt::Display for SignatureAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::str::FromStr for SignatureAlgorithm {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|algorithm| algorithm.to_string() == name);
        found.ok_or_else(|| {
            format!("{name:?} is none of {}", Self::ALL.map(|algorithm| algorithm.to_string()).join(", "))
        })
    }
}

/// Why a token is refused. Shown as a predicate: "has expired".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is no signed JSON Web Token.
    Form,
    /// It has critical extensions. None is supported (RFC 7515, section 4.1.11).
    Extensions,
    /// Its signature algorithm is not on the list.
    Algorithm,
    /// The issuer did not sign it, or not with a key that it has now.
    Signature,
    /// It is of another issuer.
    Issuer,
    /// It is not for this audience, or also for one that is not trusted.
    Audience,
    /// It was issued to another client.
    Party,
    /// It has expired.
    Expired,
    /// It is not valid yet.
    Early,
    /// It belongs to another sign-in.
    Nonce,
    /// It came with another access token.
    AccessToken,
    /// Its claims are no JSON object, or one of the registered ones has another form.
    Claims,
    /// This claim is missing, or has another form than the standards say.
    Claim(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "is no signed JSON Web Token",
            Self::Extensions => "has extensions that are not understood",
            Self::Algorithm => "is signed by an algorithm that is not accepted",
            Self::Signature => "is not signed by the provider",
            Self::Issuer => "is of another issuer",
            Self::Audience => "is for another audience",
            Self::Party => "is for another party",
            Self::Expired => "has expired",
            Self::Early => "is not valid yet",
            Self::Nonce => "is of another sign-in",
            Self::AccessToken => "came with another access token",
            Self::Claims => "has claims that are not understood",
            Self::Claim(name) => return write!(f, "has no valid claim {name}"),
        })
    }
}

/// Why there are no claims of a token.
#[derive(Debug)]
pub enum VerifyError {
    /// The token is refused.
    Refused(Fault),
    /// 503: the issuer's keys have never been fetched.
    Unavailable(Problem),
}

impl From<Fault> for VerifyError {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
    }
}

/// Verifies the tokens of an issuer.
#[derive(Debug)]
pub struct Verifier {
    issuer: Issuer,
    expected: Expectations,
}

impl Verifier {
    /// A verifier that has not fetched any key yet.
    pub fn new(issuer: Issuer, expected: Expectations) -> Self {
        crate::ring::install();
        Self { issuer, expected }
    }

    /// The issuer of the tokens.
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// The claims of a token that is valid at `now`.
    ///
    /// # Errors
    /// The fault of any other token.
    pub async fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, VerifyError> {
        let (claims, _) = self.claims(token).await?;
        self.check(&claims, now)?;
        Ok(claims)
    }

    /// The claims of an ID token of this sign-in that is valid at `now` (OpenID Connect Core 1.0, section 3.1.3.7).
    ///
    /// # Errors
    /// The fault of any other token.
    pub async fn verify_id_token(
        &self,
        token: &str,
        sign_in: SignIn<'_>,
        now: Timestamp,
    ) -> Result<Claims, VerifyError> {
        let (claims, algorithm) = self.claims(token).await?;
        self.check(&claims, now)?;
        if text(&claims, "nonce") != Some(sign_in.nonce) {
            return Err(Fault::Nonce.into());
        }
        if text(&claims, "sub").is_none_or(str::is_empty) {
            return Err(Fault::Claim("sub").into());
        }
        time(&claims, "iat")?.ok_or(Fault::Claim("iat"))?;
        if claims.get("azp").is_some_and(|party| party.as_str() != Some(&self.expected.audience)) {
            return Err(Fault::Party.into());
        }
        if let (Some(expected), Some(token)) = (claims.get("at_hash"), sign_in.access_token)
            && expected.as_str() != Some(&access_token_hash(token, algorithm))
        {
            return Err(Fault::AccessToken.into());
        }
        Ok(claims)
    }

    /// The claims of a token that the issuer has signed, and the algorithm. Only the signature has been checked.
    async fn claims(&self, token: &str) -> Result<(Claims, Algorithm), VerifyError> {
        if token.len() > MAX_BYTES {
            return Err(Fault::Form.into());
        }
        let header = decode_header(token).map_err(|_| Fault::Form)?;
        if header.crit.is_some() {
            return Err(Fault::Extensions.into());
        }
        if !self.expected.algorithms.contains(&SignatureAlgorithm(header.alg)) {
            return Err(Fault::Algorithm.into());
        }
        let key = self.issuer.key(header.kid.as_deref(), header.alg).await.map_err(VerifyError::Unavailable)?;
        // The library checks only the signature. The claims are checked here, against the service's own clock.
        let mut only_signature = Validation::new(header.alg);
        only_signature.required_spec_claims.clear();
        only_signature.validate_exp = false;
        only_signature.validate_aud = false;
        let decoded = decode(token, &key.ok_or(Fault::Signature)?, &only_signature);
        let decoded = decoded.map_err(|error| match error.kind() {
            ErrorKind::InvalidToken | ErrorKind::Base64(_) => Fault::Form,
            ErrorKind::Json(_) | ErrorKind::Utf8(_) => Fault::Claims,
            _ => Fault::Signature,
        })?;
        let mut claims: Claims = decoded.claims;
        // Some issuers write null for a claim that they leave out.
        claims.retain(|_, claim| !claim.is_null());
        Ok((claims, header.alg))
    }

    fn check(&self, claims: &Claims, now: Timestamp) -> Result<(), Fault> {
        if text(claims, "iss") != Some(self.issuer.name()) {
            return Err(Fault::Issuer);
        }
        if !self.expected.is_audience(claims.get("aud")) {
            return Err(Fault::Audience);
        }
        let now = now.utc().timestamp_millis();
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of any year to come are exact")]
        let now = now as f64 / 1000.0;
        if time(claims, "exp")?.ok_or(Fault::Claim("exp"))? + LEEWAY <= now {
            return Err(Fault::Expired);
        }
        if time(claims, "nbf")?.is_some_and(|begins| now < begins - LEEWAY) {
            return Err(Fault::Early);
        }
        time(claims, "iat")?;
        Ok(())
    }
}

impl Expectations {
    fn is_audience(&self, claim: Option<&Value>) -> bool {
        let audiences = match claim {
            Some(Value::Array(audiences)) => audiences,
            Some(one) => std::slice::from_ref(one),
            None => return false,
        };
        let is_own = |audience: &Value| audience.as_str() == Some(&self.audience);
        let is_trusted = |audience: &Value| match &self.others {
            OtherAudiences::Any => true,
            OtherAudiences::Only(trusted) => {
                audience.as_str().is_some_and(|text| trusted.iter().any(|one| one == text))
            }
        };
        audiences.iter().any(is_own) && audiences.iter().all(|audience| is_own(audience) || is_trusted(audience))
    }
}

fn text<'a>(claims: &'a Claims, name: &str) -> Option<&'a str> {
    claims.get(name).and_then(Value::as_str)
}

/// A time (RFC 7519, section 2: `NumericDate`), if there is one.
fn time(claims: &Claims, name: &'static str) -> Result<Option<f64>, Fault> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    match value.as_f64() {
        Some(seconds) if (0.0..MAX_TIME).contains(&seconds) => Ok(Some(seconds)),
        _ => Err(Fault::Claim(name)),
    }
}

/// The value of `at_hash` for an access token (OpenID Connect Core 1.0, section 3.1.3.6).
fn access_token_hash(token: &str, algorithm: Algorithm) -> String {
    let hash = match algorithm {
        Algorithm::RS384 | Algorithm::PS384 | Algorithm::ES384 => &digest::SHA384,
        // Ed25519 hashes with SHA-512 (RFC 8032).
        Algorithm::RS512 | Algorithm::PS512 | Algorithm::EdDSA => &digest::SHA512,
        _ => &digest::SHA256,
    };
    let hash = digest::digest(hash, token.as_bytes());
    let (left_half, _) = hash.as_ref().split_at(hash.as_ref().len() / 2);
    BASE64_URL_SAFE_NO_PAD.encode(left_half)
}

#[cfg(test)]
mod tests;
