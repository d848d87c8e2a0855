//! The operations of the service, its OpenAPI document, and its start.

use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use actix_web::{
    get,
    middleware::from_fn,
    web::{self, Data},
};
use club_directory::Source;
use club_issuer::cached_fetch::RefreshPolicy;
use club_sign_in::{SignIn, Site, flow};
use common::{problem::Legacy, time::Clock};
use diesel_migrations::embed_migrations;
use service_kit::{
    database::{Database, migrate::Migrations},
    error::{Error, Failure},
    http::Reply,
    server::{Running, listen},
    state::{AppState, ServiceInfo},
};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep_until},
};
use utoipa::{
    Modify, OpenApi,
    openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
};
use utoipa_actix_web::{scope, service_config::ServiceConfig};

use crate::{
    accounts,
    auth::Visitor,
    bearer::BearerTokens,
    club::Club,
    codes,
    config::Config,
    contests, deletion, demo, development, events, feeds, front_page, groups, history,
    identity::{Identity, has_credential},
    pages, pictures, profiles, projects,
    proxy_user::proxy_user,
    sign_in, sitemap, sync, teams, users,
};

/// The migrations, once for each database.
pub static MIGRATIONS: Migrations = Migrations {
    sqlite: embed_migrations!("migrations/sqlite"),
    postgres: embed_migrations!("migrations/postgres"),
    own_table: "projects",
    steps: &[],
};

/// The name, problem codes, headers, routes and OpenAPI document of this service.
pub static INFO: ServiceInfo = ServiceInfo {
    name: "portfolio-service",
    legacy: Legacy::Message,
    codes: &[codes::ALL, club_sign_in::codes::ALL],
    headers: &[],
    unauthorized_headers: &[("WWW-Authenticate", "Bearer")],
    has_credential,
    routes,
    pages: sign_in::pages,
    texts: [include_str!("../locales/en.ftl"), include_str!("../locales/ja.ftl")],
    page_parameters: &["search"],
    navigation: &[
        ("/", "start"),
        ("/people", "people"),
        ("/projects", "projects"),
        ("/contests", "contests"),
        ("/groups", "groups"),
        ("/me", "me"),
    ],
    problem_page: flow::problem_page,
    page_paths: sign_in::PATHS,
    front_pages,
    front_page_paths: pages::PATHS,
    front_form_paths: pages::FORM_PATHS,
    sitemap: Some(sitemap::PATH),
    removals: deletion::REMOVALS,
    document: Document::openapi,
    interface: OnceLock::new(),
};

fn routes(config: &mut ServiceConfig<'_>) {
    // One scope for each first segment, so that a request is not matched against every route.
    config.service(
        scope("/api/v1")
            .wrap(from_fn(proxy_user))
            .service(
                scope("/users")
                    .configure(users::routes)
                    .configure(sync::routes)
                    .configure(accounts::routes_of_users)
                    .configure(groups::routes_of_users)
                    .configure(events::routes_of_users)
                    .configure(projects::routes_of_users)
                    .configure(pictures::routes_of_users)
                    .configure(contests::routes_of_users)
                    .configure(profiles::routes_of_users),
            )
            .service(scope("/groups").configure(groups::routes))
            .service(scope("/events").configure(events::routes))
            .service(
                scope("/projects")
                    .configure(projects::routes)
                    .configure(pictures::routes_of_projects)
                    .configure(history::routes_of_projects),
            )
            .service(
                scope("/contests")
                    .configure(contests::routes)
                    .configure(teams::routes)
                    .configure(history::routes_of_contests),
            )
            .configure(accounts::routes)
            .configure(history::routes)
            .service(ping),
    );
    config.service(scope("/feeds").wrap(from_fn(proxy_user)).configure(feeds::routes));
}

fn front_pages(config: &mut web::ServiceConfig) {
    config
        .service(web::resource("/").wrap(from_fn(proxy_user)).route(web::get().to(front_page::show)))
        .configure(development::routes)
        .configure(pages::routes)
        .configure(projects::pages)
        .configure(contests::pages)
        .configure(profiles::pages)
        .configure(groups::pages)
        .configure(sitemap::pages);
}

/// Check that the service answers
#[utoipa::path(
    tag = "ping",
    operation_id = "ping",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    responses((status = 200, description = "`pong`", body = String, content_type = "application/json",
        example = json!("pong")))
)]
#[get("/ping")]
pub async fn ping(who: Visitor) -> Result<Reply, Failure> {
    who.respond(Reply::json(&"pong")?)
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "portfolio-service",
        description = "What the members of a student club make and take part in: projects, contests, groups, events \
            and accounts elsewhere. Reading needs no sign-in.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    servers((url = "/", description = "The address of this document")),
    tags(
        (name = "users", description = "The members of the club and what they publish."),
        (name = "accounts", description = "Accounts of members on other sites."),
        (name = "projects", description = "What members make together, over semesters."),
        (name = "contests", description = "Contests with their teams and results."),
        (name = "events", description = "A copy of the booking-service's events."),
        (name = "groups", description = "Groups with their present and former members."),
        (name = "history", description = "Who changed what."),
        (name = "feeds", description = "Atom feeds of projects and contests."),
        (name = "ping", description = "Whether the service answers."),
        (name = "additions", description = "Operations that the published definition does not have.")
    ),
    security(("proxy" = []), ("session" = []), ("token" = [])),
    modifiers(&Security)
)]
struct Document;

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let header = ApiKeyValue::with_description(
            "X-Forwarded-User",
            "The sign-in name, set by the authenticating reverse proxy, and in development mode by anybody. It is \
             ignored in requests from other clients.",
        );
        components.add_security_scheme("proxy", SecurityScheme::ApiKey(ApiKey::Header(header)));
        let cookie = ApiKeyValue::with_description(
            sign_in::SERVICE.session_cookie,
            "Set by signing in at /sign-in, if the service has a sign-in provider.",
        );
        components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .description(Some("A token of the club's OpenID Connect issuer."))
            .build();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
    }
}

/// Migrates the database and starts to listen.
///
/// # Errors
/// When an option is wrong, the database cannot be reached or has a newer schema, or the address is in use.
pub async fn start(config: &Config, clock: Clock) -> io::Result<Running> {
    let club = Club::new(config).map_err(io::Error::other)?;
    // Takes as long as opening the database.
    let interface = tokio::task::spawn_blocking(|| INFO.interface());
    let db = open(config).await?;
    let identity = config.identity().map_err(|faults| io::Error::other(faults.join("; ")))?;
    let answer_options = club.answer_options(&identity);
    let Identity { proxies, bearer, .. } = identity;
    interface.await?;
    let state = AppState::new(&INFO, &config.server, db.clone(), clock.clone(), answer_options);
    let at_start = db.for_start();
    let failed = |error: Error| io::Error::other(error.describe());
    sync::start(&state, &club, config.sync_interval, config.demo).await;
    if config.demo {
        demo::fill(&at_start, &club, clock.now()).await.map_err(failed)?;
    }
    let booking = config.booking.source(&config.directory).map_err(io::Error::other)?;
    if booking.is_none() {
        events::copy::drop_copy(&at_start).await.map_err(failed)?;
    }
    let url = config.database_url().map_err(io::Error::other)?;
    log::info!("database {url}; time zone {}", config.time_zone);
    let sign_in = sign_in(config, &state, &club)?;
    let (club, proxies) = (Data::new(club), Data::new(proxies));
    let tokens = bearer.map(|settings| Data::new(BearerTokens::new(settings, RefreshPolicy::default())));
    let running = listen(state.clone(), &config.server, move |app| {
        app.app_data(club.clone()).app_data(proxies.clone());
        if let Some(tokens) = &tokens {
            app.app_data(tokens.clone());
        }
        if let Some(sign_in) = &sign_in {
            app.app_data(sign_in.clone());
        }
    })?;
    if let Some(source) = booking {
        actix_web::rt::spawn(events::copy::run(state, source));
    }
    Ok(running)
}

/// The least time between the beginnings of two copies of the directory because of sign-ins.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);

/// Signs people in, if a provider is configured.
fn sign_in(config: &Config, state: &Data<AppState>, club: &Club) -> io::Result<Option<Data<SignIn>>> {
    let settings = config.provider().map_err(|faults| io::Error::other(faults.join("; ")))?;
    let Some(settings) = settings else { return Ok(None) };
    let site = Site {
        keys: config.keys().map_err(io::Error::other)?,
        origin: club.origin.clone(),
        is_https: config.server.is_https(),
        is_development: false,
        service: &sign_in::SERVICE,
    };
    let (policy, limit) = (config.sign_in_policy(), config.sign_in.sign_in_rate_limit);
    let mut sign_in = SignIn::new(site, Some(settings), policy, limit, &state.clock);
    if let Some(Source::Booking { .. }) = club.directory {
        // Who has just joined there may come here before the next copy. Whoever waits for the same copy shares it.
        let (state, club, begun) = (state.clone(), club.clone(), Arc::new(Mutex::new(None::<Instant>)));
        sign_in = sign_in.with_refresh(Box::new(move || {
            let (state, club, begun, asked) = (state.clone(), club.clone(), begun.clone(), Instant::now());
            Box::pin(async move {
                let mut begun = begun.lock().await;
                if begun.is_some_and(|begun| begun >= asked) {
                    return;
                }
                if let Some(begun) = *begun {
                    sleep_until(begun + REFRESH_INTERVAL).await;
                }
                *begun = Some(Instant::now());
                sync::run_once(&state, &club).await;
            })
        }));
    }
    let sign_in = Data::new(sign_in);
    let (provider, public_url) = (sign_in.clone(), config.server.public_origin());
    // In the background, so that the start does not wait for the provider.
    actix_web::rt::spawn(async move { provider.provider.check_at_start(&public_url).await });
    Ok(Some(sign_in))
}

/// Migrates the database and starts its executor.
///
/// # Errors
/// When an option is wrong, or the database cannot be reached or has a newer schema.
pub async fn open(config: &Config) -> io::Result<Database> {
    let url = config.database_url().map_err(io::Error::other)?;
    Database::start(&url, &MIGRATIONS, config.database.limits()).await
}
