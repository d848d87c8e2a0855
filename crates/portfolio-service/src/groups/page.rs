//! The pages `/groups` and `/groups/{groupId}`.

use actix_web::web::Path;
use common::input::Id;
use maud::html;
use service_kit::{
    database::{PageBounds, types::DbUuid},
    error::Failure,
    http::Reply,
    page::PageContext,
    state::TimeDependent,
};

use super::queries;
use crate::{
    auth::Anybody,
    club::Club,
    metadata::Metadata,
    page::{self as pages, MAX_ROWS, limit_note, semesters},
    timeline::Timeline,
    users,
};

/// The groups.
pub async fn list(page: PageContext, who: Anybody) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let groups = queries::list(conn, &PageBounds { after: None, rows: MAX_ROWS })?;
        let body = html! {
            @if groups.is_empty() { p.empty { (page.text("none-yet")) } } @else {
                div.card { ul.rows.named { @for group in &groups { li { a href={ "/groups/" (group.id) } { (group.name) } } } } }
            }
            (limit_note(&page, groups.len()))
        };
        let about = page.text("about-groups");
        Ok(pages::reply(&page, &page.text("groups"), Metadata::new("/groups", &about), body))
    })
    .await
}

/// One group.
pub async fn show(
    page: PageContext,
    who: Anybody,
    club: Club,
    TimeDependent(now): TimeDependent,
    id: Path<Id>,
) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let mut group = queries::get(conn, DbUuid::from(*id))?;
        group.members.truncate(usize::try_from(MAX_ROWS).unwrap_or(0));
        let timeline = Timeline::new(group.members.iter().map(|(_, span)| *span), club.semester(now));
        let body = html! {
            @if !group.description.is_empty() { p.text { (group.description) } }
            (pages::link(&group.link))
            @if !group.admins.is_empty() {
                h2 { (page.text("administrators")) }
                p { @for person in &group.admins { (users::on_page(person)) } }
            }
            h2 { (page.text("members")) }
            @if group.members.is_empty() { p { (page.text("none-yet")) } } @else {
                div.card {
                    ol.timeline {
                        (timeline.axis())
                        @for (person, span) in &group.members {
                            li {
                                div { (users::on_page(person)) small { (semesters(&page, *span)) } }
                                (timeline.row(*span, *span))
                            }
                        }
                    }
                }
                (limit_note(&page, group.members.len()))
            }
        };
        let path = format!("/groups/{}", group.group.id);
        Ok(pages::reply(&page, &group.group.name, Metadata::new(&path, &group.description), body))
    })
    .await
}
