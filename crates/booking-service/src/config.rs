//! The command line: every option is a flag and an environment variable.

mod periods;
mod webhooks;

use chrono_tz::Tz;
use clap::{Args, Parser, Subcommand, ValueEnum, builder::BoolishValueParser};
use club_directory::Source;
use club_sign_in::{
    SignInPolicy,
    config::{ProviderSettings, SignInOptions},
};
use common::visible::is_blank;
use import::ImportOptions;
use service_kit::{
    cli::{CommonCommand, SyncOptions},
    config::{
        DatabaseOptions, DirectoryOptions, KeyOptions, Secret, SecretOption, ServerOptions, time_zone, whole_number,
        with_default,
    },
    credentials::Keys,
    database,
};
use uuid::Uuid;

pub use self::{periods::Periods, webhooks::WebhookOptions};
use crate::limits::LimitOptions;

/// Lecture rooms, their use, groups, attendance, tags, calendar feeds and sign-in of a student club.
#[derive(Debug, Parser)]
#[command(name = "booking-service", version, max_term_width = 120)]
pub struct Cli {
    /// The command; `serve` by default.
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
    /// The commands that both services have.
    #[command(flatten)]
    Common(CommonCommand),
    /// Copy users and groups from the club's directory
    Sync(SyncOptions),
    /// Import the database of the system that this service replaces. Local times are read in `--time-zone`
    Import(ImportOptions),
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Create webhooks
    #[command(subcommand)]
    Webhook(WebhookCommand),
    /// Print a link by which somebody becomes a member by signing in; it is not shown again
    Invite {
        /// Whoever joins by it is privileged.
        #[arg(long)]
        privileged: bool,
        /// How many people may join by it.
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_number::<u16>(1..=1000))]
        uses: u16,
        /// Days until it ends.
        #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = whole_number::<u16>(1..=90))]
        days: u16,
    },
    /// List users, grant the privilege, and unlink accounts of the sign-in provider
    #[command(subcommand)]
    User(UserCommand),
}

/// `token …`
#[derive(Debug, Clone, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print it; it is not shown again
    Create {
        /// Sign-in name of the owner. Without one the token is the club's, for another program: it reads what every member
        /// may read.
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// What the token is for.
        #[arg(long, value_name = "TEXT")]
        name: String,
        /// What the token allows.
        #[arg(long, value_enum, default_value_t = ScopeArg::Read)]
        scope: ScopeArg,
        /// Days until the token expires. Without this option it does not expire.
        #[arg(long, value_name = "DAYS", value_parser = whole_number::<u16>(1..=3650))]
        expires_in: Option<u16>,
    },
    /// List tokens: id, owner, scope, created, expires, last used, name
    List {
        /// List only the tokens of this user.
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
    },
    /// Revoke a token
    Revoke {
        /// Id of the token, as `token list` prints it.
        #[arg(value_parser = token_id)]
        id: Uuid,
    },
}

fn token_id(text: &str) -> Result<Uuid, &'static str> {
    text.parse().map_err(|_| "not an id as `token list` prints it")
}

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScopeArg {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
    /// The board at `/board?kiosk=TOKEN`, and nothing else: for a screen beside a room.
    Board,
}

/// `webhook …`
#[derive(Debug, Clone, Subcommand)]
pub enum WebhookCommand {
    /// Create a webhook and print its id; a new secret is printed as well and not shown again
    Create {
        /// The body of `POST /webhooks`, as JSON.
        #[arg(value_name = "JSON")]
        body: String,
        /// The secret, if the receiver has one already.
        #[arg(long, env = "WEBHOOK_SECRET", value_name = "TEXT", hide_env_values = true)]
        #[arg(allow_hyphen_values = true)]
        secret: Option<Secret>,
    },
}

/// `user …`
#[derive(Debug, Clone, Subcommand)]
pub enum UserCommand {
    /// List users: id, sign-in name, state, privilege, display name
    List,
    /// Grant a user the privilege
    GrantPrivilege {
        /// Sign-in name of the user.
        name: String,
    },
    /// Suspend a user whom the directory does not list: sessions, tokens, feed and privilege end
    Suspend {
        /// Sign-in name of the user.
        name: String,
    },
    /// End the suspension of a user
    Readmit {
        /// Sign-in name of the user.
        name: String,
    },
    /// Unlink a user from the account of the sign-in provider, and end sessions, tokens and feed; the next sign-in finds
    /// its user anew
    Unlink {
        /// Sign-in name of the user.
        name: String,
    },
}

/// The options.
#[derive(Debug, Clone, Args)]
#[command(
    next_help_heading = "Club",
    mut_args(|option| if option.get_id() == "database_url" { with_default(option, DEFAULT_DATABASE) } else { option })
)]
pub struct Config {
    /// IANA name of the club's time zone. Answers show times in this zone, and imports read local times in it.
    #[arg(long, env = "TIME_ZONE", value_name = "ZONE", default_value = "UTC", global = true, value_parser = time_zone)]
    pub time_zone: Tz,

    /// Name of the group of all active members [default: the one that it has, at first `Everyone`].
    #[arg(long, env = "EVERYONE_GROUP", value_name = "NAME", global = true)]
    pub everyone_group: Option<String>,

    /// Fill an empty database with an example club.
    #[arg(long, env = "DEMO", global = true, value_parser = BoolishValueParser::new())]
    pub demo: bool,

    /// The key of this installation.
    #[command(flatten)]
    pub key: KeyOptions,

    /// Network, log and shutdown.
    #[command(flatten)]
    pub server: ServerOptions,

    /// Rate limits.
    #[command(flatten)]
    pub limits: LimitOptions,

    /// The database.
    #[command(flatten)]
    pub database: DatabaseOptions,

    /// The club directory.
    #[command(flatten)]
    pub directory: DirectoryOptions,

    /// The sign-in provider.
    #[command(flatten)]
    pub sign_in: SignInOptions,

    /// Webhooks.
    #[command(flatten)]
    pub webhooks: WebhookOptions,
}

/// What is missing in development mode, for messages.
const MISSING_PROVIDER: &str = "a sign-in provider (--oidc-issuer or --oauth-…)";

/// The path to which a provider redirects browsers (contract, "Sign-in").
pub const CALLBACK: &str = "/api/callback";

/// The default address of the database.
const DEFAULT_DATABASE: &str = "sqlite://data/booking.sqlite3";

impl Config {
    /// The errors in the options, one line each.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.server.faults();
        faults.extend(self.database_url().err());
        faults.extend(self.keys().err());
        faults.extend(self.directory().err());
        if !self.server.is_loopback() {
            faults.extend(
                [self.directory.token(), self.sign_in.client_secret()].into_iter().filter_map(SecretOption::too_short),
            );
        }
        if self.everyone_group.as_ref().is_some_and(|name| is_blank(name) || name.chars().count() > 32) {
            faults.push("--everyone-group must have 1 to 32 characters".to_owned());
        }
        faults.extend(self.sign_in.policy_faults(self.has_directory(), self.directory.traq_url.as_ref()));
        match self.provider() {
            Err(provider_faults) => faults.extend(provider_faults),
            Ok(None) => faults.extend(self.server.development_faults(MISSING_PROVIDER)),
            Ok(Some(_)) => {}
        }
        faults
    }

    /// Warnings about options that are accepted but not recommended, one line each.
    pub fn warnings(&self) -> Vec<String> {
        let secrets =
            [self.key.secret(), self.database.given_url(), self.directory.token(), self.sign_in.client_secret()];
        let mut warnings: Vec<_> = secrets.into_iter().filter_map(SecretOption::exposed).collect();
        warnings.extend(self.server.missing_public_url());
        // The published front end compares dates in answers with dates in the browser's time zone.
        if self.server.static_folder.is_some() && self.time_zone == Tz::UTC {
            warnings.push(
                "--time-zone is UTC: a front end in another time zone shows some rooms on another day, or not at all"
                    .to_owned(),
            );
        }
        if self.is_development() {
            warnings.push(
                "development mode: everybody on this machine can sign in as any user, at /dev/sign-in".to_owned(),
            );
        }
        if matches!(self.provider(), Ok(Some(_))) {
            warnings.extend(self.sign_in.policy_warning(self.has_directory()));
        }
        warnings
    }

    /// Whether the service runs in development mode (contract, "Development mode"), in which anybody can sign in as any
    /// user: there is no sign-in provider, and only this machine can reach the service.
    pub fn is_development(&self) -> bool {
        let has_no_provider = matches!(self.provider(), Ok(None));
        has_no_provider && self.server.development_faults(MISSING_PROVIDER).is_empty()
    }

    /// The address of the database.
    pub fn database_url(&self) -> Result<database::Url, String> {
        self.database.resolved_url(DEFAULT_DATABASE, self.server.is_loopback())
    }

    /// The keys of this installation.
    pub fn keys(&self) -> Result<Keys, String> {
        // Without a provider the service starts in development mode only.
        self.key.keys(!self.server.is_loopback() || !matches!(self.provider(), Ok(None)))
    }

    /// The sign-in provider, if one is configured.
    pub fn provider(&self) -> Result<Option<ProviderSettings>, Vec<String>> {
        self.sign_in.provider(&self.server, self.directory.traq_url.as_ref(), CALLBACK)
    }

    /// Who becomes a member by signing in.
    pub fn sign_in_policy(&self) -> SignInPolicy {
        self.sign_in.policy(self.has_directory())
    }

    fn has_directory(&self) -> bool {
        !matches!(self.directory(), Ok(None))
    }

    /// The club directory, if there is one. Without a configured directory, the demo uses its own.
    pub fn directory(&self) -> Result<Option<Source>, String> {
        Ok(self.directory.source()?.or(self.demo.then_some(Source::Demo)))
    }
}
