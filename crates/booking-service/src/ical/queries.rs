//! The events of a feed, and the nonces that feed addresses are made from.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use chrono::TimeDelta;
use common::time::Timestamp;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    http::pagination::CHUNK,
};

use super::feed::{FeedEvent, Participation, Person};
use crate::{
    auth::ACTIVE,
    events::{
        queries::{Event, Order, Schedule, load_page},
        selection::{Deleted, Selection, Which},
    },
    schema::users,
};

/// How long an event stays after its end.
const PAST: TimeDelta = TimeDelta::days(90);

/// How long a deleted event stays, as cancelled.
const CANCELLED: TimeDelta = TimeDelta::days(30);

/// The nonce of a user's feed, or `None` before its first use.
///
/// # Errors
/// When the database fails.
pub fn nonce(conn: &mut AnyConnection, user: DbUuid) -> Result<Option<String>, Error> {
    Ok(users::table.find(user).select(users::feed_nonce).first(conn)?)
}

/// What the feed addresses of a user are checked against.
#[derive(Debug, Default, Queryable)]
pub struct FeedSecrets {
    /// The nonce that the present address is derived from.
    pub nonce: Option<String>,
    /// Hash of an imported address.
    pub imported_hash: Option<Vec<u8>>,
}

/// The feed secrets of an active user; none when there is no such user.
///
/// # Errors
/// When the database fails.
pub fn secrets_of_active(conn: &mut AnyConnection, user: DbUuid) -> Result<FeedSecrets, Error> {
    let user = users::table.find(user).filter(users::state.eq(ACTIVE));
    let secrets = user.select((users::feed_nonce, users::imported_feed_hash)).first(conn).optional()?;
    Ok(secrets.unwrap_or_default())
}

/// Sets the nonce of a user's feed unless there is one already.
///
/// # Errors
/// When the database fails.
pub fn set_first_nonce(conn: &mut AnyConnection, user: DbUuid, nonce: &str) -> Result<(), Error> {
    let without = users::table.find(user).filter(users::feed_nonce.is_null());
    diesel::update(without).set(users::feed_nonce.eq(nonce)).execute(conn)?;
    Ok(())
}

/// Sets the nonce of a user's feed. An imported address ends as well.
///
/// # Errors
/// When the database fails.
pub fn replace_nonce(conn: &mut AnyConnection, user: DbUuid, nonce: &str) -> Result<(), Error> {
    diesel::update(users::table.find(user))
        .set((users::feed_nonce.eq(nonce), users::imported_feed_hash.eq(None::<Vec<u8>>)))
        .execute(conn)?;
    Ok(())
}

/// Hands what a feed shows at `now` of these events to `show`, by start and id, a [chunk](CHUNK) in memory at a time.
/// Takes four statements for a chunk, and one for each thousand users that are new in it.
///
/// # Errors
/// When the database fails.
pub fn each(
    conn: &mut AnyConnection,
    which: Which,
    now: Timestamp,
    mut show: impl FnMut(&FeedEvent),
) -> Result<(), Error> {
    let selection = Selection {
        which,
        from: Some(DbTimestamp(now.plus(-PAST))),
        to: None,
        changed_after: None,
        deleted: Deleted::After(DbTimestamp(now.plus(-CANCELLED))),
    };
    let rows = i64::try_from(CHUNK).unwrap_or(i64::MAX);
    let (mut names, mut after) = (HashMap::new(), None);
    loop {
        let found = load_page(conn, &selection, Order::Start, &PageBounds { after, rows })?;
        add_names(conn, &found, &mut names)?;
        let is_last = found.len() < CHUNK;
        after = found.last().map(|event| Order::Start.position(&event.row));
        for event in found {
            show(&feed_event(event, &names));
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Adds the names of those who made these events or answered to them.
fn add_names(conn: &mut AnyConnection, found: &[Event], names: &mut HashMap<DbUuid, Arc<str>>) -> Result<(), Error> {
    let answered = found.iter().flat_map(|event| &event.attendees).map(|(user, _)| *user);
    let people = answered.chain(found.iter().map(|event| event.row.created_by));
    let new: BTreeSet<DbUuid> = people.filter(|user| !names.contains_key(user)).collect();
    for ids in Vec::from_iter(new).chunks(CHUNK) {
        let users = users::table.filter(users::id.eq_any(ids)).select((users::id, users::display_name));
        names.extend(users.load::<(DbUuid, String)>(conn)?.into_iter().map(|(id, name)| (id, name.into())));
    }
    Ok(())
}

fn feed_event(event: Event, names: &HashMap<DbUuid, Arc<str>>) -> FeedEvent {
    let person = |id: DbUuid| Person { id: id.0, name: names.get(&id).cloned().unwrap_or_default() };
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
