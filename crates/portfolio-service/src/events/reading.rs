//! One reading of the booking-service's events, page by page: what it told of which event, without the events.

use std::collections::{HashMap, HashSet};

use common::time::Timestamp;
use service_kit::database::types::DbUuid;

use crate::booking::{EventChange, PAGE};

/// What was told so far.
#[derive(Debug)]
pub struct Reading {
    /// Only of what changed since then; else of all events.
    since: Option<Timestamp>,
    seen: HashMap<DbUuid, Seen>,
    /// Whether it told more than it was asked for: an older one does not know how to tell only what changed.
    pub is_more: bool,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    changed_at: Option<Timestamp>,
    is_there: bool,
}

impl Reading {
    /// Nothing yet of all events, or of those that changed after a moment.
    #[must_use]
    pub fn new(since: Option<Timestamp>) -> Self {
        Self { since, seen: HashMap::new(), is_more: false }
    }

    /// Takes the next page, and gives what of it is news, each event once. One that moves in the list while that is read
    /// may stand where it was and where it is now.
    ///
    /// # Errors
    /// When an event is told twice and did not change in between; so a list that leads in a circle ends here.
    pub fn take(&mut self, mut page: Vec<EventChange>) -> Result<Vec<EventChange>, String> {
        for EventChange { id, changed_at, event } in &page {
            self.is_more |= self.since.is_some_and(|since| changed_at.is_none_or(|at| at <= since));
            let seen = Seen { changed_at: *changed_at, is_there: event.is_some() };
            match self.seen.get(id) {
                Some(other) if other.changed_at == *changed_at => {
                    return Err("the booking-service tells of an event twice".to_owned());
                }
                Some(other) if other.changed_at > *changed_at => {}
                _ => drop(self.seen.insert(*id, seen)),
            }
        }
        page.retain(|told| self.seen.get(&told.id).is_some_and(|seen| seen.changed_at == told.changed_at));
        Ok(page)
    }

    /// Whether these are all events there are, so that one that is not among them is deleted as well.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.since.is_none()
    }

    /// Whether it was told bit by bit, so that an event that moved meanwhile may be missing.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.seen.len() >= PAGE
    }

    /// The same, put right by a reading of what changed after this one had begun.
    pub fn put_right(&mut self, later: Self) {
        self.seen.extend(later.seen);
    }

    /// The latest change that was told, and of which event.
    #[must_use]
    pub fn latest(&self) -> Option<(Timestamp, DbUuid)> {
        self.seen.iter().filter_map(|(id, seen)| Some((seen.changed_at?, *id))).max()
    }

    /// Whether it told of this change of an event, or of a later one.
    #[must_use]
    pub fn has(&self, (at, event): (Timestamp, DbUuid)) -> bool {
        self.seen.get(&event).is_some_and(|seen| seen.changed_at.is_some_and(|told| told >= at))
    }

    /// The events that are there.
    #[must_use]
    pub fn there(&self) -> HashSet<DbUuid> {
        self.seen.iter().filter(|(_, seen)| seen.is_there).map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(id: DbUuid, at: Option<&str>) -> EventChange {
        EventChange { id, changed_at: at.map(|at| at.parse().unwrap()), event: None }
    }

    const OLD: Option<&str> = Some("2026-03-01T00:00:00Z");
    const NEW: Option<&str> = Some("2026-03-02T00:00:00Z");

    #[test]
    fn an_event_that_moves_while_the_list_is_read_counts_as_it_is_in_the_end() {
        let (one, two) = (DbUuid::new(), DbUuid::new());
        let (was, is, other) = (told(one, OLD), told(one, NEW), told(two, OLD));
        for page in [[was.clone(), other.clone(), is.clone()], [is.clone(), other.clone(), was.clone()]] {
            let mut news = Reading::new(None).take(page.into()).unwrap();
            news.sort_by_key(|told| told.id);
            assert_eq!(news, [is.clone(), other.clone()]);
        }
        let mut reading = Reading::new(None);
        assert_eq!(reading.take(vec![was.clone()]).unwrap(), std::slice::from_ref(&was));
        assert_eq!(reading.take(vec![other, is.clone()]).unwrap().len(), 2);
        assert!(reading.take(vec![was]).unwrap().is_empty());
        assert!(reading.has((NEW.unwrap().parse().unwrap(), one)));
        for again in [is, told(two, OLD)] {
            assert!(reading.take(vec![again]).is_err());
        }
    }

    #[test]
    fn what_changed_while_it_was_read_puts_it_right() {
        let [stays, goes, moves] = [DbUuid::new(), DbUuid::new(), DbUuid::new()];
        let is_there = Seen { changed_at: NEW.map(|at| at.parse().unwrap()), is_there: true };
        let mut reading = Reading::new(None);
        reading.seen.extend([(stays, is_there), (goes, is_there)]);
        let mut later = Reading::new(OLD.map(|at| at.parse().unwrap()));
        later.take(vec![told(goes, NEW)]).unwrap();
        later.seen.insert(moves, is_there);
        reading.put_right(later);
        assert_eq!(reading.there(), HashSet::from([stays, moves]));
    }

    #[test]
    fn one_that_tells_more_than_was_asked_for_is_noticed() {
        let is_more = |since: Option<&str>, told| {
            let mut reading = Reading::new(since.map(|since| since.parse().unwrap()));
            reading.take(vec![told]).unwrap();
            reading.is_more
        };
        let id = DbUuid::new();
        assert!(!is_more(OLD, told(id, NEW)) && !is_more(None, told(id, None)));
        // One that was not changed since tells that the question was not understood; so does one that does not say.
        assert!(is_more(OLD, told(id, OLD)) && is_more(OLD, told(id, None)));
    }
}
