//! The page at `/` if there is no front end.

use maud::{Markup, html};
use service_kit::{error::Failure, http::Reply, page::PageContext};

use crate::{auth::Visitor, page as pages, users};

/// The pages that it leads to, each with the key of its name; the key of what it is for ends in `-about`.
const CARDS: [(&str, &str); 4] =
    [("/people", "people"), ("/projects", "projects"), ("/contests", "contests"), ("/groups", "groups")];

/// The page. A caller with a bad credential sees what everybody sees.
pub async fn show(page: PageContext, who: Option<Visitor>) -> Result<Reply, Failure> {
    let anonymous = render(&page, &html! {});
    let Some(visitor) = who else { return Ok(anonymous) };
    let own = visitor.read(move |conn, caller| {
        let Some(caller) = caller else { return Ok(render(&page, &html! {})) };
        let name = users::queries::get(conn, caller.id)?.person.name;
        let who = html! {
            p { (page.format("signed-in-as", &[("name", name.into())])) " " a.button href="/me" { (page.text("me")) } }
        };
        Ok(render(&page, &who))
    });
    Ok(own.await.unwrap_or(anonymous))
}

fn render(page: &PageContext, who: &Markup) -> Reply {
    let body = html! {
        p { (page.text("about")) }
        (who)
        ul.cards {
            @for (address, key) in CARDS {
                li {
                    a href=(address) { b { (page.text(key)) } small { (page.text(&format!("{key}-about"))) } }
                }
            }
        }
    };
    let name = &page.state().club_name;
    pages::reply(page, if name.is_empty() { page.state().info.name } else { name }, &html! {}, body)
}
