//! OpenID Connect (Core 1.0, Discovery 1.0): the metadata describes the provider, and a signed token identifies the
//! user.

use common::address::is_safe;
use common::{problem::Problem, time::Timestamp};
use oauth2::{AuthType, TokenResponse};
use openidconnect::{
    AccessToken, AccessTokenHash, AdditionalClaims, AdditionalProviderMetadata, ClaimsVerificationError, ClientId,
    DiscoveryError, IdToken, IssuerUrl, Nonce, ProviderMetadata, SignatureVerificationError,
    core::{
        CoreAuthDisplay, CoreClaimName, CoreClaimType, CoreClientAuthMethod, CoreGenderClaim, CoreGrantType,
        CoreIdTokenVerifier, CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJweKeyManagementAlgorithm,
        CoreJwsSigningAlgorithm, CoreResponseMode, CoreResponseType, CoreSubjectIdentifierType,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use service_kit::{
    cached_fetch::{CachedFetch, RefreshPolicy},
    credentials::Keys,
};

use super::{
    claims::{self, Claims},
    exchange::AuthorizationResponse,
    http::{Http, NoAnswer},
    oauth,
};
use crate::sign_in::failure::{refused, unavailable};
use crate::{
    config::ProviderSettings,
    sign_in::{identities::Identity, pending::PendingSignIn},
};

/// The accepted signature algorithms of ID tokens. All use a private key, which only the provider has.
const ACCEPTED_ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// What other standards add to the metadata.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct MoreMetadata {
    /// RFC 9207, section 3.
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for MoreMetadata {}

type Metadata = ProviderMetadata<
    MoreMetadata,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

/// The claims that no standard names, such as a club's own.
#[derive(Debug, Serialize, Deserialize)]
struct OtherClaims(Map<String, Value>);

impl AdditionalClaims for OtherClaims {}

type ClubIdToken = IdToken<OtherClaims, CoreGenderClaim, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm>;

/// An OpenID Connect issuer.
#[derive(Debug)]
pub struct OpenId {
    issuer: String,
    settings: ProviderSettings,
    /// The metadata, keys included.
    metadata: CachedFetch<Metadata>,
    http: Http,
}

impl OpenId {
    /// An issuer whose metadata has not been fetched yet.
    ///
    /// # Errors
    /// When the address is not a URL.
    pub fn new(issuer: String, settings: ProviderSettings) -> Result<Self, String> {
        let url = IssuerUrl::new(issuer.clone()).map_err(|error| format!("--oidc-issuer: {error}"))?;
        let http = Http::new();
        let client = http.clone();
        let discover = move || discover(&url, &client);
        let metadata =
            CachedFetch::new("metadata and keys of the sign-in provider", RefreshPolicy::default(), discover);
        Ok(Self { issuer, settings, metadata, http })
    }

    async fn metadata(&self) -> Result<Metadata, Problem> {
        let metadata = self.metadata.find(|metadata| Some(metadata.clone())).await?;
        metadata.ok_or_else(|| unavailable("the provider has no metadata"))
    }

    /// Fetches the metadata unless it is cached. The log says why that fails.
    pub async fn fetch_metadata(&self) {
        let _ = self.metadata().await;
    }

    pub fn settings(&self) -> &ProviderSettings {
        &self.settings
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    pub async fn address(&self, keys: &Keys, login: &PendingSignIn) -> Result<String, Problem> {
        let client = self.client(&self.metadata().await?)?;
        Ok(oauth::address(&client, &self.settings.scopes, keys, login, Some(&login.nonce)))
    }

    fn client(&self, metadata: &Metadata) -> Result<oauth::Client, Problem> {
        let token = metadata.token_endpoint().ok_or_else(|| unavailable("the provider has no token endpoint"))?;
        let methods = metadata.token_endpoint_auth_methods_supported();
        let takes = |method| methods.is_some_and(|methods| methods.contains(&method));
        let only_in_body =
            takes(CoreClientAuthMethod::ClientSecretPost) && !takes(CoreClientAuthMethod::ClientSecretBasic);
        let by = if only_in_body { AuthType::RequestBody } else { AuthType::BasicAuth };
        let authorize = metadata.authorization_endpoint().url().clone();
        Ok(oauth::client(&self.settings, authorize, token.url().clone(), by))
    }

    pub async fn exchange(
        &self,
        keys: &Keys,
        response: AuthorizationResponse,
        login: &PendingSignIn,
        now: Timestamp,
    ) -> Result<Identity, Problem> {
        let metadata = self.metadata().await?;
        // RFC 9207, section 2.4: the code of another provider must not be sent to this one.
        let must_name_issuer = metadata.additional_metadata().authorization_response_iss_parameter_supported;
        match &response.issuer {
            Some(issuer) if *issuer != self.issuer => return Err(refused("the callback is of another issuer")),
            None if must_name_issuer => return Err(refused("the callback does not say its issuer")),
            _ => {}
        }
        let (client, verifier) = (self.client(&metadata)?, oauth::verifier(keys, login));
        let tokens = self.http.run(move |http| oauth::exchange(&client, http, response.code, verifier)).await?;
        let id_token = tokens.extra_fields().id_token.as_deref();
        let id_token = id_token.ok_or_else(|| unavailable("the provider gives no ID token"))?;
        let id_token: ClubIdToken =
            id_token.parse().map_err(|_| unavailable("the provider's ID token is not understood"))?;
        let nonce = Nonce::new(login.nonce.clone());
        let verify = |metadata: &Metadata| self.verify(metadata, &id_token, tokens.access_token(), &nonce, now);
        let unknown_key = || Err(refused("the ID token is signed with a key that the provider does not have"));
        let mut claims = self.metadata.find(verify).await?.unwrap_or_else(unknown_key)?;
        let is_complete =
            [&self.settings.id_claim, &self.settings.name_claim].iter().all(|name| claims.contains_key(*name));
        if let (false, Some(address)) = (is_complete, metadata.userinfo_endpoint()) {
            let (address, token) = (address.url().clone(), tokens.access_token().secret().clone());
            let more = self.http.run(move |http| http.object(&address, &token)).await?;
            // OpenID Connect Core 1.0, section 5.3.2: claims about another subject must not be used.
            match more.get("sub") {
                subject @ Some(Value::String(_)) if subject == claims.get("sub") => {}
                Some(Value::String(_)) => return Err(refused("the user info is of another subject")),
                _ => return Err(unavailable("the provider's user info does not say whose it is")),
            }
            for (name, value) in more {
                claims.entry(name).or_insert(value);
            }
        }
        claims::identity(&self.issuer, &claims, &self.settings)
    }

    /// The claims of an ID token that is the provider's, for this service and this sign-in (OpenID Connect Core 1.0,
    /// section 3.1.3.7). `None` when the metadata does not contain its key.
    fn verify(
        &self,
        metadata: &Metadata,
        token: &ClubIdToken,
        access: &AccessToken,
        nonce: &Nonce,
        now: Timestamp,
    ) -> Option<Result<Claims, Problem>> {
        // As for a public client, because signatures with the client secret are not accepted from anybody.
        let verifier = CoreIdTokenVerifier::new_public_client(
            ClientId::new(self.settings.client_id.clone()),
            metadata.issuer().clone(),
            metadata.jwks().clone(),
        )
        .set_allowed_algs(ACCEPTED_ALGORITHMS)
        .set_time_fn(move || now.utc());
        let claims = match token.claims(&verifier, nonce) {
            Ok(claims) => claims,
            Err(ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey)) => {
                return None;
            }
            Err(error) => return Some(Err(refused(words(&error)))),
        };
        // The library does not check these two.
        if claims.authorized_party().is_some_and(|party| **party != self.settings.client_id) {
            return Some(Err(refused("the ID token is for another party")));
        }
        if let Some(expected) = claims.access_token_hash() {
            let key = token.signing_key(&verifier).ok().zip(token.signing_alg().ok());
            let hash = key.and_then(|(key, by)| AccessTokenHash::from_token(access, by, key).ok());
            if hash.as_ref() != Some(expected) {
                return Some(Err(refused("the ID token came with another access token")));
            }
        }
        match serde_json::to_value(claims) {
            Ok(Value::Object(claims)) => Some(Ok(claims)),
            _ => Some(Err(unavailable("the claims of the ID token are no JSON object"))),
        }
    }
}

/// The most characters of two issuers in the log.
const MAX_ISSUERS_LEN: usize = 1000;

/// Fetches the metadata and the keys, on a blocking thread.
fn discover(issuer: &IssuerUrl, http: &Http) -> Result<Metadata, String> {
    let metadata = Metadata::discover(issuer, &|request| http.send(request)).map_err(|error| match error {
        DiscoveryError::Request(cause) => NoAnswer::to_string(&cause),
        DiscoveryError::Response(status, ..) if status != 200 => format!("it answers with status {}", status.as_u16()),
        // The one check of the library, which names both issuers.
        DiscoveryError::Validation(differ) => {
            let differ: String = differ.chars().take(MAX_ISSUERS_LEN).collect();
            format!("{differ}; --oidc-issuer must be the same to the last character")
        }
        // The words may quote the answer.
        _ => "the answer is not understood".to_owned(),
    })?;
    // The browser opens this address; those to which the service itself sends requests are checked then.
    is_safe(metadata.authorization_endpoint().url())?;
    Ok(metadata)
}

/// The fault of an ID token in our own words, because those of the library quote the token.
fn words(error: &ClaimsVerificationError) -> &'static str {
    match error {
        ClaimsVerificationError::Expired(_) => "the ID token has expired",
        ClaimsVerificationError::InvalidAudience(_) => "the ID token is for another audience",
        ClaimsVerificationError::InvalidIssuer(_) => "the ID token is of another issuer",
        ClaimsVerificationError::InvalidNonce(_) => "the ID token is of another sign-in",
        ClaimsVerificationError::SignatureVerification(_) => "the ID token is not signed by the provider",
        _ => "the ID token is not understood",
    }
}
