//! Fields that several forms have.

use chrono_tz::Tz;
use common::{
    duration::Duration,
    problem::{Problem, Rule, Violations},
    semester::{Semester, YearWithSemester, YearWithSemesterDuration},
    time::Timestamp,
    typed_time::typed_moment,
};
use maud::{Markup, html};
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    http::{Form, Reply},
    page::{Choice, FormPage, Input, PageContext},
};

use crate::{caller::Caller, page::last_month, users};

/// The academic years before the present one, and those after it, that a form offers.
const YEARS: (i32, i32) = (15, 2);

/// The fields `name`, `link` and `description`.
pub fn about(form: &FormPage<'_>) -> Markup {
    let text = |key| form.page.text(key);
    let (name, link, description) = (text("name"), text("link"), text("description"));
    html! {
        (form.input(Input { name: "name", label: &name, max_length: Some(32), is_required: true, ..Input::default() }))
        (form.text_area(Input { name: "description", label: &description, max_length: Some(256), is_required: true,
            ..Input::default() }))
        (form.input(Input { name: "link", label: &link, kind: Some("url"), hint: Some(&text("link-hint")),
            ..Input::default() }))
    }
}

/// A semester as the value of a field.
pub fn value_of(semester: YearWithSemester) -> String {
    format!("{}-{}", semester.year(), semester.semester().number())
}

fn semester(value: &str) -> Option<YearWithSemester> {
    let (year, half) = value.split_once('-')?;
    YearWithSemester::new(year.parse().ok()?, Semester::from_number(half.parse().ok()?)?)
}

/// The fields `since` and `until` of a span of semesters.
pub fn semesters(form: &FormPage<'_>, present: YearWithSemester) -> Markup {
    let years = present.year() - YEARS.0..=present.year() + YEARS.1;
    let halves =
        years.flat_map(|year| [Semester::First, Semester::Second].map(|half| YearWithSemester::new(year, half)));
    let mut all: Vec<_> = halves.flatten().collect();
    all.extend(["since", "until"].iter().filter_map(|field| semester(form.values.get(field))));
    all.sort_unstable();
    all.dedup();
    let language = form.page.language;
    let first = all.iter().map(|at| (value_of(*at), language.month(at.first_day()))).collect::<Vec<_>>();
    let last = all.iter().map(|at| (value_of(*at), last_month(language, *at)));
    let last: Vec<Choice> = [(String::new(), form.page.text("still-going-on"))].into_iter().chain(last).collect();
    html! {
        div.line {
            (form.select("since", &form.page.text("first-month"), None, &first))
            (form.select("until", &form.page.text("last-month"), None, &last))
        }
    }
}

/// Adds a span of semesters to the values of a form.
pub fn push_semesters(values: &mut Form, span: YearWithSemesterDuration) {
    values.push("since", value_of(span.since()));
    values.push("until", span.until().map(value_of).unwrap_or_default());
}

/// The span of semesters in a form.
///
/// # Errors
/// 400 with the fields that are wrong.
pub fn semesters_of(form: &Form) -> Result<YearWithSemesterDuration, Problem> {
    let read = |field: &str| {
        let message = "must be a year and 0 or 1, such as 2026-0";
        semester(form.get(field)).ok_or_else(|| Problem::invalid(format!("/{field}"), Rule::NotAllowed, message))
    };
    let until = if form.get("until").is_empty() { None } else { Some(read("until")?) };
    YearWithSemesterDuration::new(read("since")?, until).ok_or_else(out_of_order)
}

fn out_of_order() -> Problem {
    Problem::invalid("/until", Rule::OutOfOrder, "must not be before since")
}

/// How a field has a time.
const TIME: &str = "%Y-%m-%dT%H:%M";

/// The fields `since` and `until` of a span of time.
pub fn times(form: &FormPage<'_>, zone: Tz) -> Markup {
    let text = |key| form.page.text(key);
    let kind = Some("datetime-local");
    let hint = form.page.format("in-time-zone", &[("zone", zone.name().into())]);
    html! {
        div.line {
            (form.input(Input { name: "since", label: &text("begins"), kind, is_required: true, hint: Some(&hint),
                ..Input::default() }))
            (form.input(Input { name: "until", label: &text("ends"), kind, hint: Some(&text("ends-hint")),
                ..Input::default() }))
        }
    }
}

/// Adds a span of time to the values of a form.
pub fn push_times(values: &mut Form, span: Duration, zone: Tz) {
    values.push("since", local(span.since(), zone));
    values.push("until", span.until().map(|until| local(until, zone)).unwrap_or_default());
}

fn local(at: Timestamp, zone: Tz) -> String {
    at.utc().with_timezone(&zone).format(TIME).to_string()
}

/// The span of time in a form. A field that shows a time of `present` means that time, with its seconds.
///
/// # Errors
/// 400 with the fields that are wrong.
pub fn times_of(form: &Form, zone: Tz, present: Option<Duration>) -> Result<Duration, Problem> {
    let read = |field: &str, present: Option<Timestamp>| {
        let text = form.get(field);
        if let Some(present) = present.filter(|at| local(*at, zone) == text) {
            return Ok(present);
        }
        let refuse = |rule, message| Problem::invalid(format!("/{field}"), rule, message);
        let time = typed_moment(text).map_err(|(rule, message)| refuse(rule, message))?;
        let at = time.and_local_timezone(zone).earliest();
        let at = at.ok_or_else(|| refuse(Rule::NonexistentTime, "is skipped by the clocks"))?;
        Timestamp::new(at.to_utc()).ok_or_else(|| refuse(Rule::Range, "must be in the years 1 to 9999"))
    };
    let since = read("since", present.map(Duration::since));
    let until =
        if form.get("until").is_empty() { None } else { Some(read("until", present.and_then(Duration::until))?) };
    Duration::new(since?, until).ok_or_else(out_of_order)
}

/// The users whom a field names.
///
/// # Errors
/// 400 with the names that no user has, or several.
pub fn users_of(conn: &mut AnyConnection, form: &Form, field: &str) -> Result<Vec<DbUuid>, Error> {
    let mut violations = Violations::default();
    let ids = users::queries::roster(conn, form, field)?.ids_of(form, field, &mut violations);
    violations.into_result()?;
    Ok(ids)
}

/// A field that names users, and the names that browsers suggest in it.
pub fn people(conn: &mut AnyConnection, form: &FormPage<'_>, input: Input<'_>) -> Result<Markup, Error> {
    let roster = users::queries::roster(conn, form.values, input.name)?;
    let hint = form.page.text("names-hint");
    Ok(html! { (roster.field(form, Input { hint: Some(&hint), ..input }, false)) (roster.suggestions()) })
}

/// The page that asks before something is deleted. `key` is that of its title and of what it says, `tag` that of what
/// the form deletes, `back` the page before.
pub fn ask_to_delete(
    page: &PageContext,
    key: &str,
    name: &str,
    (action, tag): (&str, &str),
    back: &str,
    problem: Option<&Problem>,
) -> Reply {
    let form = FormPage { page, values: &Form::default(), problem, aliases: &[] };
    let body = html! {
        p { b { (name) } }
        (form.refusal())
        p { (page.text(&format!("{key}-about"))) }
        (form.form(action, Some(tag), &html! {
            div.actions {
                button.primary { (page.text("delete")) }
                a href=(back) { (page.text("cancel")) }
            }
        }))
    };
    page.reply(&page.text(key), body)
}

/// What somebody else has made of the object of a form meanwhile, with a link to begin again.
pub fn present_version(form: &FormPage<'_>, again: &str, content: &Markup) -> Markup {
    html! {
        @if form.problem.is_some_and(|problem| problem.status() == 412) {
            div.refusal {
                b { (form.page.text("present-version")) }
                (content)
                p { a href=(again) { (form.page.text("discard-mine")) } }
            }
        }
    }
}

/// Where a form about a user leads to.
pub fn home(me: &Caller, user: DbUuid) -> &'static str {
    if me.id == user { "/me" } else { "/people" }
}

/// The buttons below a form.
pub fn actions(page: &PageContext, back: &str) -> Markup {
    html! {
        div.actions {
            button.primary { (page.text("save")) }
            a href=(back) { (page.text("cancel")) }
        }
    }
}
