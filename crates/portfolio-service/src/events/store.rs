//! Bringing the copy of the events up to date with what the booking-service has.

use std::collections::{HashMap, HashSet};

use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    copies::is_suspicious,
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use crate::{
    booking::{EventChange, Original},
    schema::{copies, event_hosts, events},
};

/// `copies.source` of the events.
pub const SOURCE: &str = "events";

/// What a copy changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changed {
    /// New or different ones.
    pub written: usize,
    /// Those that are gone.
    pub deleted: usize,
}

/// Makes the copies of these events equal to what was told of them. Levels are no part of it.
///
/// # Errors
/// When the database fails.
pub fn bring_up_to_date(conn: &mut AnyConnection, told: &[EventChange], now: DbTimestamp) -> Result<Changed, Error> {
    let mut copies = load(conn, told)?;
    let mut outdated = Vec::new();
    let fresh: Vec<&Original> = told
        .iter()
        .filter_map(|told| told.event.as_ref())
        .filter(|original| match copies.remove(&original.id) {
            Some(copy) if copy == **original => false,
            Some(_) => {
                outdated.push(original.id);
                true
            }
            None => true,
        })
        .collect();
    // What is left of the copies is told to be deleted.
    let changed = Changed { written: fresh.len(), deleted: copies.len() };
    outdated.extend(copies.into_keys());
    delete(conn, &outdated)?;
    insert(conn, &fresh, now)?;
    Ok(changed)
}

/// Why copies are kept: somebody else dropped the copy while it was made.
pub const DROPPED: &str = "the copy was dropped meanwhile";

/// Why copies are kept: the list lacks more than half of them.
pub const SUSPICIOUS: &str =
    "the booking-service lacks most of the events of the copy; they go if it lacks them the next time as well";

/// Deletes the copies of all other events, and returns how many there were, or why they are kept. `force` deletes them
/// also when they are most of the copy.
///
/// # Errors
/// When the database fails.
pub fn keep_only(
    conn: &mut AnyConnection,
    told: &HashSet<DbUuid>,
    force: bool,
) -> Result<Result<usize, &'static str>, Error> {
    let copies: Vec<DbUuid> = events::table.select(events::id).load(conn)?;
    let (kept, others): (Vec<_>, Vec<_>) = copies.into_iter().partition(|copy| told.contains(copy));
    if kept.len() < told.len() {
        return Ok(Err(DROPPED));
    }
    if !force && is_suspicious(kept.len() + others.len(), others.len()) {
        return Ok(Err(SUSPICIOUS));
    }
    delete(conn, &others)?;
    Ok(Ok(others.len()))
}

fn delete(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<(), Error> {
    for ids in ids.chunks(1000) {
        // Their hosts go with them.
        diesel::delete(events::table.filter(events::id.eq_any(ids))).execute(conn)?;
    }
    Ok(())
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = events)]
struct Row {
    id: DbUuid,
    name: String,
    description: String,
    place: String,
    since: DbTimestamp,
    until: DbTimestamp,
}

fn load(conn: &mut AnyConnection, told: &[EventChange]) -> Result<HashMap<DbUuid, Original>, Error> {
    let ids: Vec<DbUuid> = told.iter().map(|told| told.id).collect();
    let mut copies = HashMap::new();
    for ids in ids.chunks(1000) {
        let rows = events::table.filter(events::id.eq_any(ids)).select(Row::as_select()).load(conn)?;
        let hosts = event_hosts::table
            .filter(event_hosts::event_id.eq_any(ids))
            .order((event_hosts::event_id, event_hosts::user_id))
            .load(conn)?;
        copies.extend(copies_of(rows, hosts));
    }
    Ok(copies)
}

fn copies_of(rows: Vec<Row>, hosts: Vec<(DbUuid, DbUuid)>) -> HashMap<DbUuid, Original> {
    let copy = |Row { id, name, description, place, since, until }: Row| {
        (id, Original { id, name, description, place, since, until, hosts: Vec::new() })
    };
    let mut copies: HashMap<_, _> = rows.into_iter().map(copy).collect();
    for (event, user) in hosts {
        if let Some(copy) = copies.get_mut(&event) {
            copy.hosts.push(user);
        }
    }
    copies
}

fn insert(conn: &mut AnyConnection, originals: &[&Original], now: DbTimestamp) -> Result<(), Error> {
    for originals in originals.chunks(1000) {
        let row = |original: &&Original| {
            (
                events::id.eq(original.id),
                events::name.eq(original.name.clone()),
                events::description.eq(original.description.clone()),
                events::place.eq(original.place.clone()),
                events::since.eq(original.since),
                events::until.eq(original.until),
                events::updated_at.eq(now),
            )
        };
        let rows: Vec<_> = originals.iter().map(row).collect();
        with_connection!(conn, c => diesel::insert_into(events::table).values(rows).execute(c)?);
    }
    let host = |original: &&Original| {
        let event = original.id;
        let row = move |user: &DbUuid| (event_hosts::event_id.eq(event), event_hosts::user_id.eq(*user));
        original.hosts.iter().map(row).collect::<Vec<_>>()
    };
    let rows: Vec<_> = originals.iter().flat_map(host).collect();
    for rows in rows.chunks(1000) {
        with_connection!(conn, c => diesel::insert_into(event_hosts::table).values(rows).execute(c)?);
    }
    Ok(())
}

/// Drops the copy, as if there never had been one. Levels stay.
///
/// # Errors
/// When the database fails.
pub fn forget(conn: &mut AnyConnection) -> Result<(), Error> {
    // Their hosts go with them.
    diesel::delete(events::table).execute(conn)?;
    diesel::delete(copies::table.find(SOURCE)).execute(conn)?;
    Ok(())
}

/// Notes when the copy was last made.
///
/// # Errors
/// When the database fails.
pub fn note(conn: &mut AnyConnection, now: DbTimestamp) -> Result<(), Error> {
    let row = (copies::source.eq(SOURCE), copies::copied_at.eq(now));
    with_connection!(conn, c => diesel::insert_into(copies::table)
        .values(row)
        .on_conflict(copies::source)
        .do_update()
        .set(copies::copied_at.eq(now))
        .execute(c)?);
    Ok(())
}

/// When the copy was last made, by any replica.
///
/// # Errors
/// When the database fails.
pub fn noted(conn: &mut AnyConnection) -> Result<Option<DbTimestamp>, Error> {
    Ok(copies::table.find(SOURCE).select(copies::copied_at).first(conn).optional()?)
}
