//! The pages of a development installation: "choose who you are", and what a browser sees after it has signed in.

use actix_web::{HttpRequest, http::StatusCode, web::Data};
use common::problem::{Problem, Violations};
use deserr::Deserr;
use service_kit::{
    database::{JobOwner, PageBounds},
    error::Failure,
    http::{Reply, query},
    state::{AppState, Now},
};

use super::{
    html::{escape, page},
    pending::Pending,
    provider::development::{self, DEVELOPMENT_PAGE, local_origin},
};
use crate::{auth::SignedIn, club::Club, users};

/// The sign-in for which somebody is to be chosen, as the provider's address names it.
#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
struct Begun {
    state: String,
    nonce: String,
}

/// The active users to choose from. Opened without parameters it begins a sign-in itself.
pub async fn choose(req: HttpRequest, state: Data<AppState>, club: Club, now: Now) -> Result<Reply, Failure> {
    only_here(&club, &req)?;
    let (begun, cookies) = if let Ok(begun) = query::parse::<Begun>(req.query_string()) {
        (begun, Vec::new())
    } else {
        let login = Pending::begin(&req, state.origins(), &club.keys, now.0)?;
        let cookies = login.cookies(&req, &club, now.0);
        (Begun { state: login.state, nonce: login.nonce }, cookies)
    };
    let mut users =
        state.database().read(JobOwner::Internal, |conn| users::queries::list(conn, false, &PageBounds::all())).await?;
    users.sort_by(|a, b| (&a.display_name, &a.name).cmp(&(&b.display_name, &b.name)));
    let choices: Vec<_> = users
        .iter()
        .map(|user| {
            let address = development::callback(&club.keys, user.id, &begun.state, &begun.nonce, now.0);
            let (shown, name) = (escape(&user.display_name), escape(&user.name));
            format!("<li><a href=\"{}\">{shown} <small>@{name}</small></a></li>\n", escape(&address))
        })
        .collect();
    let content = if users.is_empty() {
        "<p>There are no active users yet. Start the service with <code>--demo</code> or \
         <code>--directory-file</code> to have some.</p>"
            .to_owned()
    } else {
        format!("<p>This is a development installation: anybody can be anyone.</p>\n<ul>\n{}</ul>", choices.concat())
    };
    Ok(page(StatusCode::OK, "Choose who you are", &content).with_cookies(cookies))
}

/// Stands in for the front end's own page at this path.
pub async fn arrived(req: HttpRequest, who: Option<SignedIn>, club: Club) -> Result<Reply, Failure> {
    only_here(&club, &req)?;
    let again = format!("<p><a href=\"{DEVELOPMENT_PAGE}\">Sign in</a></p>");
    let nobody = page(StatusCode::OK, "You are not signed in", &again);
    let Some(who) = who else { return Ok(nobody) };
    let greeted = who.read(|conn, me| {
        let name = users::queries::get(conn, me.id)?.display_name;
        let content = format!(
            "<p>The front end belongs here. Until there is one, <a href=\"/docs\">try the operations</a> or \
             <a href=\"{DEVELOPMENT_PAGE}\">be somebody else</a>.</p>"
        );
        Ok(page(StatusCode::OK, &format!("You are signed in as {name}"), &content))
    });
    match greeted.await {
        Err(failure) if failure.0.status() < 500 => Ok(nobody),
        done => done,
    }
}

/// On any other installation, and by any other name than this machine's, these pages do not exist.
fn only_here(club: &Club, req: &HttpRequest) -> Result<(), Problem> {
    let is_here = club.is_development && local_origin(club, req).is_some();
    if is_here { Ok(()) } else { Err(Problem::not_found("path")) }
}
