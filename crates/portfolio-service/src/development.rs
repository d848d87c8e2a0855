//! The sign-in of development mode (contract, "Development mode"): a page on which anybody on this machine chooses a
//! user. A cookie keeps the name, and `proxy_user` reads it as it reads the headers of a proxy.

use actix_web::{
    HttpRequest,
    http::header,
    web::{Data, ServiceConfig, resource},
};
use club_sign_in::SignIn;
use common::problem::{Problem, Rule};
use maud::html;
use service_kit::{
    database::{JobOwner, PageBounds},
    error::Failure,
    http::{Form, Reply, query},
    page::{PageContext, ask_to_sign_out, hidden, is_local, see_other},
    state::{AppState, SIGN_OUT_PATH},
};

use crate::{
    identity::{DEVELOPMENT_PAGE, is_sign_in_name},
    proxy_user::DEVELOPMENT_COOKIE,
    users::{self, queries::Selection},
};

/// Registers the page, and signing out.
pub fn routes(config: &mut ServiceConfig) {
    config
        .service(resource(DEVELOPMENT_PAGE).get(choose).post(sign_in))
        .service(resource(SIGN_OUT_PATH).get(ask_to_sign_out).post(sign_out));
}

/// Shows the active users to choose from.
async fn choose(req: HttpRequest, page: PageContext, state: Data<AppState>) -> Result<Reply, Failure> {
    check_development(&state)?;
    let to = query::pairs(&req).into_iter().find(|(name, _)| name == "to").map_or_else(String::new, |(_, to)| to);
    let users = state
        .database
        .read(JobOwner::Internal, |conn| users::queries::list(conn, &Selection::Active, &PageBounds::all()))
        .await?;
    let body = html! {
        @if users.is_empty() {
            p { (page.text("no-users")) }
        } @else {
            p { (page.text("development")) }
            form.actions method="post" action=(DEVELOPMENT_PAGE) {
                (hidden("to", to))
                @for user in &users { button name="name" value=(user.name) { (user.name) } }
            }
        }
    };
    Ok(page.reply(&page.text("choose-who-you-are"), body).with(header::CACHE_CONTROL, "no-store"))
}

/// Signs the browser in as the chosen user.
async fn sign_in(req: HttpRequest, state: Data<AppState>, form: Form) -> Result<Reply, Failure> {
    check_development(&state)?;
    state.origins.check(req.method(), req.headers())?;
    let (name, to) = (form.get("name"), form.get("to"));
    if !is_sign_in_name(name) {
        return Err(Problem::invalid("/name", Rule::Invalid, "must be a sign-in name").into());
    }
    let cookie = format!("{DEVELOPMENT_COOKIE}={name}; Path=/; SameSite=Lax; HttpOnly");
    Ok(see_other(if is_local(to) { to } else { "/" }).with(header::SET_COOKIE, cookie))
}

/// Signs the browser out.
async fn sign_out(req: HttpRequest, state: Data<AppState>) -> Result<Reply, Failure> {
    if let Some(sign_in) = req.app_data::<Data<SignIn>>() {
        return sign_in.sign_out(&req, &state, state.clock.now()).await;
    }
    check_development(&state)?;
    state.origins.check(req.method(), req.headers())?;
    Ok(see_other("/")
        .with(header::SET_COOKIE, format!("{DEVELOPMENT_COOKIE}=; Path=/; Max-Age=0; SameSite=Lax; HttpOnly")))
}

fn check_development(state: &AppState) -> Result<(), Problem> {
    if state.answer_options.is_development { Ok(()) } else { Err(Problem::not_found("path")) }
}
