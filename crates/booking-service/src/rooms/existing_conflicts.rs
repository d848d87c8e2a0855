//! The stored data that breaks the rule against double booking, which only an import or a changed rule can bring.

use std::fmt;

use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use super::overlap::{self, Span, Use};
use crate::schema::{events, rooms};

/// Two rows that exclude each other.
#[derive(Debug, Clone, Copy)]
pub enum ExistingConflict {
    /// Two verified rooms of one place that overlap.
    VerifiedRooms(DbUuid, DbUuid),
    /// A double booking.
    Events(DbUuid, DbUuid),
}

impl fmt::Display for ExistingConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VerifiedRooms(a, b) => write!(f, "the verified rooms {a} and {b} overlap"),
            Self::Events(a, b) => write!(f, "the events {a} and {b} are a double booking"),
        }
    }
}

/// The use of a place by an event.
struct Booking {
    event: DbUuid,
    usage: Use,
}

/// Calls `action` for each conflict at a place.
pub fn each_at(
    conn: &mut AnyConnection,
    place_key: &str,
    mut action: impl FnMut(ExistingConflict),
) -> Result<(), Error> {
    let verified = rooms::table
        .filter(rooms::place_key.eq(place_key))
        .filter(rooms::verified.eq(true))
        .filter(rooms::deleted_at.is_null())
        .select((rooms::id, rooms::starts_at, rooms::ends_at))
        .order((rooms::starts_at, rooms::id));
    let verified: Vec<(DbUuid, DbTimestamp, DbTimestamp)> = verified.load(conn)?;
    let verified: Vec<_> = verified.into_iter().map(|(id, from, to)| (id, Span::between(from, to))).collect();
    each_overlapping_pair(
        &verified,
        |(_, period)| *period,
        |(a, _), (b, _)| action(ExistingConflict::VerifiedRooms(*a, *b)),
    );
    let bookings = events::table
        .filter(events::place_key.eq(place_key))
        .filter(events::deleted_at.is_null())
        .select((events::id, events::room_id, events::starts_at, events::ends_at, events::shared))
        .order((events::starts_at, events::id));
    let bookings: Vec<(DbUuid, DbUuid, DbTimestamp, DbTimestamp, bool)> = bookings.load(conn)?;
    let bookings: Vec<_> = bookings
        .into_iter()
        .map(|(event, room, from, to, shared)| Booking {
            event,
            usage: Use { room, span: Span::between(from, to), shared },
        })
        .collect();
    let periods: Vec<_> = verified.into_iter().map(|(_, period)| period).collect();
    each_overlapping_pair(
        &bookings,
        |booking| booking.usage.span,
        |a, b| {
            if overlap::conflicts(&a.usage, &b.usage, &periods) {
                action(ExistingConflict::Events(a.event, b.event));
            }
        },
    );
    Ok(())
}

/// Calls `action` for each pair of items whose spans overlap. The items are ordered by start.
fn each_overlapping_pair<T>(items: &[T], span: impl Fn(&T) -> Span, mut action: impl FnMut(&T, &T)) {
    let mut earlier: Vec<&T> = Vec::new();
    for item in items {
        earlier.retain(|other| span(other).end > span(item).start);
        for other in &earlier {
            action(other, item);
        }
        earlier.push(item);
    }
}
