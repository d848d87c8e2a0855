//! The history of projects and contests as sentences, and what was deleted, with the buttons that take that back.

use std::collections::HashMap;

use actix_web::web::Path;
use chrono_tz::Tz;
use common::{
    duration::Duration,
    input::Id,
    problem::{Problem, Violations},
    semester::YearWithSemesterDuration,
};
use deserr::Deserr;
use maud::{Markup, html};
use serde_json::Value;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    guard::{Authenticator, Guard, Target},
    history::{Row, load},
    http::{Form, Language, Query, Reply, form::request},
    page::{FormPage, PageContext, Sentences, address, button, mentioned, see_other},
    retention::RESTORABLE,
    state::TimeDependent,
};

use crate::{
    auth::{Caller, FormerContestCreator, FormerProjectCreator, FormerProjectEditor, Member},
    club::Club,
    contests,
    deletion::{self, Deleted},
    page::{days, semesters},
    projects,
    rights::{EvenDeleted, IsContestCreator, IsProjectCreator},
    users,
};

/// The most changes on a page.
const MANY: i64 = 50;

/// The most deleted objects on a page.
const MAX_DELETED: i64 = 50;

/// What has a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Project,
    Contest,
}

/// What a page takes from its request besides its object.
struct Visit {
    page: PageContext,
    zone: Tz,
    now: DbTimestamp,
}

impl Subject {
    /// The first segment of the paths of its pages, which is also the key of its text.
    fn segment(self) -> &'static str {
        match self {
            Self::Project => "projects",
            Self::Contest => "contests",
        }
    }

    fn path(self, id: DbUuid) -> String {
        format!("/{}/{id}", self.segment())
    }

    /// What a deleted object was, and its name.
    fn of(deleted: &Deleted) -> Result<(Self, String), Error> {
        let project = projects::restoration::name_of(deleted).map(|name| (Self::Project, name));
        let found = project.or_else(|| Some((Self::Contest, contests::restoration::name_of(deleted)?)));
        found.ok_or_else(|| Problem::internal("a deleted object is neither a project nor a contest").into())
    }

    fn may_restore(self, conn: &mut AnyConnection, me: &Caller, id: DbUuid) -> Result<bool, Error> {
        match self {
            Self::Project => EvenDeleted::<IsProjectCreator>::is_of(conn, me, id),
            Self::Contest => EvenDeleted::<IsContestCreator>::is_of(conn, me, id),
        }
    }
}

/// The parameters of a history.
#[derive(Debug, Deserr)]
#[deserr(error = Violations, rename_all = camelCase)]
pub struct HistoryQuery {
    /// The id of a change: the page shows earlier ones.
    #[deserr(default)]
    before: Option<String>,
}

impl HistoryQuery {
    fn before(&self) -> Option<i64> {
        self.before.as_deref()?.parse().ok()
    }
}

/// The history of a project.
pub async fn of_project(
    page: PageContext,
    club: Club,
    who: FormerProjectEditor,
    TimeDependent(now): TimeDependent,
    id: Path<Id>,
    query: Query<HistoryQuery>,
) -> Result<Reply, Failure> {
    let visit = Visit { page, zone: club.zone, now: DbTimestamp(now) };
    who.read(move |conn, me| show(conn, me, &visit, (Subject::Project, (*id).into()), query.0.before(), None)).await
}

/// The history of a contest.
pub async fn of_contest(
    page: PageContext,
    club: Club,
    who: FormerContestCreator,
    TimeDependent(now): TimeDependent,
    id: Path<Id>,
    query: Query<HistoryQuery>,
) -> Result<Reply, Failure> {
    let visit = Visit { page, zone: club.zone, now: DbTimestamp(now) };
    who.read(move |conn, me| show(conn, me, &visit, (Subject::Contest, (*id).into()), query.0.before(), None)).await
}

/// Takes the deletion of a project back.
pub async fn restore_project(
    page: PageContext,
    club: Club,
    who: FormerProjectCreator,
    TimeDependent(now): TimeDependent,
    id: Path<Id>,
    _form: Form,
) -> Result<Reply, Failure> {
    let visit = Visit { page, zone: club.zone, now: DbTimestamp(now) };
    restore(who, visit, (Subject::Project, (*id).into()), projects::restoration::restore).await
}

/// Takes the deletion of a contest back.
pub async fn restore_contest(
    page: PageContext,
    club: Club,
    who: FormerContestCreator,
    TimeDependent(now): TimeDependent,
    id: Path<Id>,
    _form: Form,
) -> Result<Reply, Failure> {
    let visit = Visit { page, zone: club.zone, now: DbTimestamp(now) };
    restore(who, visit, (Subject::Contest, (*id).into()), contests::restoration::restore).await
}

async fn restore<A: Authenticator<Caller = Caller>>(
    who: Guard<A>,
    visit: Visit,
    (subject, id): (Subject, DbUuid),
    restore: fn(&mut AnyConnection, DbUuid, &Caller, DbTimestamp) -> Result<(), Error>,
) -> Result<Reply, Failure> {
    let (again, now) = (who.clone(), visit.now);
    let lock = match subject {
        Subject::Project => format!("project {id}"),
        Subject::Contest => format!("contest {id}"),
    };
    let result = who.update(Target::parent(lock), move |conn, me| {
        restore(conn, id, me, now)?;
        Ok(see_other(subject.path(id)))
    });
    let result = result.await;
    again
        .or_form_again(result, move |conn, me, problem| show(conn, me, &visit, (subject, id), None, Some(problem)))
        .await
}

fn show(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    (subject, id): (Subject, DbUuid),
    before: Option<i64>,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let page = &visit.page;
    let deleted = deletion::find(conn, id)?;
    let name = match (&deleted, subject) {
        (Some(deleted), _) => Subject::of(deleted)?.1,
        (None, Subject::Project) => projects::queries::get(conn, id)?.0.name,
        (None, Subject::Contest) => contests::queries::get(conn, id)?.0.name,
    };
    let deletion = deleted.map(|deleted| deletion_of(conn, me, visit, subject, &deleted)).transpose()?;
    let mut rows = load(conn, id, &PageBounds { after: before, rows: MANY + 1 })?;
    let has_more = i64::try_from(rows.len()).is_ok_and(|rows| rows > MANY);
    rows.truncate(usize::try_from(MANY).unwrap_or(usize::MAX));
    let last = rows.last().map(|row| row.id.to_string()).filter(|_| has_more);
    let (values, here) = (Form::default(), subject.path(id));
    let form = FormPage { page, values: &values, problem, aliases: &[] };
    let body = html! {
        (form.refusal())
        @match deletion {
            Some(deletion) => (deletion),
            None => p { a href=(here) { (name) } },
        }
        @if rows.is_empty() { p { (page.text("no-history")) } }
        @if !rows.is_empty() { div.card { (sentences(conn, visit, &rows)?) } }
        @if let Some(last) = last {
            p {
                a href=(address(&format!("{here}/history"), &[("before", &last)])) rel="next" { (page.text("earlier")) " →" }
            }
        }
        p { a href="/deleted" { (page.text("deleted")) } }
    };
    Ok(page.reply(&page.format("history-of", &[("name", name.into())]), body))
}

/// When an object was deleted, until when it can be restored, and for whom may do that the button.
fn deletion_of(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    subject: Subject,
    deleted: &Deleted,
) -> Result<Markup, Error> {
    let until = DbTimestamp(deleted.deleted_at.plus(RESTORABLE));
    let is_restorable = until > visit.now && subject.may_restore(conn, me, deleted.id)?;
    let page = &visit.page;
    let moment = |at: DbTimestamp| {
        let local = at.utc().with_timezone(&visit.zone).naive_local();
        format!("{}, {}", page.language.date(local.date()), local.format("%H:%M"))
    };
    Ok(html! {
        p {
            (page.format("deleted-at", &[("at", moment(deleted.deleted_at).into())])) " "
            @if is_restorable { (page.format("restorable-until", &[("at", moment(until).into())])) }
        }
        @if is_restorable {
            p { (button(&format!("{}/restore", subject.path(deleted.id)), &[], &page.text("restore"), None)) }
        }
    })
}

fn sentences(conn: &mut AnyConnection, visit: &Visit, rows: &[Row]) -> Result<Markup, Error> {
    let mut ids = mentioned(rows)?;
    for row in rows {
        let changes: Value = serde_json::from_str(&row.changes).map_err(Problem::internal)?;
        let members = ["added", "removed"].map(|part| changes["members"][part].as_array().cloned().unwrap_or_default());
        ids.extend(members.iter().flatten().filter_map(id_of));
    }
    let names = users::queries::names(conn, &ids.into_iter().collect::<Vec<_>>())?;
    let object = |value: &Value| text_of(visit, &names, value);
    let sentences = Sentences { page: &visit.page, zone: visit.zone, names: &names, implied: &[], object: &object };
    sentences.list(rows, |_| html! {})
}

/// The id of a member.
fn id_of(member: &Value) -> Option<DbUuid> {
    member["id"].as_str()?.parse().ok().map(DbUuid)
}

/// A member and their span, or a span.
fn text_of(visit: &Visit, names: &HashMap<DbUuid, String>, value: &Value) -> Option<String> {
    let page = &visit.page;
    if let Some(id) = id_of(value) {
        let name = names.get(&id).cloned().unwrap_or_else(|| page.text("history-gone"));
        let Some(span) = text_of(visit, names, &value["duration"]) else { return Some(name) };
        return Some(page.format("member-with-span", &[("name", name.into()), ("span", span.into())]));
    }
    let is_time = value["since"].is_string();
    if is_time {
        let span: Duration = request(value.clone()).ok()?;
        return Some(days(page, span, visit.zone, Language::date));
    }
    let span: YearWithSemesterDuration = request(value.clone()).ok()?;
    Some(semesters(page, span))
}

/// The parameters of the list of what was deleted.
#[derive(Debug, Deserr)]
#[deserr(error = Violations, rename_all = camelCase)]
pub struct DeletedQuery {
    /// The time of a deletion and the id of its object: the page shows earlier ones.
    #[deserr(default)]
    after: Option<String>,
}

impl DeletedQuery {
    fn after(&self) -> Option<(DbTimestamp, DbUuid)> {
        let (at, id) = self.after.as_deref()?.split_once(' ')?;
        Some((DbTimestamp(at.parse().ok()?), id.parse::<Id>().ok()?.into()))
    }
}

/// What was deleted and the caller may restore.
pub async fn list_deleted(
    page: PageContext,
    club: Club,
    who: Member,
    TimeDependent(now): TimeDependent,
    query: Query<DeletedQuery>,
) -> Result<Reply, Failure> {
    let visit = Visit { page, zone: club.zone, now: DbTimestamp(now) };
    who.read(move |conn, me| {
        let page = &visit.page;
        let creator = Some(me.id).filter(|_| !me.admin);
        let mut rows = Vec::new();
        let mut all = deletion::restorable(conn, creator, visit.now, query.0.after(), MAX_DELETED + 1)?;
        let has_more = i64::try_from(all.len()).is_ok_and(|rows| rows > MAX_DELETED);
        all.truncate(usize::try_from(MAX_DELETED).unwrap_or(usize::MAX));
        let next = all.last().filter(|_| has_more).map(|last| format!("{} {}", last.deleted_at.0, last.id));
        for deleted in all {
            let (subject, name) = Subject::of(&deleted)?;
            rows.push((subject, name, deletion_of(conn, me, &visit, subject, &deleted)?, deleted.id));
        }
        let body = html! {
            p { (page.text("deleted-about")) }
            @if rows.is_empty() { p { (page.text("deleted-nothing")) } }
            @for subject in [Subject::Project, Subject::Contest] {
                @let of_kind: Vec<_> = rows.iter().filter(|(of, ..)| *of == subject).collect();
                @if !of_kind.is_empty() {
                    h2 { (page.text(subject.segment())) }
                    div.card { ul.rows.named {
                        @for (_, name, deletion, id) in of_kind {
                            li { div { a href={ (subject.path(*id)) "/history" } { (name) } (deletion) } }
                        }
                    } }
                }
            }
            @if let Some(next) = &next {
                p { a href=(address("/deleted", &[("after", next)])) rel="next" { (page.text("next-rows")) " →" } }
            }
        };
        Ok(page.reply(&page.text("deleted"), body))
    })
    .await
}
