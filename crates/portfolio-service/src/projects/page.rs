//! The pages `/projects` and `/projects/{projectId}`.

use actix_web::web::Path;
use common::input::Id;
use maud::html;
use service_kit::{
    database::{PageBounds, types::DbUuid},
    error::{Error, Failure},
    http::Reply,
    page::PageContext,
    state::TimeDependent,
};

use super::queries;
use crate::{
    auth::Anybody,
    club::Club,
    page::{self as pages, MAX_ROWS, limit_note, semesters},
    timeline::Timeline,
    users,
};

/// The newest projects.
pub async fn list(
    page: PageContext,
    who: Anybody,
    club: Club,
    TimeDependent(now): TimeDependent,
) -> Result<Reply, Failure> {
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
                            a href={ "/projects/" (row.id) } { (row.name) } " " small { (semesters(&page, *span)) }
                            (timeline.row(*span, *span))
                        }
                    }
                }
            }
            (limit_note(&page, projects.len()))
            (pages::links(&page, "/projects", &[("new-project", "/new")]))
        };
        Ok(pages::reply(&page, &page.text("projects"), &html! {}, body))
    })
    .await
}

/// One project.
pub async fn show(
    page: PageContext,
    who: Anybody,
    club: Club,
    TimeDependent(now): TimeDependent,
    id: Path<Id>,
) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let id = DbUuid::from(*id);
        let (row, link, description) = queries::get(conn, id)?;
        let span = row.span()?;
        let members = queries::members_within(conn, id, span, &PageBounds { after: None, rows: MAX_ROWS })?;
        let spans = members.iter().map(|(_, own)| *own).chain([span]);
        let timeline = Timeline::new(spans, club.semester(now));
        let body = html! {
            p.faint { (semesters(&page, span)) }
            p.text { (description) }
            (pages::link(&link))
            h2 { (page.text("members")) }
            @if members.is_empty() { p { (page.text("none-yet")) } } @else {
                div.timeline {
                    (timeline.axis())
                    ol {
                        @for (person, own) in &members {
                            li { (users::on_page(person)) " " small { (semesters(&page, *own)) } (timeline.row(*own, span)) }
                        }
                    }
                }
                p.faint { (page.text("project-bars")) }
                (limit_note(&page, members.len()))
            }
            (pages::links(&page, &format!("/projects/{id}"), &[("edit", "/edit"), ("members", "/members"), ("history", "/history")]))
        };
        Ok(pages::reply(&page, &row.name, &html! {}, body))
    })
    .await
}
