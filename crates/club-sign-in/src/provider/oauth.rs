//! The authorization code grant of OAuth 2.0 (RFC 6749) with PKCE (RFC 7636), and a provider that supports nothing
//! more. It has three addresses; the last describes the owner of a token.

use common::problem::Problem;
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet, EndpointSet,
    ExtraTokenFields, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    StandardRevocableToken, StandardTokenResponse, TokenResponse, TokenUrl,
    basic::{BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse, BasicTokenType},
};
use serde::{Deserialize, Serialize};
use service_kit::credentials::Keys;
use url::Url;

use super::{
    claims,
    http::{Http, NoAnswer},
    people,
    token_answer::{self, Tokens},
};
use crate::failure::{refused_by_token_endpoint, unavailable};
use crate::{
    config::{Addresses, ClientAuth, ProviderSettings},
    identities::Identity,
    pending::PendingSignIn,
};

/// What OpenID Connect adds to the answer of the token endpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpenIdFields {
    id_token: Option<String>,
}

impl ExtraTokenFields for OpenIdFields {}

type TokenAnswer = StandardTokenResponse<OpenIdFields, BasicTokenType>;

/// A client of an authorization server.
pub type Client = oauth2::Client<
    BasicErrorResponse,
    TokenAnswer,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;

/// The client of an authorization server.
///
/// `by` is how the client secret is sent, unless that is configured.
pub fn client(settings: &ProviderSettings, authorize: Url, token: Url, by: ClientAuth) -> Client {
    let by = match settings.client_auth.unwrap_or(by) {
        ClientAuth::Basic => AuthType::BasicAuth,
        ClientAuth::Post => AuthType::RequestBody,
    };
    let client = oauth2::Client::new(ClientId::new(settings.client_id.clone()))
        .set_auth_uri(AuthUrl::from_url(authorize))
        .set_token_uri(TokenUrl::from_url(token))
        .set_redirect_uri(RedirectUrl::from_url(settings.redirect_url.clone()))
        .set_auth_type(by);
    match &settings.client_secret {
        Some(secret) => client.set_client_secret(ClientSecret::new(secret.reveal().to_owned())),
        None => client,
    }
}

/// The address to send the browser to; `nonce` is for OpenID Connect.
pub fn address(client: &Client, scopes: &[String], keys: &Keys, login: &PendingSignIn, nonce: Option<&str>) -> String {
    let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier(keys, login));
    let mut request = client
        .authorize_url(|| CsrfToken::new(login.state.clone()))
        .set_pkce_challenge(challenge)
        .add_scopes(scopes.iter().cloned().map(Scope::new));
    if let Some(nonce) = nonce {
        request = request.add_extra_param("nonce", nonce.to_owned());
    }
    request.url().0.into()
}

/// Exchanges a code, on a blocking thread.
///
/// # Errors
/// 400 `bad-login` when the provider refuses; 503 when it does not answer, or its answer is not understood; 503
/// `sign-in-misconfigured` when it does not accept this service.
pub fn exchange(client: &Client, http: &Http, code: String, verifier: PkceCodeVerifier) -> Result<Tokens, Problem> {
    let request = client.exchange_code(AuthorizationCode::new(code)).set_pkce_verifier(verifier);
    let answer = request.request(&|request| http.send(request).map(token_answer::reduce));
    let answer = answer.map_err(|error| problem(&error))?;
    let access_token = Some(answer.access_token().secret().clone()).filter(|token| !token.is_empty());
    Ok(Tokens { access_token, id_token: answer.extra_fields().id_token.clone() })
}

/// The PKCE verifier of a sign-in. It is computed from the key and the state, so it need not be stored.
pub fn verifier(keys: &Keys, login: &PendingSignIn) -> PkceCodeVerifier {
    PkceCodeVerifier::new(keys.derive_by(login.key, &["pkce", &login.state]))
}

fn problem(error: &RequestTokenError<NoAnswer, BasicErrorResponse>) -> Problem {
    let why = match error {
        RequestTokenError::ServerResponse(answer) => return refused_by_token_endpoint(answer.error().as_ref()),
        RequestTokenError::Request(cause) => cause.to_string(),
        // The words may quote the answer.
        _ => "the answer is not understood".to_owned(),
    };
    unavailable(format!("the code cannot be exchanged at the provider: {why}"))
}

/// A plain OAuth 2.0 provider.
#[derive(Debug)]
pub struct OAuth {
    settings: ProviderSettings,
    addresses: Addresses,
    client: Client,
    http: Http,
}

impl OAuth {
    pub fn new(addresses: Addresses, settings: ProviderSettings) -> Self {
        let (authorize, token) = (addresses.authorize.clone(), addresses.token.clone());
        let client = client(&settings, authorize, token, ClientAuth::Basic);
        Self { settings, addresses, client, http: Http::new() }
    }

    /// Says if the provider does not answer.
    pub async fn doubts(&self) -> Vec<String> {
        let user = self.addresses.user.clone();
        let answer = self.http.run(move |http| Ok(http.ask(&user).err())).await;
        let line = |error| format!("the sign-in provider does not answer: {error}");
        answer.ok().flatten().map(line).into_iter().collect()
    }

    pub fn settings(&self) -> &ProviderSettings {
        &self.settings
    }

    pub fn address(&self, keys: &Keys, login: &PendingSignIn) -> String {
        address(&self.client, &self.settings.scopes, keys, login, None)
    }

    pub async fn exchange(&self, keys: &Keys, code: String, login: &PendingSignIn) -> Result<Identity, Problem> {
        let (client, verifier, user) = (self.client.clone(), verifier(keys, login), self.addresses.user.clone());
        let ProviderSettings { group, has_addresses, verified_claim, .. } = self.settings.clone();
        let work = move |http: &Http| {
            let tokens = exchange(&client, http, code, verifier)?;
            let token = tokens.access_token.ok_or_else(|| unavailable("the provider gives no access token"))?;
            let mut claims = http.object(&user, &token)?;
            if has_addresses {
                people::add_address(&mut claims, http, &user, &token, &verified_claim)?;
            }
            let is_in_group = group.map_or(Ok(false), |group| people::is_in(&group, http, &user, &token))?;
            Ok((claims, is_in_group))
        };
        let (claims, is_in_group) = self.http.run(work).await?;
        claims::identity(self.addresses.user.as_str(), &claims, is_in_group, &self.settings)
    }
}
