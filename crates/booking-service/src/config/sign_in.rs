//! The options of the sign-in provider, and the settings that result from them.

use common::address::is_safe;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use club_issuer::ClaimValue;
use service_kit::config::{Secret, SecretOption, ServerOptions, absolute_url};
use url::Url;

/// The path to which a provider redirects browsers (contract, "Sign-in").
const CALLBACK: &str = "/api/callback";

/// The sign-in provider. Without these options the service runs in development mode.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sign-in")]
pub struct SignInOptions {
    /// Who may sign in with a provider [default: with a directory `directory`, `anyone` without].
    #[arg(long, env = "SIGN_IN", value_name = "WHO", value_enum, global = true)]
    pub sign_in: Option<SignInPolicy>,

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

    /// Scopes to request, separated by spaces [default: with an issuer `openid profile`, else none].
    #[arg(long, env = "OAUTH_SCOPES", value_name = "TEXT", global = true)]
    pub oauth_scopes: Option<String>,

    /// Claim, or member of the user's JSON object, that contains the sign-in name [default: with an issuer
    /// `preferred_username`, `name` without].
    #[arg(long, env = "OAUTH_NAME_CLAIM", value_name = "CLAIM", global = true)]
    pub oauth_name_claim: Option<String>,

    /// Claim, or member of the user's JSON object, that identifies the user and never changes [default: with an issuer
    /// `sub`, `id` without].
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
    /// People in the directory.
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
    /// The address to which the provider redirects the browser.
    pub redirect_url: Url,
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

    /// The configured provider, if there is one.
    ///
    /// # Errors
    /// The errors in the options, one line each.
    pub fn provider(&self, server: &ServerOptions) -> Result<Option<ProviderSettings>, Vec<String>> {
        let mut faults = Vec::new();
        let kind = self.kind(&mut faults);
        if kind.is_none() && faults.is_empty() {
            return if self.has_client_options() {
                let fault = "the options of the provider need --oidc-issuer, or --oauth-authorize-url, --oauth-token-url \
                             and --oauth-user-url";
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
        if self.oidc_issuer.is_none() && !self.oidc_trusted_audiences.is_empty() {
            faults.push("--oidc-trusted-audiences needs --oidc-issuer".to_owned());
        }
        if self.oauth_client_id.is_none() {
            faults.push("--oauth-client-id is needed to sign in with a provider".to_owned());
        }
        let redirect_url = self.redirect(server, &mut faults);
        let is_open_id = self.oidc_issuer.is_some();
        let text = |option: &Option<String>, open_id_default: &str, plain_default: &str| {
            option.clone().unwrap_or_else(|| if is_open_id { open_id_default } else { plain_default }.to_owned())
        };
        let scopes = text(&self.oauth_scopes, "openid profile", "");
        let scopes: Vec<_> = scopes.split_whitespace().map(str::to_owned).collect();
        if is_open_id && !scopes.iter().any(|scope| scope == "openid") {
            faults.push("--oauth-scopes must contain openid with --oidc-issuer".to_owned());
        }
        match (kind, &self.oauth_client_id, redirect_url) {
            (Some(kind), Some(client_id), Some(redirect_url)) if faults.is_empty() => Ok(Some(ProviderSettings {
                kind,
                client_id: client_id.clone(),
                client_secret,
                client_auth: self.oauth_client_auth,
                trusted_audiences: self.oidc_trusted_audiences.clone(),
                privileged_claim: self.privileged_claim.clone(),
                scopes,
                name_claim: text(&self.oauth_name_claim, "preferred_username", "name"),
                id_claim: text(&self.oauth_id_claim, "sub", "id"),
                redirect_url,
            })),
            _ => Err(faults),
        }
    }

    fn kind(&self, faults: &mut Vec<String>) -> Option<ProviderKind> {
        let addresses = [
            ("--oauth-authorize-url", &self.oauth_authorize_url),
            ("--oauth-token-url", &self.oauth_token_url),
            ("--oauth-user-url", &self.oauth_user_url),
        ];
        for (option, address) in addresses {
            let fault = address.as_ref().and_then(|url| is_safe(url).err());
            faults.extend(fault.map(|fault| format!("{option}: {fault}")));
        }
        match (&self.oidc_issuer, addresses.map(|(_, address)| address)) {
            (None, [None, None, None]) => None,
            (None, [Some(authorize), Some(token), Some(user)]) => {
                let addresses = Addresses { authorize: authorize.clone(), token: token.clone(), user: user.clone() };
                Some(ProviderKind::OAuth(Box::new(addresses)))
            }
            (None, _) => {
                let missing: Vec<_> =
                    addresses.iter().filter(|(_, url)| url.is_none()).map(|(name, _)| *name).collect();
                faults.push(format!("{} is missing: a plain OAuth 2.0 provider has all three", missing.join(", ")));
                None
            }
            (Some(issuer), [None, None, None]) => {
                let url = Url::parse(issuer).map_err(|error| error.to_string());
                let result = url.and_then(|url| match (url.query(), url.fragment()) {
                    (None, None) => is_safe(&url),
                    _ => Err("an issuer has no query and no fragment".to_owned()),
                });
                faults.extend(result.err().map(|fault| format!("--oidc-issuer: {fault}")));
                Some(ProviderKind::OpenId { issuer: issuer.clone() })
            }
            (Some(_), _) => {
                let names: Vec<_> = addresses.iter().filter(|(_, url)| url.is_some()).map(|(name, _)| *name).collect();
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
