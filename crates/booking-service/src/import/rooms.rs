//! Rooms, with their administrators.

use std::collections::HashMap;

use diesel::prelude::*;
use import::{
    CHUNK, Import,
    merge::Imported,
    row::{SourceRow, SourceTable},
};
use serde::Serialize;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use super::targets::Targets;
use crate::{
    deletion,
    period_filter::{earliest_start, is_long},
    rooms::{booking::lock_places, place::place_key, queries::Row},
    schema::{events, room_admins, rooms},
};

pub const ROOMS: SourceTable = SourceTable::new(
    "rooms",
    &[
        "id",
        "place",
        "verified",
        "time_start",
        "time_end",
        "created_by_refer",
        "created_by",
        "created_at",
        "updated_at",
        "deleted_at",
    ],
)
.with_optional(&["created_by"]);
/// The columns of the creator: rooms of before May 2021 have only the second.
pub const CREATOR: [&str; 2] = ["created_by_refer", "created_by"];
pub const ADMINS: SourceTable = SourceTable::new("room_admins", &["user_id", "room_id", "deleted_at"]);

#[derive(Serialize)]
struct Room {
    place: String,
    starts_at: DbTimestamp,
    ends_at: DbTimestamp,
    verified: bool,
    created_by: Option<DbUuid>,
    created_at: DbTimestamp,
    updated_at: DbTimestamp,
    deleted_at: Option<DbTimestamp>,
    admins: Vec<DbUuid>,
}

impl Imported for Room {
    const KIND: &'static str = ROOMS.name;
}

/// Imports the rooms.
pub fn import_rooms(conn: &mut AnyConnection, import: &mut Import, targets: &Targets) -> Result<(), Error> {
    import.each_page(conn, &ROOMS, "id", |conn, import, page| {
        let ids: Vec<_> = page.iter().map(|(id, _)| *id).collect();
        let mut admins = import.people(&ADMINS, "room_id", &ids, &targets.users)?;
        let mut incoming = Vec::new();
        for (id, row) in page {
            incoming.push((id, read(import, id, &row, targets, admins.remove(&id).unwrap_or_default())));
        }
        let present = load(conn, &ids)?;
        let changes = import.merge(conn, incoming, &present)?;
        let written = || changes.added.iter().chain(&changes.updated);
        if written().next().is_some() {
            lock_places(conn, written().map(|(_, room)| place_key(&room.place)).collect())?;
        }
        insert(conn, &changes.added)?;
        for (id, room) in changes.updated {
            update(conn, id, &room)?;
            diesel::delete(room_admins::table.filter(room_admins::room_id.eq(id))).execute(conn)?;
            insert_admins(conn, &[(id, room)])?;
        }
        Ok(())
    })?;
    let removed = import.removed_from_source::<Room>(conn, load)?;
    deletion::mark_rooms(conn, &removed, targets.now)
}

fn read(import: &mut Import, id: DbUuid, row: &SourceRow, targets: &Targets, mut admins: Vec<DbUuid>) -> Room {
    let mut columns = import.columns(row);
    let created_by = columns.creator(&CREATOR, &targets.users);
    let has_no_admins = admins.is_empty();
    if has_no_admins {
        admins.extend(created_by);
    }
    let (created_at, updated_at) = columns.created_and_updated();
    let (starts_at, ends_at) = columns.period(["time_start", "time_end"], (created_at, created_at));
    let room = Room {
        place: columns.text("place"),
        starts_at,
        ends_at,
        verified: columns.flag("verified"),
        created_by,
        created_at,
        updated_at,
        deleted_at: columns.time("deleted_at"),
        admins,
    };
    if has_no_admins && room.deleted_at.is_none() {
        import.report.note("rooms without administrators; their creator becomes one", || id.to_string());
    }
    import.report.check_limits(ROOMS.name, id, &[("place", &room.place, 1..=32)]);
    room
}

fn load(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<HashMap<DbUuid, Room>, Error> {
    let links = room_admins::table
        .filter(room_admins::room_id.eq_any(ids))
        .order((room_admins::room_id, room_admins::user_id))
        .select((room_admins::room_id, room_admins::user_id));
    let mut admins = HashMap::<DbUuid, Vec<DbUuid>>::new();
    for (room, user) in links.load::<(DbUuid, DbUuid)>(conn)? {
        admins.entry(room).or_default().push(user);
    }
    let rows = rooms::table.filter(rooms::id.eq_any(ids)).select(Row::as_select());
    let room = |row: Row| {
        let room = Room {
            place: row.place,
            starts_at: row.starts_at,
            ends_at: row.ends_at,
            verified: row.verified,
            created_by: row.created_by,
            created_at: row.created_at,
            updated_at: row.updated_at,
            deleted_at: row.deleted_at,
            admins: admins.remove(&row.id).unwrap_or_default(),
        };
        (row.id, room)
    };
    Ok(rows.load(conn)?.into_iter().map(room).collect())
}

/// The values of all columns except the id and `made_for_event`.
macro_rules! columns {
    ($room:expr) => {
        (
            (rooms::place.eq(&$room.place), rooms::place_key.eq(place_key(&$room.place))),
            (rooms::starts_at.eq($room.starts_at), rooms::ends_at.eq($room.ends_at)),
            (
                rooms::is_long.eq(is_long($room.starts_at, $room.ends_at)),
                rooms::reach_from.eq(earliest_start($room.starts_at)),
            ),
            (rooms::verified.eq($room.verified), rooms::created_by.eq($room.created_by)),
            (rooms::created_at.eq($room.created_at), rooms::updated_at.eq($room.updated_at)),
            rooms::deleted_at.eq($room.deleted_at),
        )
    };
}

fn insert(conn: &mut AnyConnection, new: &[(DbUuid, Room)]) -> Result<(), Error> {
    let rows: Vec<_> =
        new.iter().map(|(id, room)| (rooms::id.eq(*id), rooms::made_for_event.eq(false), columns!(room))).collect();
    with_connection!(conn, c => diesel::insert_into(rooms::table).values(&rows).execute(c))?;
    insert_admins(conn, new)
}

fn update(conn: &mut AnyConnection, id: DbUuid, room: &Room) -> Result<(), Error> {
    diesel::update(rooms::table.find(id)).set(columns!(room)).execute(conn)?;
    // The place of an event is that of its room.
    diesel::update(events::table.filter(events::room_id.eq(id)))
        .set((events::place.eq(&room.place), events::place_key.eq(place_key(&room.place))))
        .execute(conn)?;
    Ok(())
}

fn insert_admins(conn: &mut AnyConnection, new: &[(DbUuid, Room)]) -> Result<(), Error> {
    let links = new.iter().flat_map(|(id, room)| room.admins.iter().map(|user| (*id, *user)));
    let rows: Vec<_> = links.map(|(id, user)| (room_admins::room_id.eq(id), room_admins::user_id.eq(user))).collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(room_admins::table).values(rows).execute(c))?;
    }
    Ok(())
}
