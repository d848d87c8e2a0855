//! The command line: every option is a flag and an environment variable.

use actix_web::http::header::HeaderName;
use chrono_tz::Tz;
use clap::{Args, Parser, Subcommand, builder::BoolishValueParser};
use club_directory::Source;
use club_issuer::{ClaimValue, Expectations, OtherAudiences, SignatureAlgorithm};
use club_sign_in::{
    SignInPolicy,
    config::{ProviderSettings, SignInOptions},
    flow::PAGE,
};
use common::address::is_safe;
use import::ImportOptions;
use service_kit::{
    cli::{CommonCommand, SyncOptions},
    config::{
        DatabaseOptions, DirectoryOptions, KeyOptions, SecretOption, ServerOptions, absolute_url, time_zone,
        whole_number, with_default,
    },
    credentials::Keys,
    database,
    http::cidr::Cidr,
    page::is_local,
};
use url::Url;

use crate::{
    bearer::BearerSettings,
    booking::BookingOptions,
    identity::{DEVELOPMENT_PAGE, Identity, is_sign_in_name},
    proxy_user::{DEVELOPMENT_COOKIE, Proxies},
};

/// Projects, contests, groups, events and accounts of a student club's members.
#[derive(Debug, Parser)]
#[command(name = "portfolio-service", version, max_term_width = 120)]
pub struct Cli {
    /// The command; without one, `serve`.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// The options of every command.
    #[command(flatten)]
    pub config: Config,
}

/// The commands.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Migrate the database and serve requests (the default)
    Serve,
    /// The commands of both services.
    #[command(flatten)]
    Common(CommonCommand),
    /// Copy users and groups from the club directory
    Sync(SyncOptions),
    /// Import the database of the system that this service replaces
    Import(ImportOptions),
}

/// The options.
#[derive(Debug, Clone, Args)]
#[command(
    next_help_heading = "Club",
    mut_args(|option| match option.get_id().as_str() {
        // Not the port of the booking-service, so that both can run on one machine without options.
        "bind" => option.default_value("127.0.0.1:3001"),
        "database_url" => with_default(option, DEFAULT_DATABASE),
        _ => option,
    })
)]
pub struct Config {
    /// IANA name of the club's time zone. Semesters begin at midnight in this zone.
    #[arg(long, env = "TIME_ZONE", value_name = "ZONE", default_value = "UTC", global = true, value_parser = time_zone)]
    pub time_zone: Tz,

    /// Sign-in names of the admins, who may do everything, comma-separated.
    #[arg(long, env = "ADMINS", value_name = "NAME", value_delimiter = ',', global = true)]
    pub admins: Vec<String>,

    /// Minutes between two syncs with the directory. 0 means only at the start and when an admin requests one.
    #[arg(long, env = "SYNC_INTERVAL", value_name = "MINUTES", default_value_t = 60, global = true,
          value_parser = whole_number::<u64>(0..=10_080))]
    pub sync_interval: u64,

    /// Fill an empty database with the same example club as in the booking-service. Without `--admins`, alice is the
    /// admin.
    #[arg(long, env = "DEMO", global = true, value_parser = BoolishValueParser::new())]
    pub demo: bool,

    /// The key of this installation.
    #[command(flatten)]
    pub key: KeyOptions,

    /// How the service listens, logs and shuts down.
    #[command(flatten)]
    pub server: ServerOptions,

    /// Where the database is, and its limits.
    #[command(flatten)]
    pub database: DatabaseOptions,

    /// The source of users and groups.
    #[command(flatten)]
    pub directory: DirectoryOptions,

    /// The source of events.
    #[command(flatten)]
    pub booking: BookingOptions,

    /// How the service identifies callers.
    #[command(flatten)]
    pub identity: IdentityOptions,

    /// The sign-in provider.
    #[command(flatten)]
    pub sign_in: SignInOptions,
}

/// How the service identifies callers. Without a configured source of names it runs in development mode (contract,
/// "Development mode"), in which every client on this machine can act as any user.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Identity")]
pub struct IdentityOptions {
    /// Headers in which a trusted proxy sends the sign-in name, or if their names end in `-Email` a verified e-mail address,
    /// comma-separated; `none` if it sends no name.
    #[arg(
        long,
        env = "IDENTITY_HEADERS",
        value_name = "HEADER",
        value_delimiter = ',',
        global = true,
        default_value = "X-Forwarded-User,X-Showcase-User"
    )]
    pub identity_headers: Vec<HeaderName>,

    /// Where the proxy signs people in: a path, or a URL of another site. `{to}` stands for the page to return to, as in
    /// `/oauth2/start?rd={to}`. The service's pages link to it.
    #[arg(long, env = "SIGN_IN_URL", value_name = "URL", global = true, value_parser = sign_in_url)]
    pub sign_in_url: Option<String>,

    /// Audience (`aud`) of bearer tokens of `--oidc-issuer`: this service's client id there.
    #[arg(long, env = "OIDC_AUDIENCE", value_name = "TEXT", global = true, allow_hyphen_values = true)]
    pub oidc_audience: Option<String>,

    /// URL of the issuer's keys [default: from its metadata].
    #[arg(long, env = "JWKS_URL", value_name = "URL", global = true, value_parser = absolute_url)]
    pub jwks_url: Option<Url>,

    /// Claim that contains the sign-in name; `email` for the verified e-mail address.
    #[arg(long, env = "OIDC_NAME_CLAIM", value_name = "CLAIM", default_value = "preferred_username", global = true)]
    pub oidc_name_claim: String,

    /// Claim of a bearer token and the value that makes the caller an admin besides `--admins`, such as
    /// `groups=portfolio-admin`.
    #[arg(long, env = "ADMIN_CLAIM", value_name = "CLAIM=VALUE", global = true)]
    pub admin_claim: Option<ClaimValue>,

    /// Accepted signature algorithms of bearer tokens, comma-separated: RS256, RS384, RS512, PS256, PS384, PS512,
    /// ES256, ES384, `EdDSA`.
    #[arg(
        long,
        env = "OIDC_ALGORITHMS",
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "RS256,ES256",
        global = true
    )]
    pub oidc_algorithms: Vec<SignatureAlgorithm>,
}

/// The value of `--identity-headers` for no header.
const NO_HEADER: &str = "none";

/// The options that end the development mode.
const IDENTITY_SOURCES: &str =
    "--provider or --oidc-issuer, or --trusted-proxies that send the sign-in name in one of --identity-headers,";

/// The path to which a sign-in provider redirects browsers (contract, "Sign-in").
pub const CALLBACK: &str = "/sign-in/callback";

/// The default URL of the database.
const DEFAULT_DATABASE: &str = "sqlite://data/portfolio.sqlite3";

/// Why `--admins` is refused.
const UNPROVEN_ADMINS: &str = "--admins: everybody may choose a name at this provider. With the users of the \
     booking-service, whoever is privileged there is an admin; else use --privileged-claim, or a --directory-file with \
     the `email` of the admins";

impl Config {
    /// The errors in the options, one line each.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.server.faults();
        faults.extend(self.database_url().err());
        faults.extend(self.directory.source().err());
        faults.extend(self.booking.source(&self.directory).err());
        faults.extend(self.identity().err().unwrap_or_default());
        match self.provider() {
            Err(of_provider) => faults.extend(of_provider),
            Ok(Some(settings)) => {
                faults.extend(self.keys().err());
                let is_listed = matches!(self.directory(), Ok(Some(Source::File(_) | Source::Traq { .. })));
                if !settings.trusts_names && !is_listed && !self.admins.is_empty() {
                    faults.push(UNPROVEN_ADMINS.to_owned());
                }
                faults.extend(self.sign_in.policy_faults(self.has_directory(), self.directory.traq_url.as_ref()));
            }
            Ok(None) => {}
        }
        if !self.server.is_loopback() {
            faults.extend(self.secrets().into_iter().filter_map(SecretOption::too_short));
        }
        for name in self.admins.iter().filter(|name| !is_sign_in_name(name)) {
            faults.push(format!("--admins: {name:?} is no sign-in name"));
        }
        faults
    }

    /// Settings that are allowed but insecure, one line each.
    pub fn warnings(&self) -> Vec<String> {
        let others = [self.key.secret(), self.database.given_url()];
        let secrets = others.into_iter().chain(self.secrets());
        let mut warnings: Vec<_> = secrets.filter_map(SecretOption::exposed).collect();
        warnings.extend(self.server.missing_public_url());
        if self.admins.is_empty()
            && !self.demo
            && self.identity.admin_claim.is_none()
            && self.sign_in.privileged_claim.is_none()
            && !matches!(self.directory(), Ok(Some(Source::Booking { .. })))
        {
            warnings
                .push("--admins is empty: nobody may change what others have created, or request a sync".to_owned());
        }
        if matches!(self.provider(), Ok(Some(_))) {
            warnings.extend(self.sign_in.policy_warning(self.has_directory()));
        } else if self.directory() == Ok(None) {
            warnings.push(
                "without --directory-file, --traq-url or --booking-url, users and groups stay as they are".to_owned(),
            );
        }
        if self.identity().is_ok_and(|identity| identity.is_development) {
            warnings.push(
                "development mode: every client on this machine can act as any user, by the header with the name"
                    .to_owned(),
            );
        }
        warnings
    }

    /// The URL of the database.
    pub fn database_url(&self) -> Result<database::Url, String> {
        self.database.resolved_url(DEFAULT_DATABASE, self.server.is_loopback())
    }

    /// The source of users and groups, if there is one: without a directory the made-up one of `--demo`, or the
    /// booking-service.
    pub fn directory(&self) -> Result<Option<Source>, String> {
        match self.directory.source()?.or(self.demo.then_some(Source::Demo)) {
            None => self.booking.directory(&self.directory),
            source => Ok(source),
        }
    }

    fn has_directory(&self) -> bool {
        !matches!(self.directory(), Ok(None))
    }

    /// The secrets for other servers.
    fn secrets(&self) -> [SecretOption<'_>; 3] {
        [self.directory.token(), self.booking.token(), self.sign_in.client_secret()]
    }

    /// The sign-in provider, if one is configured.
    pub fn provider(&self) -> Result<Option<ProviderSettings>, Vec<String>> {
        if !self.sign_in.is_wanted() {
            // The issuer is that of bearer tokens alone.
            return Ok(None);
        }
        self.sign_in.provider(&self.server, self.directory.traq_url.as_ref(), CALLBACK)
    }

    /// Who becomes a member by signing in.
    pub fn sign_in_policy(&self) -> SignInPolicy {
        self.sign_in.policy(self.has_directory())
    }

    /// The keys by which cookies are encrypted.
    pub fn keys(&self) -> Result<Keys, String> {
        self.key.keys(true)
    }

    /// The sources of sign-in names.
    pub fn identity(&self) -> Result<Identity, Vec<String>> {
        let options = &self.identity;
        let mut faults = Vec::new();
        let signs_in = self.sign_in.is_wanted();
        let bearer = options.bearer(self.sign_in.oidc_issuer.as_ref(), signs_in).unwrap_or_else(|fault| {
            faults.push(fault);
            None
        });
        let trusted_proxies = &self.server.trusted_proxies;
        let headers: Vec<_> = options.identity_headers.iter().filter(|name| *name != NO_HEADER).cloned().collect();
        let has_proxy = !trusted_proxies.is_empty() && !headers.is_empty();
        let is_configured = signs_in || bearer.is_some() || has_proxy;
        if !is_configured {
            faults.extend(self.server.development_faults(IDENTITY_SOURCES));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let trusted = if is_configured { trusted_proxies.clone() } else { Cidr::LOOPBACK.to_vec() };
        let is_development = !is_configured;
        let proxies = Proxies { trusted, headers, cookie: is_development.then_some(DEVELOPMENT_COOKIE) };
        let path = if is_development { Some(DEVELOPMENT_PAGE) } else { signs_in.then_some(PAGE) };
        let page = path.map(|path| format!("{path}?to={{to}}"));
        Ok(Identity { proxies, bearer, is_development, signs_in, sign_in: options.sign_in_url.clone().or(page) })
    }
}

/// Parses a path, or an address that browsers can open.
fn sign_in_url(text: &str) -> Result<String, String> {
    let is_web_address = Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "https" | "http"));
    let is_usable = is_local(text) || is_web_address;
    if is_usable { Ok(text.to_owned()) } else { Err("must be a path, or an http or https address".to_owned()) }
}

impl IdentityOptions {
    /// What bearer tokens must have. Without an audience, an issuer may be the sign-in provider alone.
    fn bearer(&self, issuer: Option<&String>, signs_in: bool) -> Result<Option<BearerSettings>, String> {
        let (issuer, audience) = match (issuer, &self.oidc_audience) {
            (Some(issuer), Some(audience)) => (issuer.clone(), audience.clone()),
            (Some(_), None) if !signs_in => {
                return Err("--oidc-issuer needs --oidc-audience, or --oauth-client-id to sign in".to_owned());
            }
            (_, None) if self.jwks_url.is_none() && self.admin_claim.is_none() => return Ok(None),
            _ => {
                return Err(
                    "--oidc-audience, --jwks-url and --admin-claim need --oidc-issuer and --oidc-audience".to_owned()
                );
            }
        };
        let (url, option) = match &self.jwks_url {
            Some(url) => (Ok(url.clone()), "--jwks-url"),
            None => (Url::parse(&issuer), "--oidc-issuer"),
        };
        url.map_err(|error| error.to_string()).and_then(|url| is_safe(&url)).map_err(|e| format!("{option}: {e}"))?;
        let expected = Expectations { audience, others: OtherAudiences::Any, algorithms: self.oidc_algorithms.clone() };
        Ok(Some(BearerSettings {
            issuer,
            keys: self.jwks_url.clone(),
            expected,
            name_claim: self.oidc_name_claim.clone(),
            admin_claim: self.admin_claim.clone(),
        }))
    }
}
