//! The list of events by month.

use actix_web::HttpRequest;
use chrono::{Datelike as _, Months, NaiveDate};
use common::{input::Id, problem::Problem};
use maud::{Markup, html};
use service_kit::{
    database::{AnyConnection, PageBounds},
    error::{Error, Failure},
    http::{Form, Reply, query},
    page::address,
};

use super::{
    queries,
    visit::{Visit, day_of},
};
use crate::{
    auth::SignedIn,
    events::{
        parse_filter,
        queries::{Order, Row, load_rows},
        selection::{Criterion, Selection},
    },
    groups,
};

/// The most events on the page.
const MAX_ROWS: i64 = 200;

/// The events of a month.
pub async fn list(req: HttpRequest, visit: Visit, who: SignedIn) -> Result<Reply, Failure> {
    let typed = Form::new(query::pairs(&req));
    who.read(move |conn, _| {
        let today = visit.today();
        let first = |day: NaiveDate| day.with_day(1).unwrap_or(day);
        let month = first(day_of(&format!("{}-01", typed.get("month")), today));
        let next = month.checked_add_months(Months::new(1)).unwrap_or(month);
        let previous = month.checked_sub_months(Months::new(1)).unwrap_or(month);
        let from = if month == first(today) { visit.midnight(today) } else { visit.midnight(month) };
        let (filter, names) = filter(conn, &typed)?;
        let criterion = if filter.is_empty() { Criterion::All } else { Criterion::Matching(parse_filter(&filter)?) };
        let selection = Selection::new(criterion).between((Some(from), Some(visit.midnight(next))));
        let rows = load_rows(conn, &selection, Order::Start, &PageBounds { after: None, rows: MAX_ROWS })?;
        let of_month = |month: NaiveDate| {
            let month = month.format("%Y-%m").to_string();
            let filters = ["group", "tag"].map(|name| (name, typed.get(name)));
            let filters = filters.into_iter().filter(|(_, value)| !value.is_empty());
            address("/events", &[("month", month.as_str())].into_iter().chain(filters).collect::<Vec<_>>())
        };
        let mut day = None;
        let body = html! {
            p.actions {
                a href=(of_month(previous)) rel="prev" { "← " (visit.language.month(previous)) }
                a href="/events" { (visit.text("today")) }
                a href=(of_month(next)) rel="next" { (visit.language.month(next)) " →" }
                a.button href="/events/new" { (visit.text("book-a-room")) }
            }
            @if !names.is_empty() {
                p { (names.join(visit.language.separator())) " " a href="/events" { (visit.text("all-events")) } }
            }
            @if rows.is_empty() { p { (visit.text("no-events")) } }
            @for row in &rows {
                @let date = visit.local(row.starts_at).date();
                @if day.replace(date) != Some(date) { h2 { (visit.time(date)) } }
                (event_row(row, &visit, false))
            }
            @if i64::try_from(rows.len()) == Ok(MAX_ROWS) { p.faint { (visit.count("at-most", rows.len())) } }
        };
        Ok(visit.reply(&visit.format("events-of", &[("month", visit.language.month(month).into())]), body))
    })
    .await
}

/// The filter for the group and the tag that the parameters name, and the names of both.
fn filter(conn: &mut AnyConnection, typed: &Form) -> Result<(String, Vec<String>), Error> {
    let (mut filter, mut names) = (Vec::new(), Vec::new());
    if !typed.get("group").is_empty() {
        let id: Id = typed.get("group").parse().map_err(|_| Problem::not_found("group"))?;
        names.push(groups::queries::get(conn, id.into())?.row.name);
        filter.push(format!("group=={id}"));
    }
    if !typed.get("tag").is_empty() {
        let tag = queries::tag_called(conn, typed.get("tag"))?.ok_or_else(|| Problem::not_found("tag"))?;
        names.push(format!("#{}", typed.get("tag")));
        filter.push(format!("tag=={tag}"));
    }
    Ok((filter.join(" && "), names))
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
