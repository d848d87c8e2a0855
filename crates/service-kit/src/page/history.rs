//! Rows of the history as sentences, in the language of a page.
//!
//! A service brings the texts of its own actions and fields (`locales/`), and the names behind the ids in its rows:
//!
//! * `history-ACTION` or `history-KIND-ACTION`: what was done, such as `deleted it`. A row of the action `changed` has only the texts of its
//!   fields.
//! * `history-KIND-FIELD`: a change of this field, with the values `$old` and `$new`; `history-KIND-FIELD-true` and
//!   `…-false` of one that is true or false. Without such a text the sentence names the field: `field-KIND-FIELD` or
//!   `field-FIELD`.

use std::collections::{BTreeSet, HashMap};

use chrono_tz::Tz;
use common::{problem::Problem, time::Timestamp};
use maud::{Markup, html};
use serde_json::Value;
use uuid::Uuid;

use super::context::PageContext;
use crate::{
    database::types::DbUuid,
    error::Error,
    history::{Action, Changes, Row},
    http::texts::Argument,
};

/// The most values of a list in a sentence.
const MAX_VALUES: usize = 10;

/// The most characters of a text in a sentence. Of a longer one it says only that it has changed.
const MAX_TEXT: usize = 80;

/// What the sentences of a page need.
pub struct Sentences<'a> {
    /// The page.
    pub page: &'a PageContext,
    /// The zone of its times.
    pub zone: Tz,
    /// The names of the people and objects that the rows mention ([`mentioned`]).
    pub names: &'a HashMap<DbUuid, String>,
    /// Fields that are left out if another one has changed too, which says the same: field and other one.
    pub implied: &'a [(&'a str, &'a str)],
    /// The text of a value that has members, such as a tag.
    pub object: &'a dyn Fn(&Value) -> Option<String>,
}

/// The ids of the people and objects that sentences about these rows name.
pub fn mentioned(rows: &[Row]) -> Result<BTreeSet<DbUuid>, Error> {
    let mut ids: BTreeSet<_> = rows.iter().filter_map(|row| row.actor).collect();
    for row in rows {
        for (field, change) in &changes_of(row)? {
            for values in [change, &change["added"], &change["removed"]] {
                let values = values.as_array().into_iter().flatten().take(MAX_VALUES);
                ids.extend(values.filter_map(|value| id_in(field, change, value)));
            }
        }
    }
    Ok(ids)
}

fn changes_of(row: &Row) -> Result<Changes, Error> {
    Ok(serde_json::from_str(&row.changes).map_err(Problem::internal)?)
}

/// The id in a field that has ids: a list, or a field whose name says so. Other texts are what somebody has written.
fn id_in(field: &str, change: &Value, value: &Value) -> Option<DbUuid> {
    let has_ids = field.ends_with("Id") || change.is_object();
    value.as_str().filter(|_| has_ids)?.parse::<Uuid>().ok().map(DbUuid)
}

impl Sentences<'_> {
    /// The rows as a list, each with what `more` adds to it.
    pub fn list(&self, rows: &[Row], more: impl Fn(&Row) -> Markup) -> Result<Markup, Error> {
        let sentences = rows.iter().map(|row| self.sentence(row)).collect::<Result<Vec<_>, _>>()?;
        Ok(html! {
            ul.rows.named {
                @for (row, sentence) in rows.iter().zip(&sentences) {
                    li {
                        div {
                            (sentence)
                            small {
                                (self.moment(row.at.0, |day| self.page.language.date(day)))
                                @if let Some(name) = &row.token {
                                    (self.page.language.separator())
                                    (self.page.format("history-token", &[("name", name.as_str().into())]))
                                }
                            }
                        }
                        div { (more(row)) }
                    }
                }
            }
        })
    }

    /// A row as a sentence: who did what.
    pub fn sentence(&self, row: &Row) -> Result<String, Error> {
        let (kind, changes) = (row.object_type.as_str(), changes_of(row)?);
        let mut parts = Vec::new();
        if row.action != Action::Changed {
            let word = row.action.word();
            let special = self.find(&format!("history-{kind}-{word}"), &[]);
            parts.push(special.unwrap_or_else(|| self.page.text(&format!("history-{word}"))));
        }
        if matches!(row.action, Action::Changed | Action::Reverted) {
            let is_implied = |field: &str| {
                self.implied.iter().any(|(implied, other)| *implied == field && changes.contains_key(*other))
            };
            let told = changes.iter().filter(|(field, _)| !is_implied(field));
            parts.extend(told.flat_map(|(field, change)| self.change(kind, field, change)));
        }
        let what = parts.join(self.page.language.separator());
        let by = || self.page.text(&format!("history-by-{}", row.origin.word()));
        let who = row.actor.and_then(|actor| self.names.get(&actor));
        let who = who.map_or_else(by, |name| self.page.format("history-person", &[("name", name.as_str().into())]));
        Ok(self.page.format("history-sentence", &[("who", who.into()), ("what", what.into())]))
    }

    fn find(&self, key: &str, arguments: &[Argument<'_>]) -> Option<String> {
        self.page.state().interface.texts.find(self.page.language, key, arguments)
    }

    /// What happened to a field; for a list, what was added and what was removed.
    fn change(&self, kind: &str, field: &str, change: &Value) -> Vec<String> {
        let of_field = self.find(&format!("field-{kind}-{field}"), &[]);
        let label = of_field.or_else(|| self.find(&format!("field-{field}"), &[])).unwrap_or_else(|| field.to_owned());
        if change.is_object() {
            let parts = [("added", "history-added"), ("removed", "history-removed")];
            let parts = parts.iter().filter_map(|(part, key)| Some((self.values(field, change, part)?, *key)));
            let arguments = |values: String| [("field", label.as_str().into()), ("values", values.into())];
            return parts.map(|(values, key)| self.page.format(key, &arguments(values))).collect();
        }
        let (old, new) = (&change[0], &change[1]);
        if let Value::Bool(new) = new
            && let Some(text) = self.find(&format!("history-{kind}-{field}-{new}"), &[])
        {
            return vec![text];
        }
        let is_long =
            |value: &Value| value.as_str().is_some_and(|text| text.chars().count() > MAX_TEXT || text.contains('\n'));
        let is_empty = |value: &Value| value.is_null() || value.as_str() == Some("");
        let key = match (old, new) {
            (old, new) if is_long(old) || is_long(new) => "history-changed-text",
            (old, _) if is_empty(old) => "history-set",
            (_, new) if is_empty(new) => "history-cleared",
            _ => {
                // The text has the quotation marks that it needs.
                let value = |value: &Value| match value.as_str() {
                    Some(text) if id_in(field, change, value).is_none() && text.parse::<Timestamp>().is_err() => {
                        in_one_direction(text)
                    }
                    _ => self.value(field, change, value),
                };
                let arguments = [("old", value(old).into()), ("new", value(new).into())];
                if let Some(special) = self.find(&format!("history-{kind}-{field}"), &arguments) {
                    return vec![special];
                }
                "history-changed"
            }
        };
        let value = |value| self.value(field, change, value).into();
        vec![self.page.format(key, &[("field", label.into()), ("old", value(old)), ("new", value(new))])]
    }

    /// The values that were added to a list or removed from it, or their number; `None` if there are none.
    fn values(&self, field: &str, change: &Value, part: &str) -> Option<String> {
        match &change[part] {
            Value::Array(values) if !values.is_empty() => {
                let shown = values.iter().take(MAX_VALUES).map(|value| self.value(field, change, value));
                let more = values.len().saturating_sub(MAX_VALUES);
                let more = (more > 0).then(|| self.page.count("history-more", more));
                Some(shown.chain(more).collect::<Vec<_>>().join(self.page.language.separator()))
            }
            Value::Number(number) if number.as_u64() != Some(0) => Some(number.to_string()),
            _ => None,
        }
    }

    fn value(&self, field: &str, change: &Value, value: &Value) -> String {
        match value {
            Value::Null => String::new(),
            Value::Bool(is_so) => self.page.text(if *is_so { "history-yes" } else { "history-no" }),
            Value::Number(number) => number.to_string(),
            Value::String(text) => {
                if let Some(id) = id_in(field, change, value) {
                    return self.names.get(&id).cloned().unwrap_or_else(|| self.page.text("history-gone"));
                }
                match text.parse::<Timestamp>() {
                    Ok(at) => self.moment(at, |day| self.page.language.short_day(day)),
                    Err(_) => self.page.format("history-quoted", &[("text", in_one_direction(text).into())]),
                }
            }
            Value::Object(_) => (self.object)(value).unwrap_or_default(),
            Value::Array(_) => value.to_string(),
        }
    }

    fn moment(&self, at: Timestamp, day: impl Fn(chrono::NaiveDate) -> String) -> String {
        let local = at.utc().with_timezone(&self.zone).naive_local();
        format!("{}, {}", day(local.date()), local.format("%H:%M"))
    }
}

/// A text without the characters that turn the direction of what follows it.
fn in_one_direction(text: &str) -> String {
    text.replace(
        ['\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}'],
        "",
    )
}
