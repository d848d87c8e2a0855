//! The pages `/projects` and `/projects/{projectId}`.

use actix_web::web::Path;
use common::input::Id;
use maud::html;
use service_kit::{
    database::{PageBounds, types::DbUuid},
    error::{Error, Failure},
    http::Reply,
    state::TimeDependent,
};

use super::queries;
use crate::{
    auth::Anybody,
    club::Club,
    page::{self, MAX_ROWS, limit_note},
    timeline::{Timeline, in_words},
    users,
};

/// The newest projects.
pub async fn list(who: Anybody, club: Club, TimeDependent(now): TimeDependent) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let projects = queries::list(conn, &PageBounds { after: None, rows: MAX_ROWS })?;
        let projects = projects.iter().map(|row| Ok((row, row.span()?))).collect::<Result<Vec<_>, Error>>()?;
        let timeline = Timeline::new(projects.iter().map(|(_, span)| *span), club.semester(now));
        let body = html! {
            div.timeline {
                (timeline.axis())
                ol {
                    @for (row, span) in &projects {
                        li {
                            a href={ "/projects/" (row.id) } { (row.name) } " " small { (in_words(*span)) }
                            (timeline.row(*span, *span))
                        }
                    }
                }
            }
            (limit_note(projects.len()))
        };
        Ok(page::reply("Projects", &html! {}, body))
    })
    .await
}

/// One project.
pub async fn show(who: Anybody, club: Club, TimeDependent(now): TimeDependent, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let id = DbUuid::from(*id);
        let (row, link, description) = queries::get(conn, id)?;
        let span = row.span()?;
        let members = queries::members_within(conn, id, span, &PageBounds { after: None, rows: MAX_ROWS })?;
        let spans = members.iter().map(|(_, own)| *own).chain([span]);
        let timeline = Timeline::new(spans, club.semester(now));
        let body = html! {
            p.faint { (in_words(span)) }
            p.text { (description) }
            (page::link(&link))
            h2 { "Members" }
            @if members.is_empty() { p { "None yet." } } @else {
                div.timeline {
                    (timeline.axis())
                    ol {
                        @for (person, own) in &members {
                            li { (users::on_page(person)) " " small { (in_words(*own)) } (timeline.row(*own, span)) }
                        }
                    }
                }
                p.faint { "The frame is the project, the filled bar the member's time in it." }
                (limit_note(members.len()))
            }
        };
        Ok(page::reply(&row.name, &html! {}, body))
    })
    .await
}
