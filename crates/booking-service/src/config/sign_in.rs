//! The options of the sign-in provider, and what they come to.

use std::path::PathBuf;

use clap::Args;
use service_kit::{
    config::{Secret, SecretOption, ServerOptions},
    http::jwt::keys::is_safe,
};
use url::Url;

/// Where a provider sends browsers back to, below the origin (contract, "Sign-in").
const CALLBACK: &str = "/api/callback";

/// Who says who somebody is. On loopback, without any of it, whoever is on this machine chooses who they are.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sign-in")]
pub struct SignInOptions {
    /// OpenID Connect provider to sign in with: its issuer, exactly as in its metadata.
    #[arg(long, env = "OIDC_ISSUER", value_name = "URL", global = true)]
    pub oidc_issuer: Option<String>,

    /// Plain OAuth 2.0 provider to sign in with, instead of an issuer: where the browser is sent.
    #[arg(long, env = "OAUTH_AUTHORIZE_URL", value_name = "URL", global = true)]
    pub oauth_authorize_url: Option<Url>,

    /// Where the plain OAuth 2.0 provider exchanges a code for a token.
    #[arg(long, env = "OAUTH_TOKEN_URL", value_name = "URL", global = true)]
    pub oauth_token_url: Option<Url>,

    /// Where the plain OAuth 2.0 provider says, as JSON, whose token it is.
    #[arg(long, env = "OAUTH_USER_URL", value_name = "URL", global = true)]
    pub oauth_user_url: Option<Url>,

    /// This service's client id at the provider of either kind.
    #[arg(long, env = "OAUTH_CLIENT_ID", value_name = "TEXT", global = true)]
    pub oauth_client_id: Option<String>,

    /// This service's client secret at the provider; without one it is a public client.
    #[arg(long, env = "OAUTH_CLIENT_SECRET", value_name = "TEXT", hide_env_values = true, global = true)]
    pub oauth_client_secret: Option<Secret>,

    /// File that holds the client secret.
    #[arg(long, env = "OAUTH_CLIENT_SECRET_FILE", value_name = "FILE", global = true)]
    pub oauth_client_secret_file: Option<PathBuf>,

    /// Scopes to ask for, with spaces between them [default: with an issuer `openid profile`, else none].
    #[arg(long, env = "OAUTH_SCOPES", value_name = "TEXT", global = true)]
    pub oauth_scopes: Option<String>,

    /// Claim, or member of the user, that holds the sign-in name [default: with an issuer
    /// `preferred_username`, `name` without].
    #[arg(long, env = "OAUTH_NAME_CLAIM", value_name = "CLAIM", global = true)]
    pub oauth_name_claim: Option<String>,

    /// Claim, or member of the user, that stays the same for ever and is nobody else's [default: with an issuer `sub`, `id`
    /// without].
    #[arg(long, env = "OAUTH_ID_CLAIM", value_name = "CLAIM", global = true)]
    pub oauth_id_claim: Option<String>,

    /// Where the provider sends the browser back to, as registered there [default: `PUBLIC_URL/api/callback`].
    #[arg(long, env = "OAUTH_REDIRECT_URL", value_name = "URL", global = true)]
    pub oauth_redirect_url: Option<Url>,
}

/// A sign-in provider and what it knows of this service.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// What it speaks, and where.
    pub kind: ProviderKind,
    /// This service's client id.
    pub client_id: String,
    /// Its client secret; a public client has none.
    pub client_secret: Option<Secret>,
    /// What is asked for.
    pub scopes: Vec<String>,
    /// The claim that holds the sign-in name.
    pub name_claim: String,
    /// The claim that tells people apart.
    pub id_claim: String,
    /// Where the provider sends the browser back to.
    pub redirect_url: Url,
}

/// What a provider speaks, and where.
#[derive(Debug, Clone)]
pub enum ProviderKind {
    /// OpenID Connect, with everything else in the metadata of this issuer.
    OpenId {
        /// Exactly as in its metadata.
        issuer: String,
    },
    /// OAuth 2.0 (RFC 6749) and an address that says whose token it is.
    OAuth(Box<Addresses>),
}

/// The addresses of a plain OAuth 2.0 provider.
#[derive(Debug, Clone)]
pub struct Addresses {
    /// Where the browser is sent.
    pub authorize: Url,
    /// Where a code is exchanged.
    pub token: Url,
    /// Where the user is described.
    pub user: Url,
}

impl SignInOptions {
    /// The client secret, as it was given.
    #[must_use]
    pub fn client_secret(&self) -> SecretOption<'_> {
        SecretOption("oauth-client-secret", self.oauth_client_secret.as_ref(), self.oauth_client_secret_file.as_deref())
    }

    /// The configured provider, if there is one.
    ///
    /// # Errors
    /// What is wrong with the options, one line a fault.
    pub fn provider(&self, server: &ServerOptions) -> Result<Option<ProviderSettings>, Vec<String>> {
        let mut faults = Vec::new();
        let kind = self.kind(&mut faults);
        if kind.is_none() && faults.is_empty() {
            return if self.has_client_options() {
                let fault = "the options --oauth-… need --oidc-issuer, or --oauth-authorize-url, --oauth-token-url \
                             and --oauth-user-url";
                Err(vec![fault.to_owned()])
            } else {
                Ok(None)
            };
        }
        let client_secret = Secret::resolve(
            "oauth-client-secret",
            self.oauth_client_secret.as_ref(),
            self.oauth_client_secret_file.as_deref(),
        );
        let client_secret = client_secret.unwrap_or_else(|fault| {
            faults.push(fault);
            None
        });
        if self.oauth_client_id.is_none() {
            faults.push("--oauth-client-id is needed to sign in with a provider".to_owned());
        }
        let redirect_url = self.redirect(server, &mut faults);
        let is_open_id = self.oidc_issuer.is_some();
        let of_kind = |open_id: &'static str, plain: &'static str| if is_open_id { open_id } else { plain };
        let text = |given: &Option<String>, default: &str| given.clone().unwrap_or_else(|| default.to_owned());
        let scopes = text(&self.oauth_scopes, of_kind("openid profile", ""));
        let scopes: Vec<_> = scopes.split_whitespace().map(str::to_owned).collect();
        if is_open_id && !scopes.iter().any(|scope| scope == "openid") {
            faults.push("--oauth-scopes must have openid among them with --oidc-issuer".to_owned());
        }
        match (kind, &self.oauth_client_id, redirect_url) {
            (Some(kind), Some(client_id), Some(redirect_url)) if faults.is_empty() => Ok(Some(ProviderSettings {
                kind,
                client_id: client_id.clone(),
                client_secret,
                scopes,
                name_claim: text(&self.oauth_name_claim, of_kind("preferred_username", "name")),
                id_claim: text(&self.oauth_id_claim, of_kind("sub", "id")),
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
                let checked = url.and_then(|url| match (url.query(), url.fragment()) {
                    (None, None) => is_safe(&url),
                    _ => Err("an issuer has no query and no fragment".to_owned()),
                });
                faults.extend(checked.err().map(|fault| format!("--oidc-issuer: {fault}")));
                Some(ProviderKind::OpenId { issuer: issuer.clone() })
            }
            (Some(_), _) => {
                let given: Vec<_> = addresses.iter().filter(|(_, url)| url.is_some()).map(|(name, _)| *name).collect();
                faults.push(format!("--oidc-issuer and {} are both given", given.join(", ")));
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
    }

    fn redirect(&self, server: &ServerOptions, faults: &mut Vec<String>) -> Option<Url> {
        let origin = server.public_origin();
        let public = Url::parse(&origin).ok()?;
        if is_safe(&public).is_err() {
            // Codes and cookies would be for everybody on the way to read.
            let fault = "--public-url must be an https address, or an http one of this machine, to sign in with a \
                         provider";
            faults.push(fault.to_owned());
        }
        let redirect = self.oauth_redirect_url.clone().map_or_else(|| public.join(CALLBACK).ok(), Some)?;
        let is_ours = redirect.origin() == public.origin()
            && redirect.path().ends_with(CALLBACK)
            && redirect.query().is_none()
            && redirect.fragment().is_none();
        if !is_ours {
            faults.push(format!("--oauth-redirect-url must begin with {origin}/ and end with {CALLBACK}"));
        }
        Some(redirect)
    }
}
