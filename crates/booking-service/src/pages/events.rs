//! The list of events by month.

use actix_web::{HttpRequest, http::StatusCode};
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
    http::{Form, Reply, query},
    page::{FormPage, Input, address, hidden},
};

use super::{
    choices::group_choices,
    queries,
    visit::{Visit, day_of},
};
use crate::{
    auth::{Caller, SignedIn},
    events::{
        parse_filter,
        queries::{Order, Position, Row, load_rows, searched_part},
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
        let first_coming = rows.iter().position(|row| row.ends_at > visit.now);
        let (mut day, last) = (None, next.pred_opt().unwrap_or(next));
        let searched_to = end.map_or_else(|| shown(last), |(at, _)| visit.language.date(visit.local(at).date()));
        let body = html! {
            p.actions {
                @if words.is_empty() {
                    a href=(of_month(previous)) rel="prev" { "← " (shown(previous)) }
                    a href="/events#today" { (visit.text("today")) }
                    a href=(of_month(next)) rel="next" { (shown(next)) " →" }
                }
                a.button href="/events/new" { (visit.text("book-a-room")) }
            }
            (search_form(conn, me, &visit, &typed, problem.as_ref())?)
            @if !words.is_empty() {
                p { (visit.format("searched-months", &[("from", shown(month).into()), ("to", searched_to.as_str().into())])) }
                p.actions {
                    a href=(of_month(previous)) rel="prev" { "← " (visit.text("search-earlier")) }
                    @if end.is_none() { a href=(of_month(next)) rel="next" { (visit.text("search-later")) " →" } }
                }
            }
            @if rows.is_empty() { p { (visit.text("no-events")) } }
            @for (number, row) in rows.iter().enumerate() {
                @let date = visit.local(row.starts_at).date();
                @if Some(number) == first_coming { div #today tabindex="-1" {} }
                @if day.replace(date) != Some(date) { h2 { (visit.time(date)) } }
                (event_row(row, &visit, false))
            }
            @if first_coming.is_none() { div #today tabindex="-1" {} }
            @if let Some((at, id)) = end {
                p { a href=(part(month, &format!("{} {id}", at.0))) { (visit.text("next-rows")) } }
            }
        };
        let title = if words.is_empty() {
            visit.format("events-of", &[("month", shown(month).into())])
        } else {
            visit.text("events")
        };
        let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        Ok(visit.reply_with(status, &title, body))
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
            (form.input(Input { name: "search", label: &text("search"), kind: Some("search"),
                max_length: Some(MAX_SEARCH), hint: Some(&text("search-hint")), ..Input::default() }))
            details open[is_filtered] {
                summary { (text("filters")) }
                (form.select("group", &text("group"), None, &groups))
                (form.input(Input { name: "tag", label: &text("tag"), max_length: Some(16), suggestions: &tags, ..Input::default() }))
            }
            div.actions {
                button { (text("search")) }
                @if is_filtered || !typed.get("search").is_empty() { a href="/events" { (text("all-events")) } }
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

/// An event in a list, with or without its day.
pub fn event_row(row: &Row, visit: &Visit, has_day: bool) -> Markup {
    html! {
        p {
            @if has_day { (visit.span(row.starts_at, row.ends_at)) } @else { (visit.hours(row.starts_at, row.ends_at)) }
            " " a href={ "/events/" (row.id) } { (row.name) } " " small { (row.place) }
        }
    }
}
