//! What is sent at a time, not after a change: it is due as long as no delivery says that it was sent.

use std::collections::HashMap;

use chrono::{NaiveDate, NaiveTime, TimeDelta};
use diesel::{
    dsl::{exists, not},
    prelude::*,
};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use super::{kinds::Type, outbox::NewDelivery, queries::Webhook};
use crate::{
    club::Club,
    events::selection::{Criterion, Selection},
    schema::{draft_events, events},
    wall_clock::instant_or_next,
};

/// How long something is due: longer than an outage that is worth mentioning.
const DUE: TimeDelta = TimeDelta::days(1);

/// The time between two looks.
const INTERVAL: TimeDelta = TimeDelta::seconds(5);

/// The most objects of a kind that a look finds.
const MOST: i64 = 1000;

/// What this replica knows to have been inserted.
#[derive(Debug, Clone, Default)]
pub struct Timed {
    known: HashMap<(DbUuid, String), DbTimestamp>,
    looked_at: Option<DbTimestamp>,
}

impl Timed {
    /// Notes that these have been inserted.
    pub fn note(&mut self, new: &[NewDelivery], now: DbTimestamp) {
        let oldest = DbTimestamp(now.plus(-DUE * 2));
        self.known.retain(|_, at| *at > oldest);
        self.known.extend(new.iter().map(|new| ((new.webhook, new.cause.clone()), now)));
        if self.is_time(now) {
            self.looked_at = Some(now);
        }
    }

    fn is_time(&self, now: DbTimestamp) -> bool {
        self.looked_at.is_none_or(|at| at.plus(INTERVAL) <= *now || at > now)
    }
}

/// What is due now and may not have been inserted yet.
pub fn due(
    conn: &mut AnyConnection,
    webhooks: &[Webhook],
    timed: &Timed,
    club: &Club,
    now: DbTimestamp,
) -> Result<Vec<NewDelivery>, Error> {
    let mut new = Vec::new();
    if !timed.is_time(now) {
        return Ok(new);
    }
    let takes = |kind: Type| webhooks.iter().any(|webhook| webhook.takes(kind, now));
    if takes(Type::PollClosed) {
        for (poll, deadline) in closed_polls(conn, now)? {
            for webhook in webhooks.iter().filter(|webhook| webhook.takes(Type::PollClosed, deadline)) {
                let cause = format!("closed:{poll}:{}", deadline.micros());
                new.push(NewDelivery::now(webhook.id, cause, Type::PollClosed, poll, deadline));
            }
        }
    }
    let (day, due_at) = todays_digest(club, now);
    if takes(Type::Digest) && now >= due_at && now < digest_ends(club, due_at) {
        for webhook in webhooks.iter().filter(|webhook| webhook.takes(Type::Digest, due_at)) {
            new.push(NewDelivery::now(webhook.id, format!("digest:{day}"), Type::Digest, webhook.id, due_at));
        }
    }
    if takes(Type::Reminder) {
        let ahead = TimeDelta::hours(club.messages.reminder_hours.into());
        for (event, group, start) in coming_events(conn, now, ahead)? {
            let due_at = DbTimestamp(start.plus(-ahead));
            let wants = |webhook: &&Webhook| webhook.takes(Type::Reminder, due_at) && webhook.takes_group(group);
            for webhook in webhooks.iter().filter(wants) {
                let cause = format!("reminder:{event}:{}", start.micros());
                new.push(NewDelivery::now(webhook.id, cause, Type::Reminder, event, due_at));
            }
        }
        for (poll, deadline) in ending_polls(conn, now, ahead)? {
            let due_at = DbTimestamp(deadline.plus(-ahead));
            let wants = |webhook: &&Webhook| webhook.takes(Type::Reminder, due_at) && webhook.group_ids.is_empty();
            for webhook in webhooks.iter().filter(wants) {
                let cause = format!("reminder:{poll}:{}", deadline.micros());
                new.push(NewDelivery::now(webhook.id, cause, Type::Reminder, poll, due_at));
            }
        }
    }
    new.retain(|new| !timed.known.contains_key(&(new.webhook, new.cause.clone())));
    Ok(new)
}

/// The present day and when its digest is due.
fn todays_digest(club: &Club, now: DbTimestamp) -> (NaiveDate, DbTimestamp) {
    let day = now.utc().with_timezone(&club.zone).date_naive();
    (day, at(club, day, club.messages.digest_time.0).unwrap_or(now))
}

fn at(club: &Club, day: NaiveDate, time: NaiveTime) -> Option<DbTimestamp> {
    instant_or_next(day, time, club.zone).map(DbTimestamp)
}

/// When a digest that was due at this time comes too late: at noon, or if it is sent later, at the end of the day.
pub fn digest_ends(club: &Club, due_at: DbTimestamp) -> DbTimestamp {
    let local = due_at.utc().with_timezone(&club.zone).naive_local();
    let noon = NaiveTime::from_hms_opt(12, 0, 0).unwrap_or_default();
    let end = if local.time() < noon {
        at(club, local.date(), noon)
    } else {
        local.date().succ_opt().and_then(|next| at(club, next, NaiveTime::MIN))
    };
    end.unwrap_or(due_at)
}

/// The events that begin within this time, and that were there before: who is invited later has the announcement.
fn coming_events(
    conn: &mut AnyConnection,
    now: DbTimestamp,
    ahead: TimeDelta,
) -> Result<Vec<(DbUuid, DbUuid, DbTimestamp)>, Error> {
    let until = DbTimestamp(now.plus(ahead));
    let query = Selection::new(Criterion::All).between((Some(now), Some(until))).query();
    let query = query.filter(events::starts_at.gt(now)).order((events::starts_at, events::id)).limit(MOST);
    let found = query.select((events::id, events::group_id, events::starts_at, events::created_at));
    let found: Vec<(DbUuid, DbUuid, DbTimestamp, DbTimestamp)> = found.load(conn)?;
    let was_there = found.into_iter().filter(|(.., start, created_at)| created_at.plus(ahead) < start.0);
    Ok(was_there.map(|(id, group, start, _)| (id, group, start)).collect())
}

/// The polls whose deadline is within this time, that have not been confirmed, and that were there before.
fn ending_polls(
    conn: &mut AnyConnection,
    now: DbTimestamp,
    ahead: TimeDelta,
) -> Result<Vec<(DbUuid, DbTimestamp)>, Error> {
    let event =
        events::table.filter(events::id.nullable().eq(draft_events::event_id)).filter(events::deleted_at.is_null());
    let query = draft_events::table
        .filter(draft_events::deadline.gt(now))
        .filter(draft_events::deadline.le(DbTimestamp(now.plus(ahead))))
        .filter(draft_events::deleted_at.is_null())
        .filter(not(exists(event)))
        .order(draft_events::deadline);
    let found = query.limit(MOST).select((draft_events::id, draft_events::deadline, draft_events::created_at));
    let found: Vec<(DbUuid, DbTimestamp, DbTimestamp)> = found.load(conn)?;
    let was_there = found.into_iter().filter(|(_, deadline, created_at)| created_at.plus(ahead) < deadline.0);
    Ok(was_there.map(|(id, deadline, _)| (id, deadline)).collect())
}

/// The polls whose deadline has passed lately and that have not been confirmed.
fn closed_polls(conn: &mut AnyConnection, now: DbTimestamp) -> Result<Vec<(DbUuid, DbTimestamp)>, Error> {
    let event =
        events::table.filter(events::id.nullable().eq(draft_events::event_id)).filter(events::deleted_at.is_null());
    let query = draft_events::table
        .filter(draft_events::deadline.gt(DbTimestamp(now.plus(-DUE))))
        .filter(draft_events::deadline.le(now))
        .filter(draft_events::deleted_at.is_null())
        .filter(not(exists(event)))
        .order(draft_events::deadline);
    Ok(query.limit(MOST).select((draft_events::id, draft_events::deadline)).load(conn)?)
}
