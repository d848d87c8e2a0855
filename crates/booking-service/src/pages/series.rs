//! The page of a series: all its dates with the answers, and the forms that add, remove and restore dates.

use std::collections::HashMap;

use actix_web::web::Path;
use chrono::Datelike as _;
use common::{
    input::Id,
    problem::{Problem, Rule, Violations},
    time::Timestamp,
    typed_time::TypedDate,
};
use maud::{Markup, html};
use serde_json::json;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    http::{Form, Reply, form::request},
    page::{Choice, FormPage, Icon, Input, address, button, icon, see_deleted_from, see_other, see_saved},
};

use super::{
    choices::taken_by,
    event_form::time_fields,
    events::answer_badge,
    queries,
    repetition::address_of,
    series_form::in_the_way,
    start::answer_form,
    visit::{Visit, or_form_again, span_of, typed},
};
use crate::{
    auth::{Caller, SignedIn},
    events::{
        self, attendance,
        queries::{Order, Row, Schedule, check_admin_or_privileged, load_rows},
        selection::{Criterion, Selection},
    },
    series::{
        RequestEventSeriesUpdate, RequestOccurrence, add_occurrence, all_occurrences, delete_occurrences, extended,
        queries::{check_found_and_may_change, check_may_change, restorable},
        restore_occurrences, revision,
    },
};

/// The most dates on the page. A series has at most a hundred, and what was restored.
const MAX_ROWS: usize = 200;

/// The most deletions on the page that can be taken back.
const MAX_DELETIONS: usize = 20;

/// The field with the last day of a series.
const LAST_DAY: &str = "lastDay";

/// The dates of a series, by start, and the answers to them.
struct Dates {
    rows: Vec<Row>,
    /// How many users have given each answer.
    counts: HashMap<(DbUuid, Schedule), i64>,
    /// Those of the caller.
    mine: HashMap<DbUuid, Schedule>,
}

impl Dates {
    fn load(conn: &mut AnyConnection, me: &Caller, id: DbUuid) -> Result<Self, Error> {
        let rows = rows_of(conn, id)?;
        let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
        Ok(Self { counts: queries::answer_counts(conn, &ids)?, mine: queries::answers_of(conn, me.id, &ids)?, rows })
    }

    /// A table of some of them. Dates with another name than the page say so.
    fn table(&self, rows: &[&Row], name: &str, label: &str, visit: &Visit) -> Markup {
        let year = visit.today().year();
        let number = |row: &Row, answer: Schedule| self.counts.get(&(row.id, answer)).copied().unwrap_or_default();
        let answers = |row: &Row| {
            let [yes, no, pending] =
                [Schedule::Attendance, Schedule::Absent, Schedule::Pending].map(|answer| number(row, answer));
            visit.format("date-answers", &[("yes", yes.into()), ("no", no.into()), ("pending", pending.into())])
        };
        html! {
            div.table tabindex="0" role="region" aria-label=(label) {
                table {
                    thead { tr {
                        th scope="col" { (visit.text("date")) }
                        th.wide-only scope="col" { (visit.text("time")) }
                        th scope="col" { (visit.text("where")) }
                        th.wide-only scope="col" { (visit.text("answers")) }
                        th scope="col" { (visit.text("my-answer")) }
                    } }
                    tbody { @for row in rows {
                        tr {
                            th scope="row" {
                                a.nowrap href={ "/events/" (row.id) } {
                                    (visit.language.day_of_year(visit.local(row.starts_at).date(), year))
                                }
                                @if row.name != name { br; small { (row.name) } }
                            }
                            td.nowrap.wide-only { (visit.hours(row.starts_at, row.ends_at)) }
                            td {
                                (row.place)
                                @if row.changed_by_itself { " " span.badge.warn { (visit.text("changed-alone")) } }
                            }
                            td.wide-only { small { (answers(row)) } }
                            td { (answer_badge(self.mine.get(&row.id).copied(), visit)) }
                        }
                    } }
                }
            }
        }
    }
}

fn rows_of(conn: &mut AnyConnection, id: DbUuid) -> Result<Vec<Row>, Error> {
    let bounds = PageBounds { after: None, rows: i64::try_from(MAX_ROWS).unwrap_or(i64::MAX) };
    load_rows(conn, &Selection::new(Criterion::OfSeries(id)), Order::Start, &bounds)
}

/// One series.
pub async fn show(visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| page(conn, me, &visit, id, &Form::default(), None)).await
}

/// The page. One whose dates are all deleted is there for those who may restore them.
fn page(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    id: DbUuid,
    typed: &Form,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let dates = Dates::load(conn, me, id)?;
    let may_change = check_may_change(conn, id, me).is_ok();
    let deleted = if may_change { restorable(conn, id, visit.now)? } else { Vec::new() };
    let (coming, past): (Vec<&Row>, Vec<&Row>) = dates.rows.iter().partition(|row| row.ends_at > visit.now);
    let shown = coming.first().or(past.last()).copied().or(deleted.first());
    let shown = shown.ok_or_else(|| Problem::not_found("series"))?;
    let groups = queries::object_names(conn, &[shown.group_id])?;
    let here = address_of(id);
    let body = html! {
        (refusal(conn, visit, typed, problem)?)
        p.mute {
            @for (group, name) in &groups { a href={ "/groups/" (group) } { (name) } (visit.language.separator()) }
            (about(dates.rows.len(), coming.len(), visit))
        }
        (own_answer(conn, me, &coming, &dates, visit))
        h2 { (visit.text("dates-to-come")) }
        @if coming.is_empty() { p.empty { (visit.text("no-dates")) } }
        @else { (dates.table(&coming, &shown.name, &visit.text("dates-to-come"), visit)) }
        @if !past.is_empty() {
            details open[coming.is_empty()] {
                summary { (visit.count("past-dates", past.len())) }
                (dates.table(&past, &shown.name, &visit.count("past-dates", past.len()), visit))
            }
        }
        @if dates.rows.len() >= MAX_ROWS { p.mute { (visit.count("at-most", MAX_ROWS)) } }
        @if let Some(last) = dates.rows.last().filter(|_| may_change) {
            (forms(conn, me, visit, (id, last), typed, problem)?)
        }
        (deletions(&deleted, &here, visit))
    };
    let edited = coming.iter().find(|row| may_change && !row.changed_by_itself);
    let edited = edited.filter(|row| check_admin_or_privileged(conn, row.id, me).is_ok());
    let actions = html! {
        @if let Some(row) = edited {
            a.button href=(address(&format!("/events/{}/edit", row.id), &[("scope", "later")])) {
                (visit.text("edit-later-dates"))
            }
        }
        @if may_change && !dates.rows.is_empty() {
            a.button href="#add" { (icon(Icon::Plus)) (visit.text("add-date")) }
            a.button.danger href={ (here) "/delete" } { (visit.text("delete-dates")) }
        }
    };
    Ok(visit.reply_with_actions(&shown.name, actions, body))
}

/// How many dates there are, and how many of them are to come.
fn about(all: usize, coming: usize, visit: &Visit) -> String {
    visit.format("series-about", &[("n", all.into()), ("coming", coming.into())])
}

/// One answer to all dates to come, if the caller may answer the next one.
fn own_answer(conn: &mut AnyConnection, me: &Caller, coming: &[&Row], dates: &Dates, visit: &Visit) -> Markup {
    let Some((next, series)) = coming.first().and_then(|next| Some((*next, next.series_id?))) else {
        return html! {};
    };
    if attendance::check_may_answer(conn, next, me, Schedule::Absent, visit.now).is_err() {
        return html! {};
    }
    let waits = coming.iter().any(|row| dates.mine.get(&row.id) == Some(&Schedule::Pending));
    html! {
        section.card.todo[waits] {
            h2 { (visit.text("answer-series")) }
            (answer_form(next, None, &address_of(series), visit, true))
        }
    }
}

/// Whether the form with the last day was sent.
fn sets_end(typed: &Form) -> bool {
    typed.iter().any(|(name, _)| name == LAST_DAY)
}

/// The form that was sent, or one without values.
fn form_page<'a>(visit: &'a Visit, values: &'a Form, problem: Option<&'a Problem>, sets_end: bool) -> FormPage<'a> {
    let aliases: &[(&str, &str)] =
        if sets_end { &[("until", LAST_DAY)] } else { &[("timeStart", "from"), ("timeEnd", "until")] };
    FormPage { page: visit.page(), values, problem, aliases }
}

/// Why a form was refused, with what is in the way.
fn refusal(conn: &mut AnyConnection, visit: &Visit, typed: &Form, problem: Option<&Problem>) -> Result<Markup, Error> {
    let dates = problem.and_then(|problem| problem.extra("dates")?.as_array().cloned()).unwrap_or_default();
    Ok(html! {
        (form_page(visit, typed, problem, sets_end(typed)).refusal())
        (in_the_way(conn, visit, &dates)?)
        (taken_by(conn, visit, problem)?)
    })
}

/// The forms of a new date and of the last day.
fn forms(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    (id, last): (DbUuid, &Row),
    typed: &Form,
    problem: Option<&Problem>,
) -> Result<Markup, Error> {
    let [day, from, until, _] = visit.shown_times(last.starts_at, last.ends_at);
    let mut added = Form::new([("date", ""), ("from", from.as_str()), ("until", until.as_str()), ("endDate", "")]);
    let mut end = Form::new([(LAST_DAY, day)]);
    // Each keeps what was typed in it.
    let (mut of_added, mut of_end) = (None, None);
    if sets_end(typed) {
        (end, of_end) = (typed.clone(), problem);
    } else if typed.iter().any(|(name, _)| name == "date") {
        (added, of_added) = (typed.clone(), problem);
    }
    let (added, end) = (form_page(visit, &added, of_added, false), form_page(visit, &end, of_end, true));
    let (here, text) = (address_of(id), |key: &str| visit.text(key));
    let tag = all_occurrences(id, visit.zone).tag(conn, me)?;
    Ok(html! {
        h2 #add tabindex="-1" { (text("add-date")) }
        (added.form(&format!("{here}/dates"), None, &html! {
            p { (text("add-date-about")) }
            (time_fields(&added, visit))
            div.actions { button { (text("add-date")) } }
        }))
        h2 { (text("last-day")) }
        (end.form(&format!("{here}/until"), Some(&tag), &html! {
            (end.input(Input { name: LAST_DAY, label: &text("last-day"), kind: Some("date"), is_required: true,
                hint: Some(&text("last-day-hint")), ..Input::default() }))
            div.actions { button { (text("save")) } }
        }))
    })
}

/// What was deleted, each deletion with the button that takes it back.
fn deletions(deleted: &[Row], here: &str, visit: &Visit) -> Markup {
    html! {
        @if !deleted.is_empty() {
            h2 { (visit.text("deleted")) }
            div.card { ul.rows.named { @for rows in deleted.chunk_by(|a, b| a.deleted_at == b.deleted_at).take(MAX_DELETIONS) {
                @let (first, last) = (&rows[0], &rows[rows.len() - 1]);
                @if let Some(at) = first.deleted_at {
                    li {
                        div {
                            (visit.span(first.starts_at, first.ends_at))
                            @if rows.len() > 1 { " – " (visit.span(last.starts_at, last.ends_at)) }
                            small {
                                (visit.count("series-dates", rows.len())) (visit.language.separator())
                                (visit.format("deleted-at", &[("at", visit.moment(at).into())]))
                            }
                        }
                        (button(&format!("{here}/restore"), &[("at", &at.0.to_string())], &visit.text("restore"), None))
                    }
                }
            } } }
        }
    }
}

/// Adds a date.
pub async fn add(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let (id, values, again) = (DbUuid::from(*id), form.clone(), (who.clone(), visit.clone()));
    let result = who.queued_by(&id).update(extended(id), move |conn, me| {
        check_found_and_may_change(conn, id, me)?;
        let (start, end) = span_of(&form, visit.zone)?;
        let body = json!({ "timeStart": start.to_string(), "timeEnd": end.to_string() });
        let span = request::<RequestOccurrence>(body).map_err(|failure| failure.0)?.span();
        let event = add_occurrence(conn, id, span, me, visit.zone, visit.now)?;
        events::show_created(conn, event, &me.author, visit.zone)?;
        Ok(see_saved(&address_of(id)))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| page(conn, me, &visit, id, &values, Some(problem))).await
}

/// Gives it another last day: later dates are deleted, and those are added that it has up to then.
pub async fn set_end(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let (id, values, again) = (DbUuid::from(*id), form.clone(), (who.clone(), visit.clone()));
    let result = who.queued_by(&id).update(all_occurrences(id, visit.zone), move |conn, me| {
        check_found_and_may_change(conn, id, me)?;
        let mut violations = Violations::default();
        let last = typed::<TypedDate>(&form, LAST_DAY, &mut violations).map(|day| day.0);
        if last.is_some_and(|day| day < visit.today()) {
            violations.push(format!("/{LAST_DAY}"), Rule::InThePast, "must not be in the past");
        }
        violations.into_result()?;
        let body = json!({ "until": last.map(|day| day.to_string()) });
        let change = request::<RequestEventSeriesUpdate>(body).map_err(|failure| failure.0)?;
        let change = change.into_change(false, visit.now);
        let deleted = revision::update(conn, id, &change, me, visit.zone, visit.now)?;
        let here = address_of(id);
        Ok(if deleted > 0 { see_deleted_from(&here, id) } else { see_saved(&here) })
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| page(conn, me, &visit, id, &values, Some(problem))).await
}

/// Asks which dates to delete.
pub async fn ask_to_delete(visit: Visit, who: SignedIn, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.read(move |conn, me| delete_page(conn, me, &visit, id, None)).await
}

fn delete_page(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    id: DbUuid,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    check_found_and_may_change(conn, id, me)?;
    let rows = rows_of(conn, id)?;
    let last = rows.last().ok_or_else(|| Problem::not_found("series"))?;
    let coming = rows.iter().filter(|row| row.starts_at >= visit.now).count();
    let tag = all_occurrences(id, visit.zone).tag(conn, me)?;
    let choices = [("later", "scope-to-come", coming), ("all", "scope-all", rows.len())];
    let choices = choices.into_iter().filter(|(.., dates)| *dates > 0);
    let choices: Vec<Choice> = choices.map(|(value, key, dates)| (value.to_owned(), visit.count(key, dates))).collect();
    let form = FormPage { page: visit.page(), values: &Form::default(), problem: None, aliases: &[] };
    let choices = form.select("scope", &visit.text("scope-of-deletion"), None, &choices);
    let (what, here) = (html! { b { (last.name) } br; (about(rows.len(), coming, visit)) }, address_of(id));
    Ok(visit.ask_to_delete("delete-series", (&what, &choices), (&format!("{here}/delete"), &tag), &here, problem))
}

/// Deletes the dates to come, or all.
pub async fn delete(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let (id, again) = (DbUuid::from(*id), (who.clone(), visit.clone()));
    let result = who.queued_by(&id).update(all_occurrences(id, visit.zone), move |conn, me| {
        let first = rows_of(conn, id)?.first().map(|row| row.starts_at);
        let from = first.filter(|_| form.has("scope", "all")).unwrap_or(visit.now);
        delete_occurrences(conn, id, from, me, visit.zone, visit.now)?;
        Ok(see_deleted_from(&address_of(id), id))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| delete_page(conn, me, &visit, id, Some(problem))).await
}

/// Takes a deletion back: that of the time in the form, else the last one.
pub async fn restore(visit: Visit, who: SignedIn, id: Path<Id>, form: Form) -> Result<Reply, Failure> {
    let (id, again) = (DbUuid::from(*id), (who.clone(), visit.clone()));
    let at = form.get("at").parse::<Timestamp>().ok().map(DbTimestamp);
    let result = who.queued_by(&id).update(extended(id), move |conn, me| {
        restore_occurrences(conn, id, at, me, visit.zone, visit.now)?;
        Ok(see_other(address_of(id)))
    });
    let (result, (who, visit)) = (result.await, again);
    or_form_again(result, who, move |conn, me, problem| page(conn, me, &visit, id, &Form::default(), Some(problem)))
        .await
}
