//! The fields of an event's form that are about series.

use maud::{Markup, html};
use service_kit::{
    http::Form,
    page::{Choice, FormPage, Input, hidden},
};

use super::visit::Visit;
use crate::{
    events::queries::EventDetail,
    series::rule::{DAYS, day_name},
};

/// The button that lists the dates. It saves nothing.
pub const SHOW_DATES: &str = "showDates";

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
            div.row { (field("every", "number")) (field("times", "number")) (field("repeatUntil", "date")) }
            fieldset {
                legend { (visit.text("repeat-days")) }
                div.row { @for (day, name) in DAYS.into_iter().zip(visit.text("weekdays").split(' ')) {
                    label.check {
                        input type="checkbox" name="day" value=(day_name(day)) checked[form.values.has("day", day_name(day))];
                        " " (name)
                    }
                } }
            }
            button name=(SHOW_DATES) value="true" { (visit.text("show-dates")) }
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
