//! The page.

use actix_web::{
    HttpRequest,
    http::{Method, StatusCode},
};
use common::{problem::Problem, time::Timestamp};
use maud::html;
use service_kit::{
    error::Failure,
    http::{Query, Reply, html::HtmlPage},
    state::{AppState, ProblemPage, TimeDependent},
};
use url::form_urlencoded;

use super::{
    kiosk,
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
    who: BoardReader,
    Zone(zone): Zone,
    TimeDependent(now): TimeDependent,
    query: Query<BoardQuery>,
) -> Result<Reply, Failure> {
    let board = query.0.into_board(now, zone);
    let span = board.span(zone)?;
    let kiosk = kiosk_token(&req).map(|_| kiosk::number(now));
    let now = Timestamp::from_micros(now.micros() / NOW_MOVES * NOW_MOVES).unwrap_or(now);
    let show = Show { kiosk, now, zone };
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
    if kiosk_token(req).is_some() {
        return Some(Box::new(|problem| {
            let (title, body) = kiosk::refused(problem.status(), &problem.explanation());
            let page =
                HtmlPage { head: kiosk::try_again(), style: kiosk::REFUSED_STYLE, ..HtmlPage::new(title, &[], body) };
            page.reply(status(problem))
        }));
    }
    let address = req.uri().path_and_query().map_or(PATH, |address| address.as_str());
    let sign_in = match AppState::from_request(req).ok()?.sign_in_page() {
        Some(page) => {
            let query = form_urlencoded::Serializer::new(String::new()).append_pair("to", address).finish();
            format!("{page}?{query}")
        }
        None => "/".to_owned(),
    };
    Some(Box::new(move |problem| {
        let body = html! {
            @if problem.status() == 401 {
                p { "Members of the club may see the board." }
                p { a href=(sign_in) { "Sign in to see the board" } }
            } @else {
                p { (problem.explanation()) }
                p { a href=(PATH) { "Today's board" } }
            }
        };
        HtmlPage::new(problem.code().title, &[], body).reply(status(problem))
    }))
}

fn status(problem: &Problem) -> StatusCode {
    StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
