//! The history of events, rooms, groups and polls as sentences, and what takes changes back.

use std::{
    collections::HashMap,
    future::{Ready, ready},
};

use actix_web::{FromRequest, HttpRequest, dev::Payload, web::Path};
use common::{
    input::Id,
    problem::{Problem, Rule},
    time::Timestamp,
};
use maud::{Markup, html};
use serde_json::Value;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    history::{Action, Row, load},
    http::{Form, Reply, form::TAG, query},
    page::{FormPage, Sentences, address, button, mentioned, see_other},
    retention::RESTORABLE,
};

pub use super::queries::Subject;
use super::{
    choices::{group_choices, taken_by},
    people::People,
    queries::{self, Summary},
    visit::{Visit, or_form_again},
};
use crate::{
    auth::{Caller, SignedIn},
    codes,
    events::{self, restoration},
    groups, polls, rooms,
};

/// The most changes on the page of an object.
const FEW: i64 = 5;

/// The most changes on a page of the history.
const MANY: i64 = 50;

impl Subject {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Event, Self::Poll, Self::Group, Self::Room];

    /// The first segment of the paths of its pages, which is also the key of its text.
    pub fn segment(self) -> &'static str {
        match self {
            Self::Event => "events",
            Self::Room => "rooms",
            Self::Group => "groups",
            Self::Poll => "polls",
        }
    }

    /// The page of an object.
    pub fn page(self, id: DbUuid) -> String {
        format!("/{}/{id}", self.segment())
    }

    /// Checks that the caller may change an object, deleted or not.
    fn check_editor(self, conn: &mut AnyConnection, id: DbUuid, me: &Caller) -> Result<(), Error> {
        match self {
            Self::Event => events::queries::check_editor(conn, id, me),
            Self::Room => rooms::queries::check_editor(conn, id, me),
            Self::Group => groups::queries::check_editor(conn, id, me),
            Self::Poll => polls::queries::check_editor(conn, id, me),
        }
    }
}

impl FromRequest for Subject {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let segment = req.path().split('/').nth(1).unwrap_or_default();
        let subject = Self::ALL.into_iter().find(|subject| subject.segment() == segment);
        ready(subject.ok_or_else(|| Problem::not_found("page").into()))
    }
}

/// The newest changes of an object, for a caller who may change it.
pub fn section(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    subject: Subject,
    id: DbUuid,
) -> Result<Markup, Error> {
    if subject.check_editor(conn, id, me).is_err() {
        return Ok(html! {});
    }
    let mut rows = load(conn, id, &PageBounds { after: None, rows: FEW + 1 })?;
    let has_more = rows.len() > usize::try_from(FEW).unwrap_or(usize::MAX);
    rows.truncate(usize::try_from(FEW).unwrap_or(usize::MAX));
    let tag = revert_tag(conn, me, visit, subject, id)?;
    Ok(html! {
        h2 { (visit.text("history")) }
        div.card { (sentences(conn, visit, &rows, true, tag.as_deref())?) }
        @if has_more { p { a href={ (subject.page(id)) "/history" } { (visit.text("all-changes")) } } }
    })
}

/// The entity tag of an event whose changes can be taken back.
fn revert_tag(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    subject: Subject,
    id: DbUuid,
) -> Result<Option<String>, Error> {
    match subject {
        Subject::Event => Ok(Some(events::target(id, visit.zone).tag(conn, me)?)),
        _ => Ok(None),
    }
}

/// Changes as sentences. With the entity tag of their event, each but the newest one of all has a button that takes
/// the later ones back.
fn sentences(
    conn: &mut AnyConnection,
    visit: &Visit,
    rows: &[Row],
    is_newest: bool,
    tag: Option<&str>,
) -> Result<Markup, Error> {
    if rows.is_empty() {
        return Ok(html! { p { (visit.text("no-history")) } });
    }
    let names = names(conn, visit, rows)?;
    let object = |value: &Value| text_of(visit, value);
    let sentences = Sentences {
        page: visit.page(),
        zone: visit.zone,
        names: &names,
        implied: &[("roomId", "place")],
        object: &object,
    };
    let newest = rows.first().filter(|_| is_newest).map(|row| row.id);
    sentences.list(rows, |row| {
        let has_fields = matches!(row.action, Action::Created | Action::Changed | Action::Reverted);
        html! {
            @if let Some(tag) = tag.filter(|_| has_fields && Some(row.id) != newest) {
                @let path = format!("{}/revert", Subject::Event.page(row.object_id));
                (button(&path, &[("to", &row.id.to_string()), (TAG, tag)], &visit.text("back-to-this"), None))
            }
        }
    })
}

/// What the page calls the people and objects that the rows mention.
fn names(conn: &mut AnyConnection, visit: &Visit, rows: &[Row]) -> Result<HashMap<DbUuid, String>, Error> {
    let ids: Vec<_> = mentioned(rows)?.into_iter().collect();
    let people = People::load(conn, ids.iter().copied())?;
    let mut names: HashMap<_, _> = queries::object_names(conn, &ids)?.into_iter().collect();
    for (id, place, start, end) in queries::rooms_called(conn, &ids)? {
        names.insert(id, format!("{place} ({})", visit.span(start, end)));
    }
    let people = ids.iter().map(|id| (*id, people.display_name(*id))).filter(|(_, name)| !name.is_empty());
    names.extend(people.map(|(id, name)| (id, name.to_owned())));
    Ok(names)
}

/// A tag or a slot.
fn text_of(visit: &Visit, value: &Value) -> Option<String> {
    if let Some(name) = value["name"].as_str() {
        let name = format!("#{name}");
        let is_locked = value["locked"].as_bool() == Some(true);
        return Some(if is_locked { visit.format("tag-locked", &[("name", name.into())]) } else { name });
    }
    let at = |name: &str| Some(DbTimestamp(value[name].as_str()?.parse::<Timestamp>().ok()?));
    Some(visit.span(at("timeStart")?, at("timeEnd")?))
}

/// The history of an object. The parameter `before` is the id of a change: the page shows earlier ones.
pub async fn show(
    req: HttpRequest,
    subject: Subject,
    visit: Visit,
    who: SignedIn,
    id: Path<Id>,
) -> Result<Reply, Failure> {
    let (id, typed) = (DbUuid::from(*id), Form::new(query::pairs(&req)));
    let before = typed.get("before").parse().ok();
    who.read(move |conn, me| page(conn, me, &visit, subject, id, before, None)).await
}

fn page(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    subject: Subject,
    id: DbUuid,
    before: Option<i64>,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    subject.check_editor(conn, id, me)?;
    let summary = queries::summary(conn, subject, id)?.ok_or_else(|| Problem::not_found("object"))?;
    let mut rows = load(conn, id, &PageBounds { after: before, rows: MANY + 1 })?;
    let has_more = rows.len() > usize::try_from(MANY).unwrap_or(usize::MAX);
    rows.truncate(usize::try_from(MANY).unwrap_or(usize::MAX));
    let here = subject.page(id);
    let tag = if summary.deleted_at.is_none() { revert_tag(conn, me, visit, subject, id)? } else { None };
    let form = FormPage { page: visit.page(), values: &Form::default(), problem, aliases: &[] };
    let last = rows.last().map(|row| row.id.to_string()).filter(|_| has_more);
    let body = html! {
        (form.refusal())
        (taken_by(conn, visit, problem)?)
        @if problem.is_some_and(|problem| problem.code() == codes::GROUP_DELETED) {
            (in_another_group(conn, me, visit, &form, &format!("{here}/restore"))?)
        }
        @match summary.deleted_at {
            Some(at) => (deleted(visit, subject, &summary, at)),
            None => p { a href=(here) { (summary.name) } },
        }
        h2 { (visit.text("history")) }
        div.card { (sentences(conn, visit, &rows, before.is_none(), tag.as_deref())?) }
        @if let Some(last) = last {
            p { a href=(address(&format!("{here}/history"), &[("before", &last)])) rel="next" { (visit.text("earlier")) " →" } }
        }
    };
    let title = match summary.deleted_at {
        Some(_) => summary.name,
        None => visit.format("history-of", &[("name", summary.name.into())]),
    };
    Ok(visit.reply(&title, body))
}

/// What is said about a deleted object: when it was, and when that was done, with the button that takes it back.
pub fn deleted(visit: &Visit, subject: Subject, summary: &Summary, at: DbTimestamp) -> Markup {
    let until = DbTimestamp(at.plus(RESTORABLE));
    html! {
        @if let Some((start, end)) = summary.span { p { (visit.span(start, end)) } }
        p {
            (visit.format("deleted-at", &[("at", visit.moment(at).into())])) " "
            @if until > visit.now { (visit.format("restorable-until", &[("at", visit.moment(until).into())])) }
        }
        @if until > visit.now {
            p { (button(&format!("{}/restore", subject.page(summary.id)), &[], &visit.text("restore"), None)) }
        }
    }
}

/// The form that restores an event in another group than its own, which is deleted.
fn in_another_group(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    form: &FormPage<'_>,
    action: &str,
) -> Result<Markup, Error> {
    let groups = group_choices(conn, me)?;
    Ok(form.form(
        action,
        None,
        &html! {
            (form.select("groupId", &visit.text("another-group"), None, &groups))
            div.actions { button.primary { (visit.text("restore")) } }
        },
    ))
}

/// The page of an object, or, if it is deleted and the caller may restore it, what has become of it.
pub fn or_deleted(
    shown: Result<Reply, Error>,
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    (subject, id): (Subject, DbUuid),
) -> Result<Reply, Error> {
    match shown {
        Err(Error::Problem(problem)) if problem.status() == 404 => {
            let deleted_at = queries::summary(conn, subject, id)?.and_then(|summary| summary.deleted_at);
            let is_restorable = deleted_at.is_some_and(|at| at.plus(RESTORABLE) > *visit.now);
            if is_restorable && subject.check_editor(conn, id, me).is_ok() {
                return page(conn, me, visit, subject, id, None, None);
            }
            Err(problem.into())
        }
        shown => shown,
    }
}

/// Takes the deletion of an object back.
pub async fn restore(
    subject: Subject,
    visit: Visit,
    who: SignedIn,
    id: Path<Id>,
    form: Form,
) -> Result<Reply, Failure> {
    let (id, again, zone, now) = (DbUuid::from(*id), (who.clone(), visit.clone()), visit.zone, visit.now);
    let group = form.get("groupId").parse::<Id>().ok().map(DbUuid::from);
    let target = match subject {
        Subject::Event => events::parent(id),
        Subject::Room => rooms::parent(id),
        Subject::Group => groups::parent(id),
        Subject::Poll => polls::parent(id),
    };
    let result = who.update(target, move |conn, me| {
        match subject {
            Subject::Event => restoration::restore(conn, id, group, me, zone, now)?,
            Subject::Room => rooms::changes::restore(conn, id, me, zone, now)?,
            Subject::Group => groups::changes::restore(conn, id, me, now)?,
            Subject::Poll => polls::changes::restore(conn, id, me, now)?,
        }
        Ok(see_other(subject.page(id)))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| page(conn, me, &visit, subject, id, None, Some(problem))).await
}

/// Gives an event the fields that it had after a change.
pub async fn revert(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let (id, again, zone, now) = (DbUuid::from(*id), (who.clone(), visit.clone()), visit.zone, visit.now);
    let result = who.update(events::recorded(id, Action::Reverted, zone), move |conn, me| {
        let to = form.get("to").parse();
        let to: i64 = to.map_err(|_| Problem::invalid("/to", Rule::UnknownChange, "names no change of the event"))?;
        events::revert_to(conn, id, to, me, zone, now)?;
        Ok(see_other(format!("/events/{id}")))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| page(conn, me, &visit, Subject::Event, id, None, Some(problem)))
        .await
}
