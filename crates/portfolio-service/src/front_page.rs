//! The page at `/` if there is no front end: what the club shows of itself.

use maud::{Markup, html};
use service_kit::{
    database::{AnyConnection, PageBounds},
    error::{Error, Failure},
    http::{Language, Reply},
    page::PageContext,
};

use crate::{
    auth::Visitor,
    club::Club,
    contests,
    metadata::Metadata,
    page::{self as pages, days, semesters},
    projects, users,
};

/// How many projects, contests and people the page shows.
const PROJECTS: i64 = 6;
const CONTESTS: i64 = 5;
const PEOPLE: i64 = 12;

/// The page. A caller with a bad credential sees the heading alone.
pub async fn show(page: PageContext, club: Club, who: Option<Visitor>) -> Result<Reply, Failure> {
    let empty = render(&page, &html! {});
    let Some(visitor) = who else { return Ok(empty) };
    let shown = visitor.read(move |conn, caller| {
        let name = caller
            .as_ref()
            .map(|caller| users::queries::get(conn, caller.id))
            .transpose()?
            .map(|user| user.person.name);
        let content = content(conn, &page, &club)?;
        let content = html! {
            @if let Some(name) = name { p.mute { (page.format("signed-in-as", &[("name", name.into())])) } }
            (content)
        };
        Ok(render(&page, &content))
    });
    Ok(shown.await.unwrap_or(empty))
}

fn render(page: &PageContext, content: &Markup) -> Reply {
    let (name, about) = (&page.state().club_name, page.text("about"));
    let body = html! { p.lead { (about) } (content) };
    let title: &str = if name.is_empty() { page.state().info.name } else { name };
    pages::reply(page, title, Metadata::new("/", &about), body)
}

fn content(conn: &mut AnyConnection, page: &PageContext, club: &Club) -> Result<Markup, Error> {
    let projects = projects::queries::newest(conn, PROJECTS)?;
    let contests = contests::queries::list(conn, &PageBounds { after: None, rows: CONTESTS })?;
    let people = users::queries::search(conn, "", PEOPLE)?;
    Ok(html! {
        @if !projects.is_empty() {
            div.head { h2 { (page.text("newest-projects")) } a href="/projects" { (page.text("all-projects")) } }
            ul.grid.show {
                @for (row, _, description) in &projects {
                    li.card {
                        (pages::picture(&row.name, row.picture().as_deref(), "24rem"))
                        h3 { a href={ "/projects/" (row.id) } { (row.name) } }
                        p { (first_line(description)) }
                        div.foot { small { (semesters(page, row.span()?)) } }
                    }
                }
            }
        }
        @if !contests.is_empty() {
            div.head { h2 { (page.text("latest-contests")) } a href="/contests" { (page.text("all-contests")) } }
            div.card { ul.rows.named {
                @for row in &contests {
                    li {
                        div {
                            a href={ "/contests/" (row.id) } { (row.name) }
                            small { (days(page, row.duration()?, club.zone, Language::date)) }
                        }
                    }
                }
            } }
        }
        @if !people.is_empty() {
            div.head { h2 { (page.text("people")) } a href="/people" { (page.text("all-people")) } }
            ul.wall {
                @for person in &people {
                    li { a href={ "/people/" (person.name) } { (users::face(person, "mid")) span { (person.shown_name()) } } }
                }
            }
        }
    })
}

/// The first line of a text, which a card shows.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
