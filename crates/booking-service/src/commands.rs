//! The command line: one function for each command of this service.

use std::iter;

use ::import::{Import, ImportOptions};
use chrono::TimeDelta;
use chrono_tz::Tz;
use club_sign_in::{identities, provider::Provider};
use common::time::Clock;
use serde_json::{Value, json};
use service_kit::{
    cli::{CommandContext, CommonCommand, SyncOptions},
    command::{CommandError, exit_status, print},
    config::DatabaseOptions,
    database::{
        AnyConnection, Database, JobOwner, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    directory,
    error::Error,
    history::{Author, By},
    http::form::request,
    maintenance::tables::Contents,
};

use crate::{
    auth::Scope,
    club::Club,
    config::{Cli, Command, Config, ScopeArg, TokenCommand, UserCommand, WebhookCommand},
    import,
    join_links::{self, NewInvitation},
    schema, server,
    sign_in::tokens::{self, TokenRow},
    users::{self, queries::User},
    webhooks::{self, RequestWebhook},
};

/// Runs the command of a command line, `serve` when it has none, and returns the exit status.
pub async fn run(cli: Cli) -> i32 {
    let config = &cli.config;
    let outcome = match cli.command.unwrap_or(Command::Serve) {
        Command::Serve => serve(config).await,
        Command::Sync(options) => sync(config, &options).await,
        Command::Import(options) => import(config, options).await,
        Command::Token(command) => token(config, command).await,
        Command::Invite { privileged, uses, days } => invite(config, NewInvitation { uses, days, privileged }).await,
        Command::Webhook(command) => webhook(config, command).await,
        Command::User(command) => user(config, command).await,
        Command::Common(command) => {
            let mut context = command_context(config);
            if let (CommonCommand::CheckConfig, Ok(Some(settings))) = (&command, config.provider()) {
                context.warnings.extend(Provider::new(Some(settings), false).doubts().await);
            }
            return context.run(command).await;
        }
    };
    exit_status(server::INFO.name, outcome)
}

fn command_context(config: &Config) -> CommandContext<'_> {
    CommandContext {
        info: &server::INFO,
        contents: Contents { migrations: &server::MIGRATIONS, tables: schema::TABLES, silence: silence_webhooks },
        server: &config.server,
        database: &config.database,
        database_url: config.database_url(),
        directory: config.directory().ok().flatten(),
        names: users::NAMES,
        listed: &[],
        faults: config.faults(),
        warnings: config.warnings(),
    }
}

async fn serve(config: &Config) -> Result<(), CommandError> {
    command_context(config).check()?;
    Ok(server::start(config, Clock::default()).await?.serve().await?)
}

/// The [`Club`] for a command that reads the club directory.
fn club_with_directory(config: &Config, command: &str) -> Result<Club, CommandError> {
    let club = Club::new(config).map_err(CommandError::option)?;
    if club.directory.is_none() {
        return Err(CommandError::option(format!("{command} needs --directory-file or --traq-url")));
    }
    Ok(club)
}

async fn sync(config: &Config, options: &SyncOptions) -> Result<(), CommandError> {
    let club = club_with_directory(config, "sync")?;
    let db = command_context(config).open_existing().await?;
    print(&[users::sync::run(&db, &club, options.force, Clock::default().now()).await?.to_string()])
}

async fn import(config: &Config, options: ImportOptions) -> Result<(), CommandError> {
    let club = club_with_directory(config, "import")?;
    if config.time_zone == Tz::UTC {
        log::warn!("--time-zone is UTC: the local times of the former system are read as UTC");
    }
    let directory = directory::fetch(club.directory.as_ref()).await?;
    let import = Import::connect(options, import::TABLES, config.time_zone).await?;
    // The import is one transaction.
    let database = DatabaseOptions { database_timeout: 3600, ..config.database.clone() };
    let db = CommandContext { database: &database, ..command_context(config) }.open_existing().await?;
    let now = Clock::default().now();
    print(&import::run(import, &db, directory, config.everyone_group.clone(), now).await?.lines())?;
    print(&import::webhooks::commands(config.directory.traq_url.as_ref(), |name| std::env::var(name).ok()))
}

async fn token(config: &Config, command: TokenCommand) -> Result<(), CommandError> {
    let (db, now) = (command_context(config).open_existing().await?, Clock::default().now());
    match command {
        TokenCommand::Create { user, name, scope, expires_in } => {
            let scope = match scope {
                ScopeArg::Read => Scope::Read,
                ScopeArg::Write => Scope::Write,
                ScopeArg::Board => Scope::Board,
            };
            let expires_at = expires_in.map(|days| now.plus(TimeDelta::days(days.into())));
            let token = db
                .write(JobOwner::Internal, move |conn| {
                    tokens::create(conn, user.as_deref(), &name, scope, expires_at, now)
                })
                .await?;
            print(&[token.reveal().to_owned()])
        }
        TokenCommand::List { user } => {
            let rows = db.read(JobOwner::Internal, move |conn| tokens::list(conn, user.as_deref())).await?;
            let header = "ID\tUSER\tSCOPE\tCREATED\tEXPIRES\tLAST USE\tNAME".to_owned();
            print(&iter::once(header).chain(rows.iter().map(|row| token_line(row, config))).collect::<Vec<_>>())
        }
        TokenCommand::Revoke { id } => {
            Ok(db.write(JobOwner::Internal, move |conn| tokens::revoke(conn, id, now)).await?)
        }
    }
}

async fn invite(config: &Config, new: NewInvitation) -> Result<(), CommandError> {
    let (db, now) = (command_context(config).open_existing().await?, DbTimestamp(Clock::default().now()));
    let created = db.write(JobOwner::Internal, move |conn| {
        join_links::create_recorded(conn, new, &Author::new(By::Command, now), now)
    });
    let (_, secret) = created.await?;
    print(&[join_links::address(&config.server.public_origin(), &secret)])
}

/// A token as a line of tab-separated fields. The name comes last because its owner chose it.
fn token_line(token: &TokenRow, config: &Config) -> String {
    let time = |at: DbTimestamp| at.in_zone(config.time_zone).to_string();
    let (created, name) = (time(token.created_at), on_one_line(&token.name));
    let expires = token.expires_at.map_or_else(|| "no expiry".to_owned(), time);
    let last_used = token.last_used_at.map_or_else(|| "not used".to_owned(), time);
    let scope = token.scope.word();
    let owner = token.user_name.as_deref().unwrap_or("-");
    format!("{}\t{owner}\t{scope}\t{created}\t{expires}\t{last_used}\t{name}", token.id)
}

/// Switches all webhooks off in a copy of the database.
fn silence_webhooks(conn: &mut AnyConnection) -> Result<Vec<String>, Error> {
    let off = webhooks::changes::switch_all_off(conn, &Author::new(By::Command, DbTimestamp(Clock::default().now())))?;
    let say =
        |off| format!("webhooks are off ({off}), so that this copy sends nothing: the page /webhooks switches them on");
    Ok(Some(off).filter(|off| *off > 0).map(say).into_iter().collect())
}

async fn webhook(config: &Config, WebhookCommand::Create { body, secret }: WebhookCommand) -> Result<(), CommandError> {
    let (club, is_given) = (Club::new(config).map_err(CommandError::option)?, secret.is_some());
    let mut body: Value = serde_json::from_str(&body)
        .map_err(|error| CommandError::option(format!("the webhook is no JSON: {error}")))?;
    if let (Some(secret), Some(body)) = (secret, body.as_object_mut()) {
        body.insert("secret".to_owned(), json!(secret.reveal()));
    }
    let request: RequestWebhook = request(body).map_err(|failure| Error::from(failure.0))?;
    let (db, now) = (command_context(config).open_existing().await?, DbTimestamp(Clock::default().now()));
    let created = db.write(JobOwner::Internal, move |conn| {
        let by = (DbUuid::nil(), &Author::new(By::Command, now));
        webhooks::create_recorded(conn, &webhooks::changes::Context::of(&club), &request, by, now, club.zone)
    });
    let (id, made) = created.await?;
    print(&iter::once(id.to_string()).chain(made.secret.filter(|_| !is_given)).collect::<Vec<_>>())
}

/// Rows that `user list` reads with one query.
const USERS_PER_QUERY: i64 = 1000;

async fn user(config: &Config, command: UserCommand) -> Result<(), CommandError> {
    let db = command_context(config).open_existing().await?;
    match command {
        UserCommand::List => {
            print(&["ID\tNAME\tSTATE\tPRIVILEGED\tDISPLAY NAME".to_owned()])?;
            let mut page = PageBounds { after: None, rows: USERS_PER_QUERY };
            loop {
                let bounds = page.clone();
                let users = db.read(JobOwner::Internal, move |conn| users::queries::list(conn, true, &bounds)).await?;
                print(&users.iter().map(user_line).collect::<Vec<_>>())?;
                let Some(last) = users.last().filter(|_| i64::try_from(users.len()) == Ok(USERS_PER_QUERY)) else {
                    return Ok(());
                };
                page.after = Some((last.name.clone(), last.id));
            }
        }
        UserCommand::GrantPrivilege { name } => {
            let user_name = name.clone();
            let now = DbTimestamp(Clock::default().now());
            let grant = move |conn: &mut AnyConnection| users::queries::grant_privilege(conn, &user_name, now);
            let is_changed = db.write(JobOwner::Internal, grant).await?;
            print(&[format!("{name} {}", if is_changed { "is privileged now" } else { "was privileged already" })])
        }
        UserCommand::Suspend { name } => set_suspended(&db, name, true).await,
        UserCommand::Readmit { name } => set_suspended(&db, name, false).await,
        UserCommand::Unlink { name } => {
            let (user_name, now) = (name.clone(), DbTimestamp(Clock::default().now()));
            let unlink = move |conn: &mut AnyConnection| {
                users::suspension::end_access_of(conn, &user_name, now)?;
                identities::unlink(conn, &user_name)
            };
            let was_linked = db.write(JobOwner::Internal, unlink).await?;
            print(&[format!(
                "{name} {}",
                if was_linked { "is no longer linked to an account" } else { "was not linked" }
            )])
        }
    }
}

async fn set_suspended(db: &Database, name: String, suspended: bool) -> Result<(), CommandError> {
    let (user_name, now) = (name.clone(), DbTimestamp(Clock::default().now()));
    let set = move |conn: &mut AnyConnection| users::suspension::set_suspended(conn, &user_name, suspended, now);
    let is_changed = db.write(JobOwner::Internal, set).await?;
    let (state, already) = (if suspended { "suspended" } else { "active" }, if is_changed { "" } else { " already" });
    print(&[format!("{name} is {state}{already}")])
}

/// A user as a line of tab-separated fields.
fn user_line(user: &User) -> String {
    let state = match user.state {
        1 => "active",
        2 => "suspended",
        _ => "deactivated",
    };
    let privileged = if user.privileged { "privileged" } else { "-" };
    format!("{}\t{}\t{state}\t{privileged}\t{}", user.id, on_one_line(&user.name), on_one_line(&user.display_name))
}

fn on_one_line(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}
