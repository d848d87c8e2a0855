//! Members in forms and on pages: by their sign-in names.

use std::collections::HashMap;

use maud::{Markup, html};
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    page::avatar,
};

use super::{queries, visit::Visit};

/// The most names in one list of a page.
const MAX_NAMES: usize = 100;

/// The names of some members.
pub struct People(HashMap<DbUuid, (String, String)>);

impl People {
    /// The names of these members.
    pub fn load(conn: &mut AnyConnection, ids: impl IntoIterator<Item = DbUuid>) -> Result<Self, Error> {
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(Self(queries::names(conn, &ids)?))
    }

    /// The name that a member shows.
    pub fn display_name(&self, id: DbUuid) -> &str {
        self.0.get(&id).map_or("", |(_, display)| display)
    }

    /// The sign-in names of members, as a form shows them.
    pub fn sign_in_names(&self, ids: &[DbUuid]) -> String {
        let names: Vec<_> = ids.iter().filter_map(|id| self.0.get(id)).map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    }

    /// A list of members, the first hundred by name.
    pub fn list(&self, ids: &[DbUuid], visit: &Visit) -> Markup {
        let mut people: Vec<_> = ids.iter().filter_map(|id| self.0.get(id)).collect();
        people.sort_unstable_by_key(|(name, display)| (display, name));
        let more = people.len().saturating_sub(MAX_NAMES);
        html! {
            @for (name, display) in people.iter().take(MAX_NAMES) {
                span.who title={ "@" (name) } { (avatar(name, display, "")) (display) }
            }
            @if more > 0 { span.mute { (visit.count("and-more", more)) } }
        }
    }
}

/// The words of a field, separated by spaces and commas.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '、' | '，')).filter(|word| !word.is_empty())
}
