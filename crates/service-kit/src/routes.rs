//! The paths at the root of every service: health, metrics, problem codes, the OpenAPI document and its page.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web::{self, Data, Path, Redirect},
};
use common::problem::{Problem, code};
use maud::html;
use serde_json::json;
use url::form_urlencoded;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::{
    error::Failure,
    http::{Reply, etag::CachedTags, html as html_page},
    metrics,
    page::{self, PageContext},
    state::AppState,
};

/// Adds them to an app.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/livez", web::get().to(livez))
        .route("/readyz", web::get().to(readyz))
        .route("/metrics", web::get().to(show_metrics))
        .route("/problems", web::get().to(problems))
        .route("/problems/{code}", web::get().to(problem))
        .route("/openapi.json", web::get().to(openapi))
        .route("/docs", web::get().to(|| async { Redirect::to("/docs/").using_status_code(StatusCode::FOUND) }))
        // These three replace files of Swagger UI.
        .route("/docs/", web::get().to(docs_page))
        .route("/docs/index.css", web::get().to(docs_style))
        .route("/docs/swagger-initializer.js", web::get().to(docs_script))
        .service(SwaggerUi::new("/docs/{tail:.*}").config(Config::from("/openapi.json")));
}

/// Answers a request that no route matches.
///
/// # Errors
/// 405 with `Allow` when the path exists, else those of the front end, else 404.
pub async fn no_route(req: HttpRequest, state: Data<AppState>) -> Result<HttpResponse, Failure> {
    if let Some(allow) = state.paths.allow(req.path()) {
        return Ok(HttpResponse::MethodNotAllowed().insert_header((header::ALLOW, allow)).finish());
    }
    match state.front_end_for(&req) {
        Some(files) => files.answer(&req).await,
        None => Err(Problem::new(code::NOT_FOUND).detail("There is no such path.").into()),
    }
}

async fn livez() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "status": "alive" }))
}

/// 200 if the service is not draining and its database answers. Migrations ran before the port was opened. `?verbose`
/// adds the age of the copies of other services' data, which does not affect readiness.
async fn readyz(req: HttpRequest, state: Data<AppState>) -> HttpResponse {
    if state.is_draining() {
        return HttpResponse::ServiceUnavailable().json(json!({ "status": "draining" }));
    }
    if !state.database.ping().await {
        return HttpResponse::ServiceUnavailable()
            .insert_header((header::RETRY_AFTER, "1"))
            .json(json!({ "status": "database unreachable" }));
    }
    let mut report = json!({ "status": "ready" });
    if form_urlencoded::parse(req.query_string().as_bytes()).any(|(name, _)| name == "verbose") {
        report["copies"] = state.copies.report(state.clock.now());
    }
    HttpResponse::Ok().json(report)
}

/// In the `OpenMetrics` format, or in the classic text format for a client that accepts only that.
async fn show_metrics(req: HttpRequest, state: Data<AppState>) -> Result<HttpResponse, Failure> {
    let accepted = req.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_classic = accepted.contains("text/plain") && !accepted.contains("openmetrics");
    // On a blocking thread: there are many series, and `/proc` is read.
    let text = web::block(move || {
        let copies = state.copies.numbers(state.clock.now());
        let text = state.metrics.text(&state.database, &copies);
        if is_classic { metrics::classic(&text) } else { text }
    });
    let text = text.await.map_err(Problem::internal)?;
    let format = if is_classic { metrics::CLASSIC } else { metrics::OPEN_METRICS };
    Ok(HttpResponse::Ok().content_type(format).body(text))
}

async fn problems(req: HttpRequest, state: Data<AppState>, page: PageContext) -> Result<Reply, Failure> {
    if html_page::is_preferred(&req) {
        return Ok(page::show_problems(&page));
    }
    Ok(Reply::json(&state.codes().collect::<Vec<_>>())?)
}

async fn problem(
    req: HttpRequest,
    state: Data<AppState>,
    page: PageContext,
    name: Path<String>,
) -> Result<Reply, Failure> {
    let code = state.codes().find(|code| code.name == name.as_str());
    let code = code.ok_or_else(|| Problem::not_found("problem code"))?;
    if html_page::is_preferred(&req) {
        return Ok(page::show_problem(&page, code));
    }
    Ok(Reply::json(code)?)
}

async fn openapi(req: HttpRequest, state: Data<AppState>) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CACHE_CONTROL, "public, no-cache"));
    if let Some(cached) = CachedTags::from_request(&req).matching(&state.interface.document_tag) {
        return response.status(StatusCode::NOT_MODIFIED).insert_header((header::ETAG, cached.text())).finish();
    }
    response
        .insert_header((header::ETAG, state.interface.document_tag.text()))
        .content_type("application/json")
        .body(state.interface.document.clone())
}

/// The script replaces the link to the sign-in by the name of the caller, and asks for that if there is a credential:
/// a browser would log the 401 of an anonymous caller as an error of the page.
async fn docs_page(req: HttpRequest, state: Data<AppState>) -> HttpResponse {
    let link = state.sign_in_address("/docs/").map(|address| html! { a #sign-in href=(address) { "Sign in" } });
    let sign_in = link.unwrap_or_default().into_string();
    let has_credential = (state.info.has_credential)(&req);
    let who = if has_credential { format!("<span id=\"who\">{sign_in}</span>") } else { sign_in };
    let page = include_str!("docs.html").replace("{name}", state.info.name).replace("{who}", &who);
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body(page)
}

async fn docs_script() -> HttpResponse {
    HttpResponse::Ok().content_type("text/javascript; charset=utf-8").body(include_str!("docs.js"))
}

async fn docs_style() -> HttpResponse {
    HttpResponse::Ok().content_type("text/css; charset=utf-8").body(include_str!("docs.css"))
}
