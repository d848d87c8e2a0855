//! The list of events by month.

use actix_web::HttpRequest;
use chrono::{Datelike as _, Months, NaiveDate};
use maud::{Markup, html};
use service_kit::{
    database::PageBounds,
    error::Failure,
    http::{Form, Reply, query},
    page::address,
};

use super::visit::{Visit, day_of};
use crate::{
    auth::SignedIn,
    events::{
        queries::{Order, Row, load_rows},
        selection::{Criterion, Selection},
    },
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
        let selection = Selection::new(Criterion::All).between((Some(from), Some(visit.midnight(next))));
        let rows = load_rows(conn, &selection, Order::Start, &PageBounds { after: None, rows: MAX_ROWS })?;
        let of_month = |month: NaiveDate| address("/events", &[("month", &month.format("%Y-%m").to_string())]);
        let mut day = None;
        let body = html! {
            p.actions {
                a href=(of_month(previous)) rel="prev" { "← " (visit.language.month(previous)) }
                a href="/events" { (visit.text("today")) }
                a href=(of_month(next)) rel="next" { (visit.language.month(next)) " →" }
                a.button href="/events/new" { (visit.text("book-a-room")) }
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

/// An event in a list, with or without its day.
pub fn event_row(row: &Row, visit: &Visit, has_day: bool) -> Markup {
    html! {
        p {
            @if has_day { (visit.span(row.starts_at, row.ends_at)) } @else { (visit.hours(row.starts_at, row.ends_at)) }
            " " a href={ "/events/" (row.id) } { (row.name) } " " small { (row.place) }
        }
    }
}
