//! The operations of sign-in.

use std::cmp::Reverse;

use actix_web::{
    HttpMessage, HttpRequest, HttpResponse, Responder, delete, get,
    http::{
        StatusCode,
        header::{self, Accept, Header, HeaderValue},
    },
    mime, post,
    web::{Data, Path},
};
use chrono_tz::Tz;
use common::{input::Id, problem::Problem, time::Timestamp};
use maud::html;
use service_kit::{
    credentials,
    database::{AnyConnection, JobOwner, types::DbUuid},
    error::{Error, Failure},
    guard::Target,
    http::{Body, ListPage, Page, Reply, client_ip::ClientIp, html::problem_page, query},
    middleware::{access_log::LoggedUser, problem_responses::log_failure},
    state::{AppState, Now},
};

use super::{
    failure::bad_login,
    pending::{self, Pending},
    provider::{Provider, development::DEVELOPMENT_PAGE},
    queries::{self, SessionRow},
    tokens,
    wire::{AuthParams, CallbackQuery, CreatedToken, RequestToken, ResponseSession, ResponseToken},
};
use crate::{
    auth::{Caller, SignedIn, holds_session, stay_active},
    club::{Club, Zone},
    limits::Limits,
};

/// Begin a sign-in
///
/// Sets the cookie that holds it until the callback, ten minutes at most.
#[utoipa::path(
    tag = "sign-in",
    operation_id = "getAuthParams",
    security(()),
    responses(
        (status = 201, description = "Where to send the browser", body = AuthParams),
        (status = 403, description = "Another site's page asked for it")
    )
)]
#[post("/authParams")]
pub async fn auth_params(
    req: HttpRequest,
    state: Data<AppState>,
    from: ClientIp,
    limits: Data<Limits>,
    provider: Data<Provider>,
    club: Club,
    now: Now,
) -> Result<Reply, Failure> {
    limits.sign_in.charge(from.into())?;
    // Another site must not replace the session of a browser by a sign-in that nobody asked for.
    state.origins().check(req.method(), req.headers())?;
    let login = Pending::begin(&req, state.origins(), &club.keys, now.0)?;
    let url = provider.address(&club, &req, &login).await?;
    let reply = Reply::created(&AuthParams { url })?.with(header::CACHE_CONTROL, "no-store");
    Ok(reply.with(header::SET_COOKIE, login.cookie(&club, now.0)))
}

/// Finish a sign-in
///
/// The provider sends the browser here. A browser is answered a page when it cannot be finished.
#[utoipa::path(
    tag = "sign-in",
    operation_id = "getCallback",
    security(()),
    params(
        CallbackQuery,
        ("session" = String, Cookie, description = "The sign-in that `/authParams` has begun")
    ),
    responses(
        (status = 302, description = "Signed in; on to the front end"),
        (status = 400, description = "Bad, expired or replayed", body = String, content_type = "text/html"),
        (status = 403, description = "The account is not active, or its name cannot be used", body = String,
            content_type = "text/html"),
        (status = 503, description = "The provider does not answer", body = String, content_type = "text/html")
    )
)]
#[get("/callback")]
pub async fn callback(
    req: HttpRequest,
    state: Data<AppState>,
    from: ClientIp,
    limits: Data<Limits>,
    provider: Data<Provider>,
    club: Club,
    now: Now,
) -> HttpResponse {
    // A sign-in that has to wait goes on after that: the browser keeps its cookie.
    if let Err(problem) = limits.sign_in.charge(from.into()) {
        return HttpResponse::from_error(Failure(problem));
    }
    let problem = match finish(&req, &state, &provider, &club, now.0).await {
        Ok(reply) => return reply.respond_to(&req),
        Err(Failure(problem)) => problem,
    };
    // After a fault of ours the same callback may still succeed.
    let is_over = problem.status() < 500 && !holds_session(&req);
    let mut response = if wants_page(&req) {
        log_failure(&req, &problem);
        sorry(&club, &problem).respond_to(&req)
    } else {
        HttpResponse::from_error(Failure(problem))
    };
    if is_over && let Ok(clear) = HeaderValue::try_from(pending::no_cookie(&club)) {
        response.headers_mut().append(header::SET_COOKIE, clear);
    }
    response
}

async fn finish(
    req: &HttpRequest,
    state: &AppState,
    provider: &Provider,
    club: &Club,
    now: Timestamp,
) -> Result<Reply, Failure> {
    let sent: CallbackQuery = query::parse(req.query_string()).map_err(|_| bad_login())?;
    let login = Pending::of(req, &club.keys).filter(|login| login.accepts(&sent.state, now)).ok_or_else(bad_login)?;
    let returned = sent.returned()?;
    let who = provider.exchange(club, returned, &login, now).await?;
    let secret = credentials::random_secret()?;
    let cookie = pending::session_cookie(club, &secret, now);
    // The options may have changed since it began.
    let origin = login.origin.clone().filter(|origin| state.origins().is_other(origin)).unwrap_or_default();
    let user = state
        .database()
        .write(JobOwner::Internal, move |conn| queries::finish(conn, &login, &who, &secret, now))
        .await?;
    req.extensions_mut().insert(LoggedUser(user.0));
    // Not while the browser waits: if that took too long, its session would be there and its cookie lost.
    let db = state.database().clone();
    actix_web::rt::spawn(async move {
        if let Err(error) = db.write(JobOwner::Internal, move |conn| queries::forget_expired(conn, now)).await {
            log::warn!("expired sessions could not be deleted: {error:?}");
        }
    });
    let reply = Reply::empty(StatusCode::FOUND).with(header::LOCATION, format!("{origin}/callback"));
    Ok(reply.with(header::SET_COOKIE, cookie).with(header::CACHE_CONTROL, "no-store"))
}

/// Whether the caller is a browser that shows the answer to somebody.
fn wants_page(req: &HttpRequest) -> bool {
    Accept::parse(req).is_ok_and(|accept| accept.preference().essence_str() == mime::TEXT_HTML.essence_str())
}

/// The page for somebody whose sign-in failed.
fn sorry(club: &Club, problem: &Problem) -> Reply {
    let again = if club.is_development { DEVELOPMENT_PAGE } else { "/" };
    problem_page(problem, html! {}, &html! { p { a href=(again) { "Try again" } } })
}

/// Sign out
///
/// Ends the session that the request came with, and takes the cookie from the browser.
#[utoipa::path(
    tags = ["sign-in", "additions"],
    operation_id = "logout",
    responses((status = 204, description = "Signed out"))
)]
#[post("/logout")]
pub async fn logout(who: SignedIn, club: Club, now: Now) -> Result<Reply, Failure> {
    who.create(move |conn, me| {
        queries::end_of(conn, me.id, me.need_session()?, now.0)?;
        Ok(Reply::no_content().with(header::SET_COOKIE, pending::no_cookie(&club)))
    })
    .await
}

/// List the caller's sessions
///
/// Those that have not ended, the newest first. A token cannot list sessions.
#[utoipa::path(
    tags = ["sign-in", "additions"],
    operation_id = "getSessions",
    responses((status = 200, description = "Sessions", body = [ResponseSession]))
)]
#[get("/me/sessions")]
pub async fn list_sessions(who: SignedIn, zone: Zone, now: Now, page: Page) -> Result<Reply, Failure> {
    who.list(page, move |conn, me, page| sessions(conn, me, zone.0, now.0, page)).await
}

fn sessions(conn: &mut AnyConnection, me: &Caller, zone: Tz, now: Timestamp, page: &Page) -> Result<ListPage, Error> {
    let current = me.need_session()?;
    let position = |row: &SessionRow| (Reverse(row.created_at), row.id);
    page.rows_of_all(queries::sessions_of(conn, me.id, now)?, position, |row| {
        Ok(ResponseSession::new(&row, current, zone))
    })
}

/// End a session of the caller's
///
/// Ending the one that the request came with also takes the cookie from the browser. A token cannot end sessions.
#[utoipa::path(
    tags = ["sign-in", "additions"],
    operation_id = "endSession",
    params(("sessionID" = uuid::Uuid, Path, description = "Its id")),
    responses((status = 204, description = "It has ended"))
)]
#[delete("/me/sessions/{sessionID}")]
pub async fn end_session(who: SignedIn, club: Club, now: Now, session: Path<Id>) -> Result<Reply, Failure> {
    let (session, zone) = (DbUuid::from(*session), club.zone);
    let target = Target::own("sessions", move |conn, me| {
        sessions(conn, me, zone, now.0, &Page::all()).map(ListPage::into_reply)
    });
    who.update(target, move |conn, me| {
        let current = me.need_session()?;
        queries::end_of(conn, me.id, session, now.0)?;
        let reply = Reply::no_content();
        Ok(if session == current { reply.with(header::SET_COOKIE, pending::no_cookie(&club)) } else { reply })
    })
    .await
}

/// Make an API token
///
/// The token is shown in this answer only. A token cannot make tokens.
#[utoipa::path(
    tags = ["sign-in", "additions"],
    operation_id = "createToken",
    request_body = RequestToken,
    responses(
        (status = 201, description = "The token", body = CreatedToken),
        (status = 409, description = "The caller has 50 tokens already")
    )
)]
#[post("/me/tokens")]
pub async fn create_token(who: SignedIn, zone: Zone, now: Now, body: Body<RequestToken>) -> Result<Reply, Failure> {
    let new = body.0.into();
    who.update(tokens_target(zone.0), move |conn, me| {
        me.need_session()?;
        stay_active(conn, me.id)?;
        let (id, token) = tokens::make(conn, me.id, &new, now.0)?;
        Ok(Reply::created(&CreatedToken::new(id, &new, &token, now.0, zone.0))?.secret())
    })
    .await
}

/// List the caller's API tokens
///
/// Those that have not been revoked, the oldest first.
#[utoipa::path(
    tags = ["sign-in", "additions"],
    operation_id = "getTokens",
    responses((status = 200, description = "Tokens", body = [ResponseToken]))
)]
#[get("/me/tokens")]
pub async fn list_tokens(who: SignedIn, zone: Zone, page: Page) -> Result<Reply, Failure> {
    who.list(page, move |conn, me, page| show_tokens(conn, me.id, zone.0, page)).await
}

fn show_tokens(conn: &mut AnyConnection, user: DbUuid, zone: Tz, page: &Page) -> Result<ListPage, Error> {
    page.rows_of_all(tokens::of(conn, user)?, |row| (row.created_at, row.id), |row| Ok(ResponseToken::new(row, zone)))
}

/// The caller's tokens, which an operation changes.
fn tokens_target(zone: Tz) -> Target<Caller> {
    Target::own("tokens", move |conn, me: &Caller| {
        show_tokens(conn, me.id, zone, &Page::all()).map(ListPage::into_reply)
    })
}

/// Revoke an API token of the caller's
#[utoipa::path(
    tags = ["sign-in", "additions"],
    operation_id = "revokeToken",
    params(("tokenID" = uuid::Uuid, Path, description = "Its id")),
    responses((status = 204, description = "It no longer works"))
)]
#[delete("/me/tokens/{tokenID}")]
pub async fn revoke_token(who: SignedIn, zone: Zone, now: Now, token: Path<Id>) -> Result<Reply, Failure> {
    let token = DbUuid::from(*token);
    who.update(tokens_target(zone.0), move |conn, me| {
        me.need_session()?;
        tokens::revoke_of(conn, me.id, token, now.0)?;
        Ok(Reply::no_content())
    })
    .await
}
