//! The ceiling: the body of a scene from a constant, by actix and through the same middleware, in a process like the
//! service's.

use std::{path::PathBuf, sync::OnceLock};

use actix_web::{
    HttpResponse, get,
    http::{StatusCode, header},
    web::Bytes,
};
use clap::{Args, Subcommand};
use common::{problem::Legacy, time::Clock};
use service_kit::{
    config::{DatabaseOptions, ServerOptions},
    database::Database,
    server::{AppState, Own, ServiceInfo, listen},
};
use utoipa::OpenApi;
use utoipa_actix_web::service_config::ServiceConfig;

use crate::Result;

/// What this program does besides measuring.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer every request with the same
    #[command(hide = true)]
    Constant(Constant),
}

/// What to answer, and where.
#[derive(Debug, Args)]
pub struct Constant {
    #[arg(long)]
    body: PathBuf,
    #[arg(long)]
    status: u16,
    #[command(flatten)]
    server: ServerOptions,
    #[command(flatten)]
    database: DatabaseOptions,
}

static ANSWER: OnceLock<(StatusCode, Bytes)> = OnceLock::new();

static ABOUT: ServiceInfo = ServiceInfo {
    name: "ceiling",
    legacy: Legacy::Errors,
    codes: &[],
    headers: &[("x-knoq-version", "0")],
    unauthorized_headers: &[],
    has_credential: |_| true,
    routes,
    pages: |_| {},
    document: Document::openapi,
};

#[derive(OpenApi)]
#[openapi(info(title = "ceiling"))]
struct Document;

fn routes(config: &mut ServiceConfig<'_>) {
    config.service(always_the_same);
}

#[utoipa::path(operation_id = "constant", responses((status = 200, description = "The constant")))]
#[get("/constant")]
async fn always_the_same() -> HttpResponse {
    let Some((status, body)) = ANSWER.get() else { return HttpResponse::NotFound().finish() };
    let mut answer = HttpResponse::build(*status);
    answer.insert_header((header::ETAG, "\"0123456789abcdef0123456789abcdef\""));
    if body.is_empty() { answer.finish() } else { answer.content_type("application/json").body(body.clone()) }
}

/// Serves until the process is killed.
pub fn serve(constant: &Constant) -> Result<()> {
    let answer = (StatusCode::from_u16(constant.status)?, Bytes::from(std::fs::read(&constant.body)?));
    ANSWER.set(answer).map_err(|_| "there is an answer already")?;
    // No request asks for it, but for /readyz.
    let url = format!("sqlite://{}.sqlite3", constant.body.display()).parse()?;
    actix_web::rt::System::new().block_on(async {
        let db = Database::open(&url, constant.database.limits());
        let service = AppState::new(&ABOUT, &constant.server, db, Clock::default(), Own::default());
        Ok(listen(service, &constant.server, |_| {})?.serve().await?)
    })
}
