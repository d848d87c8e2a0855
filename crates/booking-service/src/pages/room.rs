//! The page of a room.

use actix_web::web::Path;
use common::input::Id;
use maud::html;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    http::Reply,
    page::{Icon, labelled_icon},
};

use super::{
    event_form,
    events::by_day,
    history::{self, Subject},
    people::People,
    rooms::actions,
    visit::Visit,
};
use crate::{
    auth::{Caller, SignedIn},
    events::{
        queries::{Order, load_rows},
        selection::{Criterion, Selection},
    },
    rooms,
};

/// The most events and free times on the page.
const MAX_ROWS: usize = 50;

pub async fn show(visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| {
        let shown = page(conn, me, &visit, id);
        history::or_deleted(shown, conn, me, &visit, (Subject::Room, id))
    })
    .await
}

fn page(conn: &mut AnyConnection, me: &Caller, visit: &Visit, id: DbUuid) -> Result<Reply, Error> {
    let room = rooms::queries::get(conn, id, None)?;
    let row = &room.row;
    let people = People::load(conn, room.admins.iter().copied())?;
    let bounds = PageBounds { after: None, rows: i64::try_from(MAX_ROWS).unwrap_or(i64::MAX) };
    let events = load_rows(conn, &Selection::new(Criterion::InRoom(id)), Order::Start, &bounds)?;
    let free = room.free_times.iter().map(|free| (DbTimestamp(free.start), DbTimestamp(free.end)));
    let free: Vec<_> = free.filter(|(_, end)| *end > visit.now).take(MAX_ROWS).collect();
    let events: Vec<_> = events.iter().map(|event| (event, html! { i {} })).collect();
    let body = html! {
        div.split {
            div {
                h2 { (visit.text("free-times")) }
                @if free.is_empty() { p.empty { (visit.text("fully-taken")) } } @else {
                    div.card { ul.rows.named { @for (start, end) in free {
                        @let start = start.max(visit.now);
                        li {
                            (visit.span(start, end))
                            a.button.small href=(event_form::address(visit, start, end, Some(id))) { (visit.text("book")) }
                        }
                    } } }
                }
                h2 { (visit.text("events")) }
                @if events.is_empty() { p.empty { (visit.text("no-events")) } } @else { (by_day(&events, visit)) }
                (history::section(conn, me, visit, Subject::Room, id)?)
            }
            aside {
                section.card {
                    dl.facts {
                        dt { (labelled_icon(Icon::Clock, &visit.text("when"))) }
                        dd {
                            b { (visit.span(row.starts_at, row.ends_at)) }
                            @if !row.verified { " " span.badge.warn { (visit.text("not-confirmed")) } }
                        }
                    }
                    h2 { (visit.text("admins")) }
                    p { (people.list(&room.admins, visit)) }
                }
            }
        }
    };
    let actions = actions(&room.row, &room.admins, me, visit);
    Ok(visit.reply_with_actions(&row.place, actions, body))
}
