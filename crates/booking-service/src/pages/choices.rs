//! What forms offer: free times instead of taken ones, groups.

use common::{input::Id, problem::Problem};
use maud::{Markup, html};
use serde_json::Value;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    http::Form,
    page::Choice,
};

use super::visit::{Visit, span_of};
use crate::{
    auth::Caller,
    events::{
        self,
        queries::load_rows,
        selection::{Criterion, Selection},
    },
    groups::{self, EVERYONE},
};

/// The most free times that a form offers.
const MAX_FREE_TIMES: usize = 8;

/// The groups, those of the caller first.
pub fn group_choices(conn: &mut AnyConnection, me: &Caller) -> Result<Vec<Choice>, Error> {
    let user = crate::users::queries::get(conn, me.id)?;
    let mine = groups::queries::of_user(conn, &user, true, true)?;
    let all = super::queries::groups(conn)?;
    let mut choices: Vec<_> =
        mine.iter().filter(|(.., id)| *id != EVERYONE).map(|(_, name, id)| (*id, name.clone())).collect();
    choices.extend(all.iter().filter(|(id, _)| *id == EVERYONE).cloned());
    choices.extend(all.iter().filter(|(id, _)| *id != EVERYONE && mine.iter().all(|(.., other)| other != id)).cloned());
    Ok(choices.into_iter().map(|(id, name)| (id.to_string(), name)).collect())
}

/// The events that have the room at the time of a refused request.
pub fn taken_by(conn: &mut AnyConnection, visit: &Visit, problem: Option<&Problem>) -> Result<Markup, Error> {
    let ids: Vec<_> = member(problem, "conflicts")
        .iter()
        .filter_map(|event| event["eventId"].as_str()?.parse::<Id>().ok())
        .map(DbUuid::from)
        .collect();
    let taken = events_by_id(conn, ids)?;
    if taken.is_empty() {
        return Ok(html! {});
    }
    Ok(html! {
        p { (visit.text("taken-by")) }
        ul { @for event in &taken {
            li { (in_new_tab(event)) ", " (visit.span(event.starts_at, event.ends_at)) }
        } }
    })
}

/// A link to an event that is in the way. It opens in another tab, so that what was typed in the form is not lost.
pub fn in_new_tab(event: &events::queries::Row) -> Markup {
    html! { a href={ "/events/" (event.id) } target="_blank" rel="noopener" { (event.name) } }
}

/// Some of the events with these ids.
pub fn events_by_id(conn: &mut AnyConnection, ids: Vec<DbUuid>) -> Result<Vec<events::queries::Row>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let selection = Selection::new(Criterion::These(ids.into_iter().take(1000).collect()));
    load_rows(conn, &selection, events::queries::Order::Start, &PageBounds { after: None, rows: 100 })
}

/// A list in the refusal of a conflict.
fn member(problem: Option<&Problem>, name: &str) -> Vec<Value> {
    let problem = problem.filter(|problem| problem.status() == 409);
    problem.and_then(|problem| problem.extra(name)?.as_array().cloned()).unwrap_or_default()
}

/// Who has the room at that time, and when it is free instead.
pub fn conflict(
    conn: &mut AnyConnection,
    values: &Form,
    visit: &Visit,
    problem: Option<&Problem>,
) -> Result<Markup, Error> {
    if problem.is_none_or(|problem| problem.status() != 409) {
        return Ok(html! {});
    }
    let wanted = span_of(values, visit.zone).ok().map(|(start, end)| end - start);
    let time = |value: &Value| Some(DbTimestamp(value.as_str()?.parse().ok()?));
    let free: Vec<_> = member(problem, "freeTimes")
        .iter()
        .filter_map(|free| {
            let (start, end) = (time(&free["timeStart"])?, time(&free["timeEnd"])?);
            let end = wanted.map_or(end, |wanted| DbTimestamp(start.plus(wanted)).min(end));
            (start >= visit.now).then_some((start, end))
        })
        .take(MAX_FREE_TIMES)
        .collect();
    Ok(html! {
        div.refusal {
            (taken_by(conn, visit, problem)?)
            @if !free.is_empty() {
                p { (visit.text("free-instead")) }
                div.actions { @for (start, end) in &free {
                    button name="at" value=(visit.shown_times(*start, *end).join(" ").trim_end()) {
                        (visit.span(*start, *end))
                    }
                } }
            }
        }
    })
}
