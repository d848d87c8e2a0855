//! The operations of sign-in.

use std::cmp::Reverse;

use actix_web::{
    HttpRequest, delete, get,
    http::header,
    post,
    web::{Data, Path},
};
use chrono_tz::Tz;
use club_sign_in::{
    SignIn,
    flow::CallbackQuery,
    pending,
    sessions::{self, SessionRow},
};
use common::{input::Id, time::Timestamp};
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::{Error, Failure},
    guard::Target,
    http::{Body, ListPage, ListPart, Page, Reply, client_ip::ClientIp},
    state::{AppState, Now, TimeDependent},
};

use super::{
    tokens,
    wire::{AuthParams, CreatedToken, RequestToken, ResponseSession, ResponseToken},
};
use crate::{
    auth::{Caller, SignedIn, stay_active},
    club::Zone,
};

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
    sign_in: Data<SignIn>,
    now: Now,
) -> Result<Reply, Failure> {
    let (login, url) = sign_in.begin(&req, &state, from, now.0).await?;
    let reply = Reply::created(&AuthParams { url })?.with(header::CACHE_CONTROL, "no-store");
    let reply = reply.with(header::SET_COOKIE, login.session_cookie(&req, &sign_in.site, now.0));
    Ok(reply.with_cookies(login.cookies(&req, &sign_in.site, now.0)))
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
    sign_in: Data<SignIn>,
    now: TimeDependent,
) -> Result<Reply, Failure> {
    sign_in.finish(&req, &state, from, now.0).await
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
pub async fn logout(who: SignedIn, sign_in: Data<SignIn>, now: Now) -> Result<Reply, Failure> {
    who.create(move |conn, me| {
        sessions::end_of(conn, me.id, me.require_session()?, now.0)?;
        Ok(Reply::no_content().with(header::SET_COOKIE, pending::no_session_cookie(&sign_in.site)))
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
    who.list(page, move |conn, me, page| list_of_sessions(conn, me, zone, now.0, page)).await
}

fn list_of_sessions(
    conn: &mut AnyConnection,
    me: &Caller,
    zone: Tz,
    now: Timestamp,
    page: &ListPart,
) -> Result<ListPage, Error> {
    let current = me.require_session()?;
    let position = |row: &SessionRow| (Reverse(row.created_at), row.id);
    page.rows_of_all(sessions::sessions_of(conn, me.id, now)?, position, |row| {
        Ok(ResponseSession::new(&row, current, zone))
    })
}

/// The caller's sessions, which an operation changes.
pub fn sessions_target(zone: Tz, now: Timestamp) -> Target<Caller> {
    Target::of_caller("sessions", move |conn, me| {
        list_of_sessions(conn, me, zone, now, &ListPart::all()).map(ListPage::into_reply)
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
pub async fn end_session(
    who: SignedIn,
    zone: Zone,
    sign_in: Data<SignIn>,
    now: Now,
    session: Path<Id>,
) -> Result<Reply, Failure> {
    let session = DbUuid::from(*session);
    who.update(sessions_target(zone.0, now.0), move |conn, me| {
        let current = me.require_session()?;
        sessions::end_of(conn, me.id, session, now.0)?;
        let reply = Reply::no_content();
        Ok(if session == current {
            reply.with(header::SET_COOKIE, pending::no_session_cookie(&sign_in.site))
        } else {
            reply
        })
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
        let (id, token) = tokens::issue(conn, Some(me.id), &new, now.0)?;
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
