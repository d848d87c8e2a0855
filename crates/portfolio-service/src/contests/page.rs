//! The pages `/contests` and `/contests/{contestId}`.

use actix_web::web::Path;
use common::input::Id;
use maud::html;
use service_kit::{
    database::{PageBounds, types::DbUuid},
    error::{Error, Failure},
    http::{Language, Reply},
    page::PageContext,
};

use super::queries;
use crate::{
    auth::Anybody,
    club::Club,
    metadata::Metadata,
    page::{self as pages, MAX_ROWS, days, limit_note},
    teams, users,
};

/// The newest contests.
pub async fn list(page: PageContext, who: Anybody, club: Club) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let contests = queries::list(conn, &PageBounds { after: None, rows: MAX_ROWS })?;
        let contests = contests.iter().map(|row| Ok((row, row.duration()?))).collect::<Result<Vec<_>, Error>>()?;
        let body = html! {
            @if contests.is_empty() { p.empty { (page.text("none-yet")) } } @else {
                div.card { ul.rows.named {
                    @for (row, duration) in &contests {
                        li {
                            div {
                                a href={ "/contests/" (row.id) } { (row.name) }
                                small { (days(&page, *duration, club.zone, Language::date)) }
                            }
                        }
                    }
                } }
            }
            (limit_note(&page, contests.len()))
        };
        let actions = pages::links(&page, "/contests", &[("new-contest", "/new")]);
        let (title, about) = (page.text("contests"), page.text("about-contests"));
        Ok(pages::reply_with_actions(&page, &title, Metadata::new("/contests", &about), actions, body))
    })
    .await
}

/// One contest.
pub async fn show(page: PageContext, who: Anybody, club: Club, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let id = DbUuid::from(*id);
        let (row, link, description) = queries::get(conn, id)?;
        let teams = teams::queries::page_of_contest(conn, id, &PageBounds { after: None, rows: MAX_ROWS })?;
        let about = teams::queries::about(conn, id)?;
        let body = html! {
            p.mute { (days(&page, row.duration()?, club.zone, Language::day)) }
            p.text { (description) }
            (pages::link(&link))
            h2 { (page.text("teams")) }
            @if teams.is_empty() { p.empty { (page.text("none-yet")) } } @else {
                ul.grid.two {
                    @for (team, members) in &teams {
                        li.card {
                            div.head {
                                h3 { (team.name) }
                                @if !team.result.is_empty() { span.badge.good { (team.result) } }
                            }
                            p { @for person in members { (users::on_page(person)) } }
                            @if let Some((link, description)) = about.get(&team.id) {
                                @if !description.is_empty() { p.text { (description) } }
                                (pages::link(link))
                            }
                            @if page.is_signed_in() {
                                div.actions {
                                    (pages::links(&page, &format!("/contests/{id}/teams/{}", team.id), &[("edit", "")]))
                                }
                            }
                        }
                    }
                }
                (limit_note(&page, teams.len()))
            }
        };
        let below = [("edit", "/edit"), ("new-team", "/teams/new"), ("history", "/history")];
        let path = format!("/contests/{id}");
        let actions = pages::links(&page, &path, &below);
        Ok(pages::reply_with_actions(&page, &row.name, Metadata::new(&path, &description), actions, body))
    })
    .await
}
