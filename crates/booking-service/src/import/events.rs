//! Events, with their administrators and tags.

use std::collections::{BTreeMap, HashMap, HashSet};

use diesel::prelude::*;
use import::{
    CHUNK, Import,
    columns::Columns,
    merge::Imported,
    row::{Fault, SourceRow, SourceTable},
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
use uuid::uuid;

use super::{
    answers,
    rooms::{CREATOR, ROOMS},
    targets::Targets,
};
use crate::{
    deletion,
    events::{queries::Row, search::text_key},
    period_filter::is_long,
    schema::{event_admins, event_tags, events, groups, rooms},
    users::sync::DIRECTORY,
};

pub const EVENTS: SourceTable = SourceTable::new(
    "events",
    &[
        "id",
        "name",
        "description",
        "group_id",
        "room_id",
        "time_start",
        "time_end",
        "created_by_refer",
        "allow_together",
        "open",
        "created_at",
        "updated_at",
        "deleted_at",
    ],
);
pub const TAGS: SourceTable = SourceTable::new("event_tags", &["tag_id", "event_id", "locked", "deleted_at"]);
pub const ADMINS: SourceTable = SourceTable::new("event_admins", &["user_id", "event_id", "deleted_at"]);

/// Stands for the group of an event that names none.
const UNKNOWN_GROUP: DbUuid = DbUuid(uuid!("6c1b1f0e-3a2f-4f6e-9a0d-2f0f5f1c7d21"));

#[derive(Serialize)]
struct Event {
    name: String,
    description: String,
    shared: bool,
    starts_at: DbTimestamp,
    ends_at: DbTimestamp,
    room: DbUuid,
    owns_room: bool,
    group: DbUuid,
    open: bool,
    created_by: Option<DbUuid>,
    created_at: DbTimestamp,
    updated_at: DbTimestamp,
    deleted_at: Option<DbTimestamp>,
    admins: Vec<DbUuid>,
    tags: Vec<(DbUuid, bool)>,
}

impl Imported for Event {
    const KIND: &'static str = EVENTS.name;
}

/// The columns of a room in this database that its events copy.
struct Room {
    place: String,
    place_key: String,
    verified: bool,
    span: (DbTimestamp, DbTimestamp),
}

/// The rows that belong to the events of a page.
struct Page {
    /// Rooms of this database, by id.
    rooms: HashMap<DbUuid, Room>,
    /// Rooms of the source, by id.
    source_rooms: BTreeMap<DbUuid, Vec<SourceRow>>,
    /// Events of the source that are not deleted, by room.
    events_of_rooms: BTreeMap<DbUuid, Vec<SourceRow>>,
    admins: HashMap<DbUuid, Vec<DbUuid>>,
    tags: HashMap<DbUuid, Vec<(DbUuid, bool)>>,
}

/// Imports the events, and the answers to them.
pub fn import_events(conn: &mut AnyConnection, import: &mut Import, targets: &mut Targets) -> Result<(), Error> {
    import.each_page(conn, &EVENTS, "id", |conn, import, rows| {
        let ids: Vec<_> = rows.iter().map(|(id, _)| *id).collect();
        create_missing_groups(conn, import, targets, &rows)?;
        let mut page = Page::read(conn, import, targets, &rows)?;
        let mut incoming = Vec::new();
        for (id, row) in rows {
            match page.event(import, targets, id, &row) {
                Ok(event) => incoming.push((id, event)),
                Err(fault) => import.report.left_out(EVENTS.name, &id.to_string(), &fault),
            }
        }
        let mut present = load(conn, &ids)?;
        let changes = import.merge(conn, incoming, &present)?;
        insert(conn, &page.rooms, &changes.added)?;
        for (id, event) in &changes.updated {
            update(conn, &page.rooms, *id, event)?;
        }
        insert_links(conn, &changes.updated)?;
        let owned = changes.added.iter().chain(&changes.updated).filter(|(_, event)| event.owns_room);
        let owned: Vec<_> = owned.map(|(_, event)| event.room).collect();
        diesel::update(rooms::table.filter(rooms::id.eq_any(&owned)))
            .set(rooms::made_for_event.eq(true))
            .execute(conn)?;
        let existing: HashSet<_> =
            present.drain().map(|(id, _)| id).chain(changes.added.iter().map(|(id, _)| *id)).collect();
        answers::import_answers(conn, import, targets, &ids, &existing)
    })?;
    let removed = import.removed_from_source::<Event>(conn, load)?;
    deletion::mark_events(conn, &removed, targets.now)
}

/// Creates the groups of these events that do not exist, as deleted directory groups: the directory once had them.
fn create_missing_groups(
    conn: &mut AnyConnection,
    import: &mut Import,
    targets: &mut Targets,
    rows: &[(DbUuid, SourceRow)],
) -> Result<(), Error> {
    for group in rows.iter().map(|(_, row)| row.id("group_id").unwrap_or(UNKNOWN_GROUP)) {
        if !targets.groups.insert(group) {
            continue;
        }
        import
            .report
            .note("groups of events that the directory does not know, imported as deleted", || group.to_string());
        let row = (
            (groups::id.eq(group), groups::kind.eq(DIRECTORY), groups::name.eq(group.to_string()[..8].to_owned())),
            (groups::description.eq(""), groups::open.eq(false), groups::created_at.eq(targets.now)),
            (groups::updated_at.eq(targets.now), groups::deleted_at.eq(targets.now)),
        );
        diesel::insert_into(groups::table).values(row).execute(conn)?;
    }
    Ok(())
}

impl Page {
    fn read(
        conn: &mut AnyConnection,
        import: &mut Import,
        targets: &Targets,
        rows: &[(DbUuid, SourceRow)],
    ) -> Result<Self, Error> {
        const EVENTS_OF_ROOMS: SourceTable = SourceTable::new(EVENTS.name, &["room_id", "deleted_at"]);
        let ids: Vec<_> = rows.iter().map(|(id, _)| *id).collect();
        let room_ids: HashSet<_> = rows.iter().filter_map(|(_, row)| row.id("room_id").ok()).collect();
        let room_ids: Vec<_> = room_ids.into_iter().collect();
        let rooms = rooms::table.filter(rooms::id.eq_any(&room_ids)).select((
            rooms::id,
            rooms::place,
            rooms::place_key,
            rooms::verified,
            (rooms::starts_at, rooms::ends_at),
        ));
        let room = |(id, place, place_key, verified, span)| (id, Room { place, place_key, verified, span });
        let tag = |columns: &mut Columns<'_>| {
            let tag = columns.row.id("tag_id")?;
            let id = targets.tags.get(&tag).ok_or_else(|| format!("tag_id {tag} is no tag"))?;
            Ok((*id, columns.flag("locked")))
        };
        let mut tags = import.converted_children(&TAGS, "event_id", &ids, tag)?;
        // Two tags of the source may be one tag here, which is locked if either is.
        for tags in tags.values_mut() {
            tags.dedup_by(|next, first| {
                first.1 |= first.0 == next.0 && next.1;
                first.0 == next.0
            });
        }
        Ok(Self {
            rooms: rooms.load(conn)?.into_iter().map(room).collect(),
            source_rooms: import.children(&ROOMS, "id", &room_ids)?,
            events_of_rooms: import.children(&EVENTS_OF_ROOMS, "room_id", &room_ids)?,
            admins: import.people(&ADMINS, "event_id", &ids, &targets.users)?,
            tags,
        })
    }

    fn event(&mut self, import: &mut Import, targets: &Targets, id: DbUuid, row: &SourceRow) -> Result<Event, Fault> {
        let room = row.id("room_id")?;
        let target_room = self.rooms.get(&room).ok_or_else(|| format!("its room {room} is not here"))?;
        let is_unverified = !target_room.verified;
        let mut columns = import.columns(row);
        let (created_at, updated_at) = columns.created_and_updated();
        let (starts_at, ends_at) = columns.period(["time_start", "time_end"], target_room.span);
        let group = row.id("group_id").unwrap_or_else(|_| {
            columns.changed("group_id", &UNKNOWN_GROUP.to_string());
            UNKNOWN_GROUP
        });
        let event = Event {
            name: columns.text("name"),
            description: columns.text("description"),
            shared: columns.flag("allow_together"),
            starts_at,
            ends_at,
            room,
            // No event owns a verified room.
            owns_room: is_unverified && self.was_made_for(room, row),
            group,
            open: columns.flag("open"),
            created_by: columns.creator(&["created_by_refer"], &targets.users),
            created_at,
            updated_at,
            deleted_at: columns.time("deleted_at"),
            admins: self.admins.remove(&id).unwrap_or_default(),
            tags: self.tags.remove(&id).unwrap_or_default(),
        };
        if event.admins.is_empty() && event.deleted_at.is_none() {
            import.report.note("events without administrators", || id.to_string());
        }
        let texts = [("name", event.name.as_str(), 1..=32), ("description", &event.description, 0..=10_000)];
        import.report.check_limits(EVENTS.name, id, &texts);
        Ok(event)
    }

    /// Whether the room was made for this event. In the source, the room is not verified, this is its only event, and
    /// both have the same creator and span.
    fn was_made_for(&self, room: DbUuid, event: &SourceRow) -> bool {
        let is_only_event = self.events_of_rooms.get(&room).is_some_and(|events| events.len() == 1);
        let Some([room]) = self.source_rooms.get(&room).map(Vec::as_slice) else { return false };
        is_only_event
            && !event.is_deleted()
            && room.number("verified").unwrap_or_default() == 0
            && room.time("time_start") == event.time("time_start")
            && room.time("time_end") == event.time("time_end")
            && CREATOR.iter().find_map(|column| room.id(column).ok()) == event.id("created_by_refer").ok()
    }
}

fn load(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<HashMap<DbUuid, Event>, Error> {
    let links = event_admins::table
        .filter(event_admins::event_id.eq_any(ids))
        .order((event_admins::event_id, event_admins::user_id))
        .select((event_admins::event_id, event_admins::user_id));
    let mut admins = HashMap::<DbUuid, Vec<DbUuid>>::new();
    for (event, user) in links.load::<(DbUuid, DbUuid)>(conn)? {
        admins.entry(event).or_default().push(user);
    }
    let links = event_tags::table
        .filter(event_tags::event_id.eq_any(ids))
        .order((event_tags::event_id, event_tags::tag_id))
        .select((event_tags::event_id, event_tags::tag_id, event_tags::locked));
    let mut tags = HashMap::<DbUuid, Vec<(DbUuid, bool)>>::new();
    for (event, tag, locked) in links.load::<(DbUuid, DbUuid, bool)>(conn)? {
        tags.entry(event).or_default().push((tag, locked));
    }
    let rows = events::table.filter(events::id.eq_any(ids)).select(Row::as_select());
    let event = |row: Row| {
        let event = Event {
            name: row.name,
            description: row.description,
            shared: row.shared,
            starts_at: row.starts_at,
            ends_at: row.ends_at,
            room: row.room_id,
            owns_room: row.owns_room,
            group: row.group_id,
            open: row.open,
            created_by: row.created_by,
            created_at: row.created_at,
            updated_at: row.updated_at,
            deleted_at: row.deleted_at,
            admins: admins.remove(&row.id).unwrap_or_default(),
            tags: tags.remove(&row.id).unwrap_or_default(),
        };
        (row.id, event)
    };
    Ok(rows.load(conn)?.into_iter().map(event).collect())
}

/// The values of all columns except id and sequence. The place is that of the room.
macro_rules! columns {
    ($rooms:expr, $event:expr) => {
        (
            (events::name.eq(&$event.name), events::description.eq(&$event.description)),
            events::text_key.eq(text_key(&$event.name, &$event.description)),
            (events::shared.eq($event.shared), events::open.eq($event.open)),
            (events::starts_at.eq($event.starts_at), events::ends_at.eq($event.ends_at)),
            events::is_long.eq(is_long($event.starts_at, $event.ends_at)),
            (events::place.eq(&$rooms[&$event.room].place), events::place_key.eq(&$rooms[&$event.room].place_key)),
            (events::room_id.eq($event.room), events::owns_room.eq($event.owns_room)),
            (events::group_id.eq($event.group), events::created_by.eq($event.created_by)),
            (events::created_at.eq($event.created_at), events::updated_at.eq($event.updated_at)),
            events::deleted_at.eq($event.deleted_at),
        )
    };
}

fn insert(conn: &mut AnyConnection, rooms: &HashMap<DbUuid, Room>, new: &[(DbUuid, Event)]) -> Result<(), Error> {
    let rows: Vec<_> =
        new.iter().map(|(id, event)| (events::id.eq(*id), events::sequence.eq(0), columns!(rooms, event))).collect();
    with_connection!(conn, c => diesel::insert_into(events::table).values(&rows).execute(c))?;
    insert_links(conn, new)
}

/// Updates the columns of an event and removes its administrators and tags.
fn update(conn: &mut AnyConnection, rooms: &HashMap<DbUuid, Room>, id: DbUuid, event: &Event) -> Result<(), Error> {
    diesel::update(events::table.find(id))
        .set((events::sequence.eq(events::sequence + 1), columns!(rooms, event)))
        .execute(conn)?;
    diesel::delete(event_admins::table.filter(event_admins::event_id.eq(id))).execute(conn)?;
    diesel::delete(event_tags::table.filter(event_tags::event_id.eq(id))).execute(conn)?;
    Ok(())
}

fn insert_links(conn: &mut AnyConnection, new: &[(DbUuid, Event)]) -> Result<(), Error> {
    let admins = new.iter().flat_map(|(id, event)| event.admins.iter().map(|user| (*id, *user)));
    let admins: Vec<_> =
        admins.map(|(id, user)| (event_admins::event_id.eq(id), event_admins::user_id.eq(user))).collect();
    for rows in admins.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(event_admins::table).values(rows).execute(c))?;
    }
    let tags = new.iter().flat_map(|(id, event)| event.tags.iter().map(|(tag, locked)| (*id, *tag, *locked)));
    let tags: Vec<_> = tags
        .map(|(id, tag, locked)| {
            (event_tags::event_id.eq(id), event_tags::tag_id.eq(tag), event_tags::locked.eq(locked))
        })
        .collect();
    for rows in tags.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(event_tags::table).values(rows).execute(c))?;
    }
    Ok(())
}
