//! OpenID Connect (Core 1.0, Discovery 1.0): the metadata describes the provider, and a signed token identifies the
//! user.

use club_issuer::{
    Claims, Expectations, Issuer, Metadata, OtherAudiences, SignIn, SignatureAlgorithm, Verifier, VerifyError,
    cached_fetch::RefreshPolicy,
};
use common::{problem::Problem, time::Timestamp};
use serde_json::Value;
use service_kit::credentials::Keys;

use super::{claims, exchange::AuthorizationResponse, http::Http, oauth};
use crate::failure::{refused, unavailable};
use crate::{
    config::{ClientAuth, ProviderSettings},
    identities::Identity,
    pending::PendingSignIn,
};

/// An OpenID Connect issuer.
#[derive(Debug)]
pub struct OpenId {
    settings: ProviderSettings,
    verifier: Verifier,
    http: Http,
}

impl OpenId {
    /// An issuer whose metadata has not been fetched yet.
    pub fn new(issuer: String, settings: ProviderSettings) -> Self {
        let expected = Expectations {
            audience: settings.client_id.clone(),
            others: OtherAudiences::Only(settings.trusted_audiences.clone()),
            algorithms: SignatureAlgorithm::ALL.to_vec(),
        };
        let issuer = Issuer::new(issuer, None, RefreshPolicy::default());
        Self { settings, verifier: Verifier::new(issuer, expected), http: Http::new() }
    }

    /// Fetches the metadata unless it is cached. The log says why that fails.
    pub async fn fetch_metadata(&self) {
        let _ = self.verifier.issuer().metadata().await;
    }

    /// The claims about a user that the metadata does not promise, one line each.
    pub async fn doubts(&self) -> Vec<String> {
        let promised = self.verifier.issuer().metadata().await.map(|metadata| metadata.claims).unwrap_or_default();
        let claims = [("--oauth-name-claim", &self.settings.name_claim), ("--oauth-id-claim", &self.settings.id_claim)];
        let missing = claims.iter().filter(|(_, claim)| !promised.is_empty() && !promised.contains(claim));
        let line = |(option, claim)| format!("the issuer's metadata does not promise the claim {claim:?} of {option}");
        missing.copied().map(line).collect()
    }

    pub fn settings(&self) -> &ProviderSettings {
        &self.settings
    }

    pub fn issuer(&self) -> &str {
        self.verifier.issuer().name()
    }

    pub async fn address(&self, keys: &Keys, login: &PendingSignIn) -> Result<String, Problem> {
        let client = self.client(&self.verifier.issuer().metadata().await?)?;
        Ok(oauth::address(&client, &self.settings.scopes, keys, login, Some(&login.nonce)))
    }

    fn client(&self, metadata: &Metadata) -> Result<oauth::Client, Problem> {
        let endpoint = |url: &Option<_>, name| {
            url.clone().ok_or_else(|| unavailable(format!("the metadata of the provider has no usable {name}")))
        };
        let authorize = endpoint(&metadata.authorization_endpoint, "authorization_endpoint")?;
        let token = endpoint(&metadata.token_endpoint, "token_endpoint")?;
        let accepts = |method: &str| metadata.token_endpoint_auth_methods.iter().any(|one| one == method);
        let only_in_body = accepts("client_secret_post") && !accepts("client_secret_basic");
        let by = if only_in_body { ClientAuth::Post } else { ClientAuth::Basic };
        Ok(oauth::client(&self.settings, authorize, token, by))
    }

    pub async fn exchange(
        &self,
        keys: &Keys,
        response: AuthorizationResponse,
        login: &PendingSignIn,
        now: Timestamp,
    ) -> Result<Identity, Problem> {
        let metadata = self.verifier.issuer().metadata().await?;
        // RFC 9207, section 2.4: the code of another provider must not be sent to this one.
        match &response.issuer {
            Some(issuer) if issuer != self.issuer() => return Err(refused("the callback is of another issuer")),
            None if metadata.names_itself => return Err(refused("the callback does not say its issuer")),
            _ => {}
        }
        let (client, verifier) = (self.client(&metadata)?, oauth::verifier(keys, login));
        let tokens = self.http.run(move |http| oauth::exchange(&client, http, response.code, verifier)).await?;
        let id_token = tokens.id_token.ok_or_else(|| unavailable("the provider gives no ID token"))?;
        let access_token = tokens.access_token;
        let sign_in = SignIn { nonce: &login.nonce, access_token: access_token.as_deref() };
        let claims = self.verifier.verify_id_token(&id_token, sign_in, now).await;
        let mut claims = claims.map_err(|error| match error {
            VerifyError::Refused(fault) => refused(&format!("the ID token {fault}")),
            VerifyError::Unavailable(problem) => problem,
        })?;
        let ProviderSettings { id_claim, name_claim, privileged_claim, rules, scopes, .. } = &self.settings;
        let wants_address = scopes.iter().any(|scope| scope == "email");
        let is_complete = [id_claim, name_claim].iter().all(|name| claims.contains_key(*name))
            && (!wants_address || claims.contains_key("email"))
            && privileged_claim.iter().chain(&rules.claims).all(|claim| claim.is_named_in(&claims));
        if let (false, Some(address), Some(token)) = (is_complete, metadata.userinfo_endpoint, access_token) {
            let more = self.http.run(move |http| http.object(&address, &token)).await?;
            add(&mut claims, more)?;
        }
        claims::identity(self.issuer(), &claims, false, &self.settings)
    }
}

/// Adds the claims of the user info that the ID token does not have.
fn add(claims: &mut Claims, user_info: Claims) -> Result<(), Problem> {
    // OpenID Connect Core 1.0, section 5.3.2: claims about another subject must not be used.
    match user_info.get("sub") {
        subject @ Some(Value::String(_)) if subject == claims.get("sub") => {}
        _ => return Err(refused("the user info is not of the subject of the ID token")),
    }
    for (name, value) in user_info {
        claims.entry(name).or_insert(value);
    }
    Ok(())
}
