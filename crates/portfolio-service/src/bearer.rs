//! Bearer tokens of an OpenID Connect issuer.

use club_issuer::{
    ClaimValue, Expectations, Issuer, Verifier, VerifyError, cached_fetch::RefreshPolicy, joining::verified_address,
};
use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use serde_json::Value;
use service_kit::history::By;
use url::Url;

/// The configured issuer.
#[derive(Debug, Clone)]
pub struct BearerSettings {
    /// The issuer, equal to `iss`.
    pub issuer: String,
    /// The address of its keys, if it is not that of its metadata.
    pub keys: Option<Url>,
    /// The requirements on its tokens.
    pub expected: Expectations,
    /// The claim that contains the sign-in name.
    pub name_claim: String,
    /// Who is an admin besides those of `--admins`.
    pub admin_claim: Option<ClaimValue>,
}

/// By what a credential names a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// The sign-in name.
    User,
    /// An e-mail address, which has been verified.
    Address,
    /// The secret of a session.
    Session,
}

/// Whom a credential names.
#[derive(Clone, PartialEq, Eq)]
pub struct Named {
    /// The sign-in name, the e-mail address, or the secret of the session.
    pub name: String,
    /// Which of them.
    pub kind: NameKind,
    /// The kind of credential.
    pub by: By,
    /// Whether the credential makes its owner an admin.
    pub is_admin: bool,
}

/// Checks bearer tokens.
#[derive(Debug)]
pub struct BearerTokens {
    verifier: Verifier,
    name_claim: String,
    admin_claim: Option<ClaimValue>,
}

impl BearerTokens {
    /// A checker that has not fetched any key yet.
    pub fn new(settings: BearerSettings, policy: RefreshPolicy) -> Self {
        let BearerSettings { issuer, keys, expected, name_claim, admin_claim } = settings;
        Self { verifier: Verifier::new(Issuer::new(issuer, keys, policy), expected), name_claim, admin_claim }
    }

    /// Whom a token names that is valid at `now`.
    ///
    /// # Errors
    /// 401 `bad-credentials` for any other token; 503 when the issuer's keys have never been fetched.
    pub async fn check(&self, token: &str, now: Timestamp) -> Result<Named, Problem> {
        let refused = |detail: String| Problem::new(code::BAD_CREDENTIALS).detail(detail);
        let claims = self.verifier.verify(token, now).await.map_err(|error| match error {
            VerifyError::Refused(fault) => refused(format!("The token {fault}.")),
            VerifyError::Unavailable(problem) => problem,
        })?;
        let is_address = self.name_claim == "email";
        match claims.get(&self.name_claim) {
            Some(Value::String(_)) if is_address && verified_address(&claims, "email_verified").is_none() => {
                Err(refused("The e-mail address in the token is not verified.".to_owned()))
            }
            Some(Value::String(name)) => Ok(Named {
                name: name.clone(),
                kind: if is_address { NameKind::Address } else { NameKind::User },
                by: By::Token,
                is_admin: self.admin_claim.as_ref().is_some_and(|claim| claim.holds(&claims)),
            }),
            _ => Err(refused("The token does not contain the sign-in name.".to_owned())),
        }
    }
}
