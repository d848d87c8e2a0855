//! The events of a feed, and the nonces that feed addresses are made from.

use std::collections::HashMap;

use chrono::TimeDelta;
use common::time::Timestamp;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    db::{
        AnyConnection,
        sql::{Moment, Uid},
        within,
    },
    error::Error,
};

use super::feed::{FeedEvent, Participation, Person};
use crate::{
    auth::ACTIVE,
    events::{
        queries::{Event, Order, Schedule, load},
        selection::{Deleted, Selection, Which},
    },
    schema::{attendees, events, users},
};

/// How long an event stays after its end.
const PAST: TimeDelta = TimeDelta::days(90);

/// How long a deleted event stays, as cancelled.
const CANCELLED: TimeDelta = TimeDelta::days(30);

/// The nonce of a user's feed, or `None` before its first use.
///
/// # Errors
/// When the database fails.
pub fn nonce(conn: &mut AnyConnection, user: Uid) -> Result<Option<String>, Error> {
    Ok(users::table.find(user).select(users::feed_nonce).first(conn)?)
}

/// The nonce of an active user's feed, or `None` when there is no such user or feed.
///
/// # Errors
/// When the database fails.
pub fn nonce_of_active(conn: &mut AnyConnection, user: Uid) -> Result<Option<String>, Error> {
    let user = users::table.find(user).filter(users::state.eq(ACTIVE));
    Ok(user.select(users::feed_nonce).first(conn).optional()?.flatten())
}

/// Sets the nonce of a user's feed unless there is one already.
///
/// # Errors
/// When the database fails.
pub fn set_first_nonce(conn: &mut AnyConnection, user: Uid, nonce: &str) -> Result<(), Error> {
    let without = users::table.find(user).filter(users::feed_nonce.is_null());
    diesel::update(without).set(users::feed_nonce.eq(nonce)).execute(conn)?;
    Ok(())
}

/// Sets the nonce of a user's feed.
///
/// # Errors
/// When the database fails.
pub fn replace_nonce(conn: &mut AnyConnection, user: Uid, nonce: &str) -> Result<(), Error> {
    diesel::update(users::table.find(user)).set(users::feed_nonce.eq(nonce)).execute(conn)?;
    Ok(())
}

/// What a feed shows at `now` of these events, by start and id, in five statements whatever its length.
///
/// # Errors
/// When the database fails.
pub fn shown(conn: &mut AnyConnection, which: Which, now: Timestamp) -> Result<Vec<FeedEvent>, Error> {
    let selection = Selection {
        which,
        from: Some(Moment(now.plus(-PAST))),
        to: None,
        changed_after: None,
        deleted: Deleted::After(Moment(now.plus(-CANCELLED))),
    };
    let found = load(conn, &selection, Order::Start)?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let ids = || selection.query().select(events::id);
    let answered = attendees::table.filter(within(attendees::event_id, ids())).select(attendees::user_id);
    let made = selection.query().select(events::created_by);
    let names: HashMap<Uid, String> = users::table
        .filter(within(users::id, answered).or(within(users::id, made)))
        .select((users::id, users::display_name))
        .load(conn)?
        .into_iter()
        .collect();
    Ok(found.into_iter().map(|event| feed_event(event, &names)).collect())
}

fn feed_event(event: Event, names: &HashMap<Uid, String>) -> FeedEvent {
    let person = |id: Uid| Person { id: id.0, name: names.get(&id).cloned().unwrap_or_default() };
    let attendee = |(user, schedule)| {
        let participation = match schedule {
            Schedule::Pending => Participation::NeedsAction,
            Schedule::Absent => Participation::Declined,
            Schedule::Attendance => Participation::Accepted,
        };
        (person(user), participation)
    };
    let row = event.row;
    FeedEvent {
        id: row.id.0,
        start: row.starts_at.utc(),
        end: row.ends_at.utc(),
        created_at: row.created_at.utc(),
        updated_at: row.updated_at.utc(),
        sequence: u32::try_from(row.sequence).unwrap_or_default(),
        cancelled: row.deleted_at.is_some(),
        tags: event.tags.into_iter().map(|tag| tag.name).collect(),
        organizer: person(row.created_by),
        attendees: event.attendees.into_iter().map(attendee).collect(),
        name: row.name,
        description: row.description,
        place: row.place,
    }
}
