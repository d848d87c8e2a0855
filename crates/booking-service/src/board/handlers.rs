//! The page.

use actix_web::{
    HttpRequest,
    http::{Method, StatusCode},
    web::Data,
};
use common::time::Timestamp;
use maud::html;
use service_kit::{
    error::Failure,
    http::{Query, Reply, html::HtmlPage},
    state::{AppState, ProblemPage, TimeDependent},
};
use url::form_urlencoded;

use super::{
    page::{self, Show},
    queries,
    reader::BoardReader,
    wire::BoardQuery,
};
use crate::{auth::kiosk_token, club::Zone, rooms::place::place_key};

/// The path of the page.
pub const PATH: &str = "/board";

/// The line at the present time moves every five minutes, in microseconds. Between that, a screen that asks again is
/// answered 304.
const NOW_MOVES: i64 = 5 * 60 * 1_000_000;

/// The board.
pub async fn board(
    req: HttpRequest,
    state: Data<AppState>,
    who: BoardReader,
    Zone(zone): Zone,
    TimeDependent(now): TimeDependent,
    query: Query<BoardQuery>,
) -> Result<Reply, Failure> {
    let board = query.0.into_board(now, zone);
    let span = board.span(zone)?;
    let now = Timestamp::from_micros(now.micros() / NOW_MOVES * NOW_MOVES).unwrap_or(now);
    let show = Show { is_kiosk: kiosk_token(&req).is_some(), has_event_pages: state.static_files.is_some(), now, zone };
    who.read(move |conn, _| {
        let key = board.place.as_deref().map(place_key);
        let content = queries::load(conn, span, key.as_deref())?;
        Ok(page::show(&board, &content, show))
    })
    .await
}

/// The page of a refusal. A kiosk tries again after a minute. Other pages link to the sign-in.
#[must_use]
pub fn problem_page(req: &HttpRequest) -> Option<ProblemPage> {
    if req.path() != PATH || !matches!(*req.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let is_kiosk = kiosk_token(req).is_some();
    let address = req.uri().path_and_query().map_or(PATH, |address| address.as_str());
    let sign_in = match AppState::from_request(req).ok()?.sign_in_page() {
        Some(page) => {
            let query = form_urlencoded::Serializer::new(String::new()).append_pair("to", address).finish();
            format!("{page}?{query}")
        }
        None => "/".to_owned(),
    };
    Some(Box::new(move |problem| {
        let is_signed_out = problem.status() == 401 && !is_kiosk;
        let body = html! {
            p { @if is_signed_out { "Members of the club may see the board." } @else { (problem.explanation()) } }
            @if is_kiosk { p { "Make a kiosk token by " code { "booking-service token create --user NAME --name TEXT --scope board" } "." } }
            @else if is_signed_out { p { a href=(sign_in) { "Sign in to see the board" } } }
            @else { p { a href=(PATH) { "Today's board" } } }
        };
        let head = if is_kiosk {
            page::refresh()
        } else {
            html! {}
        };
        let status = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        HtmlPage { head, ..HtmlPage::new(problem.code().title, &[], body) }.reply(status)
    }))
}
