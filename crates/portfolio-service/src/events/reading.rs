//! The state of one pass over the booking-service's list of events, page by page. It holds ids and times, not events.

use std::collections::{HashMap, HashSet};

use common::time::Timestamp;
use service_kit::database::types::DbUuid;

use crate::booking::{EventChange, PAGE_SIZE};

/// The pages of a list that have been read so far.
#[derive(Debug)]
pub struct Reading {
    /// The list has only the events that changed after this time; without it, all events.
    since: Option<Timestamp>,
    /// The latest version of each event of the list.
    versions: HashMap<DbUuid, Version>,
    /// Whether the list has events that did not change after `since`: older versions of the booking-service ignore the
    /// parameter.
    pub ignores_since: bool,
}

#[derive(Debug, Clone, Copy)]
struct Version {
    changed_at: Option<Timestamp>,
    is_deleted: bool,
}

impl Reading {
    /// A reading of the list of all events, or of those that changed after `since`, before its first page.
    pub fn new(since: Option<Timestamp>) -> Self {
        Self { since, versions: HashMap::new(), ignores_since: false }
    }

    /// Adds the next page. Returns its changes that are the latest of their event: an event that moves in the list
    /// while the list is read can be on two pages.
    ///
    /// # Errors
    /// When the same version of an event is listed twice. This also ends a list whose pages link in a circle.
    pub fn take(&mut self, mut page: Vec<EventChange>) -> Result<Vec<EventChange>, String> {
        for EventChange { id, changed_at, event } in &page {
            self.ignores_since |= self.since.is_some_and(|since| changed_at.is_none_or(|at| at <= since));
            let version = Version { changed_at: *changed_at, is_deleted: event.is_none() };
            match self.versions.get(id) {
                Some(other) if other.changed_at == *changed_at => {
                    return Err("the booking-service lists an event twice".to_owned());
                }
                Some(other) if other.changed_at > *changed_at => {}
                _ => drop(self.versions.insert(*id, version)),
            }
        }
        page.retain(|change| {
            self.versions.get(&change.id).is_some_and(|version| version.changed_at == change.changed_at)
        });
        Ok(page)
    }

    /// Whether the list has all events, so that an event that it does not have is deleted.
    pub fn is_complete(&self) -> bool {
        self.since.is_none()
    }

    /// Whether the list may have more than one page, so that an event that moved meanwhile may be missing.
    pub fn is_long(&self) -> bool {
        self.versions.len() >= PAGE_SIZE
    }

    /// Adds the changes that were made while this list was read.
    pub fn merge(&mut self, later: Self) {
        self.versions.extend(later.versions);
    }

    /// The latest change, as its time and event.
    pub fn latest(&self) -> Option<(Timestamp, DbUuid)> {
        self.versions.iter().filter_map(|(id, version)| Some((version.changed_at?, *id))).max()
    }

    /// Whether the list has this change of an event, or a later one.
    pub fn has(&self, (at, event): (Timestamp, DbUuid)) -> bool {
        self.versions.get(&event).is_some_and(|version| version.changed_at.is_some_and(|changed_at| changed_at >= at))
    }

    /// The events of the list that are not deleted.
    pub fn existing_ids(&self) -> HashSet<DbUuid> {
        self.versions.iter().filter(|(_, version)| !version.is_deleted).map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deletion(id: DbUuid, at: Option<&str>) -> EventChange {
        EventChange { id, changed_at: at.map(|at| at.parse().unwrap()), event: None }
    }

    const OLD: Option<&str> = Some("2026-03-01T00:00:00Z");
    const NEW: Option<&str> = Some("2026-03-02T00:00:00Z");

    #[test]
    fn of_an_event_that_moves_in_the_list_only_the_latest_change_counts() {
        let (one, two) = (DbUuid::new(), DbUuid::new());
        let (old, new, other) = (deletion(one, OLD), deletion(one, NEW), deletion(two, OLD));
        for page in [[old.clone(), other.clone(), new.clone()], [new.clone(), other.clone(), old.clone()]] {
            let mut changes = Reading::new(None).take(page.into()).unwrap();
            changes.sort_by_key(|change| change.id);
            assert_eq!(changes, [new.clone(), other.clone()]);
        }
        let mut reading = Reading::new(None);
        assert_eq!(reading.take(vec![old.clone()]).unwrap(), std::slice::from_ref(&old));
        assert_eq!(reading.take(vec![other, new.clone()]).unwrap().len(), 2);
        assert!(reading.take(vec![old]).unwrap().is_empty());
        assert!(reading.has((NEW.unwrap().parse().unwrap(), one)));
        for again in [new, deletion(two, OLD)] {
            assert!(reading.take(vec![again]).is_err());
        }
    }

    #[test]
    fn changes_made_while_the_list_is_read_are_merged() {
        let [stays, goes, moves] = [DbUuid::new(), DbUuid::new(), DbUuid::new()];
        let existing = Version { changed_at: NEW.map(|at| at.parse().unwrap()), is_deleted: false };
        let mut reading = Reading::new(None);
        reading.versions.extend([(stays, existing), (goes, existing)]);
        let mut later = Reading::new(OLD.map(|at| at.parse().unwrap()));
        later.take(vec![deletion(goes, NEW)]).unwrap();
        later.versions.insert(moves, existing);
        reading.merge(later);
        assert_eq!(reading.existing_ids(), HashSet::from([stays, moves]));
    }

    #[test]
    fn a_booking_service_that_ignores_since_is_recognized() {
        let ignores_since = |since: Option<&str>, change| {
            let mut reading = Reading::new(since.map(|since| since.parse().unwrap()));
            reading.take(vec![change]).unwrap();
            reading.ignores_since
        };
        let id = DbUuid::new();
        assert!(!ignores_since(OLD, deletion(id, NEW)) && !ignores_since(None, deletion(id, None)));
        // An event that did not change after that time, and one without a time.
        assert!(ignores_since(OLD, deletion(id, OLD)) && ignores_since(OLD, deletion(id, None)));
    }
}
