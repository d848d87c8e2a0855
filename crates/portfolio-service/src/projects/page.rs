//! The page `/projects/{projectId}`.

use actix_web::web::Path;
use common::input::Id;
use maud::html;
use service_kit::{
    database::{PageBounds, types::DbUuid},
    error::Failure,
    http::Reply,
    state::Now,
};

use super::queries;
use crate::{
    auth::Anybody,
    club::Club,
    page::{self, MAX_ROWS, limit_note},
    timeline::{Timeline, in_words},
    users,
};

pub async fn show(who: Anybody, club: Club, Now(now): Now, id: Path<Id>) -> Result<Reply, Failure> {
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
