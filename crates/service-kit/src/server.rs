//! Start, readiness and graceful drain of a service.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_cors::Cors;
use actix_web::{
    App, HttpRequest, HttpServer,
    dev::ServerHandle,
    middleware::{Compress, Condition, from_fn},
    web::{self, Bytes, Data},
};
use common::{
    problem::{Code, Legacy, code},
    time::Clock,
};
use tokio::signal::unix::{SignalKind, signal};
use utoipa::openapi::OpenApi;
use utoipa_actix_web::{AppExt, service_config::ServiceConfig};

use crate::{
    config::ServerOptions,
    copies::CopyStatuses,
    credentials::Keys,
    database::Database,
    error::Error,
    http::{
        credential::Origins,
        etag::{self, Tag},
        frame::{frame, problems},
        limit::{Limit, limit},
        openapi,
        proxy::Cidr,
        query::path_config,
        retries, root,
        routes::Routes,
        static_files::StaticFiles,
    },
    metrics::Metrics,
};

/// What sets one service apart from another.
pub struct ServiceInfo {
    /// Its name in logs.
    pub name: &'static str,
    /// The member that its older clients read the message of an error from.
    pub legacy: Legacy,
    /// Its problem codes besides the common ones.
    pub codes: &'static [&'static Code],
    /// Headers of every answer.
    pub headers: &'static [(&'static str, &'static str)],
    /// Headers of every 401.
    pub unauthorized_headers: &'static [(&'static str, &'static str)],
    /// Whether a request carries what may prove who it is from. Such a request is charged to its user, by whoever finds
    /// that out (see [`limit`]).
    pub has_credential: fn(&HttpRequest) -> bool,
    /// Registers the operations.
    pub routes: fn(&mut ServiceConfig<'_>),
    /// Registers what is not part of the documented interface, such as pages.
    pub pages: fn(&mut web::ServiceConfig),
    /// Title, version and description of the OpenAPI document; the operations are added to it.
    pub document: fn() -> OpenApi,
}

/// What answers depend on in one installation.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// Options that shape them.
    pub shape: String,
    /// The request headers by which they differ from one caller to another, as `Vary` lists them.
    pub vary: String,
    /// The keys of the installation, when answers hold secrets.
    pub keys: Option<Keys>,
}

type Farewell = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()>>> + Send + Sync>;

/// What the workers of a running service share.
pub struct AppState {
    about: &'static ServiceInfo,
    db: Database,
    clock: Clock,
    origins: Origins,
    trusted_proxies: Vec<Cidr>,
    limit: Limit,
    metrics: Metrics,
    copies: CopyStatuses,
    farewells: RwLock<Vec<Farewell>>,
    routes: Routes,
    document: Bytes,
    document_tag: Tag,
    static_files: Option<Arc<StaticFiles>>,
    build: String,
    own: Own,
    draining: AtomicBool,
    drain_delay: Duration,
    request_timeout: Duration,
}

impl AppState {
    /// The shared state of a service.
    #[must_use]
    pub fn new(
        about: &'static ServiceInfo,
        options: &ServerOptions,
        db: Database,
        clock: Clock,
        own: Own,
    ) -> Data<Self> {
        let document = document(about);
        let json = document.to_json().unwrap_or_default();
        let metrics = Metrics::new(about.name, &document.info.version, clock.now(), &db, own.keys.as_ref());
        Data::new(Self {
            about,
            db,
            limit: Limit::per_minute(options.rate_limit, &clock),
            clock,
            origins: Origins::new(options),
            trusted_proxies: options.trusted_proxies.clone(),
            metrics,
            copies: CopyStatuses::default(),
            farewells: RwLock::default(),
            routes: Routes::new(&document),
            build: etag::mark(&[&json, &own.shape, option_env!("REVISION").unwrap_or_default(), &program()]),
            document_tag: Tag::new(json.as_bytes(), None),
            document: Bytes::from(json),
            static_files: options.static_folder.clone().map(|folder| Arc::new(StaticFiles::new(folder))),
            own,
            draining: AtomicBool::new(false),
            drain_delay: Duration::from_secs(options.drain_delay),
            request_timeout: Duration::from_secs(options.request_timeout),
        })
    }

    /// What sets the service apart.
    #[must_use]
    pub fn about(&self) -> &'static ServiceInfo {
        self.about
    }

    /// The door to its database.
    #[must_use]
    pub fn db(&self) -> &Database {
        &self.db
    }

    /// Its clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The sites that may write with a cookie.
    #[must_use]
    pub fn origins(&self) -> &Origins {
        &self.origins
    }

    /// The reverse proxies that are believed.
    #[must_use]
    pub fn trusted_proxies(&self) -> &[Cidr] {
        &self.trusted_proxies
    }

    /// How often each caller may call.
    #[must_use]
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Its numbers.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The copies of what other services have.
    #[must_use]
    pub fn copies(&self) -> &CopyStatuses {
        &self.copies
    }

    /// Does something when the service begins to drain, before it stops.
    pub fn at_drain<F>(&self, farewell: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        let farewell = Box::new(move || Box::pin(farewell()) as Pin<Box<dyn Future<Output = ()>>>);
        self.farewells.write().unwrap_or_else(PoisonError::into_inner).push(farewell);
    }

    /// Its paths.
    #[must_use]
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Its OpenAPI document as JSON, and the tag of that.
    #[must_use]
    pub fn document(&self) -> (&Bytes, &Tag) {
        (&self.document, &self.document_tag)
    }

    /// Whether it serves a front end.
    #[must_use]
    pub fn has_front_end(&self) -> bool {
        self.static_files.is_some()
    }

    /// The front end, when the answer to this request is up to it, unless there is a route.
    #[must_use]
    pub fn front_end_of(&self, req: &HttpRequest) -> Option<Arc<StaticFiles>> {
        self.static_files.as_ref().filter(|_| StaticFiles::own(req.path())).cloned()
    }

    /// Stands for all that shapes its answers besides the database: this build, by its operations, the commit that the
    /// environment names while it is built (`REVISION`) and the file of the program; and options.
    #[must_use]
    pub fn build(&self) -> &str {
        &self.build
    }

    /// The request headers by which answers differ, as `Vary` lists them.
    #[must_use]
    pub fn vary(&self) -> &str {
        &self.own.vary
    }

    /// The keys of the installation, when answers hold secrets.
    #[must_use]
    pub fn keys(&self) -> Option<&Keys> {
        self.own.keys.as_ref()
    }

    /// Every problem code it can answer with.
    pub fn codes(&self) -> impl Iterator<Item = &'static Code> + use<> {
        code::ALL.iter().chain(self.about.codes).copied()
    }

    /// Whether it is ending: requests under way are finished, new connections should go elsewhere.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// How long a request may take.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout
    }
}

/// Tells this build from others that have the same operations, without reading all of it. Replicas whose files differ
/// in time only compare answers where they could have compared marks.
fn program() -> String {
    let file = std::env::current_exe().and_then(|path| path.metadata().map(|of_file| (path, of_file)));
    file.map_or_else(
        |_| String::new(),
        |(path, it)| format!("{} {} {:?}", path.display(), it.len(), it.modified().ok()),
    )
}

/// The OpenAPI document of a service: its own head, and the operations as they are registered.
#[must_use]
pub fn document(about: &ServiceInfo) -> OpenApi {
    let (_, operations) = App::new().into_utoipa_app().configure(about.routes).split_for_parts();
    let mut document = (about.document)();
    document.paths = operations.paths;
    if let Some(found) = operations.components {
        document.components.get_or_insert_default().schemas.extend(found.schemas);
    }
    openapi::complete(&mut document, about.codes, about.legacy);
    document
}

/// A service that listens.
pub struct Running {
    /// Where; the port is the real one when 0 was asked for.
    pub address: SocketAddr,
    service: Data<AppState>,
    server: actix_web::dev::Server,
    shutdown_timeout: Duration,
}

/// Threads of each worker that compress answers, read files and talk to other servers, made when needed. Other servers
/// take four at most (two a sign-in provider, one the directory, one the keys of a token issuer), which may all hang at
/// once, so there are as many besides.
const OTHER_THREADS: usize = 8;

/// Opens the port. `configure` adds what only this service needs to every worker's app.
///
/// # Errors
/// When the address cannot be had.
pub fn listen(
    service: Data<AppState>,
    options: &ServerOptions,
    configure: impl Fn(&mut web::ServiceConfig) + Clone + Send + 'static,
) -> io::Result<Running> {
    let allowed = options.allowed_origins.clone();
    let shared = service.clone();
    actix_web::rt::spawn(forget_answers(service.clone()));
    let workers = options
        .workers
        .map_or_else(|| std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get), usize::from);
    let shutdown_timeout = Duration::from_secs(options.shutdown_timeout);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(shared.clone())
            .app_data(path_config())
            .configure(configure.clone())
            .into_utoipa_app()
            .configure(shared.about.routes)
            .into_app()
            .configure(shared.about.pages)
            .configure(root::routes)
            .default_service(web::to(root::nothing_here))
            .wrap(from_fn(limit))
            .wrap(from_fn(problems))
            .wrap(Condition::new(!allowed.is_empty(), cors(&allowed)))
            .wrap(Compress::default())
            .wrap(from_fn(frame))
    })
    .workers(workers)
    .worker_max_blocking_threads(OTHER_THREADS)
    .shutdown_timeout(options.shutdown_timeout)
    // A list that is sent while it is made ends in small parts, each of which would wait until the last was confirmed.
    .tcp_nodelay(true)
    .disable_signals()
    .bind(options.bind)?;
    let address = server.addrs().first().copied().unwrap_or(options.bind);
    Ok(Running { address, service, server: server.run(), shutdown_timeout })
}

/// The time between two looks for answers that are kept no longer.
const BETWEEN_CLEANINGS: Duration = Duration::from_secs(60);

/// Rows that are deleted in one transaction, so that no request waits long for it.
const STEP: i64 = 200;

/// Deletes what was kept for retries and is so no longer, in small steps, until the service ends.
async fn forget_answers(service: Data<AppState>) {
    loop {
        tokio::time::sleep(BETWEEN_CLEANINGS).await;
        while let Ok(most) = forget_some(&service).await
            && most
        {}
    }
}

/// One step, and whether there may be more to do.
async fn forget_some(service: &AppState) -> Result<bool, Error> {
    let now = service.clock.now();
    let done = service.db.write(move |conn| retries::forget_expired(conn, now, STEP)).await;
    if let Err(error) = &done {
        log::warn!("answers that were kept for retries could not be deleted: {error:?}");
    }
    done.map(|deleted| i64::try_from(deleted).is_ok_and(|deleted| deleted == STEP))
}

/// Contract, "CORS". An answer to a request that timed out or panicked has none of these headers: such a request does
/// not come back through the middleware.
fn cors(allowed: &[String]) -> Cors {
    let mut cors = Cors::default()
        .allow_any_header()
        .allowed_methods(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
        .expose_headers(["ETag", "Link", "Location", "Retry-After", "X-Request-Id", "X-KNOQ-Need-Authorization"])
        .supports_credentials()
        .block_on_origin_mismatch(false)
        .max_age(3600);
    for origin in allowed {
        cors = cors.allowed_origin(origin);
    }
    cors
}

/// Ends a running service from elsewhere in the process.
#[derive(Clone)]
pub struct Stop {
    service: Data<AppState>,
    handle: ServerHandle,
}

impl Stop {
    /// Turns `/readyz` to 503; after the drain delay closes the port and the idle connections; ends when the requests
    /// under way are finished, or when the shutdown time-out has passed.
    pub async fn drain(self) {
        self.service.draining.store(true, Ordering::Relaxed);
        log::info!("draining");
        let farewells: Vec<_> = {
            let all = self.service.farewells.read().unwrap_or_else(PoisonError::into_inner);
            all.iter().map(|farewell| farewell()).collect()
        };
        for farewell in farewells {
            farewell.await;
        }
        tokio::time::sleep(self.service.drain_delay).await;
        self.handle.stop(true).await;
    }
}

impl Running {
    /// The way to end it.
    #[must_use]
    pub fn stop(&self) -> Stop {
        Stop { service: self.service.clone(), handle: self.server.handle() }
    }

    /// Serves until SIGTERM, SIGINT or [`Stop::drain`], then until the service has drained. A second signal does not
    /// wait for that.
    ///
    /// # Errors
    /// When the server fails, or at a second signal.
    pub async fn serve(self) -> io::Result<()> {
        let stop = self.stop();
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let signals = async move {
            tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
            let drained = async {
                stop.drain().await;
                std::future::pending::<()>().await;
            };
            tokio::select! { () = drained => {}, _ = term.recv() => {}, _ = int.recv() => {} }
            Err(io::Error::other("told twice to stop: requests under way were cut off"))
        };
        log::info!(
            "{} listens on http://{}, drains for {} s at most",
            self.service.about.name,
            self.address,
            self.shutdown_timeout.as_secs()
        );
        tokio::select! { ended = self.server => ended?, told_twice = signals => return told_twice };
        // What the shutdown time-out cut off goes with its worker, which ends by itself, and is logged then.
        for _ in 0..100 {
            if self.service.metrics.in_flight() == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }
}
