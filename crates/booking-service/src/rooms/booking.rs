//! The lock on a place, and the events in the way of a booking (contract, "No double booking").
//!
//! Whatever may create a conflict takes the locks of the places it touches, in sorted order, before it looks. What it
//! read before it had them may be stale and is read again.

use chrono_tz::Tz;
use common::problem::Problem;
use diesel::prelude::*;
use serde_json::{Value, json};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use super::{
    Interval,
    overlap::{self, Span, Use},
};
use crate::{
    codes,
    schema::{events, places, rooms},
};

/// Locks places until the end of the transaction, making the rows of those that are new.
///
/// On SQLite the transaction is the only writer already.
///
/// # Errors
/// When the database fails or a lock cannot be had in time.
pub fn lock_places(conn: &mut AnyConnection, mut keys: Vec<String>) -> Result<(), Error> {
    // One order for everybody: two transactions that want the same places never wait for each other in a circle.
    keys.sort_unstable();
    keys.dedup();
    let rows: Vec<_> = keys.iter().map(|key| places::key.eq(key)).collect();
    with_connection!(conn, c => diesel::insert_into(places::table).values(&rows).on_conflict_do_nothing().execute(c)?);
    if let AnyConnection::Postgresql(pg) = conn {
        // Not FOR UPDATE: that would also hold up everybody who only refers to the place by a foreign key.
        places::table
            .filter(places::key.eq_any(&keys))
            .order(places::key)
            .for_no_key_update()
            .select(places::key)
            .load::<String>(pg)?;
    }
    Ok(())
}

/// A booking that is about to be made.
#[derive(Debug)]
pub struct Booking<'a> {
    /// The place, as [`place_key`](super::place::place_key) gives it.
    pub place_key: &'a str,
    /// The room, unless it is yet to be made.
    pub room: Option<DbUuid>,
    /// Whether the room is verified.
    pub verified: bool,
    /// When, and whether others may share.
    pub starts_at: DbTimestamp,
    /// The end of it.
    pub ends_at: DbTimestamp,
    /// Whether others may share.
    pub shared: bool,
    /// The event that is being changed, which is not in its own way.
    pub except: Option<DbUuid>,
}

/// An event in the way.
#[derive(Debug, Clone, Copy, Queryable)]
pub struct Conflict {
    /// The event.
    pub event: DbUuid,
    starts_at: DbTimestamp,
    ends_at: DbTimestamp,
    shared: bool,
}

impl Conflict {
    /// An event by its use of a place.
    #[must_use]
    pub fn new(event: DbUuid, starts_at: DbTimestamp, ends_at: DbTimestamp, shared: bool) -> Self {
        Self { event, starts_at, ends_at, shared }
    }

    /// Its use of the place.
    #[must_use]
    pub fn usage(&self) -> Use {
        Use { span: Span { start: self.starts_at.utc(), end: self.ends_at.utc() }, shared: self.shared }
    }

    fn body(&self, zone: Tz) -> Value {
        json!({
            "eventId": self.event,
            "timeStart": self.starts_at.in_zone(zone),
            "timeEnd": self.ends_at.in_zone(zone),
            "sharedRoom": self.shared,
        })
    }
}

/// The events that conflict with a booking, in order of time. The place must be locked.
///
/// # Errors
/// When the database fails.
pub fn conflicts(conn: &mut AnyConnection, booking: &Booking<'_>) -> Result<Vec<Conflict>, Error> {
    let mut query = events::table
        .inner_join(rooms::table)
        .filter(events::place_key.eq(booking.place_key))
        .filter(events::deleted_at.is_null())
        .filter(overlapping!(events, booking.starts_at, booking.ends_at))
        .select((events::id, events::starts_at, events::ends_at, events::shared))
        .order((events::starts_at, events::id))
        .into_boxed();
    if !booking.verified {
        query = match booking.room {
            Some(room) => query.filter(rooms::verified.eq(true).or(events::room_id.eq(room))),
            None => query.filter(rooms::verified.eq(true)),
        };
    }
    if booking.shared {
        query = query.filter(events::shared.eq(false));
    }
    if let Some(event) = booking.except {
        query = query.filter(events::id.ne(event));
    }
    Ok(query.load(conn)?)
}

/// 409 `room-conflict`, with when the room is free.
#[must_use]
pub fn conflict(conflicts: &[Conflict], free: Vec<Span>, zone: Tz) -> Problem {
    Problem::new(codes::ROOM_CONFLICT)
        .member("conflicts", conflicts.iter().map(|conflict| conflict.body(zone)).collect())
        .member("freeTimes", json!(Interval::all(free, zone)))
}

/// The free parts of a window when only these events use it.
#[must_use]
pub fn free_between(window: Span, conflicts: &[Conflict]) -> Vec<Span> {
    let uses: Vec<_> = conflicts.iter().map(Conflict::usage).collect();
    overlap::free_times(window, &uses)
}
