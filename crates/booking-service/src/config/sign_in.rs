//! The options of the sign-in provider, and the settings that result from them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use club_issuer::{
    ClaimValue,
    joining::{JoinRules, comparable_domain},
};
use common::address::is_safe;
use service_kit::config::{Secret, SecretOption, ServerOptions, absolute_url};
use url::Url;

use super::providers::ProviderName;

/// The path to which a provider redirects browsers (contract, "Sign-in").
const CALLBACK: &str = "/api/callback";

/// The path of an issuer's metadata (OpenID Connect Discovery 1.0, section 4).
const METADATA: &str = "/.well-known/openid-configuration";

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

    /// Redirect URL as registered at the provider: below the public URL, ending in `/api/callback` [default:
    /// `PUBLIC_URL/api/callback`].
    #[arg(long, env = "OAUTH_REDIRECT_URL", value_name = "URL", global = true, value_parser = absolute_url)]
    pub oauth_redirect_url: Option<Url>,
}

/// How a client sends its secret to the token endpoint (RFC 6749, section 2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClientAuth {
    /// By HTTP Basic authentication.
    Basic,
    /// In the body of the request.
    Post,
}

/// Who becomes a member by signing in with a provider (contract, "Who may become a member").
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SignInPolicy {
    /// People in the directory, and those whom a rule makes members.
    Directory,
    /// Everybody with an account of the provider.
    Anyone,
}

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

impl SignInOptions {
    /// The options of the client secret.
    #[must_use]
    pub fn client_secret(&self) -> SecretOption<'_> {
        SecretOption("oauth-client-secret", self.oauth_client_secret.as_ref(), self.oauth_client_secret_file.as_deref())
    }

    /// The configured provider, if there is one. `traq` is the API of the club's traQ server.
    ///
    /// # Errors
    /// The errors in the options, one line each.
    pub fn provider(
        &self,
        server: &ServerOptions,
        traq: Option<&Url>,
    ) -> Result<Option<ProviderSettings>, Vec<String>> {
        let mut faults = self.misplaced();
        let addresses = self.addresses(traq);
        let kind = self.kind(&addresses, &mut faults);
        if kind.is_none() && faults.is_empty() {
            return if self.has_client_options() {
                let fault = "the options of the provider need --provider, --oidc-issuer, or --oauth-authorize-url, \
                             --oauth-token-url and --oauth-user-url";
                Err(vec![fault.to_owned()])
            } else {
                Ok(None)
            };
        }
        let client_secret = self.client_secret().resolve().unwrap_or_else(|fault| {
            faults.push(fault);
            None
        });
        if self.oauth_client_auth.is_some() && client_secret.is_none() {
            faults.push("--oauth-client-auth needs a client secret".to_owned());
        }
        let is_open_id = matches!(kind, Some(ProviderKind::OpenId { .. }));
        if !is_open_id && !self.oidc_trusted_audiences.is_empty() {
            faults.push("--oidc-trusted-audiences needs --oidc-issuer".to_owned());
        }
        if self.oauth_client_id.is_none() {
            faults.push("--oauth-client-id is needed to sign in with a provider".to_owned());
        }
        let redirect_url = self.redirect(server, &mut faults);
        let (preset, group, rules) = (self.preset(), self.group(), self.rules(&mut faults));
        let text = |option: &Option<String>, of_preset: &str| option.clone().unwrap_or_else(|| of_preset.to_owned());
        let scopes = text(&self.oauth_scopes, preset.scopes);
        let mut scopes: Vec<_> = scopes.split_whitespace().map(str::to_owned).collect();
        if is_open_id && !scopes.iter().any(|scope| scope == "openid") {
            faults.push("--oauth-scopes must contain openid with --oidc-issuer".to_owned());
        }
        if !rules.domains.is_empty() && is_open_id && !scopes.iter().any(|scope| scope == "email") {
            scopes.push("email".to_owned());
        }
        let for_group = group.as_ref().map(|group| match group {
            GroupAtProvider::DiscordServer(..) => "guilds.members.read".to_owned(),
            GroupAtProvider::GithubOrganization(_) => "read:org".to_owned(),
        });
        scopes.extend(for_group);
        match (kind, &self.oauth_client_id, redirect_url) {
            (Some(kind), Some(client_id), Some(redirect_url)) if faults.is_empty() => Ok(Some(ProviderSettings {
                kind,
                client_id: client_id.clone(),
                client_secret,
                client_auth: self.oauth_client_auth.or(preset.client_auth),
                trusted_audiences: self.oidc_trusted_audiences.clone(),
                privileged_claim: self.privileged_claim.clone(),
                scopes,
                name_claim: text(&self.oauth_name_claim, preset.name_claim),
                id_claim: text(&self.oauth_id_claim, preset.id_claim),
                verified_claim: preset.verified_claim.to_owned(),
                trusts_names: matches!(self.provider, None | Some(ProviderName::Traq)) && !self.is_public(&addresses),
                rules,
                group,
                has_addresses: self.provider == Some(ProviderName::Github),
                redirect_url,
            })),
            _ => Err(faults),
        }
    }

    /// Whether a rule says who is a member.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        !self.required_claim.is_empty()
            || !self.member_domains.is_empty()
            || self.slack_workspace.is_some()
            || self.microsoft_tenant.is_some()
            || self.group().is_some()
    }

    /// The error of a policy that nobody has chosen knowingly: everybody in the world could become a member.
    pub(super) fn unrestricted(&self, traq: Option<&Url>) -> Option<String> {
        self.is_public(&self.addresses(traq)).then(|| {
            let own = self.preset().restrictions.iter().map(|option| format!("{option}, "));
            format!(
                "everybody can have an account of this provider: say who may become a member by {}--member-domains, \
                 --required-claim or --directory-file, or say --sign-in anyone",
                own.collect::<String>()
            )
        })
    }

    /// The rules by claims.
    fn rules(&self, faults: &mut Vec<String>) -> JoinRules {
        let mut domains = Vec::new();
        for domain in &self.member_domains {
            match comparable_domain(domain.trim()) {
                Some(domain) => domains.push(domain),
                None => faults.push(format!("--member-domains: {domain:?} is no domain")),
            }
        }
        let of_workspace = self.slack_workspace.iter().map(|id| ClaimValue::new("https://slack.com/team_id", id));
        // The issuer is of this organization alone, and its tokens say so again.
        let of_tenant = self.microsoft_tenant.iter().map(|id| ClaimValue::new("tid", id));
        JoinRules {
            claims: self.required_claim.iter().cloned().chain(of_workspace).chain(of_tenant).collect(),
            domains,
        }
    }

    fn group(&self) -> Option<GroupAtProvider> {
        let discord =
            self.discord_server.clone().map(|id| GroupAtProvider::DiscordServer(id, self.discord_roles.clone()));
        discord.or_else(|| self.github_organization.clone().map(GroupAtProvider::GithubOrganization))
    }

    /// Options of a provider that is not the configured one, or that need another one.
    fn misplaced(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (option, is_given, name) in [
            ("--microsoft-tenant", self.microsoft_tenant.is_some(), ProviderName::Microsoft),
            ("--discord-server", self.discord_server.is_some(), ProviderName::Discord),
            ("--github-organization", self.github_organization.is_some(), ProviderName::Github),
            ("--slack-workspace", self.slack_workspace.is_some(), ProviderName::Slack),
        ] {
            if is_given && self.provider != Some(name) {
                let name = name.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
                faults.push(format!("{option} needs --provider {name}"));
            }
        }
        if !self.discord_roles.is_empty() && self.discord_server.is_none() {
            faults.push("--discord-roles needs --discord-server".to_owned());
        }
        if self.provider == Some(ProviderName::Microsoft) && self.issuer().is_none() {
            faults.push("--provider microsoft needs --microsoft-tenant".to_owned());
        }
        faults
    }

    fn kind(&self, addresses: &[Option<Url>; 3], faults: &mut Vec<String>) -> Option<ProviderKind> {
        const OPTIONS: [&str; 3] = ["--oauth-authorize-url", "--oauth-token-url", "--oauth-user-url"];
        for (option, address) in OPTIONS.iter().zip(addresses) {
            let fault = address.as_ref().and_then(|url| is_safe(url).err());
            faults.extend(fault.map(|fault| format!("{option}: {fault}")));
        }
        match (self.issuer(), addresses) {
            (None, [None, None, None]) if self.provider == Some(ProviderName::Traq) => {
                faults.push("--provider traq needs --traq-url".to_owned());
                None
            }
            (None, [None, None, None]) => None,
            (None, [Some(authorize), Some(token), Some(user)]) => {
                let addresses = Addresses { authorize: authorize.clone(), token: token.clone(), user: user.clone() };
                Some(ProviderKind::OAuth(Box::new(addresses)))
            }
            (None, _) => {
                let missing: Vec<_> =
                    OPTIONS.iter().zip(addresses).filter(|(_, url)| url.is_none()).map(|(name, _)| *name).collect();
                faults.push(format!("{} is missing: a plain OAuth 2.0 provider has all three", missing.join(", ")));
                None
            }
            (Some(issuer), [None, None, None]) => {
                let url = Url::parse(&issuer).map_err(|error| error.to_string());
                let result = url.and_then(|url| match (url.query(), url.fragment()) {
                    (None, None) if url.path().ends_with(METADATA) => {
                        Err(format!("the issuer is the address before {METADATA}"))
                    }
                    (None, None) => is_safe(&url),
                    _ => Err("an issuer has no query and no fragment".to_owned()),
                });
                faults.extend(result.err().map(|fault| format!("--oidc-issuer: {fault}")));
                Some(ProviderKind::OpenId { issuer })
            }
            (Some(_), _) => {
                let names: Vec<_> =
                    OPTIONS.iter().zip(addresses).filter(|(_, url)| url.is_some()).map(|(name, _)| *name).collect();
                faults.push(format!("--oidc-issuer and {} are both given", names.join(", ")));
                None
            }
        }
    }

    fn has_client_options(&self) -> bool {
        let texts = [&self.oauth_client_id, &self.oauth_scopes, &self.oauth_name_claim, &self.oauth_id_claim];
        texts.iter().any(|text| text.is_some())
            || self.oauth_client_secret.is_some()
            || self.oauth_client_secret_file.is_some()
            || self.oauth_redirect_url.is_some()
            || self.oauth_client_auth.is_some()
            || self.privileged_claim.is_some()
            || self.has_rules()
            || !self.oidc_trusted_audiences.is_empty()
    }

    fn redirect(&self, server: &ServerOptions, faults: &mut Vec<String>) -> Option<Url> {
        let origin = server.public_origin();
        let public = Url::parse(&origin).ok()?;
        if is_safe(&public).is_err() {
            // Over plain http, anybody on the network path could read codes and cookies.
            let fault = "--public-url must be an https address, or an http one of this machine, to sign in with a \
                         provider";
            faults.push(fault.to_owned());
        }
        let redirect = self.oauth_redirect_url.clone().map_or_else(|| public.join(CALLBACK).ok(), Some)?;
        let is_callback = redirect.origin() == public.origin()
            && redirect.path().ends_with(CALLBACK)
            && redirect.query().is_none()
            && redirect.fragment().is_none();
        if !is_callback {
            faults.push(format!("--oauth-redirect-url must begin with {origin}/ and end with {CALLBACK}"));
        }
        Some(redirect)
    }
}
