//! What the history says about the groups that a copy of the directory changes: one row for each, with numbers of
//! members and administrators instead of their ids.

use std::collections::{BTreeMap, BTreeSet};

use club_directory::DirectoryGroup;
use serde_json::{Value, json};
use service_kit::{
    database::types::{DbTimestamp, DbUuid},
    history::{Action, Changes, Entry},
};

use crate::objects::GROUP;

/// Groups and the users of each.
type Links = BTreeMap<DbUuid, BTreeSet<DbUuid>>;

/// The name and description of a group before a sync, and when it was deleted.
pub(super) type Before<'a> = Option<(&'a str, &'a str, Option<DbTimestamp>)>;

/// The row of a group that is new or has changed. Of each of the lists, `numbers` has those who were added and removed.
pub(super) fn entry(group: &DirectoryGroup, before: Before<'_>, numbers: [(&str, [&Links; 2]); 2]) -> Entry {
    let object = DbUuid(group.id);
    let mut changes = Changes::new();
    let mut note = |field: &str, old: Option<&str>, new: &str| {
        if old != Some(new) {
            changes.insert(field.to_owned(), json!([old, new]));
        }
    };
    note("name", before.map(|(name, ..)| name), &group.name);
    note("description", before.map(|(_, description, _)| description), &group.description);
    for (field, lists) in numbers {
        let [added, removed] = lists.map(|list| list.get(&object).map_or(0, BTreeSet::len));
        if added + removed > 0 {
            changes.insert(field.to_owned(), json!({"added": added, "removed": removed}));
        }
    }
    let action = match before {
        None => Action::Created,
        Some((_, _, Some(_))) => Action::Restored,
        Some(_) => Action::Changed,
    };
    if action == Action::Restored {
        changes.insert("deleted".to_owned(), Value::from([true, false].as_slice()));
    }
    Entry { kind: &GROUP, object, action, changes }
}
