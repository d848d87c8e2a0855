//! The pages of sign-in: "choose who you are" of a development installation, and those that stand in for a front end.

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
    state::{AppState, Now},
};

use super::{
    pending::Pending,
    provider::{
        Provider,
        development::{self, local_origin},
    },
};
use crate::{
    auth::SignedIn,
    club::Club,
    limits::Limits,
    users::{self, queries::User},
};

/// Where a browser begins a sign-in, if there is no front end.
pub const PAGE: &str = "/sign-in";

/// What only this service has to show.
const CARDS: [Card; 1] = [("/board", "Board", "Rooms and events of the day and the week")];

/// The sign-in for which somebody is to be chosen, as the provider's address names it.
#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
struct Begun {
    state: String,
    nonce: String,
}

/// The active users to choose from. Opened without parameters it begins a sign-in itself.
pub async fn choose(req: HttpRequest, state: Data<AppState>, club: Club, now: Now) -> Result<Reply, Failure> {
    only_here(&club, &req)?;
    let (begun, cookies) = if let Ok(begun) = query::parse::<Begun>(req.query_string()) {
        (begun, Vec::new())
    } else {
        let login = Pending::begin(&req, &state.origins, &club.keys, now.0)?;
        let cookies = login.cookies(&req, &club, now.0);
        (Begun { state: login.state, nonce: login.nonce }, cookies)
    };
    let mut users =
        state.database.read(JobOwner::Internal, |conn| users::queries::list(conn, false, &PageBounds::all())).await?;
    users.sort_by(|a, b| (&a.display_name, &a.name).cmp(&(&b.display_name, &b.name)));
    let address = |user: &User| development::callback(&club.keys, user.id, &begun.state, &begun.nonce, now.0);
    let body = html! {
        @if users.is_empty() {
            p {
                "There are no active users yet. Start the service with " code { "--demo" } " or "
                code { "--directory-file" } " to have some."
            }
        } @else {
            p { "This is a development installation: anybody can be anyone." }
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
    let nobody =
        front_page(&state, words, &CARDS, &html! { p { "You are not signed in. " (sign_in_link(&club, "Sign in")) } });
    let Some(who) = who else { return Ok(nobody) };
    let shown = who.read(move |conn, me| {
        let User { name, display_name, .. } = users::queries::get(conn, me.id)?;
        let who = html! {
            p {
                "You are signed in as " b { (display_name) } " " small { "@" (name) } ". "
                (sign_in_link(&club, "Sign in as somebody else"))
            }
        };
        Ok(front_page(&state, words, &CARDS, &who))
    });
    Ok(shown.await.unwrap_or(nobody))
}

/// Begins a sign-in and sends the browser to the provider. Another site must not begin one (as with
/// [`auth_params`](super::handlers::auth_params)); whoever follows its link has to choose to.
pub async fn begin(
    req: HttpRequest,
    state: Data<AppState>,
    from: ClientIp,
    limits: Data<Limits>,
    provider: Data<Provider>,
    club: Club,
    now: Now,
) -> Result<Reply, Failure> {
    limits.sign_in.charge(from.into())?;
    let found = |address: String| Reply::empty(StatusCode::FOUND).with(header::LOCATION, address);
    if state.origins.check(&Method::POST, req.headers()).is_err() {
        return Ok(found("/".to_owned()));
    }
    let login = Pending::begin(&req, &state.origins, &club.keys, now.0)?;
    let reply = found(provider.address(&club, &req, &login).await?).with(header::CACHE_CONTROL, "no-store");
    Ok(reply.with_cookies(login.cookies(&req, &club, now.0)))
}

/// Where a sign-in ends: the page at `/callback`.
pub async fn arrived(who: Option<SignedIn>, club: Club) -> Result<Reply, Failure> {
    let nobody = page("You are not signed in", html! { p { (sign_in_link(&club, "Sign in")) } });
    let Some(who) = who else { return Ok(nobody) };
    let greeted = who.read(move |conn, me| {
        let name = users::queries::get(conn, me.id)?.display_name;
        let body = html! {
            ul.cards {
                li { a href="/board" { b { "Board" } small { "Rooms and events of the day and the week" } } }
                li { a href="/docs/" { b { "Documentation" } small { "Every operation, to read and to try" } } }
                li { a href="/" { b { "Start" } small { "All pages of this service" } } }
            }
            p.faint {
                "A front end has this address for its own page (" code { "--static" } "). "
                (sign_in_link(&club, "Sign in as somebody else"))
            }
        };
        Ok(page(&format!("You are signed in as {name}"), body))
    });
    match greeted.await {
        Err(failure) if failure.0.status() < 500 => Ok(nobody),
        done => done,
    }
}

/// The link that begins a sign-in.
fn sign_in_link(club: &Club, text: &str) -> Markup {
    html! { a href=(PAGE) { @if club.is_development { "Choose who you are" } @else { (text) } } }
}

/// A page of a sign-in, which nobody keeps.
fn page(title: &str, body: Markup) -> Reply {
    HtmlPage::new(title, &[], body).reply(StatusCode::OK).with(header::CACHE_CONTROL, "no-store")
}

/// On any other installation, and by any other name than this machine's, this page does not exist.
fn only_here(club: &Club, req: &HttpRequest) -> Result<(), Problem> {
    let is_here = club.is_development && local_origin(club, req).is_some();
    if is_here { Ok(()) } else { Err(Problem::not_found("path")) }
}
