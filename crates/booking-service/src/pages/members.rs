//! The list of members.

use actix_web::HttpRequest;
use maud::html;
use service_kit::{
    database::{AnyConnection, PageBounds, types::DbUuid},
    error::{Error, Failure},
    http::{Form, Reply, query},
    page::{address, avatar, fold},
};
use uuid::Uuid;

use super::visit::Visit;
use crate::{
    auth::SignedIn,
    users::queries::{self, User},
};

/// The most members on a page, and those that a search reads at once.
const MAX_ROWS: usize = 200;

/// The active members by sign-in name, with `search` those whose names contain it; behind the one in `after`.
pub async fn list(req: HttpRequest, visit: Visit, who: SignedIn) -> Result<Reply, Failure> {
    let typed = Form::new(query::pairs(&req));
    who.read(move |conn, _| {
        let search = typed.get("search");
        let mut members = found(conn, &fold(search.trim()), typed.get("after"))?;
        let has_more = members.len() > MAX_ROWS;
        members.truncate(MAX_ROWS);
        let body = html! {
            form.actions role="search" action="/members" {
                label.vh for="search" { (visit.text("name")) }
                input #search type="search" name="search" value=(search) maxlength="64" placeholder=(visit.text("name"));
                button { (visit.text("search")) }
            }
            @if members.is_empty() { p.empty { (visit.text("nobody-found")) } } @else {
                div.card { ul.rows.named { @for user in &members {
                    li { div.who {
                        (avatar(&user.name, &user.display_name, "mid"))
                        div { b { (user.display_name) } small { "@" (user.name) } }
                    } }
                } } }
            }
            @if let Some(last) = members.last().filter(|_| has_more) {
                p { a href=(address("/members", &[("search", search), ("after", &last.name)])) rel="next" {
                    (visit.text("next-rows")) " →"
                } }
            }
        };
        Ok(visit.reply(&visit.text("members-names"), body))
    })
    .await
}

/// One member more than a page shows.
fn found(conn: &mut AnyConnection, wanted: &str, after: &str) -> Result<Vec<User>, Error> {
    let mut found = Vec::new();
    let rows = i64::try_from(MAX_ROWS + 1).unwrap_or(i64::MAX);
    // Behind everybody of that name. PostgreSQL would refuse U+0000.
    let mut bounds = PageBounds { after: Some((after.replace('\0', ""), DbUuid(Uuid::max()))), rows };
    loop {
        let members = queries::list(conn, false, &bounds)?;
        let is_last = members.len() <= MAX_ROWS;
        bounds.after = members.last().map(|user| (user.name.clone(), user.id));
        found.extend(members.into_iter().filter(|user| {
            wanted.is_empty() || [&user.name, &user.display_name].iter().any(|name| fold(name).contains(wanted))
        }));
        if is_last || found.len() > MAX_ROWS {
            return Ok(found);
        }
    }
}
