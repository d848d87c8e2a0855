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
    page::{self as pages, MAX_ROWS, days, limit_note},
    teams, users,
};

/// The newest contests.
pub async fn list(page: PageContext, who: Anybody, club: Club) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let contests = queries::list(conn, &PageBounds { after: None, rows: MAX_ROWS })?;
        let contests = contests.iter().map(|row| Ok((row, row.duration()?))).collect::<Result<Vec<_>, Error>>()?;
        let body = html! {
            ul {
                @for (row, duration) in &contests {
                    li { a href={ "/contests/" (row.id) } { (row.name) } " " small { (days(&page, *duration, club.zone, Language::date)) } }
                }
            }
            (limit_note(&page, contests.len()))
            (pages::links(&page, "/contests", &[("new-contest", "/new")]))
        };
        Ok(pages::reply(&page, &page.text("contests"), &html! {}, body))
    })
    .await
}

/// One contest.
pub async fn show(page: PageContext, who: Anybody, club: Club, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let id = DbUuid::from(*id);
        let (row, link, description) = queries::get(conn, id)?;
        let teams = teams::queries::page_of_contest(conn, id, &PageBounds { after: None, rows: MAX_ROWS })?;
        let body = html! {
            p.faint { (days(&page, row.duration()?, club.zone, Language::day)) }
            p.text { (description) }
            (pages::link(&link))
            h2 { (page.text("teams")) }
            @if teams.is_empty() { p { (page.text("none-yet")) } } @else {
                div.table { table {
                    thead { tr {
                        th scope="col" { (page.text("team")) }
                        th scope="col" { (page.text("result")) }
                        th scope="col" { (page.text("members")) }
                    } }
                    tbody {
                        @for (team, members) in &teams {
                            tr {
                                td { (team.name) }
                                td { (team.result) }
                                td {
                                    @for (n, person) in members.iter().enumerate() {
                                        @if n > 0 { (page.language.separator()) } (users::on_page(person))
                                    }
                                }
                            }
                        }
                    }
                } }
                (limit_note(&page, teams.len()))
            }
            (pages::links(&page, &format!("/contests/{id}"), &[("edit", "/edit"), ("new-team", "/teams/new"), ("history", "/history")]))
        };
        Ok(pages::reply(&page, &row.name, &html! {}, body))
    })
    .await
}
