//! The list of events by month.

use actix_web::{
    HttpRequest,
    http::{StatusCode, header},
};
use chrono::{Datelike as _, Months, NaiveDate};
use common::{
    input::{Id, Text},
    problem::Problem,
};
use maud::{Markup, html};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    http::{Form, HtmlPage, Reply, query},
    page::{FormPage, Icon, Input, address, hidden, icon},
};

use super::{
    choices::group_choices,
    month, queries,
    visit::{Visit, day_of},
};
use crate::{
    auth::{Caller, SignedIn},
    events::{
        parse_filter,
        queries::{Order, Position, Row, Schedule, load_rows, searched_part},
        search,
        selection::{Criterion, Selection},
    },
    tags,
};

/// The most events on the page.
const MAX_ROWS: i64 = 200;

/// The most tags that the field of the tag suggests.
const MAX_TAGS: i64 = 100;

/// The most characters of a search.
const MAX_SEARCH: usize = 64;

/// The parameters that choose among the events.
const FILTERS: [&str; 3] = ["search", "group", "tag"];

/// The events of a month, or those of twelve months that a search finds.
pub async fn list(req: HttpRequest, visit: Visit, who: SignedIn) -> Result<Reply, Failure> {
    let typed = Form::new(query::pairs(&req));
    who.read(move |conn, me| {
        let today = visit.today();
        let first = |day: NaiveDate| day.with_day(1).unwrap_or(day);
        let month = first(day_of(&format!("{}-01", typed.get("month")), today));
        let (words, problem) = words(typed.get("search"));
        let months = Months::new(if words.is_empty() { 1 } else { 12 });
        let next = month.checked_add_months(months).unwrap_or(month);
        let previous = month.checked_sub_months(months).unwrap_or(month);
        let criterion = criterion(conn, &typed)?;
        let selection = Selection::new(criterion).between((Some(visit.midnight(month)), Some(visit.midnight(next))));
        let selection = selection.containing(search::find(conn, &words)?);
        let after = position_of(typed.get("after"));
        let selection = searched_part(conn, &selection, after)?;
        let mut rows = load_rows(conn, &selection, Order::Start, &PageBounds { after, rows: MAX_ROWS + 1 })?;
        let is_cut = i64::try_from(rows.len()).is_ok_and(|rows| rows > MAX_ROWS);
        rows.truncate(usize::try_from(MAX_ROWS).unwrap_or(usize::MAX));
        // A search may end before its months do.
        let end = if is_cut { rows.last().map(|row| (row.starts_at, row.id)) } else { selection.until };
        let part = |month: NaiveDate, after: &str| {
            let month = month.format("%Y-%m").to_string();
            let filters = FILTERS.map(|name| (name, typed.get(name))).into_iter();
            let parameters = filters.chain([("after", after)]).filter(|(_, value)| !value.is_empty());
            address("/events", &[("month", month.as_str())].into_iter().chain(parameters).collect::<Vec<_>>())
        };
        let of_month = |month: NaiveDate| part(month, "");
        let shown = |month: NaiveDate| visit.language.month(month);
        let day_of = |row: &Row| visit.local(row.starts_at).date();
        let first_coming = rows.iter().find(|row| row.ends_at > visit.now).map(day_of);
        let first_day = first_coming.and_then(|day| rows.iter().position(|row| day_of(row) == day));
        let last = next.pred_opt().unwrap_or(next);
        let searched_to = end.map_or_else(|| shown(last), |(at, _)| visit.language.date(visit.local(at).date()));
        let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
        let answers = queries::answers_of(conn, me.id, &ids)?;
        let answer_to = |row: &Row| answers.get(&row.id).copied();
        let listed: Vec<_> = rows.iter().map(|row| (row, answer_badge(answer_to(row), &visit))).collect();
        // A part of a month would look like all of it.
        let is_whole = words.is_empty() && after.is_none() && !is_cut;
        let body = html! {
            (search_form(conn, me, &visit, &typed, problem.as_ref())?)
            @if words.is_empty() {
                div.head {
                    h2 { (shown(month)) }
                    nav.seg.small aria-label=(visit.text("month")) {
                        a href=(of_month(previous)) rel="prev" { "← " (shown(previous)) }
                        a href="/events#today" { (visit.text("today")) }
                        a href=(of_month(next)) rel="next" { (shown(next)) " →" }
                    }
                }
                @if is_whole { (month::table(month, &rows, answer_to, &visit)) }
            } @else {
                p { (visit.format("searched-months", &[("from", shown(month).into()), ("to", searched_to.as_str().into())])) }
                p.actions {
                    a href=(of_month(previous)) rel="prev" { "← " (visit.text("search-earlier")) }
                    @if end.is_none() { a href=(of_month(next)) rel="next" { (visit.text("search-later")) " →" } }
                }
            }
            @if rows.is_empty() { p.empty #today tabindex="-1" { (visit.text("no-events")) } }
            @else {
                @let (earlier, coming) = listed.split_at(first_day.unwrap_or(listed.len()));
                @if first_day.is_some() { div #today tabindex="-1" { (by_day(coming, &visit)) } }
                @if !earlier.is_empty() {
                    details open[first_day.is_none()] {
                        summary { (visit.text("already-over")) }
                        (by_day(earlier, &visit))
                    }
                }
                @if first_day.is_none() { div #today tabindex="-1" {} }
            }
            @if let Some((at, id)) = end {
                p { a href=(part(month, &format!("{} {id}", at.0))) { (visit.text("next-rows")) } }
            }
        };
        let title = if words.is_empty() {
            visit.format("events-of", &[("month", shown(month).into())])
        } else {
            visit.text("events")
        };
        let actions = html! {
            a.button.primary href="/events/new" { (icon(Icon::Plus)) (visit.text("book-a-room")) }
        };
        let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        let page = HtmlPage { actions, style: month::STYLE, ..visit.page().page(&title, body) };
        Ok(page.reply(status).with(header::VARY, "Accept-Language"))
    })
    .await
}

/// The event after which a list goes on: its start and its id.
pub fn position_of(text: &str) -> Option<Position> {
    let (start, id) = text.split_once(' ')?;
    Some((DbTimestamp(start.parse().ok()?), DbUuid::from(id.parse::<Id>().ok()?)))
}

/// The words of a search, or what is wrong with them.
fn words(text: &str) -> (Vec<String>, Option<Problem>) {
    let words = Text::<0, MAX_SEARCH>::new(text.to_owned())
        .map_err(|(rule, message)| Problem::parameter("search", rule, message).into())
        .and_then(|text| search::words(&text));
    match words {
        Ok(words) => (words, None),
        Err(Error::Problem(problem)) => (Vec::new(), Some(problem)),
        Err(_) => (Vec::new(), None),
    }
}

/// The field of the search, and the filters by group and tag.
fn search_form(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    typed: &Form,
    problem: Option<&Problem>,
) -> Result<Markup, Error> {
    let mut values = typed.clone();
    for name in FILTERS {
        values.set(name, typed.get(name));
    }
    let form = FormPage { page: visit.page(), values: &values, problem, aliases: &[] };
    let mut groups = vec![(String::new(), visit.text("all-groups"))];
    groups.extend(group_choices(conn, me)?);
    let tags: Vec<_> = tags::load(conn, &PageBounds { after: None, rows: MAX_TAGS })?;
    let tags: Vec<_> = tags.into_iter().map(|tag| tag.name).collect();
    let text = |key| visit.text(key);
    let is_filtered = !(typed.get("group").is_empty() && typed.get("tag").is_empty());
    Ok(html! {
        form role="search" action="/events" {
            @if !typed.get("month").is_empty() { (hidden("month", typed.get("month"))) }
            @for message in form.errors_of("search") { p.error #f-search-error { (message) } }
            div.actions {
                label.vh for="f-search" { (text("search")) }
                input #f-search type="search" name="search" value=(typed.get("search")) maxlength=(MAX_SEARCH)
                    placeholder=(text("search-hint")) aria-invalid=[problem.map(|_| "true")]
                    aria-describedby=[problem.map(|_| "f-search-error")];
                button { (text("search")) }
                @if is_filtered || !typed.get("search").is_empty() { a href="/events" { (text("all-events")) } }
            }
            details open[is_filtered] {
                summary { (text("filters")) }
                div.line {
                    (form.select("group", &text("group"), None, &groups))
                    (form.input(Input { name: "tag", label: &text("tag"), max_length: Some(16), suggestions: &tags, ..Input::default() }))
                }
            }
        }
    })
}

/// The events with the group and the tag of the parameters.
fn criterion(conn: &mut AnyConnection, typed: &Form) -> Result<Criterion, Error> {
    let mut filter = Vec::new();
    if !typed.get("group").is_empty() {
        let id: Id = typed.get("group").parse().map_err(|_| Problem::not_found("group"))?;
        filter.push(format!("group=={id}"));
    }
    if !typed.get("tag").is_empty() {
        let Some(tag) = queries::tag_called(conn, typed.get("tag").trim_start_matches('#'))? else {
            return Ok(Criterion::These(Vec::new()));
        };
        filter.push(format!("tag=={tag}"));
    }
    if filter.is_empty() { Ok(Criterion::All) } else { Ok(Criterion::Matching(parse_filter(&filter.join(" && "))?)) }
}

/// Events in the order of their starts, below the day of each. The markup stands at the end of a row.
pub fn by_day(events: &[(&Row, Markup)], visit: &Visit) -> Markup {
    let day = |(row, _): &(&Row, Markup)| visit.local(row.starts_at).date();
    html! {
        div.card {
            @for events in events.chunk_by(|one, other| day(one) == day(other)) {
                @let date = day(&events[0]);
                h3 #{ "d-" (date) } { (heading(date, visit)) }
                ul.rows { @for (row, state) in events {
                    li { time { (visit.hours(row.starts_at, row.ends_at)) } (what(row)) (state) }
                } }
            }
        }
    }
}

/// A day, and whether it is the present one.
fn heading(day: NaiveDate, visit: &Visit) -> Markup {
    html! {
        @if day == visit.today() { (visit.text("today")) (visit.language.separator()) }
        (visit.time(day))
    }
}

/// The name and the place of an event in a row.
pub fn what(row: &Row) -> Markup {
    html! { div { a href={ "/events/" (row.id) } { (row.name) } small { (row.place) } } }
}

/// The caller's answer to an event.
pub fn answer_badge(answer: Option<Schedule>, visit: &Visit) -> Markup {
    let (class, key) = match answer {
        None => return html! { i {} },
        Some(Schedule::Attendance) => ("badge good", "answer-attendance"),
        Some(Schedule::Absent) => ("badge", "answer-absent"),
        Some(Schedule::Pending) => ("badge", "not-answered-yet"),
    };
    html! { span class=(class) { (visit.text(key)) } }
}
