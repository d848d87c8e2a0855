//! The sign-in providers that clubs use, by name: what `--provider` stands for.

use clap::ValueEnum;
use url::Url;

/// How a client sends its secret to the token endpoint (RFC 6749, section 2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClientAuth {
    /// By HTTP Basic authentication.
    Basic,
    /// In the body of the request.
    Post,
}

/// A sign-in provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProviderName {
    /// Google, for Google Workspace as well.
    Google,
    /// Microsoft Entra ID.
    Microsoft,
    /// Discord.
    Discord,
    /// GitHub.
    Github,
    /// GitLab.com.
    Gitlab,
    /// Slack.
    Slack,
    /// LINE.
    Line,
    /// A traQ server.
    Traq,
}

/// Where a provider is.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// OpenID Connect, at this issuer.
    Issuer(&'static str),
    /// Plain OAuth 2.0: authorization and token endpoint, and the address about the owner of a token.
    Addresses([&'static str; 3]),
    /// It depends on another option.
    Elsewhere,
}

/// What a name stands for. Each part can be replaced by its own option.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Where it is.
    pub place: Place,
    /// The scopes to request.
    pub scopes: &'static str,
    /// What identifies a user.
    pub id_claim: &'static str,
    /// What contains the user's name.
    pub name_claim: &'static str,
    /// What says that the address `email` is the user's.
    pub verified_claim: &'static str,
    /// How the client secret is sent, if neither is left to the metadata nor usual.
    pub client_auth: Option<ClientAuth>,
    /// Whether everybody in the world can have an account, with a name of their choice.
    pub is_public: bool,
    /// The options besides the general ones that say who may join.
    pub restrictions: &'static [&'static str],
}

/// A provider of OpenID Connect without a name.
pub const OPEN_ID: Preset = Preset {
    place: Place::Elsewhere,
    scopes: "openid profile",
    id_claim: "sub",
    name_claim: "preferred_username",
    verified_claim: "email_verified",
    client_auth: None,
    is_public: false,
    restrictions: &[],
};

/// A plain OAuth 2.0 provider without a name.
pub const PLAIN: Preset = Preset { scopes: "", id_claim: "id", name_claim: "name", ..OPEN_ID };

impl ProviderName {
    /// What the name stands for, from the documentation of the provider.
    pub fn preset(self) -> Preset {
        let with_address = Preset { scopes: "openid email profile", name_claim: "email", is_public: true, ..OPEN_ID };
        match self {
            Self::Google => Preset { place: Place::Issuer("https://accounts.google.com"), ..with_address },
            // Addresses at Microsoft are not verified, unless the application asks for the claim `xms_edov`. The issuer
            // is of one organization, so its members are known.
            Self::Microsoft => Preset {
                name_claim: "preferred_username",
                verified_claim: "xms_edov",
                is_public: false,
                restrictions: &["--microsoft-tenant"],
                ..with_address
            },
            Self::Discord => Preset {
                place: Place::Addresses([
                    "https://discord.com/oauth2/authorize",
                    "https://discord.com/api/oauth2/token",
                    "https://discord.com/api/users/@me",
                ]),
                scopes: "identify email",
                name_claim: "username",
                verified_claim: "verified",
                is_public: true,
                restrictions: &["--discord-server"],
                ..PLAIN
            },
            Self::Github => Preset {
                place: Place::Addresses([
                    "https://github.com/login/oauth/authorize",
                    "https://github.com/login/oauth/access_token",
                    "https://api.github.com/user",
                ]),
                scopes: "read:user user:email",
                name_claim: "login",
                client_auth: Some(ClientAuth::Post),
                is_public: true,
                restrictions: &["--github-organization"],
                ..PLAIN
            },
            Self::Gitlab => {
                Preset { place: Place::Issuer("https://gitlab.com"), name_claim: "preferred_username", ..with_address }
            }
            Self::Slack => Preset {
                place: Place::Issuer("https://slack.com"),
                client_auth: Some(ClientAuth::Post),
                restrictions: &["--slack-workspace"],
                ..with_address
            },
            // Its ID tokens for web pages are signed by the client secret, so the user info is asked instead.
            Self::Line => Preset {
                place: Place::Addresses([
                    "https://access.line.me/oauth2/v2.1/authorize",
                    "https://api.line.me/oauth2/v2.1/token",
                    "https://api.line.me/oauth2/v2.1/userinfo",
                ]),
                scopes: "openid profile",
                id_claim: "sub",
                client_auth: Some(ClientAuth::Post),
                is_public: true,
                ..PLAIN
            },
            Self::Traq => Preset { scopes: "read", ..PLAIN },
        }
    }
}

/// Whether everybody in the world can have an account of the provider with one of these addresses.
pub fn is_public<'a>(addresses: impl Iterator<Item = &'a Url>) -> bool {
    let origins: Vec<_> = addresses.map(Url::origin).collect();
    let presets = ProviderName::value_variants().iter().map(|name| name.preset());
    presets.filter(|preset| preset.is_public).any(|preset| match preset.place {
        Place::Issuer(address) | Place::Addresses([address, ..]) => {
            Url::parse(address).is_ok_and(|address| origins.contains(&address.origin()))
        }
        Place::Elsewhere => false,
    })
}
