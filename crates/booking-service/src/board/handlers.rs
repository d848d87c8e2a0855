//! The page.

use actix_web::{
    HttpRequest,
    http::{StatusCode, header::HeaderName},
    web::Data,
};
use common::{problem::Problem, time::Timestamp};
use maud::html;
use service_kit::{
    error::Failure,
    http::{Query, Reply, html::problem_page},
    middleware::problem_responses::log_failure,
    state::{AppState, Now},
};

use super::{
    page::{self, Show},
    queries,
    reader::BoardReader,
    wire::BoardQuery,
};
use crate::{auth::kiosk_token, club::Zone, rooms::place::place_key};

/// The line at the present time moves every five minutes, in microseconds. Between that, a screen that asks again is
/// answered 304.
const NOW_MOVES: i64 = 5 * 60 * 1_000_000;

/// The board, or a page that says why not.
pub async fn board(
    req: HttpRequest,
    state: Data<AppState>,
    who: Result<BoardReader, Failure>,
    zone: Zone,
    now: Now,
    query: Result<Query<BoardQuery>, Failure>,
) -> Reply {
    match show(&req, &state, who, zone, now, query).await {
        Ok(reply) => reply,
        Err(Failure(problem)) => {
            log_failure(&req, &problem);
            sorry(&req, &state, &problem)
        }
    }
}

async fn show(
    req: &HttpRequest,
    state: &AppState,
    who: Result<BoardReader, Failure>,
    Zone(zone): Zone,
    Now(now): Now,
    query: Result<Query<BoardQuery>, Failure>,
) -> Result<Reply, Failure> {
    let who = who?;
    let board = query?.0.into_board(now, zone);
    let span = board.span(zone)?;
    let now = Timestamp::from_micros(now.micros() / NOW_MOVES * NOW_MOVES).unwrap_or(now);
    let show = Show { is_kiosk: kiosk_token(req).is_some(), has_event_pages: state.has_front_end(), now, zone };
    who.read(move |conn, _| {
        let key = board.place.as_deref().map(place_key);
        let content = queries::load(conn, span, key.as_deref())?;
        Ok(page::show(&board, &content, show))
    })
    .await
}

/// The page of a refusal. A screen tries again; anybody else is led to the sign-in.
fn sorry(req: &HttpRequest, state: &AppState, problem: &Problem) -> Reply {
    let is_kiosk = kiosk_token(req).is_some();
    let head = if is_kiosk {
        page::refresh()
    } else {
        html! {}
    };
    let sign_in = state.sign_in_page().unwrap_or("/");
    let body = html! {
        @if is_kiosk { p { "Make a kiosk token by " code { "booking-service token create --scope board" } "." } }
        @else if problem.status() == 401 { p { a href=(sign_in) { "Sign in to see the board" } } }
        @else { p { a href="/board" { "Today's board" } } }
    };
    let reply = problem_page(problem, head, &body);
    if reply.status() != StatusCode::UNAUTHORIZED {
        return reply;
    }
    let headers = state.info().unauthorized_headers.iter();
    headers.fold(reply, |reply, (name, value)| match HeaderName::from_bytes(name.as_bytes()) {
        Ok(name) => reply.with(name, *value),
        Err(_) => reply,
    })
}
