//! The tags of events.

use std::collections::{BTreeSet, HashMap};

use diesel::prelude::*;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    with_connection,
};

use crate::{
    expressions::FlaggedIds,
    schema::{event_tags, tags},
};

/// A tag on an event.
#[derive(Debug, Clone)]
pub struct EventTag {
    pub id: DbUuid,
    pub name: String,
    pub locked: bool,
}

/// The names of tags. Many events share few tags, so each name is read once.
pub(super) struct TagNames(HashMap<DbUuid, String>);

impl TagNames {
    pub(super) fn load<'a>(
        conn: &mut AnyConnection,
        tags: impl Iterator<Item = &'a FlaggedIds>,
    ) -> Result<Self, Error> {
        let used: BTreeSet<DbUuid> = tags.flat_map(|tags| tags.0.iter().map(|(id, _)| *id)).collect();
        let mut names = HashMap::new();
        for tags in Vec::from_iter(used).chunks(1000) {
            let tags = tags::table.filter(tags::id.eq_any(tags)).select((tags::id, tags::name));
            names.extend(with_connection!(conn, c => tags.load::<(DbUuid, String)>(c)?));
        }
        Ok(Self(names))
    }

    /// The tags of an event, by name.
    pub(super) fn of(&self, tags: Option<FlaggedIds>) -> Vec<EventTag> {
        let name = |id| self.0.get(&id).cloned().unwrap_or_default();
        let tag = |(id, locked)| EventTag { id, name: name(id), locked };
        let mut tags: Vec<_> = tags.unwrap_or_default().0.into_iter().map(tag).collect();
        tags.sort_unstable_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        tags
    }
}

/// The tags of one event, by name.
pub fn load_tags(conn: &mut AnyConnection, event: DbUuid) -> Result<Vec<EventTag>, Error> {
    let tags: Vec<(DbUuid, String, bool)> = with_connection!(conn, c => event_tags::table
        .inner_join(tags::table)
        .filter(event_tags::event_id.eq(event))
        .select((tags::id, tags::name, event_tags::locked))
        .order((tags::name, tags::id))
        .load(c)?);
    Ok(tags.into_iter().map(|(id, name, locked)| EventTag { id, name, locked }).collect())
}
