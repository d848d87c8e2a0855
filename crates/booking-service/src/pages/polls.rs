//! The list of polls.

use maud::{Markup, html};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    http::Reply,
    page::{Icon, icon},
};

use super::{queries, visit::Visit};
use crate::{
    auth::SignedIn,
    events::selection::Relation,
    polls::queries::{DraftEventStatus, Poll, Selection, load},
};

/// The most polls in one list of the page.
const MAX_ROWS: i64 = 50;

/// The polls that wait for the caller, those that they administer, and past ones.
pub async fn list(visit: Visit, who: SignedIn) -> Result<Reply, Failure> {
    who.read(move |conn, me| {
        let waiting = waiting_for(conn, me.id, visit.now)?;
        let of = |conn: &mut AnyConnection, relation, status| {
            let selection = Selection { user: me.id, relation, status };
            load(conn, &selection, visit.now, &PageBounds { after: None, rows: MAX_ROWS })
        };
        let mine = of(conn, Relation::Admins, Some(DraftEventStatus::Open))?;
        let answered = of(conn, Relation::Attendees, Some(DraftEventStatus::Open))?;
        let closed = of(conn, Relation::BelongsOrAdmins, Some(DraftEventStatus::Closed))?;
        let confirmed = of(conn, Relation::BelongsOrAdmins, Some(DraftEventStatus::Confirmed))?;
        let past: Vec<_> = closed.into_iter().chain(confirmed).collect();
        let lists =
            [("polls-waiting", &waiting), ("polls-mine", &mine), ("polls-answered", &answered), ("polls-past", &past)];
        let body = html! {
            @for (key, polls) in lists {
                h2 { (visit.text(key)) }
                (rows(polls, &visit))
            }
        };
        let actions = html! { a.button.primary href="/polls/new" { (icon(Icon::Plus)) (visit.text("new-poll")) } };
        Ok(visit.reply_with_actions(&visit.text("polls"), actions, body))
    })
    .await
}

/// The open polls that ask a user who has not answered.
pub fn waiting_for(conn: &mut AnyConnection, user: DbUuid, now: DbTimestamp) -> Result<Vec<Poll>, Error> {
    let selection = Selection { user, relation: Relation::Belongs, status: Some(DraftEventStatus::Open) };
    let mut polls = load(conn, &selection, now, &PageBounds { after: None, rows: MAX_ROWS })?;
    let ids: Vec<_> = polls.iter().map(|poll| poll.row.id).collect();
    let answered = queries::answered_polls(conn, user, &ids)?;
    polls.retain(|poll| !answered.contains(&poll.row.id));
    Ok(polls)
}

/// How many have answered, and of how many unless others than the invited have answered or may.
pub fn answered(poll: &Poll, visit: &Visit) -> String {
    let all = if poll.row.open { 0 } else { poll.invitees };
    visit.format("answers-of", &[("n", poll.answers.into()), ("all", all.into())])
}

/// Polls with their deadlines.
pub fn rows(polls: &[Poll], visit: &Visit) -> Markup {
    let state = |poll: &Poll| match poll.row.status(visit.now) {
        DraftEventStatus::Open => ("badge good", "poll-open"),
        DraftEventStatus::Closed => ("badge", "poll-closed"),
        DraftEventStatus::Confirmed => ("badge accent", "poll-confirmed"),
    };
    html! {
        @if polls.is_empty() { p.mute { (visit.text("no-polls")) } } @else {
            div.card { ul.rows.named {
                @for poll in polls {
                    @let (class, key) = state(poll);
                    li {
                        div {
                            a href={ "/polls/" (poll.row.id) } { (poll.row.name) }
                            small {
                                (visit.format("deadline-at", &[("at", visit.moment(poll.row.deadline).into())]))
                                (visit.language.separator())
                                (answered(poll, visit))
                            }
                        }
                        span class=(class) { (visit.text(key)) }
                    }
                }
            } }
        }
    }
}
