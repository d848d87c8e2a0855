//! Changes of several occurrences of a series.

use std::collections::BTreeSet;

use chrono::{Days, NaiveDate, NaiveTime};
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
};

use super::{
    changes::{Also, day, forget_skipped, lock, touch},
    creation::{Date, count, find_rooms},
    queries::Row,
    refused::Refused,
    rule::{FirstTimes, MAX_DATES, Rule, expand},
    wire::series_conflict,
};
use crate::{
    auth::Caller,
    deletion,
    events::{
        self,
        creation::{Draft, Venue},
        queries::{Event, Row as EventRow},
        several::{self, Wish},
    },
    groups,
    schema::event_series,
    users,
    wall_clock::{instant, instant_or_next},
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

    /// An event after the change; with `false` if the clocks skip its start or end.
    fn draft(&self, event: &Event, zone: Tz) -> Result<(Draft, bool), Error> {
        let present = several::draft_of(event);
        let local = |at: DbTimestamp| at.utc().with_timezone(&zone).naive_local();
        let (mut starts_at, mut ends_at, mut exist) = (present.starts_at, present.ends_at, true);
        for (at, time) in [(&mut starts_at, self.start), (&mut ends_at, self.end)] {
            let Some(time) = time.filter(|time| *time != local(*at).time()) else { continue };
            let date = local(*at).date();
            exist &= instant(date, time, zone).is_some();
            let out_of_range =
                || Problem::invalid("/startTime", BrokenRule::Range, "is too near the end of the calendar");
            *at = DbTimestamp(instant_or_next(date, time, zone).ok_or_else(out_of_range)?);
        }
        if exist && starts_at >= ends_at {
            let message = "must be after the start of every occurrence";
            return Err(Problem::invalid("/endTime", BrokenRule::OutOfOrder, message).into());
        }
        let draft = Draft {
            name: self.name.clone().unwrap_or(present.name),
            description: self.description.clone().unwrap_or(present.description),
            shared: self.shared.unwrap_or(present.shared),
            starts_at,
            ends_at,
            venue: self.place.clone().map_or(present.venue, Venue::Place),
            group: self.group.unwrap_or(present.group),
            open: self.open.unwrap_or(present.open),
            admins: self.admins.clone().unwrap_or(present.admins),
            tags: self.tags.clone().unwrap_or(present.tags),
        };
        Ok((draft, exist))
    }
}

/// Changes the occurrences of a series, all or none.
///
/// # Errors
/// 404; 403 for anybody but the administrators of its first event and privileged users; 400; 409 `series-conflict`.
pub fn update(
    conn: &mut AnyConnection,
    id: DbUuid,
    change: &SeriesChange,
    me: &Caller,
    zone: Tz,
    now: DbTimestamp,
) -> Result<(), Error> {
    let also = Also { place: change.place.as_deref(), group: change.group };
    let (row, events) = lock(conn, id, &also, me)?;
    let series_zone = row.zone()?;
    let is_after = |event: &Event| change.until.is_some_and(|until| day(event.row.starts_at, series_zone) > until);
    let (removed, selected): (Vec<&Event>, Vec<_>) =
        events.iter().filter(|event| change.selects(event)).partition(|event| is_after(event));
    check_references(conn, change, &selected)?;
    let mut changed = Vec::new();
    let mut refused = Vec::new();
    for event in &selected {
        let (draft, exist) = change.draft(event, series_zone)?;
        if several::is_unchanged(event, &draft) {
            continue;
        }
        let number = event.row.occurrence.unwrap_or_default();
        if exist {
            changed.push((*event, number, draft));
        } else {
            refused.push(Refused::nonexistent(number, (draft.starts_at, draft.ends_at)));
        }
    }
    let removed: Vec<_> = removed.iter().map(|event| event.row.id).collect();
    let left: Vec<_> = events.iter().filter(|event| !removed.contains(&event.row.id)).collect();
    let extension = match change.until {
        Some(until) => Some(Extension::new(&row, until, change, &left)?),
        None => None,
    };
    // Before conflicts are searched.
    deletion::delete_events(conn, &removed, &me.author, now)?;
    let after_until = change.until.and_then(|until| instant_or_next(until.succ_opt()?, NaiveTime::MIN, series_zone));
    let forgotten = after_until.map_or(Ok(0), |from| forget_skipped(conn, id, DbTimestamp(from)))?;
    let wishes = changed.iter().map(|(event, _, draft)| {
        let like = (event.row.place == place_of(draft)).then_some(&event.row);
        Wish { draft: draft.clone(), event: Some(&event.row), like }
    });
    let choices = several::find_rooms(conn, &wishes.collect::<Vec<_>>())?;
    let mut stored = Vec::new();
    for ((event, number, draft), choice) in changed.iter().zip(choices) {
        match choice {
            Ok(choice) => stored.push((*event, draft, choice)),
            Err(obstacle) => refused.push(Refused::new(*number, (draft.starts_at, draft.ends_at), obstacle)),
        }
    }
    let stored_any = !stored.is_empty();
    if refused.is_empty() {
        for (event, draft, choice) in stored {
            several::change(conn, event, draft, choice, &me.author, now)?;
        }
        let before: Vec<Event> = changed.iter().map(|(event, ..)| (*event).clone()).collect();
        let after = several::of_series(conn, id)?;
        events::record_changes(conn, &before, &after, &me.author, zone)?;
    }
    let mut rule_changed = false;
    if let Some(extension) = extension {
        // After the changes are stored, so that the new events are checked against them.
        let (bookable, more) = find_rooms(conn, &extension.draft, Some(&extension.like), &extension.dates)?;
        refused.extend(more);
        if refused.is_empty() {
            let new = several::create_all(conn, &extension.draft, id, &bookable, &me.author, now)?;
            count(conn, new.len(), &me.author, now)?;
            events::record_new(conn, &new, &me.author, zone)?;
            rule_changed = extension.store(conn, &row)?;
        }
    }
    if !refused.is_empty() {
        refused.sort_unstable_by_key(|date| (date.starts_at, date.number));
        return Err(series_conflict(&refused, zone));
    }
    if stored_any || rule_changed || forgotten > 0 || !removed.is_empty() { touch(conn, id, now) } else { Ok(()) }
}

fn place_of(draft: &Draft) -> &str {
    if let Venue::Place(place) = &draft.venue { place } else { "" }
}

/// Checks that the group and the administrators of a change exist.
fn check_references(conn: &mut AnyConnection, change: &SeriesChange, selected: &[&Event]) -> Result<(), Error> {
    let mut violations = Violations::default();
    if let Some(admins) = &change.admins {
        let present = selected.last().map(|event| event.admins.clone()).unwrap_or_default();
        users::queries::note_unfit_admins(conn, admins, &present, &mut violations)?;
    }
    if let Some(group) = change.group
        && selected.iter().any(|event| event.row.group_id != group)
        && !groups::queries::lock_against_deletion(conn, group)?
    {
        violations.push("/groupId", BrokenRule::UnknownGroup, "names no group");
    }
    Ok(violations.into_result()?)
}

/// The dates that a series has after its rule got another end.
struct Extension {
    rule: Rule,
    dates: Vec<Date>,
    /// What the new events are like.
    draft: Draft,
    like: EventRow,
}

impl Extension {
    fn new(row: &Row, until: NaiveDate, change: &SeriesChange, left: &[&Event]) -> Result<Self, Error> {
        let zone = row.zone()?;
        let (rule, first) = row.rule()?;
        let refused = |message: String| Error::from(Problem::invalid("/until", BrokenRule::Range, message));
        if until < first.date {
            return Err(refused("must not be before the first date of the series".to_owned()));
        }
        let last = left.last().ok_or_else(|| refused("leaves no event of the series: delete it instead".to_owned()))?;
        let (draft, _) = if change.selects(last) { change.draft(last, zone)? } else { (several::draft_of(last), true) };
        let present = expand(&rule, &first, zone).map_err(|refusal| refused(refusal.to_string()))?;
        let rule = rule.until(until);
        let all = expand(&rule, &first, zone).map_err(|refusal| refused(refusal.to_string()))?;
        let local = |at: DbTimestamp| at.utc().with_timezone(&zone).naive_local();
        let (start, end) = (local(draft.starts_at), local(draft.ends_at));
        let days = u64::try_from((end.date() - start.date()).num_days()).unwrap_or_default();
        let times = FirstTimes { date: start.date(), start: start.time(), days: Days::new(days), end: end.time() };
        let present: BTreeSet<_> = present.into_iter().map(|times| times.date).collect();
        let is_new = |date: &NaiveDate| {
            !present.contains(date) && !row.exdates.split(',').any(|excluded| *excluded == date.to_string())
        };
        let new = all.into_iter().map(|times| times.date).filter(is_new);
        let new: Option<Vec<_>> = new.map(|date| times.on(date, zone)).collect();
        let new = new.ok_or_else(|| refused("is too near the end of the calendar".to_owned()))?;
        if left.len() + new.len() > MAX_DATES {
            return Err(refused(format!("must leave at most {MAX_DATES} dates")));
        }
        let dates = new.into_iter().zip(row.next_occurrence..).map(|(times, number)| Date { number, times }).collect();
        Ok(Self { rule, dates, draft, like: last.row.clone() })
    }

    /// Stores the rule. Returns whether it is another one.
    fn store(&self, conn: &mut AnyConnection, row: &Row) -> Result<bool, Error> {
        let next = self.dates.last().map_or(row.next_occurrence, |date| date.number + 1);
        let rule = self.rule.to_string();
        let is_other = rule != row.rrule;
        diesel::update(event_series::table.find(row.id))
            .set((event_series::rrule.eq(rule), event_series::next_occurrence.eq(next)))
            .execute(conn)?;
        Ok(is_other)
    }
}
