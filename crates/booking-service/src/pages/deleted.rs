//! What can be restored: everything for privileged users, for others what they may change.

use actix_web::HttpRequest;
use maud::html;
use service_kit::{
    database::types::DbTimestamp,
    error::Failure,
    http::{Form, Reply, query},
    page::address,
    retention::RESTORABLE,
};

use super::{
    events::position_of,
    history::{Subject, deleted},
    queries::{MAX_DELETED, deleted_after},
    visit::Visit,
};
use crate::auth::SignedIn;

/// The newest ones of each kind, or the next ones of the kind in the parameter `kind`, behind the time and id in `after`.
pub async fn list(req: HttpRequest, visit: Visit, who: SignedIn) -> Result<Reply, Failure> {
    let typed = Form::new(query::pairs(&req));
    who.read(move |conn, me| {
        let oldest = DbTimestamp(visit.now.plus(-RESTORABLE));
        let admin = Some(me.id).filter(|_| !me.privileged);
        let (kind, after) = (typed.get("kind"), position_of(typed.get("after")));
        let kinds = Subject::ALL.into_iter().filter(|subject| kind.is_empty() || subject.segment() == kind);
        let mut lists = Vec::new();
        for subject in kinds {
            let mut summaries = deleted_after(conn, subject, oldest, admin, after.filter(|_| !kind.is_empty()))?;
            let has_more = i64::try_from(summaries.len()).is_ok_and(|rows| rows > MAX_DELETED);
            summaries.truncate(usize::try_from(MAX_DELETED).unwrap_or(usize::MAX));
            let last = summaries.last().filter(|_| has_more);
            let next = last.and_then(|last| Some(format!("{} {}", last.deleted_at?.0, last.id)));
            lists.push((subject, summaries, next));
        }
        let body = html! {
            p { (visit.text("deleted-about")) }
            @if lists.iter().all(|(_, summaries, _)| summaries.is_empty()) { p { (visit.text("deleted-nothing")) } }
            @for (subject, summaries, next) in lists.iter().filter(|(_, summaries, _)| !summaries.is_empty()) {
                h2 { (visit.text(subject.segment())) }
                div.card { ul.rows.named { @for summary in summaries {
                    li {
                        div {
                            a href=(subject.page(summary.id)) { (summary.name) }
                            @if let Some(at) = summary.deleted_at { (deleted(&visit, *subject, summary, at)) }
                        }
                    }
                } } }
                @if let Some(next) = next {
                    @let parameters = [("kind", subject.segment()), ("after", next.as_str())];
                    p { a href=(address("/deleted", &parameters)) rel="next" { (visit.text("next-rows")) " →" } }
                }
            }
        };
        Ok(visit.reply(&visit.text("deleted"), body))
    })
    .await
}
