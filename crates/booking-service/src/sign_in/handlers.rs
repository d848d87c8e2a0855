//! The operations of sign-in.

use std::cmp::Reverse;

use actix_web::{
    HttpRequest, delete, get,
    http::{StatusCode, header},
    post,
    web::{Data, Path},
};
use chrono_tz::Tz;
use common::{input::Id, time::Timestamp};
use maud::html;
use service_kit::{
    credentials,
    database::{AnyConnection, JobOwner, types::DbUuid},
    error::{Error, Failure},
    guard::Target,
    http::{Body, ListPage, ListPart, Page, Reply, client_ip::ClientIp, html, notes::RequestNotes, query},
    page::PageContext,
    state::{AppState, Now, ProblemPage, TimeDependent},
};

use super::{
    failure::{self, bad_login},
    pending::{self, CALLBACK, PendingSignIn},
    provider::{Provider, development::DEVELOPMENT_PAGE},
    queries::{self, SessionRow},
    tokens,
    wire::{AuthParams, CallbackQuery, CreatedToken, RequestToken, ResponseSession, ResponseToken},
};
use crate::{
    auth::{Caller, Credential, SignedIn, authenticate, session, stay_active},
    club::{Club, Zone},
    limits::Limits,
};

/// Where a browser goes after a sign-in: the front end, or the page that stands in for it.
const FRONT_END_CALLBACK: &str = "/callback";

/// Begin a sign-in
///
/// Sets a cookie with the pending sign-in, for ten minutes at most.
#[utoipa::path(
    tag = "sign-in",
    operation_id = "getAuthParams",
    security(()),
    responses(
        (status = 201, description = "Where to send the browser", body = AuthParams),
        (status = 403, description = "A page of another site sent the request (`cross-site-request`)")
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
    // Another site must not replace the session of a browser by a sign-in that the user did not begin.
    state.origins.check(req.method(), req.headers())?;
    let login = PendingSignIn::begin(&req, &state.origins, &club.keys, now.0)?;
    let url = provider.address(&club, &req, &login).await?;
    let reply = Reply::created(&AuthParams { url })?.with(header::CACHE_CONTROL, "no-store");
    let reply = reply.with(header::SET_COOKIE, login.session_cookie(&req, &club, now.0));
    Ok(reply.with_cookies(login.cookies(&req, &club, now.0)))
}

/// Finish a sign-in
///
/// The provider redirects the browser here. A browser gets a page if the sign-in cannot be finished.
#[utoipa::path(
    tag = "sign-in",
    operation_id = "getCallback",
    security(()),
    params(
        CallbackQuery,
        ("session" = String, Cookie, description = "The sign-in that `/authParams` has begun")
    ),
    responses(
        (status = 302, description = "Signed in, by this or another sign-in of the browser"),
        (status = 400, description = "Bad, expired or replayed (`bad-login`)", body = String,
            content_type = "text/html"),
        (status = 403, description = "The account is not a member's, not active, or its name cannot be used",
            body = String, content_type = "text/html"),
        (status = 429, description = "Over the rate limit; the same address works after `Retry-After` seconds",
            body = String, content_type = "text/html"),
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
    now: TimeDependent,
) -> Result<Reply, Failure> {
    limits.sign_in.charge(from.into())?;
    let query: CallbackQuery = query::parse(req.query_string()).map_err(|_| bad_login())?;
    let redirect = |address: String| {
        Reply::empty(StatusCode::FOUND).with(header::LOCATION, address).with(header::CACHE_CONTROL, "no-store")
    };
    let Some(login) = PendingSignIn::from_request(&req, &club.keys, &query.state, now.0) else {
        // Newer sign-ins of the browser may have removed the cookie. Otherwise any site may have sent the browser here,
        // so the session does not end.
        let is_late =
            pending::is_ours(&club.keys, &query.state) && is_signed_in(&req, &state, &query.state, now.0).await?;
        return if is_late { Ok(redirect(FRONT_END_CALLBACK.to_owned())) } else { Err(bad_login().into()) };
    };
    let no_cookie = login.no_cookie(&club);
    // The options may have changed since it began.
    let origin = login.origin.clone().filter(|origin| state.origins.is_other(origin)).unwrap_or_default();
    let page = login.page.clone().unwrap_or_else(|| format!("{origin}{FRONT_END_CALLBACK}"));
    let reply = redirect(page);
    let is_new_session =
        |secret: String| !login.previous.as_ref().is_some_and(|hash| credentials::is_hash_of(hash, &secret));
    if session(&req).is_some_and(is_new_session) && is_signed_in(&req, &state, &login.state, now.0).await? {
        return Ok(reply.with(header::SET_COOKIE, no_cookie));
    }
    match finish(&req, &state, &provider, &club, query, login, now.0).await {
        Ok(cookie) => Ok(reply.with_cookies([cookie, no_cookie])),
        // After a fault of ours the same callback may still succeed.
        Err(Failure(problem)) if problem.status() < 500 => Err(Failure(problem.header("set-cookie", no_cookie))),
        Err(failure) => Err(failure),
    }
}

/// Whether the browser is signed in, by another sign-in than the one with this state.
async fn is_signed_in(req: &HttpRequest, app: &AppState, state: &str, now: Timestamp) -> Result<bool, Failure> {
    let Some(secret) = session(req) else { return Ok(false) };
    let (owner, state) = (JobOwner::of_credential(&secret), state.to_owned());
    let result = app.database.read(owner, move |conn| {
        let (caller, _) = authenticate(conn, &Credential::Session(secret.clone()), now)?;
        Ok((caller.id.0, queries::is_finished(conn, &state)?))
    });
    match result.await {
        Ok((user, is_finished)) => {
            RequestNotes::change(req, |notes| notes.user = Some(user));
            Ok(!is_finished)
        }
        Err(Error::Problem(problem)) if problem.status() < 500 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Exchanges the code and creates a session. Returns its `Set-Cookie`.
async fn finish(
    req: &HttpRequest,
    state: &AppState,
    provider: &Provider,
    club: &Club,
    query: CallbackQuery,
    login: PendingSignIn,
    now: Timestamp,
) -> Result<String, Failure> {
    let principal = provider.exchange(club, query.into_response()?, &login, now).await?;
    let secret = credentials::random_secret()?;
    let (cookie, credential) = (pending::session_cookie(club, &secret, now), secret.clone());
    let policy = club.sign_in_policy;
    let user = state
        .database
        .write(JobOwner::Internal, move |conn| queries::finish(conn, &login, &principal, policy, &secret, now))
        .await?;
    state.credential_owners.remember(&credential, user.0);
    RequestNotes::change(req, |notes| notes.user = Some(user.0));
    // In the background: if the browser gave up waiting, the session would exist and its cookie be lost.
    let db = state.database.clone();
    actix_web::rt::spawn(async move {
        if let Err(error) = db.write(JobOwner::Internal, move |conn| queries::delete_expired(conn, now)).await {
            db.log_failure("expired sessions could not be deleted", error);
        }
    });
    Ok(cookie)
}

/// The page for a browser whose sign-in cannot be finished. Another caller gets a problem.
#[must_use]
pub fn problem_page(req: &HttpRequest) -> Option<ProblemPage> {
    if req.path() != CALLBACK || !html::is_preferred(req) {
        return None;
    }
    let (page, club) = (PageContext::of(req).ok()?, req.app_data::<Data<Club>>()?);
    let start =
        page.sign_in_address().unwrap_or_else(|| if club.is_development { DEVELOPMENT_PAGE } else { "/" }.into());
    let query: Option<CallbackQuery> = query::parse(req.query_string()).ok();
    let now = page.state().clock.now();
    let overlapping = query.filter(|query| {
        pending::is_ours(&club.keys, &query.state) && pending::has_other(req, &club.keys, &query.state, now)
    });
    let reload = overlapping.and_then(|query| query.next_reload());
    Some(Box::new(move |problem| {
        let why =
            failure::text_key(problem).map_or_else(|| page.explain(problem), |key| html! { p { (page.text(key)) } });
        let next_step = match problem.status() {
            // The same request may be repeated.
            429 => page.next_step(problem),
            _ if failure::may_be_repeated(problem) => html! { a.button href=(start) { (page.text("sign-in-again")) } },
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

/// Sign out
///
/// Ends the session of the request and removes its cookie.
#[utoipa::path(
    tags = ["sign-in", "additions"],
    operation_id = "logout",
    responses((status = 204, description = "Signed out"))
)]
#[post("/logout")]
pub async fn logout(who: SignedIn, club: Club, now: Now) -> Result<Reply, Failure> {
    who.create(move |conn, me| {
        queries::end_of(conn, me.id, me.require_session()?, now.0)?;
        Ok(Reply::no_content().with(header::SET_COOKIE, pending::no_session_cookie(&club)))
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
pub async fn list_sessions(who: SignedIn, Zone(zone): Zone, now: TimeDependent, page: Page) -> Result<Reply, Failure> {
    who.list(page, move |conn, me, page| sessions(conn, me, zone, now.0, page)).await
}

fn sessions(
    conn: &mut AnyConnection,
    me: &Caller,
    zone: Tz,
    now: Timestamp,
    page: &ListPart,
) -> Result<ListPage, Error> {
    let current = me.require_session()?;
    let position = |row: &SessionRow| (Reverse(row.created_at), row.id);
    page.rows_of_all(queries::sessions_of(conn, me.id, now)?, position, |row| {
        Ok(ResponseSession::new(&row, current, zone))
    })
}

/// The caller's sessions, which an operation changes.
#[must_use]
pub fn sessions_target(zone: Tz, now: Timestamp) -> Target<Caller> {
    Target::of_caller("sessions", move |conn, me| {
        sessions(conn, me, zone, now, &ListPart::all()).map(ListPage::into_reply)
    })
}

/// End a session of the caller
///
/// Ending the session of the request also removes its cookie. A token cannot end sessions.
#[utoipa::path(
    tags = ["sign-in", "additions"],
    operation_id = "endSession",
    params(("sessionID" = uuid::Uuid, Path, description = "Its id")),
    responses((status = 204, description = "It has ended"))
)]
#[delete("/me/sessions/{sessionID}")]
pub async fn end_session(who: SignedIn, club: Club, now: Now, session: Path<Id>) -> Result<Reply, Failure> {
    let session = DbUuid::from(*session);
    who.update(sessions_target(club.zone, now.0), move |conn, me| {
        let current = me.require_session()?;
        queries::end_of(conn, me.id, session, now.0)?;
        let reply = Reply::no_content();
        Ok(if session == current { reply.with(header::SET_COOKIE, pending::no_session_cookie(&club)) } else { reply })
    })
    .await
}

/// Create an API token
///
/// The token is shown in this answer only. A token cannot create tokens.
#[utoipa::path(
    tags = ["sign-in", "additions"],
    operation_id = "createToken",
    request_body = RequestToken,
    responses(
        (status = 201, description = "The token", body = CreatedToken),
        (status = 409, description = "The caller has 50 tokens already (`too-many-tokens`)")
    )
)]
#[post("/me/tokens")]
pub async fn create_token(
    who: SignedIn,
    state: Data<AppState>,
    Zone(zone): Zone,
    now: Now,
    body: Body<RequestToken>,
) -> Result<Reply, Failure> {
    let new = body.0.into();
    who.update(tokens_target(zone), move |conn, me| {
        me.require_session()?;
        stay_active(conn, me.id)?;
        me.author.count(1);
        let (id, token) = tokens::issue(conn, me.id, &new, now.0)?;
        state.credential_owners.remember(token.reveal(), me.id.0);
        Ok(Reply::created(&CreatedToken::new(id, &new, &token, now.0, zone))?.secret())
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
pub async fn list_tokens(who: SignedIn, Zone(zone): Zone, _now: TimeDependent, page: Page) -> Result<Reply, Failure> {
    // `Now`, because the last use of a token is no change of the database's version.
    who.list(page, move |conn, me, page| show_tokens(conn, me.id, zone, page)).await
}

fn show_tokens(conn: &mut AnyConnection, user: DbUuid, zone: Tz, page: &ListPart) -> Result<ListPage, Error> {
    page.rows_of_all(
        tokens::of_user(conn, user)?,
        |row| (row.created_at, row.id),
        |row| Ok(ResponseToken::new(row, zone)),
    )
}

/// The caller's tokens, which an operation changes.
#[must_use]
pub fn tokens_target(zone: Tz) -> Target<Caller> {
    Target::of_caller("tokens", move |conn, me: &Caller| {
        show_tokens(conn, me.id, zone, &ListPart::all()).map(ListPage::into_reply)
    })
}

/// Revoke an API token of the caller
#[utoipa::path(
    tags = ["sign-in", "additions"],
    operation_id = "revokeToken",
    params(("tokenID" = uuid::Uuid, Path, description = "Its id")),
    responses((status = 204, description = "It no longer works"))
)]
#[delete("/me/tokens/{tokenID}")]
pub async fn revoke_token(who: SignedIn, Zone(zone): Zone, now: Now, token: Path<Id>) -> Result<Reply, Failure> {
    let token = DbUuid::from(*token);
    who.update(tokens_target(zone), move |conn, me| {
        me.require_session()?;
        tokens::revoke_of(conn, me.id, token, now.0)?;
        Ok(Reply::no_content())
    })
    .await
}
