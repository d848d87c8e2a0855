//! Changes of several occurrences of a series.

use std::collections::{BTreeSet, HashMap};

use chrono::{NaiveDate, NaiveTime};
use chrono_tz::Tz;
use common::{
    input::IdSet,
    problem::{Problem, Rule as BrokenRule, Violations},
};
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{Action, Author},
};

use super::{
    changes::{Also, day, forget_skipped, lock, set_admins, touch},
    creation::{Date, find_rooms},
    extension::{Extension, Present, any_overlaps},
    queries::{self, Row, Series, as_text},
    refused::Refused,
    rule::{FirstTimes, MAX_DATES, Refusal, Rule},
    target::record_change,
    wire::series_conflict,
};
use crate::{
    auth::Caller,
    events::{
        self, attendance,
        creation::{Draft, Venue},
        queries::{Event, Row as EventRow},
        several::{self, Wish},
    },
    groups,
    schema::event_series,
    users,
    wall_clock::{instant, instant_after, instant_or_next},
};

/// A change of a series. What is `None` stays as it is.
#[derive(Debug, Clone)]
pub struct SeriesChange {
    /// Only events that begin at this time or later.
    pub from: DbTimestamp,
    /// Also those that were changed by themselves.
    pub include_changed: bool,
    pub name: Option<String>,
    pub description: Option<String>,
    pub place: Option<String>,
    pub shared: Option<bool>,
    pub open: Option<bool>,
    pub group: Option<DbUuid>,
    pub admins: Option<IdSet<1>>,
    pub tags: Option<Vec<(String, bool)>>,
    pub start: Option<NaiveTime>,
    pub end: Option<NaiveTime>,
    /// The last day of the rule.
    pub until: Option<NaiveDate>,
}

impl SeriesChange {
    fn selects(&self, event: &Event) -> bool {
        event.row.starts_at >= self.from && (self.include_changed || !event.row.changed_by_itself)
    }

    /// The ids of the events that a new end of the rule deletes, and the events that stay.
    fn removed<'a>(
        &self,
        events: &'a [Event],
        zone: Tz,
        now: DbTimestamp,
    ) -> Result<(Vec<DbUuid>, Vec<&'a Event>), Error> {
        let Some(until) = self.until else { return Ok((Vec::new(), events.iter().collect())) };
        if until < day(self.from, zone) {
            return Err(Problem::invalid("/until", BrokenRule::OutOfOrder, "must not be before `from`").into());
        }
        let is_removed = |event: &&Event| event.row.starts_at > now && day(event.row.starts_at, zone) > until;
        let (removed, left): (Vec<_>, Vec<_>) = events.iter().partition(is_removed);
        Ok((removed.iter().map(|event| event.row.id).collect(), left))
    }

    /// An event after the change; with `false` if the clocks skip its start or end.
    fn draft(&self, event: &Event, zone: Tz) -> Result<(Draft, bool), Error> {
        let present = several::draft_of(event);
        let Self {
            from: _,
            include_changed: _,
            name,
            description,
            place,
            shared,
            open,
            group,
            admins,
            tags,
            start,
            end,
            until: _,
        } = self;
        let local = |at: DbTimestamp| at.utc().with_timezone(&zone).naive_local();
        let mut exist = true;
        let mut at_time = |at: DbTimestamp, time: Option<NaiveTime>, after: Option<DbTimestamp>| {
            let Some(time) = time.filter(|time| *time != local(at).time()) else { return Ok(at) };
            let date = local(at).date();
            exist &= instant(date, time, zone).is_some();
            let later = after.and_then(|after| instant_after(*after, date, time, zone));
            let out_of_range =
                || Problem::invalid("/startTime", BrokenRule::Range, "is too near the end of the calendar");
            later.or_else(|| instant_or_next(date, time, zone)).map(DbTimestamp).ok_or_else(out_of_range)
        };
        let starts_at = at_time(present.starts_at, *start, None)?;
        // Where the clocks show the end twice, the first time after the start.
        let ends_at = at_time(present.ends_at, *end, Some(starts_at))?;
        if exist && starts_at >= ends_at {
            let message = "must be after the start of every occurrence";
            return Err(Problem::invalid("/endTime", BrokenRule::OutOfOrder, message).into());
        }
        let draft = Draft {
            name: name.clone().unwrap_or(present.name),
            description: description.clone().unwrap_or(present.description),
            shared: shared.unwrap_or(present.shared),
            starts_at,
            ends_at,
            venue: place.clone().map_or(present.venue, Venue::Place),
            group: group.unwrap_or(present.group),
            open: open.unwrap_or(present.open),
            admins: admins.clone().unwrap_or(present.admins),
            tags: tags.clone().unwrap_or(present.tags),
        };
        Ok((draft, exist))
    }
}

/// Changes the occurrences of a series, all or none, and records it in the history. Returns how many a new end of the rule
/// has deleted.
///
/// # Errors
/// 404; 403 for anybody but the administrators of the series and privileged users; 400; 409 `series-conflict`.
pub fn update(
    conn: &mut AnyConnection,
    id: DbUuid,
    change: &SeriesChange,
    me: &Caller,
    zone: Tz,
    now: DbTimestamp,
) -> Result<usize, Error> {
    let also = Also { place: change.place.as_deref(), group: change.group };
    let (_, events) = lock(conn, id, &also, me)?;
    let before = queries::get(conn, id)?;
    let (removed, left) = change.removed(&events, before.row.zone()?, now)?;
    let selected: Vec<_> = left.iter().copied().filter(|event| change.selects(event)).collect();
    check_references(conn, change, &before.admins, &selected)?;
    let mut changes = Changes::new(change, &selected, before.row.zone()?)?;
    if let Some(admins) = change.admins.as_ref().filter(|admins| !has_admins(&before, admins)) {
        set_admins(conn, id, admins)?;
    }
    // Before conflicts are searched.
    several::delete_by_until(conn, &removed, &me.author, now)?;
    let extension = match change.until {
        Some(until) => Some(Extended::new(conn, &before, until, change, &removed, &left)?),
        None => None,
    };
    changes.check_overlaps(change, &left, extension.as_ref())?;
    changes.store(conn, &me.author, now)?;
    // After the changes are stored, so that the new events are checked against them.
    let new = match &extension {
        Some(extension) => extension.store(conn, &before.row, &mut changes.refused, &me.author, now)?,
        None => Vec::new(),
    };
    if !changes.refused.is_empty() {
        changes.refused.sort_unstable_by_key(|date| (date.starts_at, date.number));
        return Err(series_conflict(&changes.refused, zone));
    }
    events::record_new(conn, &new, &me.author, zone)?;
    let after = queries::get(conn, id)?;
    let old: Vec<Event> = changes.events.iter().map(|(event, _)| (*event).clone()).collect();
    events::record_changes(conn, &old, &after.events, &me.author, zone)?;
    if record_change(conn, Action::Changed, (&before, &after), &old, &me.author, zone)? {
        touch(conn, id, now)?;
    }
    Ok(removed.len())
}

fn place_of(draft: &Draft) -> &str {
    if let Venue::Place(place) = &draft.venue { place } else { "" }
}

fn has_admins(series: &Series, admins: &IdSet<1>) -> bool {
    admins.iter().map(|(_, id)| DbUuid(id)).collect::<BTreeSet<_>>().iter().eq(&series.admins)
}

/// Checks that the group and the administrators of a change exist.
fn check_references(
    conn: &mut AnyConnection,
    change: &SeriesChange,
    present: &[DbUuid],
    selected: &[&Event],
) -> Result<(), Error> {
    let mut violations = Violations::default();
    if let Some(admins) = &change.admins {
        users::queries::note_unfit_admins(conn, admins, present, &mut violations)?;
    }
    if let Some(group) = change.group
        && selected.iter().any(|event| event.row.group_id != group)
        && !groups::queries::lock_against_deletion(conn, group)?
    {
        violations.push("/groupId", BrokenRule::UnknownGroup, "names no group");
    }
    Ok(violations.into_result()?)
}

/// The events that a change of a series changes, each with its new values, and the dates that cannot be booked.
struct Changes<'a> {
    events: Vec<(&'a Event, Draft)>,
    refused: Vec<Refused>,
}

impl<'a> Changes<'a> {
    fn new(change: &SeriesChange, selected: &[&'a Event], zone: Tz) -> Result<Self, Error> {
        let (mut events, mut refused) = (Vec::new(), Vec::new());
        for event in selected {
            let (draft, exist) = change.draft(event, zone)?;
            if !exist {
                refused.push(Refused::nonexistent(number_of(event), (draft.starts_at, draft.ends_at)));
            } else if !several::is_unchanged(event, &draft) {
                events.push((*event, draft));
            }
        }
        Ok(Self { events, refused })
    }

    /// 400 if an event that moves, or a new one, would overlap another one of the series.
    fn check_overlaps(
        &self,
        change: &SeriesChange,
        left: &[&Event],
        extension: Option<&Extended>,
    ) -> Result<(), Error> {
        let new = extension.into_iter().flat_map(|extension| &extension.dates).map(|date| date.times);
        let new = new.filter(|times| times.exist).map(|times| (times.starts_at, times.ends_at));
        let moved: HashMap<_, _> = self
            .events
            .iter()
            .filter(|(event, draft)| !draft.has_time_of(&event.row))
            .map(|(event, draft)| (event.row.id, draft))
            .collect();
        let new: Vec<_> = new.chain(moved.values().map(|draft| (*draft.starts_at, *draft.ends_at))).collect();
        let others = left.iter().filter(|event| !moved.contains_key(&event.row.id));
        let others: Vec<_> = others.map(|event| (*event.row.starts_at, *event.row.ends_at)).collect();
        if !any_overlaps(&new, &others) {
            return Ok(());
        }
        let pointer = match (change.end, change.start) {
            (Some(_), _) => "/endTime",
            (_, Some(_)) => "/startTime",
            _ => "/until",
        };
        Err(Problem::invalid(pointer, BrokenRule::Range, Refusal::Overlapping.to_string()).into())
    }

    /// Stores the new values, unless a date cannot be booked.
    fn store(&mut self, conn: &mut AnyConnection, by: &Author, now: DbTimestamp) -> Result<(), Error> {
        let wishes = self.events.iter().map(|(event, draft)| {
            let like = (event.row.place == place_of(draft)).then_some(&event.row);
            Wish { draft: draft.clone(), event: Some(&event.row), like }
        });
        let choices = several::find_rooms(conn, &wishes.collect::<Vec<_>>())?;
        let mut stored = Vec::new();
        for ((event, draft), choice) in self.events.iter().zip(choices) {
            match choice {
                Ok(choice) => stored.push((*event, draft, choice)),
                Err(obstacle) => {
                    let span = (draft.starts_at, draft.ends_at);
                    self.refused.push(Refused::new(number_of(event), span, obstacle));
                }
            }
        }
        if self.refused.is_empty() {
            for (event, draft, choice) in stored {
                several::change(conn, event, draft, choice, now)?;
            }
            // Events whose tags change all get those of the request.
            let other_tags = |(event, draft): &&(&Event, Draft)| !draft.has_tags(&event.tags);
            let retagged: Vec<_> = self.events.iter().filter(other_tags).collect();
            if let Some((_, draft)) = retagged.first() {
                let ids: Vec<_> = retagged.iter().map(|(event, _)| event.row.id).collect();
                attendance::replace_tags(conn, &ids, &draft.tags, by, now)?;
            }
        }
        Ok(())
    }
}

fn number_of(event: &Event) -> i32 {
    event.row.occurrence.unwrap_or_default()
}

/// What another end of its rule makes of a series.
struct Extended {
    rule: Rule,
    exdates: BTreeSet<NaiveDate>,
    dates: Vec<Date>,
    /// What the new events are like.
    draft: Draft,
    like: EventRow,
}

impl Extended {
    /// Finds what the series has with its new end, and forgets the skipped dates after it.
    fn new(
        conn: &mut AnyConnection,
        before: &Series,
        until: NaiveDate,
        change: &SeriesChange,
        removed: &[DbUuid],
        left: &[&Event],
    ) -> Result<Self, Error> {
        let (row, zone) = (&before.row, before.row.zone()?);
        let (rule, first) = row.rule()?;
        let refused = |message: String| Error::from(Problem::invalid("/until", BrokenRule::Range, message));
        if until < first.date {
            return Err(refused("must not be before the first date of the series".to_owned()));
        }
        let last = left.last().ok_or_else(|| refused("leaves no event of the series: delete it instead".to_owned()))?;
        let (draft, _) = if change.selects(last) { change.draft(last, zone)? } else { (several::draft_of(last), true) };
        let admins = change.admins.clone().unwrap_or_else(|| IdSet::new(before.admins.iter().map(|id| id.0)));
        let draft = Draft { admins, ..draft };
        let times = FirstTimes::of(*draft.starts_at, *draft.ends_at, zone);
        let times =
            times.ok_or_else(|| refused("needs a last event that ends after it begins by the clocks".to_owned()))?;
        let skipped = before.skipped.iter().map(|date| day(date.starts_at, zone)).filter(|date| *date > until);
        let of_events = before.events.iter().filter(|event| removed.contains(&event.row.id));
        let removed = of_events.map(|event| day(event.row.starts_at, zone)).chain(skipped).collect();
        let deleted = several::deleted_starts(conn, row.id)?.into_iter().map(|at| day(at, zone)).collect();
        let start = |event: &&Event| -> Result<_, Error> {
            if change.selects(event) { Ok(*change.draft(event, zone)?.0.starts_at) } else { Ok(*event.row.starts_at) }
        };
        let (exdates, starts) = (row.exdates(), left.iter().map(start).collect::<Result<_, Error>>()?);
        let present = Present {
            rule: &rule,
            first: &first,
            exdates: &exdates,
            removed: &removed,
            deleted: &deleted,
            starts: &starts,
        };
        let extension = present.until(until, &times, zone).map_err(|refusal| refused(refusal.to_string()))?;
        let Extension { rule, exdates, dates } = extension;
        if left.len() + dates.len() > MAX_DATES {
            return Err(refused(format!("must leave at most {MAX_DATES} dates")));
        }
        let dates =
            dates.into_iter().zip(row.next_occurrence..).map(|(times, number)| Date { number, times }).collect();
        if let Some(next) = until.succ_opt().and_then(|next| instant_or_next(next, NaiveTime::MIN, zone)) {
            forget_skipped(conn, row.id, DbTimestamp(next))?;
        }
        Ok(Self { rule, exdates, dates, draft, like: last.row.clone() })
    }

    /// Stores the rule and the new events, unless a date cannot be booked. Returns the ids of the events.
    fn store(
        &self,
        conn: &mut AnyConnection,
        row: &Row,
        refused: &mut Vec<Refused>,
        by: &Author,
        now: DbTimestamp,
    ) -> Result<Vec<DbUuid>, Error> {
        let (bookable, more) = find_rooms(conn, &self.draft, Some(&self.like), &self.dates)?;
        refused.extend(more);
        if !refused.is_empty() {
            return Ok(Vec::new());
        }
        let next = self.dates.last().map_or(row.next_occurrence, |date| date.number + 1);
        diesel::update(event_series::table.find(row.id))
            .set((
                event_series::rrule.eq(self.rule.to_string()),
                event_series::exdates.eq(as_text(&self.exdates)),
                event_series::next_occurrence.eq(next),
            ))
            .execute(conn)?;
        several::create_all(conn, &self.draft, row.id, &bookable, by, now)
    }
}
