//! The options of the sign-in provider.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use club_issuer::ClaimValue;
use service_kit::config::{Secret, absolute_url, whole_number};
use url::Url;

use super::providers::{ClientAuth, ProviderName};

/// An id or a name that becomes a part of an address.
fn id(text: &str) -> Result<String, &'static str> {
    let is_id = !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'));
    if is_id { Ok(text.to_owned()) } else { Err("must have letters, digits, - and _ only") }
}

/// The sign-in provider. Without these options the service runs in development mode.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sign-in")]
pub struct SignInOptions {
    /// Who may sign in with a provider [default: with a directory or a rule `directory`, `anyone` without].
    #[arg(long, env = "SIGN_IN", value_name = "WHO", value_enum, global = true)]
    pub sign_in: Option<SignInPolicy>,

    /// Claim, or member of the user's JSON object, and the value that makes a user a member, such as `hd=club.example`.
    /// Comma-separated; one of them is enough.
    #[arg(long, env = "REQUIRED_CLAIM", value_name = "CLAIM=VALUE", value_delimiter = ',', global = true)]
    pub required_claim: Vec<ClaimValue>,

    /// Domains, comma-separated: whoever has a verified e-mail address in one of them is a member.
    #[arg(long, env = "MEMBER_DOMAINS", value_name = "DOMAIN", value_delimiter = ',', global = true)]
    pub member_domains: Vec<String>,

    /// The sign-in provider by its name, for its addresses, scopes and claims. Each has its own option as well.
    #[arg(long, env = "PROVIDER", value_name = "NAME", value_enum, global = true)]
    pub provider: Option<ProviderName>,

    /// Id of the organization (tenant) at Microsoft, whose people are members.
    #[arg(long, env = "MICROSOFT_TENANT", value_name = "ID", global = true, value_parser = id)]
    pub microsoft_tenant: Option<String>,

    /// Id of the Discord server whose people are members.
    #[arg(long, env = "DISCORD_SERVER", value_name = "ID", global = true, value_parser = id)]
    pub discord_server: Option<String>,

    /// Ids of roles on the Discord server, comma-separated: only people with one of them are members.
    #[arg(long, env = "DISCORD_ROLES", value_name = "ID", value_delimiter = ',', global = true, value_parser = id)]
    pub discord_roles: Vec<String>,

    /// Name of the GitHub organization whose people are members.
    #[arg(long, env = "GITHUB_ORGANIZATION", value_name = "NAME", global = true, value_parser = id)]
    pub github_organization: Option<String>,

    /// Id of the Slack workspace whose people are members (`T…`).
    #[arg(long, env = "SLACK_WORKSPACE", value_name = "ID", global = true, value_parser = id)]
    pub slack_workspace: Option<String>,

    /// Issuer URL of the OpenID Connect provider, exactly as in its metadata.
    #[arg(long, env = "OIDC_ISSUER", value_name = "URL", global = true)]
    pub oidc_issuer: Option<String>,

    /// Other audiences that an ID token may have besides the client id, comma-separated.
    #[arg(long, env = "OIDC_TRUSTED_AUDIENCES", value_name = "TEXT", value_delimiter = ',', global = true)]
    pub oidc_trusted_audiences: Vec<String>,

    /// Authorization endpoint of a plain OAuth 2.0 provider, instead of `--oidc-issuer`.
    #[arg(long, env = "OAUTH_AUTHORIZE_URL", value_name = "URL", global = true, value_parser = absolute_url)]
    pub oauth_authorize_url: Option<Url>,

    /// Token endpoint of the plain OAuth 2.0 provider.
    #[arg(long, env = "OAUTH_TOKEN_URL", value_name = "URL", global = true, value_parser = absolute_url)]
    pub oauth_token_url: Option<Url>,

    /// URL at the plain OAuth 2.0 provider that answers a JSON object about the owner of a token.
    #[arg(long, env = "OAUTH_USER_URL", value_name = "URL", global = true, value_parser = absolute_url)]
    pub oauth_user_url: Option<Url>,

    /// Client id of this service at the provider.
    #[arg(long, env = "OAUTH_CLIENT_ID", value_name = "TEXT", global = true, allow_hyphen_values = true)]
    pub oauth_client_id: Option<String>,

    /// How the client secret is sent [default: what the issuer's metadata says, `basic` without].
    #[arg(long, env = "OAUTH_CLIENT_AUTH", value_name = "METHOD", value_enum, global = true)]
    pub oauth_client_auth: Option<ClientAuth>,

    /// Client secret of this service at the provider. Without one the service is a public client.
    #[arg(long, env = "OAUTH_CLIENT_SECRET", value_name = "TEXT", hide_env_values = true, global = true)]
    #[arg(allow_hyphen_values = true)]
    pub oauth_client_secret: Option<Secret>,

    /// File that contains the client secret.
    #[arg(long, env = "OAUTH_CLIENT_SECRET_FILE", value_name = "FILE", global = true)]
    pub oauth_client_secret_file: Option<PathBuf>,

    /// Scopes to request, separated by spaces [default: those of the provider; with an issuer `openid profile`].
    #[arg(long, env = "OAUTH_SCOPES", value_name = "TEXT", global = true)]
    pub oauth_scopes: Option<String>,

    /// Claim, or member of the user's JSON object, that contains the sign-in name [default: that of the provider; with an
    /// issuer `preferred_username`, `name` without].
    #[arg(long, env = "OAUTH_NAME_CLAIM", value_name = "CLAIM", global = true)]
    pub oauth_name_claim: Option<String>,

    /// Claim, or member of the user's JSON object, that identifies the user and never changes [default: that of the
    /// provider; with an issuer `sub`, `id` without].
    #[arg(long, env = "OAUTH_ID_CLAIM", value_name = "CLAIM", global = true)]
    pub oauth_id_claim: Option<String>,

    /// Claim, or member of the user's JSON object, and the value that makes a user privileged, such as
    /// `groups=rooms-admin`. Each sign-in grants or revokes the privilege accordingly.
    #[arg(long, env = "PRIVILEGED_CLAIM", value_name = "CLAIM=VALUE", global = true)]
    pub privileged_claim: Option<ClaimValue>,

    /// Redirect URL as registered at the provider: below the public URL, ending like the default [default: below
    /// `PUBLIC_URL`, as the log says at the start].
    #[arg(long, env = "OAUTH_REDIRECT_URL", value_name = "URL", global = true, value_parser = absolute_url)]
    pub oauth_redirect_url: Option<Url>,

    /// Requests a minute that each replica accepts from one address to begin or finish sign-ins. 0 means no limit.
    #[arg(global = true, long, env = "SIGN_IN_RATE_LIMIT", value_name = "N", default_value_t = 60,
          value_parser = whole_number(0..=u32::MAX))]
    pub sign_in_rate_limit: u32,
}

/// Who becomes a member by signing in with a provider (contract, "Who may become a member").
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SignInPolicy {
    /// People in the directory, those whom a rule makes members, and those with an invitation.
    Directory,
    /// Without a directory and a rule: only people with an invitation.
    Invited,
    /// Everybody with an account of the provider.
    Anyone,
}
