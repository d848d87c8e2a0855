//! The pages of sign-in: "choose who you are" in development mode, and the pages of an installation without a front
//! end.

use actix_web::{
    HttpRequest,
    http::{Method, StatusCode, header},
    web::Data,
};
use common::problem::{Problem, Violations};
use deserr::Deserr;
use maud::{Markup, html};
use service_kit::{
    database::{JobOwner, PageBounds},
    error::Failure,
    front_page::{Card, front_page, state_in_words},
    http::{HtmlPage, Reply, client_ip::ClientIp, query},
    state::{AppState, Now, TimeDependent},
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

/// Where the form to sign out is sent.
pub const SIGN_OUT: &str = "/sign-out";

/// The pages to which a browser may return after a sign-in that began at [`PAGE`].
const RETURN_PATHS: [&str; 2] = ["/board", "/docs/"];

/// The most characters of the address of such a page.
const MAX_ADDRESS: usize = 500;

/// The links that only this service has.
const CARDS: [Card; 1] = [("/board", "Board", "Rooms and events of the day and the week")];

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
        self.to.filter(|address| {
            let path = address.split(['?', '#']).next().unwrap_or_default();
            let is_plain = address.len() <= MAX_ADDRESS && address.bytes().all(|byte| byte.is_ascii_graphic());
            is_plain && RETURN_PATHS.contains(&path)
        })
    }
}

/// Shows the active users to choose from. Without parameters it begins a sign-in itself.
pub async fn choose(req: HttpRequest, state: Data<AppState>, club: Club, now: TimeDependent) -> Result<Reply, Failure> {
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
            p {
                "There are no active users yet. Start the service with " code { "--demo" } " or "
                code { "--directory-file" } " to have some."
            }
        } @else {
            p { "This is a development installation: anybody can sign in as any user." }
            ul.cards {
                @for user in &users {
                    li { a href=(address(user)) { (user.display_name) " " small { "@" (user.name) } } }
                }
            }
        }
    };
    Ok(page("Choose who you are", body).with_cookies(cookies))
}

/// The page at `/`. A caller with a bad credential sees what everybody sees.
pub async fn front(state: Data<AppState>, who: Option<SignedIn>, club: Club) -> Result<Reply, Failure> {
    let words = state_in_words(&state).await;
    let anonymous = front_page(&state, words, &CARDS, &html! { p { "You are not signed in. " (sign_in_link(&club)) } });
    let Some(who) = who else { return Ok(anonymous) };
    let page = who.read(move |conn, me| {
        let User { name, display_name, .. } = users::queries::get(conn, me.id)?;
        let greeting = html! {
            p {
                "You are signed in as " b { (display_name) } " " small { "@" (name) } "."
            }
            (change_user())
        };
        Ok(front_page(&state, words, &CARDS, &greeting))
    });
    Ok(page.await.unwrap_or(anonymous))
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
pub async fn sign_out(who: Option<SignedIn>, club: Club, now: Now) -> Result<Reply, Failure> {
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
pub async fn callback(who: Option<SignedIn>, club: Club) -> Result<Reply, Failure> {
    let anonymous = page("You are not signed in", html! { p { (sign_in_link(&club)) } });
    let Some(who) = who else { return Ok(anonymous) };
    let result = who.read(move |conn, me| {
        let name = users::queries::get(conn, me.id)?.display_name;
        let body = html! {
            ul.cards {
                li { a href="/board" { b { "Board" } small { "Rooms and events of the day and the week" } } }
                li { a href="/docs/" { b { "Documentation" } small { "Every operation, to read and to try" } } }
                li { a href="/" { b { "Start" } small { "All pages of this service" } } }
            }
            (change_user())
        };
        Ok(page(&format!("You are signed in as {name}"), body))
    });
    match result.await {
        Err(failure) if failure.0.status() < 500 => Ok(anonymous),
        result => result,
    }
}

/// The link that begins a sign-in of somebody who is not signed in.
fn sign_in_link(club: &Club) -> Markup {
    html! { a href=(PAGE) { @if club.is_development { "Choose who you are" } @else { "Sign in" } } }
}

/// What somebody who is signed in may do about it.
fn change_user() -> Markup {
    html! {
        form method="post" action=(SIGN_OUT) {
            a href=(PAGE) { "Sign in as somebody else" } " or " button { "Sign out" }
        }
    }
}

/// A page of a sign-in, which no cache stores.
fn page(title: &str, body: Markup) -> Reply {
    HtmlPage::new(title, &[], body).reply(StatusCode::OK).with(header::CACHE_CONTROL, "no-store")
}

/// 404 unless the installation is in development mode and the browser uses a name of this machine.
fn check_development(club: &Club, req: &HttpRequest) -> Result<(), Problem> {
    let is_here = club.is_development && local_origin(club, req).is_some();
    if is_here { Ok(()) } else { Err(Problem::not_found("path")) }
}
