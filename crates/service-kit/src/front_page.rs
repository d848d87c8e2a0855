//! The pages that every service has if it serves no front end.

use actix_web::{
    HttpResponse,
    http::{StatusCode, header},
    web::{self, Data},
};
use common::problem::Problem;
use maud::html;

use crate::{
    error::Failure,
    http::{HtmlPage, Reply, html::CARDS},
    page::{PageContext, set_language},
    state::{AppState, DEVELOPERS_PATH, LANGUAGE_PATH, LOGO_PATH, ROBOTS_PATH},
};

/// Registers them.
pub(crate) fn pages(config: &mut web::ServiceConfig) {
    config
        .route(DEVELOPERS_PATH, web::get().to(developers))
        .route(LANGUAGE_PATH, web::get().to(set_language))
        .route(LOGO_PATH, web::get().to(logo))
        .route(ROBOTS_PATH, web::get().to(robots));
}

/// The logo of the club.
async fn logo(state: Data<AppState>) -> Result<HttpResponse, Failure> {
    let logo = state.club_logo.as_ref().ok_or_else(|| Problem::not_found("logo"))?;
    let headers = [(header::CONTENT_TYPE, logo.media_type), (header::CACHE_CONTROL, "public, max-age=3600")];
    let mut response = HttpResponse::Ok();
    for header in headers {
        response.insert_header(header);
    }
    Ok(response.body(logo.bytes.clone()))
}

/// What crawlers may read (RFC 9309): all, or nothing if the service has no pages for them.
async fn robots(state: Data<AppState>) -> HttpResponse {
    let rule = if state.info.sitemap.is_some() { "Allow" } else { "Disallow" };
    let sitemap = state.info.sitemap.zip(state.public_url.as_ref());
    let sitemap = sitemap.map(|(path, origin)| format!("Sitemap: {origin}{path}\n")).unwrap_or_default();
    HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "public, max-age=3600"))
        .content_type("text/plain; charset=utf-8")
        .body(format!("User-agent: *\n{rule}: /\n{sitemap}"))
}

/// The page for developers and operators.
async fn developers(page: PageContext, state: Data<AppState>) -> Result<Reply, Failure> {
    let info = (state.info.document)().info;
    let words = state_in_words(&state).await;
    let body = html! {
        p lang="en" { (info.description.unwrap_or_default()) }
        ul.grid lang="en" {
            @for (address, name, about) in &LINKS { li.card { a href=(address) { b { (name) } } small { (about) } } }
        }
        p.mute lang="en" { (info.title) ", version " (info.version) ". The service is " (words) "." }
    };
    let title = page.text("for-developers");
    Ok(HtmlPage { style: CARDS, ..page.page(&title, body) }.reply(StatusCode::OK).with(header::VARY, "Accept-Language"))
}

/// The links of the page: address, name and description.
const LINKS: [(&str, &str, &str); 4] = [
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
