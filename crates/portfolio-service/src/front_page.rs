//! The page at `/` if there is no front end.

use actix_web::web::Data;
use maud::html;
use service_kit::{
    error::Failure,
    front_page::{Card, front_page, state_in_words},
    http::Reply,
    state::AppState,
};

use crate::{auth::Visitor, users};

/// The links that only this service has.
const CARDS: [Card; 4] = [
    ("/people", "People", "The members and what they have made"),
    ("/projects", "Projects", "What members make together, over semesters"),
    ("/contests", "Contests", "With teams and results"),
    ("/groups", "Groups", "Who is and was in them"),
];

/// The page. A caller with a bad credential sees what everybody sees.
pub async fn show(state: Data<AppState>, who: Option<Visitor>) -> Result<Reply, Failure> {
    let words = state_in_words(&state).await;
    let hint = if state.answer_options.is_development {
        html! {
            p { "In development a header says who you are:" }
            pre { code { "curl -H 'X-Forwarded-User: alice' " (state.origins.public()) "/api/v1/users/me" } }
        }
    } else {
        html! { p { "The site's own sign-in, or a bearer token, says who you are." } }
    };
    let anonymous = front_page(&state, words, &CARDS, &hint);
    let Some(visitor) = who else { return Ok(anonymous) };
    let page = visitor.read(move |conn, caller| {
        let Some(caller) = caller else { return Ok(front_page(&state, words, &CARDS, &hint)) };
        let name = users::queries::get(conn, caller.id)?.person.name;
        Ok(front_page(&state, words, &CARDS, &html! { p { "You are signed in as " b { "@" (name) } "." } }))
    });
    match page.await {
        Ok(reply) => Ok(reply),
        Err(_) => Ok(anonymous),
    }
}
