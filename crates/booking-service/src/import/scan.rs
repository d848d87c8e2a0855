//! Reports imported data that breaks the rules of this service: double bookings, overlapping verified rooms, and events
//! outside the period of their room.

use diesel::prelude::*;
use import::Import;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
};

use crate::{
    rooms::existing_conflicts::{ExistingConflict, each_at},
    schema::{events, places, rooms},
};

const DOUBLE_BOOKINGS: &str = "double bookings, imported as they are";
const OVERLAPPING_ROOMS: &str = "verified rooms that overlap, imported as they are";
const OUTSIDE_ROOM: &str = "events outside the period of their room, imported as they are";

/// Adds a note to the report for each violation, place by place.
pub fn report_violations(conn: &mut AnyConnection, import: &mut Import) -> Result<(), Error> {
    let places: Vec<String> = places::table.select(places::key).order(places::key).load(conn)?;
    for place in places {
        each_at(conn, &place, |conflict| match conflict {
            ExistingConflict::VerifiedRooms(a, b) => import.report.note(OVERLAPPING_ROOMS, || format!("{a} and {b}")),
            ExistingConflict::Events(a, b) => import.report.note(DOUBLE_BOOKINGS, || format!("{a} and {b}, {place}")),
        })?;
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
