//! What can be restored: everything for privileged users, for others what they may change.

use maud::html;
use service_kit::{
    database::types::DbTimestamp,
    error::{Error, Failure},
    http::Reply,
    retention::RESTORABLE,
};

use super::{
    history::{Subject, deleted},
    queries::deleted_after,
    visit::Visit,
};
use crate::auth::SignedIn;

/// The list.
pub async fn list(visit: Visit, who: SignedIn) -> Result<Reply, Failure> {
    who.read(move |conn, me| {
        let oldest = DbTimestamp(visit.now.plus(-RESTORABLE));
        let admin = Some(me.id).filter(|_| !me.privileged);
        let of_kind = |subject| Ok((subject, deleted_after(conn, subject, oldest, admin)?));
        let lists = Subject::ALL.into_iter().map(of_kind).collect::<Result<Vec<_>, Error>>()?;
        let body = html! {
            p { (visit.text("deleted-about")) }
            @if lists.iter().all(|(_, summaries)| summaries.is_empty()) { p { (visit.text("deleted-nothing")) } }
            @for (subject, summaries) in lists.iter().filter(|(_, summaries)| !summaries.is_empty()) {
                h2 { (visit.text(subject.segment())) }
                ul.list { @for summary in summaries {
                    li {
                        a href=(subject.page(summary.id)) { b { (summary.name) } }
                        @if let Some(at) = summary.deleted_at { (deleted(&visit, *subject, summary, at)) }
                    }
                } }
            }
        };
        Ok(visit.reply(&visit.text("deleted"), body))
    })
    .await
}
