//! The authorization code grant of OAuth 2.0 (RFC 6749) with PKCE (RFC 7636), and a provider that supports nothing
//! more. It has three addresses; the last describes the owner of a token.

use common::problem::Problem;
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet, EndpointSet,
    ExtraTokenFields, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    StandardRevocableToken, StandardTokenResponse, TokenUrl,
    basic::{
        BasicErrorResponse, BasicErrorResponseType, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse,
        BasicTokenType,
    },
};
use serde::{Deserialize, Serialize};
use service_kit::credentials::Keys;
use url::Url;

use super::{
    claims,
    http::{Http, NoAnswer},
};
use crate::sign_in::failure::{misconfigured, refused, unavailable};
use crate::{
    config::{Addresses, ProviderSettings},
    sign_in::{identities::Identity, pending::PendingSignIn},
};

/// What OpenID Connect adds to the answer of the token endpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpenIdFields {
    /// The ID token.
    pub id_token: Option<String>,
}

impl ExtraTokenFields for OpenIdFields {}

/// The answer of the token endpoint.
pub type Tokens = StandardTokenResponse<OpenIdFields, BasicTokenType>;

/// A client of an authorization server.
pub type Client = oauth2::Client<
    BasicErrorResponse,
    Tokens,
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
/// `by` is how the client secret is sent, if there is one.
pub fn client(settings: &ProviderSettings, authorize: Url, token: Url, by: AuthType) -> Client {
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
/// 400 `bad-login` for a code that the provider does not accept; 503 for a provider that does not answer, or whose
/// answer is not understood; 503 `sign-in-misconfigured` for one that does not accept this service.
pub fn exchange(client: &Client, http: &Http, code: String, verifier: PkceCodeVerifier) -> Result<Tokens, Problem> {
    let request = client.exchange_code(AuthorizationCode::new(code)).set_pkce_verifier(verifier);
    request.request(&|request| http.send(request)).map_err(|error| problem(&error))
}

/// The PKCE verifier of a sign-in. It is computed from the key and the state, so it need not be stored.
pub fn verifier(keys: &Keys, login: &PendingSignIn) -> PkceCodeVerifier {
    PkceCodeVerifier::new(keys.derive_by(login.key, &["pkce", &login.state]))
}

fn problem(error: &RequestTokenError<NoAnswer, BasicErrorResponse>) -> Problem {
    use BasicErrorResponseType::{
        Extension, InvalidClient, InvalidGrant, InvalidRequest, InvalidScope, UnauthorizedClient, UnsupportedGrantType,
    };
    let why = match error {
        RequestTokenError::ServerResponse(answer) => match answer.error() {
            // The code is the one thing in the request that came from the browser.
            InvalidGrant | InvalidRequest => return refused("the provider does not accept the code"),
            error @ (InvalidClient | InvalidScope | UnauthorizedClient | UnsupportedGrantType) => {
                return misconfigured(format!("the sign-in provider refuses with {}", error.as_ref()));
            }
            Extension(_) => "it refuses with an error of its own".to_owned(),
        },
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
        let client = client(&settings, authorize, token, AuthType::BasicAuth);
        Self { settings, addresses, client, http: Http::new() }
    }

    pub fn settings(&self) -> &ProviderSettings {
        &self.settings
    }

    pub fn address(&self, keys: &Keys, login: &PendingSignIn) -> String {
        address(&self.client, &self.settings.scopes, keys, login, None)
    }

    pub async fn exchange(&self, keys: &Keys, code: String, login: &PendingSignIn) -> Result<Identity, Problem> {
        let (client, verifier, user) = (self.client.clone(), verifier(keys, login), self.addresses.user.clone());
        let work = move |http: &Http| {
            use oauth2::TokenResponse;
            let tokens = exchange(&client, http, code, verifier)?;
            http.object(&user, tokens.access_token().secret())
        };
        let claims = self.http.run(work).await?;
        claims::identity(self.addresses.user.as_str(), &claims, &self.settings)
    }
}
