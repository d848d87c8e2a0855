//! Fields that name people: check boxes of those who are chosen, and a line for further names.

use std::collections::HashMap;

use common::problem::{Rule, Violations};
use maud::{Markup, html};
use unicode_normalization::UnicodeNormalization as _;

use super::fields::{FormPage, Input, NO_USER, SEVERAL_USERS};
use crate::{database::types::DbUuid, http::Form};

/// The id of the list of names that browsers suggest.
const SUGGESTIONS: &str = "names-list";

/// The most people whom a browser suggests or a form lists.
const MAX_LISTED: usize = 300;

/// The most names of a field that a refusal says.
const MAX_NOTED: usize = 20;

/// Somebody whom a form may name.
#[derive(Debug, Clone)]
pub struct Person {
    /// The id.
    pub id: DbUuid,
    /// The sign-in name.
    pub name: String,
    /// The name that others see.
    pub shown: String,
    /// Whether forms offer them.
    pub is_active: bool,
}

/// The people whom a form may name, in the order of the names that others see.
#[derive(Debug)]
pub struct Roster {
    people: Vec<Person>,
    /// Those of a sign-in name in lower case.
    by_name: HashMap<String, Vec<usize>>,
    /// The active ones who show a name; its case and width do not matter.
    by_shown: HashMap<String, Vec<usize>>,
}

/// A name in a form, and whom it means.
type Entry<'a> = (&'a str, Vec<&'a Person>);

impl Roster {
    /// The form may name these people.
    pub fn new(mut people: Vec<Person>) -> Self {
        people.sort_by_cached_key(|person| (fold(&person.shown), person.name.clone()));
        let (mut by_name, mut by_shown) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for (index, person) in people.iter().enumerate() {
            by_name.entry(person.name.to_ascii_lowercase()).or_default().push(index);
            if person.is_active {
                by_shown.entry(fold(&person.shown)).or_default().push(index);
            }
        }
        Self { people, by_name, by_shown }
    }

    /// Everybody of this sign-in name; if there is nobody, everybody who shows this name.
    fn called(&self, name: &str) -> Vec<&Person> {
        let name = name.trim_start_matches('@');
        let named = self.by_name.get(&name.to_ascii_lowercase()).or_else(|| self.by_shown.get(&fold(name)));
        let found = named.into_iter().flatten().map(|index| &self.people[*index]);
        let (same, others): (Vec<_>, Vec<_>) = found.partition(|person| person.name == name);
        if same.is_empty() { others } else { same }
    }

    /// The names in a field. Commas and line breaks separate them, and spaces those that are not one name together.
    fn entries<'a>(&'a self, form: &'a Form, field: &'a str) -> Vec<Entry<'a>> {
        let mut entries = Vec::new();
        for name in form.all(field).flat_map(names) {
            match self.called(name) {
                found if found.is_empty() => {
                    entries.extend(name.split_whitespace().map(|word| (word, self.called(word))));
                }
                found => entries.push((name, found)),
            }
        }
        entries
    }

    /// The ids of the people whom a field names, each once. Notes names that are nobody's or several people's.
    pub fn ids_of(&self, form: &Form, field: &str, violations: &mut Violations) -> Vec<DbUuid> {
        let (mut ids, mut noted) = (Vec::new(), 0);
        for (name, found) in self.entries(form, field) {
            let refusal = match found[..] {
                [person] if ids.contains(&person.id) => continue,
                [person] => {
                    ids.push(person.id);
                    continue;
                }
                [] => NO_USER,
                _ => SEVERAL_USERS,
            };
            if noted < MAX_NOTED {
                violations.push(format!("/{field}"), Rule::UnknownUser, format!("{refusal}{name}"));
            }
            noted += 1;
        }
        ids
    }

    /// The field. Of a name that several people show, there are check boxes for each of them. With `lists_all`, there
    /// are check boxes for everybody, unless they are too many.
    pub fn field(&self, form: &FormPage<'_>, input: Input<'_>, lists_all: bool) -> Markup {
        let entries = self.entries(form.values, input.name);
        let chosen =
            |person: &Person| entries.iter().any(|(_, found)| matches!(found[..], [one] if one.id == person.id));
        let mut boxes: Vec<&Person> = entries.iter().flat_map(|(_, found)| found.iter().copied()).collect();
        if lists_all && self.people.len() <= MAX_LISTED {
            boxes.extend(&self.people);
        }
        boxes.sort_by_cached_key(|person| (fold(&person.shown), &person.name));
        boxes.dedup_by_key(|person| person.id);
        let unknown: Vec<_> = entries.iter().filter(|(_, found)| found.is_empty()).map(|(name, _)| *name).collect();
        let marks = (input.name, input.is_required);
        form.labelled(marks, input.label, input.hint, |id, described, is_wrong| {
            html! {
                @if !boxes.is_empty() {
                    div.checks role="group" aria-label=(input.label) {
                        @for person in &boxes {
                            label title={ "@" (person.name) } {
                                input type="checkbox" name=(input.name) value=(person.name) checked[chosen(person)];
                                " " (person.shown)
                                // People who show one name are told apart by their sign-in names.
                                @if self.by_shown.get(&fold(&person.shown)).is_none_or(|same| same.len() > 1) {
                                    small { " @" (person.name) }
                                }
                            }
                        }
                    }
                }
                input id=(id) name=(input.name) value=(unknown.join(", ")) list=(SUGGESTIONS) autocomplete="off"
                    required[input.is_required && boxes.is_empty()] aria-describedby=[described]
                    aria-invalid=[is_wrong.then_some("true")];
            }
        })
    }

    /// The names that browsers suggest in the fields of a form: those of everybody, unless they are too many.
    pub fn suggestions(&self) -> Markup {
        let active = || self.people.iter().filter(|person| person.is_active);
        html! {
            datalist id=(SUGGESTIONS) {
                @if active().count() <= MAX_LISTED {
                    @for person in active() { option value=(person.name) { (person.shown) } }
                }
            }
        }
    }
}

/// The names in a text that commas and line breaks separate.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '、', '，', '\n']).map(str::trim).filter(|name| !name.is_empty())
}

/// The words of a text with names, each of which may be a sign-in name. PostgreSQL would refuse one with U+0000.
pub fn name_words(text: &str) -> impl Iterator<Item = &str> {
    let words = names(text).flat_map(str::split_whitespace).map(|word| word.trim_start_matches('@'));
    words.filter(|word| !word.contains('\0'))
}

/// A name without what does not distinguish people: the case and the width of its letters.
pub fn fold(name: &str) -> String {
    name.nfkc().flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(people: &[(&str, &str)]) -> Roster {
        let person = |(name, shown): &(&str, &str)| Person {
            id: DbUuid::new(),
            name: (*name).to_owned(),
            shown: (*shown).to_owned(),
            is_active: true,
        };
        Roster::new(people.iter().map(person).collect())
    }

    #[test]
    fn people_are_named_by_either_name() {
        let roster = roster(&[
            ("alice", "Alice Smith"),
            ("zoe1", "Zoé"),
            ("zoe2", "ZOÉ"),
            ("bob", "alice"),
            ("smith", "Bob Alice"),
        ]);
        let named = |text: &str| {
            let (form, mut violations) = (Form::new([("people", text)]), Violations::default());
            let ids = roster.ids_of(&form, "people", &mut violations);
            let name = |id: &DbUuid| roster.people.iter().find(|person| person.id == *id).unwrap().name.as_str();
            let refused: Vec<_> = violations.0.iter().map(|violation| violation.message.clone()).collect();
            (ids.iter().map(name).collect::<Vec<_>>().join(" "), refused.join(" "))
        };
        let found = |names: &str| (names.to_owned(), String::new());
        // A sign-in name goes before a name that somebody else shows.
        assert_eq!(named("alice"), found("alice"));
        assert_eq!(named("@ALICE bob、Bob\nalice"), found("alice bob"));
        assert_eq!(named("Alice Smith, ｂｏｂ　alice"), found("alice smith"));
        assert_eq!(named("zoé"), (String::new(), "names several users: zoé".to_owned()));
        assert_eq!(named("zoe2"), found("zoe2"));
        assert_eq!(named("zoe3 alice"), ("alice".to_owned(), "names no user: zoe3".to_owned()));
        assert_eq!(named(" , \n"), found(""));
    }
}
