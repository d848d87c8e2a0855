//! The page.

use actix_web::{
    HttpRequest,
    http::{Method, StatusCode},
};
use common::time::Timestamp;
use service_kit::{
    error::Failure,
    http::{Query, Reply, html::HtmlPage},
    page::PageContext,
    state::{ProblemPage, TimeDependent},
};

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
    page: PageContext,
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
        Ok(page::show(&page, &board, &content, show))
    })
    .await
}

/// The page of a refusal on a kiosk, which tries again after a minute.
pub fn problem_page(req: &HttpRequest) -> Option<ProblemPage> {
    if req.path() != PATH || !matches!(*req.method(), Method::GET | Method::HEAD) {
        return None;
    }
    kiosk_token(req)?;
    let page = PageContext::of(req).ok()?;
    Some(Box::new(move |problem| {
        let (title, body) = kiosk::refused(&page, problem);
        let (head, style, language) = (kiosk::try_again(), kiosk::REFUSED_STYLE, page.language);
        let status = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        HtmlPage { head, style, language, ..HtmlPage::new(&title, body) }.reply(status)
    }))
}
