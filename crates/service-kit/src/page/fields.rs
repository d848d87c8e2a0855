//! The forms of pages: fields with their labels, what was typed, and what is wrong with it.

use common::problem::{Location, Problem, Violation};
use maud::{Markup, html};

use super::{buttons::hidden, context::PageContext};
use crate::http::form::{self, Form};

/// The beginning of the message about a name that is nobody's; the name follows.
pub(super) const NO_USER: &str = "names no user: ";

/// The beginning of the message about a name that several users show; the name follows.
pub(super) const SEVERAL_USERS: &str = "names several users: ";

/// A text field.
#[derive(Clone, Copy, Default)]
pub struct Input<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its label.
    pub label: &'a str,
    /// Its kind, by default `text`.
    pub kind: Option<&'a str>,
    /// Whether it must have a value.
    pub is_required: bool,
    /// The most characters.
    pub max_length: Option<usize>,
    /// The least value.
    pub min: Option<&'a str>,
    /// What it is for.
    pub hint: Option<&'a str>,
    /// What the browser fills in.
    pub autocomplete: Option<&'a str>,
    /// The values that it suggests.
    pub suggestions: &'a [String],
}

/// A value of a list of choices, and its text.
pub type Choice = (String, String);

/// A form with what was typed and why it was refused.
pub struct FormPage<'a> {
    /// The page.
    pub page: &'a PageContext,
    /// The values of its fields.
    pub values: &'a Form,
    /// Why it was refused.
    pub problem: Option<&'a Problem>,
    /// Members of the request that a field of another name shows: member and field.
    pub aliases: &'a [(&'a str, &'a str)],
}

impl FormPage<'_> {
    /// The form. `tag` is the entity tag of what it changes; a form of something new has none.
    pub fn form(&self, action: &str, tag: Option<&str>, content: &Markup) -> Markup {
        self.form_of(action, None, tag, content)
    }

    /// A form that may have a file.
    pub fn upload(&self, action: &str, content: &Markup) -> Markup {
        self.form_of(action, Some("multipart/form-data"), None, content)
    }

    fn form_of(&self, action: &str, kind: Option<&str>, tag: Option<&str>, content: &Markup) -> Markup {
        // The key of a form that has been sent with other values before is spent.
        let is_spent = self.problem.is_some_and(|problem| problem.status() == 422);
        let key = Some(self.values.get(form::KEY)).filter(|key| !key.is_empty() && !is_spent);
        html! {
            form.card method="post" action=(action) enctype=[kind] {
                (hidden(form::KEY, key.map_or_else(form::new_key, str::to_owned)))
                @if let Some(tag) = tag { (hidden(form::TAG, tag)) }
                (content)
            }
        }
    }

    /// What is wrong, above the fields, with a link to each field that is marked.
    pub fn refusal(&self) -> Markup {
        let Some(problem) = self.problem else { return html! {} };
        let others = self.messages(|name| !self.has_field(name));
        let fields = self.values.iter().map(|(name, _)| name);
        let marked = fields.map(|field| (field, self.messages(|member| self.field_of(member) == field)));
        let mut marked: Vec<_> = marked.filter(|(_, messages)| !messages.is_empty()).collect();
        marked.dedup_by_key(|(field, _)| *field);
        html! {
            div.refusal role="alert" tabindex="-1" {
                @if problem.broken_rules().is_empty() {
                    h2 { (self.page.problem_title(problem)) }
                    (self.page.explain(problem))
                } @else {
                    h2 { (self.page.text("refused")) }
                    ul {
                        @for message in &others { li { (message) } }
                        @for (field, messages) in &marked {
                            li { a href={ "#f-" (field) } { (messages.join(" ")) } }
                        }
                    }
                }
            }
        }
    }

    /// Whether a field shows what is wrong with a member of the request.
    fn has_field(&self, member: &str) -> bool {
        self.values.iter().any(|(name, _)| name == self.field_of(member))
    }

    fn field_of<'b>(&'b self, member: &'b str) -> &'b str {
        self.aliases.iter().find(|(other, _)| *other == member).map_or(member, |(_, field)| field)
    }

    /// What is wrong with the members that a condition chooses, in the language of the page.
    fn messages(&self, is_chosen: impl Fn(&str) -> bool) -> Vec<String> {
        let violations = self.problem.map(Problem::broken_rules).unwrap_or_default();
        let mut messages: Vec<_> = violations
            .iter()
            .filter(|violation| match &violation.location {
                Location::Pointer { pointer } => is_chosen(pointer.split('/').nth(1).unwrap_or_default()),
                Location::Parameter { parameter } => is_chosen(parameter),
                Location::Cell { .. } => is_chosen(""),
            })
            .map(|violation| self.message(violation))
            .collect();
        messages.dedup();
        messages
    }

    /// What is wrong with a member of the request that no single field shows.
    pub fn errors_of(&self, member: &str) -> Vec<String> {
        self.messages(|other| other == member)
    }

    fn message(&self, violation: &Violation) -> String {
        for (prefix, key) in [(NO_USER, "no-member-called"), (SEVERAL_USERS, "several-members-called")] {
            if let Some(name) = violation.message.strip_prefix(prefix) {
                return self.page.format(key, &[("name", name.into())]);
            }
        }
        // The text of the rule for this member, or for any.
        let of_member = match &violation.location {
            Location::Pointer { pointer } => {
                self.page.find(&format!("rule-{}-{}", violation.code.code(), pointer.trim_start_matches('/')))
            }
            _ => None,
        };
        of_member.unwrap_or_else(|| self.page.broken_rule(violation))
    }

    /// A label, its field, and what is wrong with the value. The field gets its id and those of the texts that describe
    /// it.
    pub(super) fn labelled(
        &self,
        (name, is_required): (&str, bool),
        label: &str,
        hint: Option<&str>,
        field: impl FnOnce(&str, Option<&str>, bool) -> Markup,
    ) -> Markup {
        let id = format!("f-{name}");
        let messages = self.messages(|member| self.field_of(member) == name);
        let mut described = Vec::new();
        if hint.is_some() {
            described.push(format!("{id}-hint"));
        }
        if !messages.is_empty() {
            described.push(format!("{id}-error"));
        }
        let described = described.join(" ");
        html! {
            div.field {
                label for=(id) { (label) @if is_required { " " em.req { (self.page.text("required")) } } }
                @if let Some(hint) = hint { span.hint id={ (id) "-hint" } { (hint) } }
                @if !messages.is_empty() { p.error id={ (id) "-error" } { (messages.join(" ")) } }
                (field(&id, Some(described.as_str()).filter(|ids| !ids.is_empty()), !messages.is_empty()))
            }
        }
    }

    /// A field of one line.
    pub fn input(&self, input: Input<'_>) -> Markup {
        self.labelled((input.name, input.is_required), input.label, input.hint, |id, described, is_wrong| {
            let list = (!input.suggestions.is_empty()).then(|| format!("{id}-list"));
            html! {
                input id=(id) name=(input.name) type=(input.kind.unwrap_or("text")) value=(self.values.get(input.name))
                    required[input.is_required] maxlength=[input.max_length] min=[input.min] list=[list.as_deref()]
                    autocomplete=[input.autocomplete] aria-describedby=[described]
                    aria-invalid=[is_wrong.then_some("true")];
                @if let Some(list) = &list {
                    datalist id=(list) { @for value in input.suggestions { option value=(value) {} } }
                }
            }
        })
    }

    /// A field of several lines.
    pub fn text_area(&self, input: Input<'_>) -> Markup {
        self.labelled((input.name, input.is_required), input.label, input.hint, |id, described, is_wrong| {
            html! {
                textarea id=(id) name=(input.name) rows="4" required[input.is_required] maxlength=[input.max_length]
                    aria-describedby=[described] aria-invalid=[is_wrong.then_some("true")] {
                    // A browser drops the first line break.
                    "\n" (self.values.get(input.name))
                }
            }
        })
    }

    /// A list from which one value is chosen.
    pub fn select(&self, name: &str, label: &str, hint: Option<&str>, choices: &[Choice]) -> Markup {
        self.choice(Input { name, label, hint, ..Input::default() }, choices)
    }

    /// The same. If the field is required, an empty value of the list is no choice.
    pub fn choice(&self, input: Input<'_>, choices: &[Choice]) -> Markup {
        // A browser would take the last one of several.
        let chosen = choices.iter().position(|(value, _)| value == self.values.get(input.name));
        self.labelled((input.name, input.is_required), input.label, input.hint, |id, described, is_wrong| {
            html! {
                select id=(id) name=(input.name) required[input.is_required] aria-describedby=[described]
                    aria-invalid=[is_wrong.then_some("true")] {
                    @for (n, (value, text)) in choices.iter().enumerate() {
                        option value=(value) selected[Some(n) == chosen] { (text) }
                    }
                }
            }
        })
    }

    /// A check box, whose value is `true`.
    pub fn check_box(&self, name: &str, label: &str, hint: Option<&str>) -> Markup {
        let id = format!("f-{name}");
        html! {
            div.check {
                input id=(id) name=(name) type="checkbox" value="true" checked[self.values.has(name, "true")]
                    aria-describedby=[hint.map(|_| format!("{id}-hint"))];
                div {
                    label for=(id) { (label) }
                    @if let Some(hint) = hint { span.hint id={ (id) "-hint" } { (hint) } }
                }
            }
        }
    }
}
