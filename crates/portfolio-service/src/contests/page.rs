//! The pages `/contests` and `/contests/{contestId}`.

use actix_web::web::Path;
use common::input::Id;
use maud::html;
use service_kit::{
    database::{PageBounds, types::DbUuid},
    error::{Error, Failure},
    http::Reply,
};

use super::queries;
use crate::{
    auth::Anybody,
    club::Club,
    page::{self, MAX_ROWS, days, limit_note},
    teams, users,
};

/// The newest contests.
pub async fn list(who: Anybody, club: Club) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let contests = queries::list(conn, &PageBounds { after: None, rows: MAX_ROWS })?;
        let contests = contests.iter().map(|row| Ok((row, row.duration()?))).collect::<Result<Vec<_>, Error>>()?;
        let body = html! {
            ul {
                @for (row, duration) in &contests {
                    li { a href={ "/contests/" (row.id) } { (row.name) } " " small { (days(*duration, club.zone)) } }
                }
            }
            (limit_note(contests.len()))
        };
        Ok(page::reply("Contests", &html! {}, body))
    })
    .await
}

/// One contest.
pub async fn show(who: Anybody, club: Club, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let id = DbUuid::from(*id);
        let (row, link, description) = queries::get(conn, id)?;
        let teams = teams::queries::page_of_contest(conn, id, &PageBounds { after: None, rows: MAX_ROWS })?;
        let body = html! {
            p.faint { (days(row.duration()?, club.zone)) }
            p.text { (description) }
            (page::link(&link))
            h2 { "Teams" }
            @if teams.is_empty() { p { "None yet." } } @else {
                div.table { table {
                    thead { tr { th scope="col" { "Team" } th scope="col" { "Result" } th scope="col" { "Members" } } }
                    tbody {
                        @for (team, members) in &teams {
                            tr {
                                td { (team.name) }
                                td { (team.result) }
                                td {
                                    @for (n, person) in members.iter().enumerate() {
                                        @if n > 0 { ", " } (users::on_page(person))
                                    }
                                }
                            }
                        }
                    }
                } }
                (limit_note(teams.len()))
            }
        };
        Ok(page::reply(&row.name, &html! {}, body))
    })
    .await
}
