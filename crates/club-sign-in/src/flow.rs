//! The requests of a sign-in: to begin one, to finish it, to sign out, and the page of one that cannot be finished.

use std::{
    pin::Pin,
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use actix_web::{
    HttpRequest,
    http::{Method, StatusCode, header},
    web::Data,
};
use common::{
    problem::{Problem, Violations, code},
    time::{Clock, Timestamp},
};
use deserr::Deserr;
use maud::html;
use service_kit::{
    credentials,
    database::JobOwner,
    error::{Error, Failure},
    http::{Reply, client_ip::ClientIp, html, notes::RequestNotes, query, rate_limit::RateLimit},
    page::{PageContext, is_local},
    state::{AppState, ProblemPage},
};
use url::form_urlencoded;
use utoipa::IntoParams;

use crate::{
    SignInPolicy, Site, codes,
    config::ProviderSettings,
    failure::{self, bad_login, refused_by_provider},
    pending::{self, PendingSignIn},
    provider::{
        Provider,
        development::DEVELOPMENT_PAGE,
        exchange::{AuthorizationResponse, Principal},
    },
    sessions,
};

/// Where a browser begins a sign-in, if there is no front end.
pub const PAGE: &str = "/sign-in";

/// How often the page of a refused sign-in loads itself again, to see whether another one has finished.
const MAX_RELOADS: usize = 3;

/// How long a refused person waits for a copy of the directory.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often expired sessions are deleted, in microseconds.
const CLEANING: i64 = 60_000_000;

/// Copies the directory once more.
pub type Refresh = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()>>> + Send + Sync>;

/// Signs people in.
pub struct SignIn {
    /// The service.
    pub site: Site,
    /// The sign-in provider.
    pub provider: Provider,
    policy: SignInPolicy,
    limit: RateLimit,
    refresh: Option<Refresh>,
    /// When expired sessions were last deleted.
    cleaned: AtomicI64,
}

/// The parameters of the callback.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations)]
#[into_params(parameter_in = Query)]
pub struct CallbackQuery {
    /// The code, which can be exchanged once. It is missing when the provider refuses.
    #[deserr(default)]
    pub code: Option<String>,
    /// The state of the sign-in.
    pub state: String,
    /// The provider that answers (RFC 9207).
    #[deserr(default)]
    pub iss: Option<String>,
    /// Why the provider refuses (RFC 6749, section 4.1.2.1).
    #[deserr(default)]
    pub error: Option<String>,
    /// How often the page of a refused sign-in has loaded itself again. Only that page sends it.
    #[deserr(default)]
    pub reload: Option<String>,
}

impl CallbackQuery {
    /// The query of the next reload of the page of a refused sign-in, if there is one. Without the code, which has been
    /// refused.
    fn next_reload(&self) -> Option<String> {
        let reloads = self.reload.as_deref().map_or(Some(0), |text| text.parse::<usize>().ok())?;
        (reloads < MAX_RELOADS).then(|| {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("state", &self.state).append_pair("reload", &(reloads + 1).to_string()).finish()
        })
    }

    /// The parameters of a callback that is no refusal.
    ///
    /// # Errors
    /// 400 `bad-login` for a refusal, 503 `sign-in-misconfigured` when the provider refuses this service.
    fn into_response(self) -> Result<AuthorizationResponse, Problem> {
        match (self.code, self.error) {
            (Some(code), None) => Ok(AuthorizationResponse { code, issuer: self.iss }),
            (_, error) => Err(refused_by_provider(error.as_deref())),
        }
    }
}

/// The parameters of [`PAGE`].
#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
struct BeginQuery {
    /// The address of the page to return to.
    #[deserr(default)]
    to: Option<String>,
}

fn redirect(address: String) -> Reply {
    Reply::empty(StatusCode::FOUND).with(header::LOCATION, address).with(header::CACHE_CONTROL, "no-store")
}

impl SignIn {
    /// Signs people in at `site` with this provider, or without one in development mode. An address begins and finishes
    /// so many sign-ins a minute; 0 means no limit.
    pub fn new(
        site: Site,
        settings: Option<ProviderSettings>,
        policy: SignInPolicy,
        per_minute: u32,
        clock: &Clock,
    ) -> Self {
        let provider = Provider::new(settings, site.is_development);
        Self {
            site,
            provider,
            policy,
            limit: RateLimit::per_minute(per_minute, clock),
            refresh: None,
            cleaned: AtomicI64::new(0),
        }
    }

    /// Before somebody is refused because the directory does not list them, it is copied once more in this way.
    pub fn with_refresh(self, refresh: Refresh) -> Self {
        Self { refresh: Some(refresh), ..self }
    }

    /// Begins a sign-in, and returns it with the address to send the browser to.
    ///
    /// # Errors
    /// 403 for a request of another site, which must not replace the session of a browser by a sign-in that the user did
    /// not begin; 429 over the limit; 503 while the provider cannot be reached.
    pub async fn begin(
        &self,
        req: &HttpRequest,
        state: &AppState,
        from: ClientIp,
        now: Timestamp,
    ) -> Result<(PendingSignIn, String), Failure> {
        self.limit.charge(from.into())?;
        state.origins.check(&Method::POST, req.headers())?;
        let login = PendingSignIn::begin(req, &state.origins, &self.site, now)?;
        let address = self.provider.address(&self.site, req, &login).await?;
        Ok((login, address))
    }

    /// Begins a sign-in as a page does, and sends the browser to the provider. The link of another site leads to the
    /// front page.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), but for another site.
    pub async fn begin_page(
        &self,
        req: &HttpRequest,
        state: &AppState,
        from: ClientIp,
        now: Timestamp,
    ) -> Result<Reply, Failure> {
        if state.origins.check(&Method::POST, req.headers()).is_err() {
            return Ok(redirect("/".to_owned()));
        }
        let (mut login, address) = self.begin(req, state, from, now).await?;
        let to = query::parse(req.query_string()).ok().and_then(|query: BeginQuery| query.to);
        login.page = to.filter(|address| is_local(address));
        Ok(redirect(address).with_cookies(login.cookies(req, &self.site, now)))
    }

    /// Finishes a sign-in: creates a session and sends the browser back.
    ///
    /// # Errors
    /// 400 `bad-login` for a bad, expired or replayed callback; 403 for a person who is no member; 503 when the provider
    /// does not answer.
    pub async fn finish(
        &self,
        req: &HttpRequest,
        state: &AppState,
        from: ClientIp,
        now: Timestamp,
    ) -> Result<Reply, Failure> {
        self.limit.charge(from.into())?;
        let service = self.site.service;
        let query: CallbackQuery = query::parse(req.query_string()).map_err(|_| bad_login())?;
        let Some(login) = PendingSignIn::from_request(req, &self.site, &query.state, now) else {
            // Newer sign-ins of the browser may have removed the cookie. Otherwise any site may have sent the browser
            // here, so the session does not end.
            let is_late = pending::is_ours(&self.site.keys, &query.state)
                && self.is_signed_in(req, state, &query.state, now).await?;
            return if is_late { Ok(redirect(service.arrival.to_owned())) } else { Err(bad_login().into()) };
        };
        let no_cookie = login.no_cookie(&self.site);
        // The options may have changed since it began.
        let origin = login.origin.clone().filter(|origin| state.origins.is_other(origin)).unwrap_or_default();
        let page = login.page.clone().unwrap_or_else(|| format!("{origin}{}", service.arrival));
        let reply = redirect(page);
        let is_new_session =
            |secret: String| !login.previous.as_ref().is_some_and(|hash| credentials::is_hash_of(hash, &secret));
        if service.session(req).is_some_and(is_new_session) && self.is_signed_in(req, state, &login.state, now).await? {
            return Ok(reply.with(header::SET_COOKIE, no_cookie));
        }
        match self.create_session(req, state, query, login, now).await {
            Ok(cookie) => Ok(reply.with_cookies([cookie, no_cookie])),
            // After a fault of ours the same callback may still succeed.
            Err(Failure(problem)) if problem.status() < 500 => Err(Failure(problem.header("set-cookie", no_cookie))),
            Err(failure) => Err(failure),
        }
    }

    /// Whether the browser is signed in, by another sign-in than the one with this state.
    async fn is_signed_in(
        &self,
        req: &HttpRequest,
        app: &AppState,
        state: &str,
        now: Timestamp,
    ) -> Result<bool, Failure> {
        let Some(secret) = self.site.service.session(req) else { return Ok(false) };
        let (owner, state) = (JobOwner::of_credential(&secret), state.to_owned());
        let result = app.database.read(owner, move |conn| {
            let user = sessions::owner(conn, &secret, now)?;
            Ok(match user {
                Some(user) => Some((user, sessions::is_finished(conn, &state)?)),
                None => None,
            })
        });
        let Some((user, is_finished)) = result.await? else { return Ok(false) };
        RequestNotes::change(req, |notes| notes.user = Some(user.0));
        Ok(!is_finished)
    }

    /// Exchanges the code and creates a session. Returns its `Set-Cookie`.
    async fn create_session(
        &self,
        req: &HttpRequest,
        state: &AppState,
        query: CallbackQuery,
        login: PendingSignIn,
        now: Timestamp,
    ) -> Result<String, Failure> {
        let principal = self.provider.exchange(&self.site, query.into_response()?, &login, now).await?;
        let secret = credentials::random_secret()?;
        let mut result = self.store_session(state, &login, &principal, &secret, now).await;
        if let Some(refresh) = &self.refresh {
            // The directory may know more of a person whom a rule has admitted. Only who is refused waits for it.
            let copy = actix_web::rt::spawn(refresh());
            if let Err(Error::Problem(problem)) = &result
                && [codes::NOT_A_MEMBER, code::ACCOUNT_INACTIVE].contains(&problem.code())
                && tokio::time::timeout(PATIENCE, copy).await.is_ok()
            {
                result = self.store_session(state, &login, &principal, &secret, now).await;
            }
        }
        let user = result?;
        state.credential_owners.remember(&secret, user);
        RequestNotes::change(req, |notes| notes.user = Some(user));
        // In the background: if the browser gave up waiting, the session would exist and its cookie be lost.
        let due = |last: i64| (last + CLEANING <= now.micros()).then_some(now.micros());
        if self.cleaned.fetch_update(Ordering::Relaxed, Ordering::Relaxed, due).is_err() {
            return Ok(pending::session_cookie(&self.site, &secret, now));
        }
        let db = state.database.clone();
        actix_web::rt::spawn(async move {
            if let Err(error) = db.write(JobOwner::Internal, move |conn| sessions::delete_expired(conn, now)).await {
                db.log_failure("expired sessions could not be deleted", error);
            }
        });
        Ok(pending::session_cookie(&self.site, &secret, now))
    }

    async fn store_session(
        &self,
        state: &AppState,
        login: &PendingSignIn,
        principal: &Principal,
        secret: &str,
        now: Timestamp,
    ) -> Result<uuid::Uuid, Error> {
        let (login, principal, secret) = (login.clone(), principal.clone(), secret.to_owned());
        let (policy, users) = (self.policy, &self.site.service.users);
        // Each person has a turn of their own at the database, although there is no session yet.
        let owner = match &principal {
            Principal::User(user) => JobOwner::of_credential(&user.to_string()),
            Principal::Identity(identity) => {
                JobOwner::of_credential(&format!("{}\n{}", identity.provider, identity.subject))
            }
        };
        let user = state
            .database
            .write(owner, move |conn| sessions::finish(conn, &login, &principal, policy, users, &secret, now));
        Ok(user.await?.0)
    }

    /// Ends the session and shows the front page. A form of another site signs nobody out.
    pub async fn sign_out(&self, req: &HttpRequest, state: &AppState, now: Timestamp) -> Result<Reply, Failure> {
        let to_start = Reply::empty(StatusCode::SEE_OTHER).with(header::LOCATION, "/");
        let Some(secret) = self.site.service.session(req) else { return Ok(to_start) };
        if state.origins.check(req.method(), req.headers()).is_err() {
            return Ok(to_start);
        }
        let owner = JobOwner::of_credential(&secret);
        let hash = credentials::hash(&secret);
        state.database.write(owner, move |conn| sessions::end(conn, &hash, now)).await?;
        Ok(to_start.with(header::SET_COOKIE, pending::no_session_cookie(&self.site)))
    }
}

/// The page for a browser whose sign-in cannot be finished. Another caller gets a problem.
pub fn problem_page(req: &HttpRequest) -> Option<ProblemPage> {
    let sign_in = req.app_data::<Data<SignIn>>()?.clone();
    if req.path() != sign_in.site.service.callback || !html::is_preferred(req) {
        return None;
    }
    let (page, site) = (PageContext::of(req).ok()?, &sign_in.site);
    let start =
        page.sign_in_address().unwrap_or_else(|| if site.is_development { DEVELOPMENT_PAGE } else { "/" }.into());
    let query: Option<CallbackQuery> = query::parse(req.query_string()).ok();
    let now = page.state().clock.now();
    let overlapping = query.filter(|query| {
        pending::is_ours(&site.keys, &query.state) && pending::has_other(req, &site.keys, &query.state, now)
    });
    let reload = overlapping.and_then(|query| query.next_reload());
    Some(Box::new(move |problem| {
        let why =
            failure::text_key(problem).map_or_else(|| page.explain(problem), |key| html! { p { (page.text(key)) } });
        let next_step = match problem.status() {
            // The same request may be repeated.
            429 => page.next_step(problem),
            _ if failure::may_be_repeated(problem) => {
                html! { a.button.primary href=(start) { (page.text("sign-in-again")) } }
            }
            _ => html! { a href="/" { (page.text("to-start")) } },
        };
        let reply = page.refusal(problem, &why, &next_step);
        // Another sign-in of this browser may be about to finish. Then this address redirects to the front end.
        match &reload {
            Some(query) if problem.status() == 400 => reply.with(header::REFRESH, format!("2; url=?{query}")),
            _ => reply,
        }
    }))
}
