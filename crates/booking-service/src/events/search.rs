//! Text search over events: names, descriptions, places, groups and tags. Texts are compared as places are
//! ([`place_key`]), so case, width and kinds of dashes do not matter, and without word boundaries, which Japanese does not
//! have.
//!
//! Events are compared one by one, a bounded number for an answer (`queries::searched_part`, `latest`). The folded name and
//! description of each is stored, because folding takes longer than reading; names of groups and tags are few and are
//! folded at each search.

use common::problem::{Problem, Rule};
use diesel::{prelude::*, sql_types::Bool};
use service_kit::{
    database::{AnyConnection, MultiBackend, types::DbUuid},
    error::Error,
};

use crate::{
    rooms::place::place_key,
    schema::{event_tags, events, groups, tags},
};

/// The most words of a search.
const MAX_WORDS: usize = 8;

/// The most groups and tags whose names are compared.
const MAX_NAMES: i64 = 10_000;

/// The number of events whose keys are computed at once.
const CHUNK: i64 = 1000;

/// The value of `events.text_key`.
pub fn text_key(name: &str, description: &str) -> String {
    place_key(&format!("{name}\n{description}"))
}

/// A condition on an event.
pub(super) type Condition = Box<dyn BoxableExpression<events::table, MultiBackend, SqlType = Bool>>;

/// A word of a search, with the groups and tags whose names contain it.
#[derive(Debug, Clone)]
pub struct Word {
    /// What `LIKE` compares.
    pattern: String,
    groups: Vec<DbUuid>,
    tags: Vec<DbUuid>,
}

impl Word {
    /// Whether an event contains the word.
    pub(super) fn condition(&self) -> Condition {
        // `LIKE` distinguishes case on PostgreSQL only. Both sides are folded.
        let in_text = events::text_key.like(self.pattern.clone()).escape('\\');
        let in_place = events::place_key.like(self.pattern.clone()).escape('\\');
        let mut condition: Condition = Box::new(in_text.or(in_place));
        if !self.groups.is_empty() {
            condition = Box::new(condition.or(events::group_id.eq_any(self.groups.clone())));
        }
        if !self.tags.is_empty() {
            let tagged = event_tags::table.filter(event_tags::tag_id.eq_any(self.tags.clone()));
            condition = Box::new(condition.or(events::id.eq_any(tagged.select(event_tags::event_id))));
        }
        condition
    }
}

/// The words of a text, folded.
///
/// # Errors
/// 400 for too many words.
pub fn words(text: &str) -> Result<Vec<String>, Error> {
    let mut words: Vec<_> = place_key(text).split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    words.sort_unstable();
    words.dedup();
    if words.len() > MAX_WORDS {
        let message = format!("must have at most {MAX_WORDS} words");
        return Err(Problem::parameter("search", Rule::Length, message).into());
    }
    Ok(words)
}

/// Finds the groups and tags that words name.
pub fn find(conn: &mut AnyConnection, words: &[String]) -> Result<Vec<Word>, Error> {
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let groups = groups::table.order(groups::id).limit(MAX_NAMES).select((groups::id, groups::name));
    let tags = tags::table.order(tags::id).limit(MAX_NAMES).select((tags::id, tags::name));
    let fold =
        |rows: Vec<(DbUuid, String)>| -> Vec<_> { rows.into_iter().map(|(id, name)| (id, place_key(&name))).collect() };
    let (groups, tags) = (fold(groups.load(conn)?), fold(tags.load(conn)?));
    let with = |names: &[(DbUuid, String)], word: &str| {
        names.iter().filter(|(_, name)| name.contains(word)).map(|(id, _)| *id).collect()
    };
    let word = |word: &String| Word { pattern: pattern(word), groups: with(&groups, word), tags: with(&tags, word) };
    Ok(words.iter().map(word).collect())
}

/// The pattern of the texts that contain a word.
fn pattern(word: &str) -> String {
    let mut pattern = "%".to_owned();
    for c in word.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern + "%"
}

/// Stores the present key of every event.
pub fn recompute(conn: &mut AnyConnection) -> Result<(), Error> {
    let mut last = DbUuid::nil();
    loop {
        let rows = events::table.filter(events::id.gt(last)).order(events::id).limit(CHUNK);
        let rows = rows.select((events::id, events::name, events::description, events::text_key));
        let rows: Vec<(DbUuid, String, String, String)> = rows.load(conn)?;
        let Some((id, ..)) = rows.last() else { return Ok(()) };
        last = *id;
        for (id, name, description, former) in rows {
            let key = text_key(&name, &description);
            if key != former {
                diesel::update(events::table.find(id)).set(events::text_key.eq(key)).execute(conn)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_and_patterns_have_no_wildcards_of_their_own() {
        assert_eq!(words(" ＲＵＳＴ rust　ｶﾞｲﾀﾞﾝｽ ").unwrap(), ["rust", "ガイダンス"]);
        assert!(words(" \u{3000}").unwrap().is_empty());
        assert!(words("a b c d e f g h i").is_err());
        assert_eq!(pattern(r"50%_\a"), r"%50\%\_\\a%");
        assert_eq!(text_key("Ｒust", "a\r\nB"), "rust a b");
    }
}
