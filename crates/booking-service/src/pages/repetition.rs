//! What the pages and forms of an event have about its series.

use maud::{Markup, html};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    http::Form,
    page::{Choice, FormPage, Input, hidden},
};

use super::{queries::dates_of_series, visit::Visit};
use crate::{
    auth::Caller,
    events::queries::{EventDetail, Row},
    series::{
        queries::check_may_change,
        rule::{DAYS, day_name},
    },
};

/// The button that lists the dates. It saves nothing.
pub const SHOW_DATES: &str = "showDates";

/// The page of a series.
pub fn address_of(series: DbUuid) -> String {
    format!("/series/{series}")
}

/// What a form says about the dates of a series.
#[derive(Default)]
pub struct Dates {
    /// At its top: how many there are, and that nothing has been booked yet.
    pub notice: Markup,
    /// Among its fields.
    pub list: Markup,
}

/// Whether the event of a form repeats.
pub fn repeats(form: &Form) -> bool {
    !form.get("repeat").is_empty()
}

/// The fields that say when an event repeats.
pub fn fields(form: &FormPage<'_>, visit: &Visit) -> Markup {
    let choices = [
        ("", "once"),
        ("daily", "daily"),
        ("weekly", "weekly"),
        ("monthly", "monthly"),
        ("weekday", "monthly-weekday"),
    ];
    let choices: Vec<Choice> =
        choices.map(|(value, key)| (value.to_owned(), visit.text(&format!("repeat-{key}")))).to_vec();
    let field = |name: &'static str, kind: &'static str| {
        let key = format!("repeat-{name}");
        let min = (kind == "number").then_some("1");
        form.input(Input { name, label: &visit.text(&key), kind: Some(kind), min, ..Input::default() })
    };
    html! {
        details open[repeats(form.values)] {
            summary { (visit.text("repeat")) }
            (form.select("repeat", &visit.text("repeat-how"), None, &choices))
            div.line { (field("every", "number")) (field("times", "number")) (field("repeatUntil", "date")) }
            fieldset {
                legend { (visit.text("repeat-days")) }
                div.checks { @for (day, name) in DAYS.into_iter().zip(visit.text("weekdays").split(' ')) {
                    label.check {
                        input type="checkbox" name="day" value=(day_name(day)) checked[form.values.has("day", day_name(day))];
                        " " (name)
                    }
                } }
            }
            button name=(SHOW_DATES) value="true" formnovalidate { (visit.text("show-dates")) }
        }
    }
}

/// The choice between a change of one event of a series and of the later ones as well. An event that was changed by itself
/// has none, because changes of the series leave it out.
pub fn scope(form: &FormPage<'_>, event: &EventDetail, visit: &Visit) -> Markup {
    let Some(series) = event.row.series_id.filter(|_| !event.row.changed_by_itself) else { return html! {} };
    let choices = [("one", "scope-one"), ("later", "scope-later")];
    let choices: Vec<Choice> = choices.map(|(value, key)| (value.to_owned(), visit.text(key))).to_vec();
    html! {
        (hidden("series", series.to_string()))
        (form.select("scope", &visit.text("scope-of-change"), Some(&visit.text("scope-hint")), &choices))
    }
}

/// Which of the dates of its series an event is, with a link to all.
pub fn dates(dates: &[(DbUuid, DbTimestamp, DbTimestamp)], event: &Row, visit: &Visit) -> Markup {
    let number = dates.iter().filter(|(_, start, _)| *start < event.starts_at).count() + 1;
    html! {
        @if let Some(series) = event.series_id {
            (visit.format("date-of-series", &[("number", number.into()), ("total", dates.len().into())])) " "
            a href=(address_of(series)) { (visit.count("scope-all", dates.len())) }
        }
    }
}

/// The choice between the deletion of one event of a series, of the later ones as well, and of all, for whoever may change
/// the series. Each says how many dates it is about.
pub fn deleted_dates(conn: &mut AnyConnection, me: &Caller, event: &Row, visit: &Visit) -> Result<Markup, Error> {
    let Some(series) = event.series_id.filter(|id| check_may_change(conn, *id, me).is_ok()) else {
        return Ok(html! {});
    };
    let dates = dates_of_series(conn, event)?;
    let later = dates.iter().filter(|(_, start, _)| *start >= event.starts_at).count();
    let form = FormPage { page: visit.page(), values: &Form::default(), problem: None, aliases: &[] };
    let choices = [
        ("one", visit.text("scope-one")),
        ("later", visit.count("scope-later-dates", later)),
        ("all", visit.count("scope-all", dates.len())),
    ];
    let choices: Vec<Choice> = choices.map(|(value, text)| (value.to_owned(), text)).to_vec();
    Ok(html! {
        (hidden("series", series.to_string()))
        (form.select("scope", &visit.text("scope-of-deletion"), None, &choices))
    })
}
