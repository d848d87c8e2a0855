//! The command line: every option is a flag and an environment variable.

use actix_web::http::header::HeaderName;
use chrono_tz::Tz;
use clap::{Args, Parser, Subcommand, builder::BoolishValueParser};
use service_kit::{
    cli::CommonCommand,
    config::{DatabaseOptions, DirectoryOptions, SecretOption, ServerOptions, with_default},
    database,
    directory::Source,
    http::{
        jwt::{
            Expectations, SignedBy,
            keys::{Origin, is_safe},
        },
        proxy::{Cidr, Proxies},
    },
    import::ImportOptions,
};
use url::Url;

use crate::{
    booking::BookingOptions,
    identity::{Identity, is_sign_in_name},
};

/// Projects, contests, groups, events and accounts of a student club's members.
#[derive(Debug, Parser)]
#[command(name = "portfolio-service", version, max_term_width = 120)]
pub struct Cli {
    /// What to do; without one, `serve`.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// The options, the same for every command.
    #[command(flatten)]
    pub config: Config,
}

/// The commands.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Bring the database schema up to date and serve requests (the default)
    Serve,
    /// What every service can do.
    #[command(flatten)]
    Common(CommonCommand),
    /// Bring users and groups in from the club's directory
    Sync,
    /// Bring in the database of the system that this service replaces
    Import(ImportOptions),
}

/// The options.
#[derive(Debug, Clone, Args)]
#[command(
    next_help_heading = "Club",
    // Another port than the booking-service, so that both run side by side without options.
    mut_arg("bind", |bind| bind.default_value("127.0.0.1:3001")),
    mut_args(|option| if option.get_id() == "database_url" { with_default(option, DEFAULT_DATABASE) } else { option })
)]
pub struct Config {
    /// Time zone of the club, as an IANA name: a semester begins when its first day does there.
    #[arg(long, env = "TIME_ZONE", value_name = "ZONE", default_value = "UTC", global = true)]
    pub time_zone: Tz,

    /// Sign-in names of those who may do everything, comma-separated.
    #[arg(long, env = "ADMINS", value_name = "NAME", value_delimiter = ',', global = true)]
    pub admins: Vec<String>,

    /// Minutes between two copies of the directory; 0 copies only at the start and when an admin asks for it.
    #[arg(long, env = "SYNC_INTERVAL", value_name = "MINUTES", default_value_t = 60, global = true,
          value_parser = clap::value_parser!(u64).range(0..=10_080))]
    pub sync_interval: u64,

    /// Fill an empty database with a made-up club, the one of the booking-service's demo. Without --admins, alice is
    /// one.
    #[arg(long, env = "DEMO", global = true, value_parser = BoolishValueParser::new())]
    pub demo: bool,

    /// How the service listens, logs and ends.
    #[command(flatten)]
    pub server: ServerOptions,

    /// How the database is used.
    #[command(flatten)]
    pub database: DatabaseOptions,

    /// Where users and groups come from.
    #[command(flatten)]
    pub directory: DirectoryOptions,

    /// Where events come from.
    #[command(flatten)]
    pub booking: BookingOptions,

    /// How the service knows who a request is from.
    #[command(flatten)]
    pub identity: IdentityOptions,
}

/// How the service knows who a request is from. Without any of these it runs in development mode (contract,
/// "Development mode"), where everybody on this machine may be anyone.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Identity")]
pub struct IdentityOptions {
    /// Names of the headers in which a trusted proxy says the sign-in name, comma-separated; `none` when it says only the
    /// client's address.
    #[arg(
        long,
        env = "IDENTITY_HEADERS",
        value_name = "HEADER",
        value_delimiter = ',',
        global = true,
        default_value = "X-Forwarded-User,X-Showcase-User"
    )]
    pub identity_headers: Vec<HeaderName>,

    /// Issuer of bearer tokens: an OpenID Connect provider, exactly as in the `iss` of its tokens.
    #[arg(long, env = "OIDC_ISSUER", value_name = "URL", global = true)]
    pub oidc_issuer: Option<String>,

    /// For whom a token must be made: this service's client id at the issuer.
    #[arg(long, env = "OIDC_AUDIENCE", value_name = "TEXT", global = true)]
    pub oidc_audience: Option<String>,

    /// Where the issuer's keys are [default: as its metadata says].
    #[arg(long, env = "JWKS_URL", value_name = "URL", global = true)]
    pub jwks_url: Option<Url>,

    /// Claim that holds the sign-in name.
    #[arg(long, env = "OIDC_NAME_CLAIM", value_name = "CLAIM", default_value = "preferred_username", global = true)]
    pub oidc_name_claim: String,

    /// How tokens may be signed, comma-separated: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, `EdDSA`.
    #[arg(
        long,
        env = "OIDC_ALGORITHMS",
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "RS256,ES256",
        global = true
    )]
    pub oidc_algorithms: Vec<SignedBy>,
}

/// Instead of the name of a header: no header says who somebody is.
const NO_HEADER: &str = "none";

/// What ends the development mode.
const WITHOUT_IDENTITY: &str =
    "--trusted-proxies that send the sign-in name in one of --identity-headers, or --oidc-issuer";

/// The default address of the database.
const DEFAULT_DATABASE: &str = "sqlite://data/portfolio.sqlite3";

impl Config {
    /// What is wrong with the options, one line a fault.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.server.faults();
        faults.extend(self.database_url().err());
        faults.extend(self.directory().err());
        faults.extend(self.booking.source(&self.directory).err());
        faults.extend(self.identity().err().unwrap_or_default());
        if !self.server.is_loopback() {
            faults
                .extend([self.directory.token(), self.booking.token()].into_iter().filter_map(SecretOption::too_short));
        }
        for name in self.admins.iter().filter(|name| !is_sign_in_name(name)) {
            faults.push(format!("--admins: {name:?} is no sign-in name"));
        }
        faults
    }

    /// What is no fault but should not be so, one line each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let secrets = [self.database.given_url(), self.directory.token(), self.booking.token()];
        secrets.into_iter().filter_map(SecretOption::exposed).collect()
    }

    /// Where the database is.
    ///
    /// # Errors
    /// One line saying what is wrong with the options.
    pub fn database_url(&self) -> Result<database::Url, String> {
        self.database.resolved_url(DEFAULT_DATABASE, self.server.is_loopback())
    }

    /// Where users and groups come from, if from anywhere; the demo without a directory has one of its own.
    ///
    /// # Errors
    /// One line saying what is wrong with the options.
    pub fn directory(&self) -> Result<Option<Source>, String> {
        Ok(self.directory.source()?.or(self.demo.then_some(Source::Demo)))
    }

    /// How the service knows who a request is from.
    ///
    /// # Errors
    /// What is wrong with the options, one line a fault.
    pub fn identity(&self) -> Result<Identity, Vec<String>> {
        let options = &self.identity;
        let mut faults = Vec::new();
        let tokens = options.tokens().unwrap_or_else(|fault| {
            faults.push(fault);
            None
        });
        let believed = &self.server.trusted_proxies;
        let headers: Vec<_> = options.identity_headers.iter().filter(|name| *name != NO_HEADER).cloned().collect();
        let is_configured = options.oidc_issuer.is_some() || !believed.is_empty() && !headers.is_empty();
        if !is_configured {
            faults.extend(self.server.development_faults(WITHOUT_IDENTITY));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let trusted = if is_configured { believed.clone() } else { Cidr::LOOPBACK.to_vec() };
        let proxies = Proxies { trusted, headers };
        Ok(Identity { proxies, tokens, is_development: !is_configured })
    }
}

impl IdentityOptions {
    fn tokens(&self) -> Result<Option<(Expectations, Origin)>, String> {
        let (issuer, audience) = match (&self.oidc_issuer, &self.oidc_audience) {
            (Some(issuer), Some(audience)) => (issuer.clone(), audience.clone()),
            (Some(_), None) => return Err("--oidc-issuer needs --oidc-audience".to_owned()),
            (None, None) if self.jwks_url.is_none() => return Ok(None),
            (None, _) => return Err("--oidc-audience and --jwks-url need --oidc-issuer".to_owned()),
        };
        let origin = match &self.jwks_url {
            Some(url) => Origin::Set(url.clone()),
            None => Origin::Discovery { issuer: issuer.clone() },
        };
        let address = match &self.jwks_url {
            Some(url) => Ok(url.clone()),
            None => Url::parse(&issuer),
        };
        let option = if self.jwks_url.is_some() { "--jwks-url" } else { "--oidc-issuer" };
        address
            .map_err(|error| error.to_string())
            .and_then(|url| is_safe(&url))
            .map_err(|e| format!("{option}: {e}"))?;
        let (name_claim, algorithms) = (self.oidc_name_claim.clone(), self.oidc_algorithms.clone());
        Ok(Some((Expectations { issuer, audience, name_claim, algorithms }, origin)))
    }
}
