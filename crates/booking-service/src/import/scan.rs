//! Reports imported data that breaks the rules of this service: double bookings, overlapping verified rooms, and events
//! outside the period of their room.

use diesel::prelude::*;
use import::Import;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use crate::{
    rooms::overlap::{self, Span, Use},
    schema::{events, places, rooms},
};

const DOUBLE_BOOKINGS: &str = "double bookings, imported as they are";
const OVERLAPPING_ROOMS: &str = "verified rooms that overlap, imported as they are";
const OUTSIDE_ROOM: &str = "events outside the period of their room, imported as they are";

/// The use of a place by an event.
struct Booking {
    event: DbUuid,
    usage: Use,
}

/// Adds a note to the report for each violation, place by place.
pub fn report_violations(conn: &mut AnyConnection, import: &mut Import) -> Result<(), Error> {
    let places: Vec<String> = places::table.select(places::key).order(places::key).load(conn)?;
    for place in places {
        report_place(conn, import, &place)?;
    }
    let outside = events::table
        .inner_join(rooms::table)
        .filter(events::deleted_at.is_null())
        .filter(events::starts_at.lt(rooms::starts_at).or(events::ends_at.gt(rooms::ends_at)))
        .select((events::id, rooms::id))
        .order(events::id);
    for (event, room) in outside.load::<(DbUuid, DbUuid)>(conn)? {
        import.report.note(OUTSIDE_ROOM, || format!("{event}, room {room}"));
    }
    Ok(())
}

fn report_place(conn: &mut AnyConnection, import: &mut Import, place: &str) -> Result<(), Error> {
    let verified = rooms::table
        .filter(rooms::place_key.eq(place))
        .filter(rooms::verified.eq(true))
        .filter(rooms::deleted_at.is_null())
        .select((rooms::id, rooms::starts_at, rooms::ends_at))
        .order((rooms::starts_at, rooms::id));
    let verified: Vec<(DbUuid, DbTimestamp, DbTimestamp)> = verified.load(conn)?;
    let verified: Vec<_> = verified.into_iter().map(|(id, from, to)| (id, Span::between(from, to))).collect();
    each_overlapping_pair(
        &verified,
        |(_, period)| *period,
        |(a, _), (b, _)| {
            import.report.note(OVERLAPPING_ROOMS, || format!("{a} and {b}"));
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
                import.report.note(DOUBLE_BOOKINGS, || format!("{} and {}, {place}", a.event, b.event));
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
