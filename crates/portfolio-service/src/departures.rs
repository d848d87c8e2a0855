//! Who took themselves off the members of a project or team. They may still change it for a minute, because the
//! dashboard sends the list of members and the other changes at the same time (contract, "Member spans").

use chrono::TimeDelta;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use crate::schema::departures;

/// How long a departure is recent.
const RECENT: TimeDelta = TimeDelta::minutes(1);

fn oldest_recent(now: DbTimestamp) -> DbTimestamp {
    DbTimestamp(now.plus(-RECENT))
}

/// Records that a user left a project or team, and deletes departures that are no longer recent.
pub fn record(conn: &mut AnyConnection, object: DbUuid, user: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    diesel::delete(departures::table.filter(departures::left_at.lt(oldest_recent(now)))).execute(conn)?;
    let row = (departures::object_id.eq(object), departures::user_id.eq(user), departures::left_at.eq(now));
    with_connection!(conn, c => diesel::insert_into(departures::table)
        .values(row)
        .on_conflict((departures::object_id, departures::user_id))
        .do_update()
        .set(departures::left_at.eq(now))
        .execute(c))?;
    Ok(())
}

/// Whether a user left a project or team within the last minute.
pub fn is_recent(conn: &mut AnyConnection, object: DbUuid, user: DbUuid, now: DbTimestamp) -> Result<bool, Error> {
    let departure = departures::table.find((object, user)).filter(departures::left_at.ge(oldest_recent(now)));
    Ok(departure.select(departures::user_id).first::<DbUuid>(conn).optional()?.is_some())
}
