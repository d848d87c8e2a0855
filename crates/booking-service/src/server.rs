//! Assembles the service from its slices (operations, pages, OpenAPI document) and starts it.

use std::{io, sync::OnceLock, time::Duration};

use actix_web::{
    HttpRequest,
    web::{self, Data},
};
use chrono::{DateTime, Utc};
use club_sign_in::{SignIn, SignInPolicy, Site, flow};
use common::{problem::Legacy, time::Clock};
use diesel_migrations::embed_migrations;
use service_kit::{
    database::{Database, JobOwner, migrate::Migrations, types::DbTimestamp},
    directory,
    error::Error,
    server::{Running, listen},
    state::{AppState, ServiceInfo},
};
use utoipa::{
    Modify, OpenApi, PartialSchema, ToSchema,
    openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
};
use utoipa_actix_web::{scope, service_config::ServiceConfig};
use uuid::Uuid;

use crate::{
    auth::{self, SESSION_COOKIE},
    availability, board,
    club::Club,
    codes,
    config::Config,
    deletion, demo, events, groups, history, ical, join_links,
    last_use::LastUse,
    limits::Limits,
    pages, polls, rooms, series, sign_in, tags, users, version, webhooks,
};

/// The migrations of both databases.
pub static MIGRATIONS: Migrations = Migrations {
    sqlite: embed_migrations!("migrations/sqlite"),
    postgres: embed_migrations!("migrations/postgres"),
    own_table: "rooms",
    steps: &[("20261125020000", rooms::place_keys::recompute), ("20261125620000", events::search::recompute)],
};

/// The description of this service for service-kit.
pub static INFO: ServiceInfo = ServiceInfo {
    name: "booking-service",
    legacy: Legacy::Errors,
    codes: &[codes::ALL, club_sign_in::codes::ALL],
    // The feed, the board with a token and the pages of sign-in are addresses that must not be found by searching.
    headers: &[("x-knoq-version", env!("CARGO_PKG_VERSION")), ("x-robots-tag", "noindex")],
    unauthorized_headers: &[("X-KNOQ-Need-Authorization", "1")],
    has_credential,
    routes,
    pages: always_pages,
    texts: [include_str!("../locales/en.ftl"), include_str!("../locales/ja.ftl")],
    navigation: pages::NAVIGATION,
    page_parameters: pages::PARAMETERS,
    problem_page: |req| flow::problem_page(req).or_else(|| board::problem_page(req)),
    page_paths: &["/board", "/dev/sign-in", sign_in::JOIN, sign_in::JOIN_NOW],
    front_pages,
    front_page_paths: pages::PATHS,
    front_form_paths: pages::FORM_PATHS,
    sitemap: None,
    removals: deletion::REMOVALS,
    document: Document::openapi,
    interface: OnceLock::new(),
};

fn routes(config: &mut ServiceConfig<'_>) {
    // One scope for each first segment, so that a request is not matched against every operation.
    config.service(
        scope("/api")
            .service(scope("/events").configure(events::routes).configure(history::routes_of_events))
            .service(scope("/event-series").configure(series::routes))
            .service(scope("/draft-events").configure(polls::routes).configure(history::routes_of_polls))
            .service(scope("/availability").configure(availability::routes))
            .service(
                scope("/rooms")
                    .configure(rooms::routes)
                    .configure(events::routes_of_rooms)
                    .configure(history::routes_of_rooms),
            )
            .service(
                scope("/groups")
                    .configure(groups::routes)
                    .configure(events::routes_of_groups)
                    .configure(history::routes_of_groups),
            )
            .service(
                scope("/users")
                    .configure(users::routes)
                    .configure(groups::routes_of_users)
                    .configure(events::routes_of_users)
                    .configure(polls::routes_of_users)
                    .configure(ical::routes_of_users)
                    .configure(sign_in::routes_of_users),
            )
            .service(scope("/tags").configure(tags::routes))
            .service(scope("/webhooks").configure(webhooks::routes))
            .service(scope("/invitations").configure(join_links::routes))
            .configure(history::routes)
            .configure(events::routes_of_activity)
            .configure(ical::routes)
            .configure(sign_in::routes)
            .configure(version::routes),
    );
}

/// Whether a request has a session cookie, a token, or the secret of a feed in its path.
fn has_credential(req: &HttpRequest) -> bool {
    auth::has_credential(req) || req.path().starts_with("/api/ical/v1/")
}

fn always_pages(config: &mut web::ServiceConfig) {
    config.configure(users::pages).configure(sign_in::pages).configure(board::pages);
}

fn front_pages(config: &mut web::ServiceConfig) {
    config.configure(sign_in::front_pages).configure(pages::routes);
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "booking-service",
        description = "Lecture rooms that the club holds, events in them, polls, groups, attendance, tags, a \
            personal calendar feed and sign-in.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    servers((url = "/", description = "The address of this document")),
    tags(
        (name = "rooms", description = "Places during a period that the club holds, and when they are free."),
        (name = "events", description = "Events in rooms, alone or in a series, and the answers to them."),
        (name = "draft-events", description = "Polls that ask when people can come."),
        (name = "availability", description = "Answers to polls, and times that suit people and rooms."),
        (name = "groups", description = "Groups of members, who are invited to the events of their groups."),
        (name = "tags", description = "Names by which events are found."),
        (name = "users", description = "The members of the club."),
        (name = "ical", description = "The calendar feed of a member."),
        (name = "history", description = "Who changed what."),
        (name = "webhooks", description = "Messages about changes to programs and chats."),
        (name = "sign-in", description = "Signing in and out, sessions and API tokens."),
        (name = "version", description = "The version of the service."),
        (name = "additions", description = "Operations that the published definition does not have.")
    ),
    security(("session" = []), ("token" = [])),
    modifiers(&Security, &Problems)
)]
struct Document;

/// The problem members of this service, in addition to the common ones.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "only for the OpenAPI document")]
struct ProblemMembers {
    /// Of `room-conflict`: the conflicting events.
    #[schema(inline, nullable = false)]
    conflicts: Option<Vec<Conflict>>,
    /// Of `room-conflict`: when the room is free.
    #[schema(nullable = false)]
    free_times: Option<Vec<rooms::Interval>>,
    /// Of `series-conflict`: the dates that cannot be booked.
    #[schema(nullable = false)]
    dates: Option<Vec<series::SkippedDate>>,
    /// Of `room-overlap`: the overlapping rooms.
    #[schema(nullable = false)]
    rooms: Option<Vec<Uuid>>,
    /// Of `events-to-come`: the events that have not ended.
    #[schema(nullable = false)]
    events: Option<Vec<Uuid>>,
    /// Of `poll-confirmed`: the event that the poll became.
    #[schema(nullable = false)]
    event_id: Option<Uuid>,
    /// Of `bad-filter` and `filter-too-long`: the index of the first character in error, from 0.
    #[schema(nullable = false)]
    position: Option<u32>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "only for the OpenAPI document")]
struct Conflict {
    event_id: Uuid,
    time_start: DateTime<Utc>,
    time_end: DateTime<Utc>,
    /// Whether other shared events may use the room at the same time.
    shared_room: bool,
}

struct Problems;

impl Modify for Problems {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        document.components.get_or_insert_default().schemas.insert("Problem".to_owned(), ProblemMembers::schema());
    }
}

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let cookie = ApiKeyValue::with_description(SESSION_COOKIE, "Set by signing in.");
        components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API token: POST /api/users/me/tokens, or `booking-service token create`."))
            .build();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
    }
}

/// Migrates the database, creates the everyone group, starts a sync with the directory, and binds the port.
///
/// # Errors
/// When the options are invalid, the database cannot be reached or has a newer schema, or the address is in use.
pub async fn start(config: &Config, clock: Clock) -> io::Result<Running> {
    let mut club = Club::new(config).map_err(io::Error::other)?;
    let settings = config.provider().map_err(|faults| io::Error::other(faults.join("; ")))?;
    let url = config.database_url().map_err(io::Error::other)?;
    // Takes as long as opening the database.
    let interface = tokio::task::spawn_blocking(|| INFO.interface());
    let db = open(config).await?;
    let at_start = db.for_start();
    let failed = |error: Error| io::Error::other(format!("{url}: {}", error.describe()));
    let (name, now) = (config.everyone_group.clone(), DbTimestamp(clock.now()));
    let ensured = move |conn: &mut _| groups::queries::ensure_everyone_group(conn, name.as_deref(), now);
    club.everyone_group = db.write(JobOwner::Internal, ensured).await.map_err(failed)?;
    interface.await?;
    let state = AppState::new(&INFO, &config.server, db.clone(), clock.clone(), club.answer_options());
    sync_at_start(&state, &club, config.demo).await;
    if config.demo {
        demo::fill(&at_start, &club, clock.now()).await.map_err(failed)?;
    }
    let policy = config.sign_in_policy();
    let members = match policy {
        SignInPolicy::Directory => "the people in the directory, by a rule or with an invitation",
        SignInPolicy::Invited => "people with an invitation",
        SignInPolicy::Anyone => "everybody who signs in",
    };
    log::info!("database {url}; time zone {}; members: {members}", config.time_zone);
    let site = Site {
        keys: club.keys.clone(),
        origin: club.origin.clone(),
        is_https: config.server.is_https(),
        is_development: club.is_development,
        service: &sign_in::SERVICE,
    };
    let sign_in = Data::new(SignIn::new(site, settings, policy, config.sign_in.sign_in_rate_limit, &clock));
    let (provider, public_url) = (sign_in.clone(), config.server.public_origin());
    // In the background, so that the start does not wait for the provider.
    actix_web::rt::spawn(async move { provider.provider.check_at_start(&public_url).await });
    let (last_use, limits) = (Data::new(LastUse::start(&db)), Data::new(Limits::new(&config.limits, &clock)));
    let to_flush = last_use.clone();
    state.on_shutdown(move || {
        let last_use = to_flush.clone();
        async move { last_use.flush().await }
    });
    let keys = club.keys.clone();
    let sends = at_start.write(JobOwner::Internal, move |conn| {
        webhooks::changes::seal_again(conn, &keys)?;
        webhooks::queries::any_is_on(conn)
    });
    let wake = Data::new(webhooks::start(&state, &club, sends.await.map_err(failed)?));
    let club = Data::new(club);
    listen(state, &config.server, move |app| {
        app.app_data(club.clone()).app_data(sign_in.clone());
        app.app_data(limits.clone()).app_data(last_use.clone()).app_data(wake.clone());
    })
}

/// Copies users and groups from the directory, if there is one. An error does not stop the start. A sync that takes
/// longer than five seconds continues in the background, but the demonstration data waits for its members.
async fn sync_at_start(state: &Data<AppState>, club: &Club, is_demo: bool) {
    if club.directory.is_none() {
        return;
    }
    let (state, club, now) = (state.clone(), club.clone(), state.clock.now());
    let sync = actix_web::rt::spawn(async move {
        let outcome = users::sync::run(&state.database, &club, false, now).await;
        state.copies.record(directory::COPY, now, &outcome);
        if let Err(error) = outcome {
            state.database.log_failure("users and groups are not up to date", error);
        }
    });
    let patience = if is_demo { Duration::MAX } else { Duration::from_secs(5) };
    if tokio::time::timeout(patience, sync).await.is_err() {
        log::warn!("the sync at start is slow and continues in the background");
    }
}

/// Migrates the database and starts its executor.
///
/// # Errors
/// When the options are invalid, or the database cannot be reached or has a newer schema.
pub async fn open(config: &Config) -> io::Result<Database> {
    let url = config.database_url().map_err(io::Error::other)?;
    Database::start(&url, &MIGRATIONS, config.database.limits()).await
}
