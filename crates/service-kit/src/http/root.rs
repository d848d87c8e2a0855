//! What stands at the root of every service: health, metrics, problem codes, the OpenAPI document and its page.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web::{self, Data, Path},
};
use common::problem::{Problem, code};
use serde_json::json;
use url::form_urlencoded;
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::etag::Known;
use crate::{error::Failure, server::AppState};

/// The paths of this module, for the `Allow` header.
pub(super) const PATHS: &[&str] =
    &["/livez", "/readyz", "/metrics", "/problems", "/problems/{code}", "/openapi.json", "/docs", "/docs/{tail:.*}"];

/// Adds them to an app.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/livez", web::get().to(livez))
        .route("/readyz", web::get().to(readyz))
        .route("/metrics", web::get().to(metrics))
        .route("/problems", web::get().to(problems))
        .route("/problems/{code}", web::get().to(problem))
        .route("/openapi.json", web::get().to(openapi))
        .route("/docs", web::get().to(docs))
        // Two of Swagger UI's files, made so that its page has a name and fits a telephone.
        .route("/docs/", web::get().to(docs_page))
        .route("/docs/index.css", web::get().to(docs_style))
        .service(
            SwaggerUi::new("/docs/{tail:.*}").config(
                Config::from("/openapi.json")
                    .use_base_layout()
                    .validator_url("none")
                    .try_it_out_enabled(true)
                    .with_credentials(true),
            ),
        );
}

/// Answers whatever no other route takes.
///
/// # Errors
/// 405 with `Allow` when the path exists, else what the front end is answered with, else 404.
pub async fn nothing_here(req: HttpRequest, service: Data<AppState>) -> Result<HttpResponse, Failure> {
    if let Some(allow) = service.routes().allow(req.path()) {
        // The frame renders the body of an empty answer with an error status.
        return Ok(HttpResponse::MethodNotAllowed().insert_header((header::ALLOW, allow)).finish());
    }
    match service.front_end_of(&req) {
        Some(files) => files.answer(&req).await,
        None => Err(Problem::new(code::NOT_FOUND).detail("There is no such path.").into()),
    }
}

async fn livez() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "status": "alive" }))
}

/// 200 when requests can be served: not draining, and the database answers. Migrations ran before the port was opened.
/// `?verbose` also tells how old the copies of what other services have are, which make no service unready.
async fn readyz(req: HttpRequest, service: Data<AppState>) -> HttpResponse {
    if service.is_draining() {
        return HttpResponse::ServiceUnavailable().json(json!({ "status": "draining" }));
    }
    if !service.db().ping().await {
        return HttpResponse::ServiceUnavailable()
            .insert_header((header::RETRY_AFTER, "1"))
            .json(json!({ "status": "database unreachable" }));
    }
    let mut report = json!({ "status": "ready" });
    if form_urlencoded::parse(req.query_string().as_bytes()).any(|(name, _)| name == "verbose") {
        report["copies"] = service.copies().report(service.clock().now());
    }
    HttpResponse::Ok().json(report)
}

async fn metrics(service: Data<AppState>) -> Result<HttpResponse, Failure> {
    // It grows with the number of operations, and asks the kernel.
    let text = web::block(move || {
        let copies = service.copies().numbers(service.clock().now());
        service.metrics().text(service.db(), &copies)
    });
    let text = text.await.map_err(Problem::internal)?;
    Ok(HttpResponse::Ok().content_type("application/openmetrics-text; version=1.0.0; charset=utf-8").body(text))
}

async fn problems(service: Data<AppState>) -> HttpResponse {
    HttpResponse::Ok().json(service.codes().collect::<Vec<_>>())
}

async fn problem(service: Data<AppState>, name: Path<String>) -> Result<HttpResponse, Failure> {
    let found = service.codes().find(|code| code.name == name.as_str());
    Ok(HttpResponse::Ok().json(found.ok_or_else(|| Problem::not_found("problem code"))?))
}

async fn openapi(req: HttpRequest, service: Data<AppState>) -> HttpResponse {
    let (document, tag) = service.document();
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CACHE_CONTROL, "public, no-cache"));
    if let Some(known) = Known::of(&req).same(tag) {
        return response.status(StatusCode::NOT_MODIFIED).insert_header((header::ETAG, known.text())).finish();
    }
    response.insert_header((header::ETAG, tag.text())).content_type("application/json").body(document.clone())
}

async fn docs() -> HttpResponse {
    HttpResponse::Found().insert_header((header::LOCATION, "/docs/")).finish()
}

async fn docs_page(service: Data<AppState>) -> HttpResponse {
    let page = include_str!("docs.html").replace("{name}", service.about().name);
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body(page)
}

async fn docs_style() -> HttpResponse {
    HttpResponse::Ok().content_type("text/css; charset=utf-8").body(include_str!("docs.css"))
}
