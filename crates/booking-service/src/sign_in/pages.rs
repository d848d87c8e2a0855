//! The pages of sign-in: "choose who you are" in development mode, and the pages of an installation without a front
//! end.

use actix_web::{
    HttpRequest,
    http::{StatusCode, header},
    web::{Data, Path},
};
use club_sign_in::{
    SignIn, Site,
    flow::PAGE,
    pending::PendingSignIn,
    provider::development::{self, local_origin},
};
use common::{
    problem::{Problem, Violations},
    time::Timestamp,
};
use deserr::Deserr;
use maud::html;
use service_kit::{
    database::{JobOwner, PageBounds, types::DbTimestamp},
    error::{Error, Failure},
    http::{Reply, client_ip::ClientIp, query},
    page::{PageContext, avatar, see_other},
    state::{AppState, SIGN_OUT_PATH, TimeDependent},
};

use crate::{
    auth::SignedIn,
    join_links,
    users::{self, queries::User},
};

/// The parameters of the page "choose who you are": the sign-in for which a user is chosen.
#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
struct ChooseQuery {
    state: String,
    nonce: String,
}

/// Shows the active users to choose from. Without parameters it begins a sign-in itself.
pub async fn choose(
    req: HttpRequest,
    page: PageContext,
    state: Data<AppState>,
    sign_in: Data<SignIn>,
    now: TimeDependent,
) -> Result<Reply, Failure> {
    let site = &sign_in.site;
    check_development(site, &req)?;
    let (login, cookies) = if let Ok(login) = query::parse::<ChooseQuery>(req.query_string()) {
        (login, Vec::new())
    } else {
        let login = PendingSignIn::begin(&req, &state.origins, site, now.0)?;
        let cookies = login.cookies(&req, site, now.0);
        (ChooseQuery { state: login.state, nonce: login.nonce }, cookies)
    };
    let mut users =
        state.database.read(JobOwner::Internal, |conn| users::queries::list(conn, false, &PageBounds::all())).await?;
    users.sort_by(|a, b| (&a.display_name, &a.name).cmp(&(&b.display_name, &b.name)));
    let address = |user: &User| development::callback(site, user.id, &login.state, &login.nonce, now.0);
    let body = html! {
        @if users.is_empty() {
            p { (page.text("no-users")) }
        } @else {
            p { (page.text("development")) }
            div.card { ul.rows.named {
                @for user in &users {
                    li { a href=(address(user)) { (avatar(&user.name, &user.display_name, "")) (user.display_name) " " small { "@" (user.name) } } }
                }
            } }
        }
    };
    let reply = page.reply(&page.text("choose-who-you-are"), body).with(header::CACHE_CONTROL, "no-store");
    Ok(reply.with_cookies(cookies))
}

/// Begins a sign-in and sends the browser to the provider.
pub async fn begin(
    req: HttpRequest,
    state: Data<AppState>,
    from: ClientIp,
    sign_in: Data<SignIn>,
    now: TimeDependent,
) -> Result<Reply, Failure> {
    sign_in.begin_page(&req, &state, from, now.0).await
}

/// The page of an invitation, with the link that begins to join by it.
pub async fn join(
    page: PageContext,
    state: Data<AppState>,
    secret: Path<String>,
    now: TimeDependent,
) -> Result<Reply, Failure> {
    let is_open = is_open(&state, &secret, now.0).await?;
    let (status, title) =
        if is_open { (StatusCode::OK, "you-are-invited") } else { (StatusCode::NOT_FOUND, "invitation-ended") };
    let body = html! {
        p { (page.text(if is_open { "join-about" } else { "invitation-ended-about" })) }
        @if is_open { p { a.button.primary href=(format!("/join/{secret}/sign-in")) { (page.text("join-now")) } } }
    };
    Ok(page.reply_with(status, &page.text(title), body).with(header::CACHE_CONTROL, "no-store"))
}

/// Begins the sign-in of somebody who is invited.
pub async fn begin_to_join(
    req: HttpRequest,
    state: Data<AppState>,
    from: ClientIp,
    sign_in: Data<SignIn>,
    secret: Path<String>,
    now: TimeDependent,
) -> Result<Reply, Failure> {
    let (mut login, address) = sign_in.begin(&req, &state, from, now.0).await?;
    login.invitation = Some(secret.into_inner());
    Ok(see_other(&address).with(header::CACHE_CONTROL, "no-store").with_cookies(login.cookies(
        &req,
        &sign_in.site,
        now.0,
    )))
}

async fn is_open(state: &AppState, secret: &str, now: Timestamp) -> Result<bool, Error> {
    let secret = secret.to_owned();
    let found =
        state.database.read(JobOwner::Internal, move |conn| join_links::find(conn, &secret, false, DbTimestamp(now)));
    Ok(found.await?.is_some())
}

/// Ends the session and shows the front page.
pub async fn sign_out(
    req: HttpRequest,
    state: Data<AppState>,
    sign_in: Data<SignIn>,
    now: TimeDependent,
) -> Result<Reply, Failure> {
    sign_in.sign_out(&req, &state, now.0).await
}

/// Where a sign-in ends: the page at `/callback`.
pub async fn callback(page: PageContext, who: Option<SignedIn>) -> Result<Reply, Failure> {
    let no_store = |reply: Reply| reply.with(header::CACHE_CONTROL, "no-store");
    let sign_in = html! { p { a.button.primary href=(PAGE) { (page.text("sign-in")) } } };
    let anonymous = no_store(page.reply(&page.text("not-signed-in"), sign_in));
    let Some(who) = who else { return Ok(anonymous) };
    let result = who.read(move |conn, me| {
        let name = users::queries::get(conn, me.id)?.display_name;
        let body = html! {
            p { a.button.primary href="/" { (page.text("to-start")) } }
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
fn check_development(site: &Site, req: &HttpRequest) -> Result<(), Problem> {
    let is_here = site.is_development && local_origin(site, req).is_some();
    if is_here { Ok(()) } else { Err(Problem::not_found("path")) }
}
