//! The pages of sign-in: "choose who you are" in development mode, and the pages of an installation without a front
//! end.

use actix_web::{
    HttpRequest,
    http::{Method, StatusCode, header},
    web::Data,
};
use common::problem::{Problem, Violations};
use deserr::Deserr;
use maud::html;
use service_kit::{
    database::{JobOwner, PageBounds},
    error::Failure,
    http::{Reply, client_ip::ClientIp, query},
    page::{PageContext, is_local},
    state::{AppState, SIGN_OUT_PATH, TimeDependent},
};

use super::{
    pending::{PendingSignIn, no_session_cookie},
    provider::{
        Provider,
        development::{self, local_origin},
    },
    queries,
};
use crate::{
    auth::SignedIn,
    club::Club,
    limits::Limits,
    users::{self, queries::User},
};

/// Where a browser begins a sign-in, if there is no front end.
pub const PAGE: &str = "/sign-in";

/// The parameters of the page "choose who you are": the sign-in for which a user is chosen.
#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
struct ChooseQuery {
    state: String,
    nonce: String,
}

/// The parameters of [`PAGE`].
#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
struct BeginQuery {
    /// The address of the page to return to.
    #[deserr(default)]
    to: Option<String>,
}

impl BeginQuery {
    /// The page to return to, if a browser may return to it.
    fn page(self) -> Option<String> {
        self.to.filter(|address| is_local(address))
    }
}

/// Shows the active users to choose from. Without parameters it begins a sign-in itself.
pub async fn choose(
    req: HttpRequest,
    page: PageContext,
    state: Data<AppState>,
    club: Club,
    now: TimeDependent,
) -> Result<Reply, Failure> {
    check_development(&club, &req)?;
    let (login, cookies) = if let Ok(login) = query::parse::<ChooseQuery>(req.query_string()) {
        (login, Vec::new())
    } else {
        let login = PendingSignIn::begin(&req, &state.origins, &club.keys, now.0)?;
        let cookies = login.cookies(&req, &club, now.0);
        (ChooseQuery { state: login.state, nonce: login.nonce }, cookies)
    };
    let mut users =
        state.database.read(JobOwner::Internal, |conn| users::queries::list(conn, false, &PageBounds::all())).await?;
    users.sort_by(|a, b| (&a.display_name, &a.name).cmp(&(&b.display_name, &b.name)));
    let address = |user: &User| development::callback(&club.keys, user.id, &login.state, &login.nonce, now.0);
    let body = html! {
        @if users.is_empty() {
            p { (page.text("no-users")) }
        } @else {
            p { (page.text("development")) }
            ul.cards {
                @for user in &users {
                    li { a href=(address(user)) { (user.display_name) " " small { "@" (user.name) } } }
                }
            }
        }
    };
    let reply = page.reply(&page.text("choose-who-you-are"), body).with(header::CACHE_CONTROL, "no-store");
    Ok(reply.with_cookies(cookies))
}

/// Begins a sign-in and sends the browser to the provider. Another site must not begin one (as with
/// [`auth_params`](super::handlers::auth_params)); its link leads to the front page.
pub async fn begin(
    req: HttpRequest,
    state: Data<AppState>,
    from: ClientIp,
    limits: Data<Limits>,
    provider: Data<Provider>,
    club: Club,
    now: TimeDependent,
) -> Result<Reply, Failure> {
    limits.sign_in.charge(from.into())?;
    let redirect = |address: String| Reply::empty(StatusCode::FOUND).with(header::LOCATION, address);
    if state.origins.check(&Method::POST, req.headers()).is_err() {
        return Ok(redirect("/".to_owned()));
    }
    let mut login = PendingSignIn::begin(&req, &state.origins, &club.keys, now.0)?;
    login.page = query::parse(req.query_string()).ok().and_then(BeginQuery::page);
    let reply = redirect(provider.address(&club, &req, &login).await?).with(header::CACHE_CONTROL, "no-store");
    Ok(reply.with_cookies(login.cookies(&req, &club, now.0)))
}

/// Ends the session and shows the front page. A form of another site signs nobody out, as such a request has no caller.
pub async fn sign_out(who: Option<SignedIn>, club: Club, now: TimeDependent) -> Result<Reply, Failure> {
    let to_start = || Reply::empty(StatusCode::SEE_OTHER).with(header::LOCATION, "/");
    let Some(who) = who else { return Ok(to_start()) };
    let result = who.create(move |conn, me| {
        queries::end_of(conn, me.id, me.require_session()?, now.0)?;
        Ok(to_start().with(header::SET_COOKIE, no_session_cookie(&club)))
    });
    match result.await {
        // The session has ended already.
        Err(failure) if failure.0.status() == 401 => Ok(to_start()),
        result => result,
    }
}

/// Where a sign-in ends: the page at `/callback`.
pub async fn callback(page: PageContext, who: Option<SignedIn>) -> Result<Reply, Failure> {
    let no_store = |reply: Reply| reply.with(header::CACHE_CONTROL, "no-store");
    let sign_in = html! { p { a.button href=(PAGE) { (page.text("sign-in")) } } };
    let anonymous = no_store(page.reply(&page.text("not-signed-in"), sign_in));
    let Some(who) = who else { return Ok(anonymous) };
    let result = who.read(move |conn, me| {
        let name = users::queries::get(conn, me.id)?.display_name;
        let body = html! {
            p { a.button href="/" { (page.text("to-start")) } }
            p.actions { a href="/board" { (page.text("board")) } a href="/docs/" { (page.text("documentation")) } }
            form method="post" action=(SIGN_OUT_PATH) {
                p.actions { a href=(PAGE) { (page.text("sign-in-as-other")) } button { (page.text("sign-out")) } }
            }
        };
        Ok(no_store(page.reply(&page.format("signed-in-as", &[("name", name.as_str().into())]), body)))
    });
    match result.await {
        Err(failure) if failure.0.status() < 500 => Ok(anonymous),
        result => result,
    }
}

/// Only in development mode, and only at an address of this machine.
fn check_development(club: &Club, req: &HttpRequest) -> Result<(), Problem> {
    let is_here = club.is_development && local_origin(club, req).is_some();
    if is_here { Ok(()) } else { Err(Problem::not_found("path")) }
}
