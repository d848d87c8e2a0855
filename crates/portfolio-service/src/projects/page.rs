//! The pages `/projects` and `/projects/{projectId}`.

use actix_web::web::Path;
use common::input::Id;
use maud::html;
use service_kit::{
    database::{PageBounds, types::DbUuid},
    error::{Error, Failure},
    http::Reply,
    page::{PageContext, photo},
    state::TimeDependent,
};

use super::queries;
use crate::{
    auth::Anybody,
    club::Club,
    metadata::{self, Metadata},
    page::{self as pages, MAX_ROWS, limit_note, semesters},
    picture,
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
            @if projects.is_empty() { p.empty { (page.text("none-yet")) } } @else {
                div.card {
                    ol.timeline {
                        (timeline.axis())
                        @for (row, span) in &projects {
                            li {
                                div {
                                    a.who href={ "/projects/" (row.id) } {
                                        @if let Some(address) = row.picture() { (photo(&picture::small(&address), "")) }
                                        b { (row.name) }
                                    }
                                    small { (semesters(&page, *span)) }
                                }
                                (timeline.row(*span, *span))
                            }
                        }
                    }
                }
            }
            (limit_note(&page, projects.len()))
        };
        let actions = pages::links(&page, "/projects", &[("new-project", "/new")]);
        let (title, about) = (page.text("projects"), page.text("about-projects"));
        Ok(pages::reply_with_actions(&page, &title, Metadata::new("/projects", &about), actions, body))
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
            p.mute { (semesters(&page, span)) }
            @if row.picture().is_some() { p { (pages::picture(&row.name, row.picture().as_deref(), "60rem")) } }
            p.text.lead { (description) }
            (pages::link(&link))
            h2 { (page.text("members")) }
            @if members.is_empty() { p { (page.text("none-yet")) } } @else {
                div.card {
                    ol.timeline {
                        (timeline.axis())
                        @for (person, own) in &members {
                            li {
                                div { (users::on_page(person)) small { (semesters(&page, *own)) } }
                                (timeline.row(*own, span))
                            }
                        }
                    }
                }
                p.hint { (page.text("project-bars")) }
                (limit_note(&page, members.len()))
            }
        };
        let below = [("edit", "/edit"), ("members", "/members"), ("history", "/history")];
        let path = format!("/projects/{id}");
        let actions = pages::links(&page, &path, &below);
        let mut work = metadata::object(&page, "CreativeWork", &row.name, Some(&path));
        work["description"] = description.as_str().into();
        work["dateCreated"] = span.since().first_day().to_string().into();
        work["author"] = members.iter().map(|(person, _)| users::as_person(&page, person)).collect();
        let metadata = Metadata { data: Some(work), ..Metadata::new(&path, &description) };
        Ok(pages::reply_with_actions(&page, &row.name, metadata, actions, body))
    })
    .await
}
