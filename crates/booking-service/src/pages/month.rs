//! The days of a month as a table, with the first events of each.

use chrono::{Datelike as _, Days, NaiveDate};
use maud::{Markup, html};

use super::visit::Visit;
use crate::events::queries::{Row, Schedule};

/// The style of the table.
pub const STYLE: &str = include_str!("month.css");

/// The most events of a day in the table. The list below it has all.
const MAX_SHOWN: usize = 3;

/// The month that begins with `first`, with all its events in the order of their starts.
pub fn table(first: NaiveDate, rows: &[Row], answer: impl Fn(&Row) -> Option<Schedule>, visit: &Visit) -> Markup {
    let monday = first.checked_sub_days(Days::new(first.weekday().num_days_from_monday().into())).unwrap_or(first);
    let days = monday.iter_days().take_while(|day| *day < first || day.month() == first.month()).collect::<Vec<_>>();
    let day_of = |row: &Row| visit.local(row.starts_at).date();
    let is_mine = |row: &Row| answer(row) == Some(Schedule::Attendance);
    let going = visit.text("answer-attendance");
    html! {
        div.table {
            table.month {
                caption.vh { (visit.language.month(first)) }
                thead { tr { @for day in visit.text("weekdays").split(' ') { th scope="col" { (day) } } } }
                tbody {
                    @for week in days.chunks(7) {
                        tr {
                            @for day in week {
                                @let events: Vec<_> = rows.iter().filter(|row| day_of(row) == *day).collect();
                                @let is_today = *day == visit.today();
                                td.out[*day < first].today[is_today] aria-current=[is_today.then_some("date")] {
                                    @if *day >= first { b { (day.day()) } }
                                    @for row in events.iter().take(MAX_SHOWN) {
                                        a.mine[is_mine(row)] href={ "/events/" (row.id) } title=[is_mine(row).then_some(&going)] {
                                            (visit.local(row.starts_at).format("%H:%M")) " " (row.name)
                                        }
                                    }
                                    @if events.len() > MAX_SHOWN {
                                        a href={ "#d-" (day) } { (visit.count("and-more", events.len() - MAX_SHOWN)) }
                                    }
                                }
                            }
                            @for _ in week.len()..7 { td.out {} }
                        }
                    }
                }
            }
        }
        @if rows.iter().any(is_mine) { p.hint { span.badge.accent { (going) } " " (visit.text("month-mine")) } }
    }
}
