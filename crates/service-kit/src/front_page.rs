//! The pages that every service has if it serves no front end.

use actix_web::web::{self, Data};
use maud::html;

use crate::{
    error::Failure,
    http::Reply,
    page::{PageContext, set_language},
    state::{AppState, DEVELOPERS_PATH, LANGUAGE_PATH},
};

/// Registers them.
pub(crate) fn pages(config: &mut web::ServiceConfig) {
    config.route(DEVELOPERS_PATH, web::get().to(developers)).route(LANGUAGE_PATH, web::get().to(set_language));
}

/// The page for developers and operators.
async fn developers(page: PageContext, state: Data<AppState>) -> Result<Reply, Failure> {
    let info = (state.info.document)().info;
    let words = state_in_words(&state).await;
    let body = html! {
        p lang="en" { (info.description.unwrap_or_default()) }
        ul.cards lang="en" {
            @for (address, name, about) in &CARDS { li { a href=(address) { b { (name) } small { (about) } } } }
        }
        p.faint lang="en" { (info.title) ", version " (info.version) ". The service is " (words) "." }
    };
    Ok(page.reply(&page.text("for-developers"), body))
}

/// The links of the page: address, name and description.
const CARDS: [(&str, &str, &str); 4] = [
    ("/docs/", "Documentation", "Every operation, to read and to try"),
    ("/openapi.json", "OpenAPI document", "For generators of clients"),
    ("/problems", "Problem codes", "What the errors mean"),
    ("/readyz?verbose", "State", "For load balancers and monitors"),
];

/// The state of the service in words: whether its database answers.
async fn state_in_words(service: &AppState) -> &'static str {
    match (service.is_draining(), service.database.ping().await) {
        (true, _) => "about to stop",
        (false, true) => "ready",
        (false, false) => "without its database",
    }
}
