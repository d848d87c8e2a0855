//! What the workers of a running service share.

use std::{
    future::{Ready, ready},
    pin::Pin,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_web::{
    App, FromRequest, HttpRequest,
    dev::Payload,
    http::Method,
    web::{self, Bytes, Data},
};
use common::{
    problem::{Code, Legacy, Problem, code},
    time::{Clock, Timestamp},
};
use url::{Url, form_urlencoded};
use utoipa::openapi::OpenApi;
use utoipa_actix_web::{AppExt, service_config::ServiceConfig};

use crate::{
    config::{Color, Logo, ServerOptions},
    copies::CopyStatuses,
    credentials::Keys,
    database::{CredentialOwners, Database},
    error::Failure,
    http::{
        Reply,
        etag::{self, ETag},
        notes::RequestNotes,
        openapi,
        origin::Origins,
        parameter_names::ParameterNames,
        path_methods::PathMethods,
        rate_limit::{LookUpLimit, RateLimit},
        static_files::StaticFiles,
        texts::{self, Texts},
    },
    metrics::Metrics,
    removal::Removal,
};

/// What distinguishes one service from another.
pub struct ServiceInfo {
    /// Its name in logs.
    pub name: &'static str,
    /// The member of a problem from which its older clients read the message.
    pub legacy: Legacy,
    /// Its problem codes besides the common ones, those of each crate.
    pub codes: &'static [&'static [&'static Code]],
    /// Headers of every answer.
    pub headers: &'static [(&'static str, &'static str)],
    /// Headers of every 401.
    pub unauthorized_headers: &'static [(&'static str, &'static str)],
    /// Whether a request carries a credential, good or bad. The rate limit of such a request is its user's.
    pub has_credential: fn(&HttpRequest) -> bool,
    /// Registers the operations.
    pub routes: fn(&mut ServiceConfig<'_>),
    /// Registers what is not part of the documented interface, such as pages.
    pub pages: fn(&mut web::ServiceConfig),
    /// Its texts in each language.
    pub texts: texts::Sources,
    /// The address of each page that every page links to, and the key of its text.
    pub navigation: &'static [(&'static str, &'static str)],
    /// The parameters with which links lead back to a page, after a sign-in or a change of the language. Others may hold a
    /// secret.
    pub page_parameters: &'static [&'static str],
    /// Returns the page that shows the problems of a request by a browser, if it is not that of every service.
    pub problem_page: fn(&HttpRequest) -> Option<ProblemPage>,
    /// The paths of the pages.
    pub page_paths: &'static [&'static str],
    /// Registers the pages of a service that serves no front end.
    pub front_pages: fn(&mut web::ServiceConfig),
    /// The paths of these pages.
    pub front_page_paths: &'static [&'static str],
    /// The paths to which they send forms.
    pub front_form_paths: &'static [&'static str],
    /// The path of the sitemap, which is one of these pages, if the service has pages for search engines.
    pub sitemap: Option<&'static str>,
    /// How deleted objects are removed: of each kind after those that refer to it.
    pub removals: &'static [Removal],
    /// Title, version and description of the OpenAPI document, without the operations.
    pub document: fn() -> OpenApi,
    /// Empty; [`ServiceInfo::interface`] fills it.
    pub interface: OnceLock<Interface>,
}

/// The interface of a service, which no option changes. Computed once a process.
pub struct Interface {
    /// The version in the OpenAPI document.
    pub version: String,
    /// The OpenAPI document as JSON.
    pub document: Bytes,
    /// The entity tag of the document.
    pub document_tag: ETag,
    /// The names of the query parameters.
    pub parameter_names: ParameterNames,
    /// The texts of the pages.
    pub texts: Texts,
    operations: PathMethods,
}

/// Renders a problem as a page: its body, media type and further headers. Status and the headers of every problem are
/// added.
pub type ProblemPage = Box<dyn Fn(&Problem) -> Reply>;

impl ServiceInfo {
    /// The OpenAPI document with all registered operations.
    pub fn openapi(&self) -> OpenApi {
        let (_, operations) = App::new().into_utoipa_app().configure(self.routes).split_for_parts();
        let mut document = (self.document)();
        document.paths = operations.paths;
        if let Some(components) = operations.components {
            document.components.get_or_insert_default().schemas.extend(components.schemas);
        }
        openapi::complete(&mut document, &self.codes.concat(), self.legacy);
        document
    }

    /// The interface. The first call computes it, which takes as long as opening a database.
    pub fn interface(&self) -> &Interface {
        self.interface.get_or_init(|| {
            let document = self.openapi();
            let json = document.to_json().unwrap_or_default();
            Interface {
                version: document.info.version.clone(),
                document_tag: ETag::new(json.as_bytes(), None),
                parameter_names: ParameterNames::new(&document),
                texts: Texts::new(&self.texts),
                operations: PathMethods::new(&document),
                document: Bytes::from(json),
            }
        })
    }
}

/// The options that the answers of a service depend on.
#[derive(Debug, Clone, Default)]
pub struct AnswerOptions {
    /// The options that change answers, as text. Part of every entity tag.
    pub options: String,
    /// The request headers by which answers differ between callers, as the value of `Vary`.
    pub vary: String,
    /// The keys, if answers hold secrets.
    pub keys: Option<Keys>,
    /// Whether it is in development mode (contract, "Development mode").
    pub is_development: bool,
    /// The address on which a browser signs in, in which `{to}` stands for the page to return to.
    pub sign_in: Option<String>,
    /// Whether the service itself signs a browser out, at `/sign-out`.
    pub has_sign_out: bool,
}

/// The path of the links that change the language of pages.
pub const LANGUAGE_PATH: &str = "/language";

/// The path of the page that asks whether to sign out, and of its form.
pub const SIGN_OUT_PATH: &str = "/sign-out";

/// The path of the page for developers.
pub const DEVELOPERS_PATH: &str = "/developers";

/// The path of the club's logo.
pub const LOGO_PATH: &str = "/club-logo";

/// The path of the rules for crawlers (RFC 9309).
pub const ROBOTS_PATH: &str = "/robots.txt";

/// The paths of the pages of every service that serves no front end.
const COMMON_FRONT_PAGES: [&str; 4] = [LANGUAGE_PATH, DEVELOPERS_PATH, LOGO_PATH, ROBOTS_PATH];

type ShutdownHook = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()>>> + Send + Sync>;

/// The state of a running service.
pub struct AppState {
    /// What distinguishes the service from others.
    pub info: &'static ServiceInfo,
    /// Its database.
    pub database: Database,
    /// Its clock.
    pub clock: Clock,
    /// The origins that may write with a cookie.
    pub origins: Origins,
    /// Scheme and authority that browsers use, without a slash at the end, if they are configured.
    pub public_url: Option<String>,
    /// The limit on the requests of each caller.
    pub rate_limit: RateLimit,
    /// The most objects that a user may create in 24 hours; 0 means no limit.
    pub daily_limit: u32,
    /// How many days the history is kept.
    pub history_days: u32,
    /// The limit on the look-ups of unknown credentials.
    pub look_up_limit: LookUpLimit,
    /// The users of credentials.
    pub credential_owners: CredentialOwners,
    /// Its metrics.
    pub metrics: Metrics,
    /// The status of its copies of other services' data.
    pub copies: CopyStatuses,
    shutdown_hooks: RwLock<Vec<ShutdownHook>>,
    /// Its paths and their methods.
    pub paths: PathMethods,
    /// Its interface.
    pub interface: &'static Interface,
    /// The front end that it serves, if any.
    pub static_files: Option<Arc<StaticFiles>>,
    /// The name of the club, or nothing.
    pub club_name: String,
    /// The club's own site.
    pub club_url: Option<Url>,
    /// The style that sets the colour of the club, or nothing.
    pub club_style: String,
    /// The logo of the club.
    pub club_logo: Option<Logo>,
    /// The fingerprint of everything besides the database that answers depend on: the operations of this build, its
    /// commit (`REVISION` in the environment of the build), the file of the program, and options.
    pub build: String,
    /// The configuration that answers depend on.
    pub answer_options: AnswerOptions,
    draining: AtomicBool,
    drain_delay: Duration,
    /// The longest time that a request may take.
    pub request_timeout: Duration,
}

impl AppState {
    /// The state of a service that is about to start.
    pub fn new(
        info: &'static ServiceInfo,
        options: &ServerOptions,
        database: Database,
        clock: Clock,
        answer_options: AnswerOptions,
    ) -> Data<Self> {
        let interface = info.interface();
        let keys = answer_options.keys.as_ref();
        let has_front_pages = options.static_folder.is_none();
        let front_pages = if has_front_pages {
            [info.front_page_paths, &COMMON_FRONT_PAGES, info.sitemap.as_slice()].concat()
        } else {
            Vec::new()
        };
        let front_forms = if has_front_pages { info.front_form_paths } else { &[] };
        let club_name = options.pages.club_name.clone().unwrap_or_default();
        let commit = option_env!("REVISION").unwrap_or_default();
        let tag = interface.document_tag.text();
        let build = [tag.as_str(), &answer_options.options, &club_name, commit, &program_version()];
        Data::new(Self {
            info,
            metrics: Metrics::new(info.name, &interface.version, clock.now(), &database, keys),
            database,
            rate_limit: RateLimit::per_minute(options.rate_limit, &clock),
            daily_limit: options.daily_limit,
            history_days: options.history_days,
            look_up_limit: LookUpLimit::new(options.rate_limit > 0, &clock),
            credential_owners: CredentialOwners::default(),
            clock,
            origins: Origins::new(options.public_origin(), options.allowed_origins.clone()),
            public_url: options.public_url.is_some().then(|| options.public_origin()),
            copies: CopyStatuses::default(),
            shutdown_hooks: RwLock::default(),
            paths: interface.operations.with_pages(&[info.page_paths, &front_pages].concat(), front_forms),
            interface,
            build: etag::fingerprint(&build),
            club_name,
            club_url: options.pages.club_url.clone(),
            club_style: options.pages.club_color.map(Color::style).unwrap_or_default(),
            club_logo: options.pages.club_logo.clone(),
            static_files: options.static_folder.clone().map(|folder| Arc::new(StaticFiles::new(folder))),
            answer_options,
            draining: AtomicBool::new(false),
            drain_delay: Duration::from_secs(options.drain_delay),
            request_timeout: Duration::from_secs(options.request_timeout),
        })
    }

    /// The state of the service that a request is for.
    pub fn from_request(req: &HttpRequest) -> Result<Data<Self>, Problem> {
        req.app_data::<Data<Self>>().cloned().ok_or_else(|| Problem::internal("the app has no state"))
    }

    /// Registers a function to run when the service begins to drain.
    pub fn on_shutdown<F>(&self, hook: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        let hook = Box::new(move || Box::pin(hook()) as Pin<Box<dyn Future<Output = ()>>>);
        self.shutdown_hooks.write().unwrap_or_else(PoisonError::into_inner).push(hook);
    }

    /// Makes `/readyz` answer 503, runs the shutdown hooks at once, and waits for the drain delay.
    pub(crate) async fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        log::info!("draining");
        let hooks: Vec<_> = {
            let hooks = self.shutdown_hooks.read().unwrap_or_else(PoisonError::into_inner);
            hooks.iter().map(|hook| hook()).collect()
        };
        futures_util::future::join_all(hooks).await;
        tokio::time::sleep(self.drain_delay).await;
    }

    /// Whether the service is draining: requests in flight are finished, new connections should go elsewhere.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// The address that signs a browser in and returns to a page of this service, unless a front end does that.
    pub fn sign_in_address(&self, to: &str) -> Option<String> {
        let address = self.answer_options.sign_in.as_ref().filter(|_| self.static_files.is_none())?;
        // Another site needs the whole address.
        let origin = if address.starts_with('/') { "" } else { self.origins.public() };
        let to: String = form_urlencoded::byte_serialize([origin, to].concat().as_bytes()).collect();
        Some(address.replace("{to}", &to))
    }

    /// The front end, if there is one and the path is not the service's own.
    pub fn front_end_for(&self, req: &HttpRequest) -> Option<Arc<StaticFiles>> {
        self.static_files.as_ref().filter(|_| StaticFiles::serves(req.path())).cloned()
    }

    /// Whether a request is for a file of the front end.
    pub fn is_front_end_file(&self, req: &HttpRequest) -> bool {
        self.front_end_for(req).is_some() && req.match_pattern().is_none()
    }

    /// All its problem codes.
    pub fn codes(&self) -> impl Iterator<Item = &'static Code> + use<> {
        code::ALL.iter().chain(self.info.codes.iter().copied().flatten()).copied()
    }
}

/// Path, length and modification time of the program, which differ between builds with the same operations. Replicas
/// whose files differ in time only compare hashes of answers where they could have compared fingerprints.
fn program_version() -> String {
    let file = std::env::current_exe().and_then(|path| path.metadata().map(|metadata| (path, metadata)));
    file.map_or_else(
        |_| String::new(),
        |(path, metadata)| format!("{} {} {:?}", path.display(), metadata.len(), metadata.modified().ok()),
    )
}

/// The present time of an operation that changes something, the same throughout one request. One that reads takes
/// [`TimeDependent`].
#[derive(Debug, Clone, Copy)]
pub struct Now(pub Timestamp);

impl FromRequest for Now {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        debug_assert!(req.method() != Method::GET, "the answer of {} depends on the time", req.path());
        ready(AppState::from_request(req).map(|state| Self(state.clock.now())).map_err(Failure::from))
    }
}

/// The present time of an operation whose answer depends on it. The answer has no fingerprint then: a conditional
/// request computes it and compares its hash.
#[derive(Debug, Clone, Copy)]
pub struct TimeDependent(pub Timestamp);

impl FromRequest for TimeDependent {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        RequestNotes::change(req, |notes| notes.is_time_dependent = true);
        ready(AppState::from_request(req).map(|state| Self(state.clock.now())).map_err(Failure::from))
    }
}
