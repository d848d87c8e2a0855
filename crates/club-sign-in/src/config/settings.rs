//! The settings of a sign-in provider that result from the options.

use club_issuer::{ClaimValue, joining::JoinRules};
use service_kit::config::Secret;
use url::Url;

use super::providers::ClientAuth;

/// The settings of a sign-in provider.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// Its protocol and addresses.
    pub kind: ProviderKind,
    /// The client id of this service.
    pub client_id: String,
    /// The client secret of this service; a public client has none.
    pub client_secret: Option<Secret>,
    /// How the client secret is sent, if that is configured.
    pub client_auth: Option<ClientAuth>,
    /// Other audiences that an ID token may have.
    pub trusted_audiences: Vec<String>,
    /// Who is privileged, if the provider decides.
    pub privileged_claim: Option<ClaimValue>,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// The claim that contains the sign-in name.
    pub name_claim: String,
    /// The claim that identifies a user.
    pub id_claim: String,
    /// The claim that says that the e-mail address is the user's.
    pub verified_claim: String,
    /// Whether a name at the provider is proof of being the user of that name here. It is not where everybody chooses
    /// one.
    pub trusts_names: bool,
    /// By which claims people are members.
    pub rules: JoinRules,
    /// Of which group at the provider people are members here.
    pub group: Option<GroupAtProvider>,
    /// Whether the addresses of the user are at `/emails` below the address about the user, as at GitHub.
    pub has_addresses: bool,
    /// The address to which the provider redirects the browser.
    pub redirect_url: Url,
}

/// A group of people at a provider. Whether the user is in it is at an address below the one about the user.
#[derive(Debug, Clone)]
pub enum GroupAtProvider {
    /// A Discord server, and roles there of which one is needed, if there are any.
    DiscordServer(String, Vec<String>),
    /// A GitHub organization.
    GithubOrganization(String),
}

/// The protocol and the addresses of a provider.
#[derive(Debug, Clone)]
pub enum ProviderKind {
    /// OpenID Connect. The issuer's metadata contains the other addresses.
    OpenId {
        /// The issuer, exactly as in its metadata.
        issuer: String,
    },
    /// OAuth 2.0 (RFC 6749) and an address that describes the owner of a token.
    OAuth(Box<Addresses>),
}

/// The addresses of a plain OAuth 2.0 provider.
#[derive(Debug, Clone)]
pub struct Addresses {
    /// The authorization endpoint.
    pub authorize: Url,
    /// The token endpoint.
    pub token: Url,
    /// The address that describes the owner of a token.
    pub user: Url,
}
