//! What the other system allowed and this one refuses: double bookings, overlapping verified rooms, and events outside
//! the time of their room.

use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    import::Import,
};

use crate::{
    rooms::overlap::{self, Span, Use},
    schema::{events, places, rooms},
};

const DOUBLE: &str = "double bookings, here as they are";
const ROOMS: &str = "verified rooms that overlap, here as they are";
const OUTSIDE: &str = "events outside the time of their room, here as they are";

/// The use of a place by an event.
struct Booking {
    event: DbUuid,
    usage: Use,
}

/// Lists all of it, place by place.
pub fn list(conn: &mut AnyConnection, import: &mut Import) -> Result<(), Error> {
    let places: Vec<String> = places::table.select(places::key).order(places::key).load(conn)?;
    for place in places {
        list_place(conn, import, &place)?;
    }
    let outside = events::table
        .inner_join(rooms::table)
        .filter(events::deleted_at.is_null())
        .filter(events::starts_at.lt(rooms::starts_at).or(events::ends_at.gt(rooms::ends_at)))
        .select((events::id, rooms::id))
        .order(events::id);
    for (event, room) in outside.load::<(DbUuid, DbUuid)>(conn)? {
        import.report.note(OUTSIDE, || format!("{event}, room {room}"));
    }
    Ok(())
}

fn list_place(conn: &mut AnyConnection, import: &mut Import, place: &str) -> Result<(), Error> {
    let verified = rooms::table
        .filter(rooms::place_key.eq(place))
        .filter(rooms::verified.eq(true))
        .filter(rooms::deleted_at.is_null())
        .select((rooms::id, rooms::starts_at, rooms::ends_at))
        .order((rooms::starts_at, rooms::id));
    let verified: Vec<(DbUuid, DbTimestamp, DbTimestamp)> = verified.load(conn)?;
    let verified: Vec<_> = verified.into_iter().map(|(id, from, to)| (id, span(from, to))).collect();
    overlapping(
        &verified,
        |(_, period)| *period,
        |(a, _), (b, _)| {
            import.report.note(ROOMS, || format!("{a} and {b}"));
        },
    );
    let bookings = events::table
        .filter(events::place_key.eq(place))
        .filter(events::deleted_at.is_null())
        .select((events::id, events::room_id, events::starts_at, events::ends_at, events::shared))
        .order((events::starts_at, events::id));
    let bookings: Vec<(DbUuid, DbUuid, DbTimestamp, DbTimestamp, bool)> = bookings.load(conn)?;
    let bookings: Vec<_> = bookings
        .into_iter()
        .map(|(event, room, from, to, shared)| Booking { event, usage: Use { room, span: span(from, to), shared } })
        .collect();
    let periods: Vec<_> = verified.into_iter().map(|(_, period)| period).collect();
    overlapping(
        &bookings,
        |booking| booking.usage.span,
        |a, b| {
            if overlap::conflicts(&a.usage, &b.usage, &periods) {
                import.report.note(DOUBLE, || format!("{} and {}, {place}", a.event, b.event));
            }
        },
    );
    Ok(())
}

fn span(from: DbTimestamp, to: DbTimestamp) -> Span {
    Span { start: from.utc(), end: to.utc() }
}

/// Hands each pair of items whose spans overlap to `found`. The items are in the order of their start.
fn overlapping<T>(items: &[T], span: impl Fn(&T) -> Span, mut found: impl FnMut(&T, &T)) {
    let mut under_way: Vec<&T> = Vec::new();
    for item in items {
        under_way.retain(|other| span(other).end > span(item).start);
        for other in &under_way {
            found(other, item);
        }
        under_way.push(item);
    }
}
