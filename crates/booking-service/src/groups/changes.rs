//! Changes to groups made here. Whoever changes a group holds its row, so that changes come one after another.

use std::collections::HashSet;

use common::{
    input::IdSet,
    problem::{Problem, Violations},
};
use diesel::{OptionalExtension, prelude::*};
use serde_json::json;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use super::queries::{MADE_HERE, delete_events, not_found};
use crate::{
    auth::Caller,
    codes,
    schema::{events, group_admins, group_members, groups, places},
    users::queries::note_unknown,
};

/// What a group is to be.
#[derive(Debug, Clone)]
pub struct Edit {
    pub name: String,
    pub description: String,
    pub open: bool,
    pub members: Option<IdSet<0>>,
    pub admins: IdSet<1>,
}

/// Kind and openness of a group, which nobody else changes, joins or gives an event to before the transaction ends.
fn lock(conn: &mut AnyConnection, id: DbUuid) -> Result<(i16, bool), Error> {
    let query = groups::table.find(id).filter(groups::deleted_at.is_null()).select((groups::kind, groups::open));
    let found = match conn {
        AnyConnection::Postgresql(pg) => query.for_update().first(pg).optional()?,
        AnyConnection::Sqlite(sqlite) => query.first(sqlite).optional()?,
    };
    Ok(found.ok_or_else(not_found)?)
}

/// Like [`lock`], for somebody who may change the group.
fn lock_for_change(conn: &mut AnyConnection, id: DbUuid, me: &Caller) -> Result<(), Error> {
    let (kind, _) = lock(conn, id)?;
    if kind != MADE_HERE {
        return Err(Problem::forbidden("a group that was made here").into());
    }
    let administers = group_admins::table.find((id, me.id)).count().get_result::<i64>(conn)? > 0;
    if !administers && !me.privileged {
        return Err(Problem::forbidden("an admin of the group or a privileged user").into());
    }
    Ok(())
}

/// Makes a group.
///
/// # Errors
/// 400 for members and admins who are no users.
pub fn create(conn: &mut AnyConnection, group: &Edit, creator: DbUuid, now: DbTimestamp) -> Result<DbUuid, Error> {
    check_people(conn, group)?;
    let id = DbUuid::new();
    diesel::insert_into(groups::table)
        .values((
            groups::id.eq(id),
            groups::kind.eq(MADE_HERE),
            groups::name.eq(&group.name),
            groups::description.eq(&group.description),
            groups::open.eq(group.open),
            groups::created_by.eq(creator),
            groups::created_at.eq(now),
            groups::updated_at.eq(now),
        ))
        .execute(conn)?;
    put_people(conn, id, group)?;
    Ok(id)
}

/// Makes a group what it is to be.
///
/// # Errors
/// 404; 403 for a group that was not made here, and for callers who may not; 400 for people who are no users.
pub fn update(conn: &mut AnyConnection, id: DbUuid, group: &Edit, me: &Caller, now: DbTimestamp) -> Result<(), Error> {
    lock_for_change(conn, id, me)?;
    check_people(conn, group)?;
    diesel::update(groups::table.find(id))
        .set((
            groups::name.eq(&group.name),
            groups::description.eq(&group.description),
            groups::open.eq(group.open),
            groups::updated_at.eq(now),
        ))
        .execute(conn)?;
    put_people(conn, id, group)
}

fn check_people(conn: &mut AnyConnection, group: &Edit) -> Result<(), Error> {
    let mut violations = Violations::default();
    if let Some(members) = &group.members {
        note_unknown(conn, "/members", members, &mut violations)?;
    }
    note_unknown(conn, "/admins", &group.admins, &mut violations)?;
    Ok(violations.into_result()?)
}

/// Replaces the links of a group in a table of them, in a fixed number of statements for 1000 users.
macro_rules! put_links {
    ($conn:expr, $table:ident, $group:expr, $users:expr) => {{
        let links = $users.iter().map(|(_, user)| ($table::group_id.eq($group), $table::user_id.eq(DbUuid(user))));
        let links: Vec<_> = links.collect();
        diesel::delete($table::table.filter($table::group_id.eq($group))).execute($conn)?;
        for links in links.chunks(1000) {
            with_connection!($conn, c => diesel::insert_into($table::table).values(links).execute(c))?;
        }
    }};
}

fn put_people(conn: &mut AnyConnection, id: DbUuid, group: &Edit) -> Result<(), Error> {
    if let Some(members) = &group.members {
        put_links!(conn, group_members, id, members);
    }
    put_links!(conn, group_admins, id, group.admins);
    Ok(())
}

/// Makes a user a member of an open group.
///
/// # Errors
/// 404; 403 for a group that is not open.
pub fn join(conn: &mut AnyConnection, id: DbUuid, user: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    lock_open(conn, id)?;
    let row = (group_members::group_id.eq(id), group_members::user_id.eq(user));
    let joined = with_connection!(conn, c => diesel::insert_into(group_members::table).values(row).on_conflict_do_nothing().execute(c))?;
    touch(conn, id, joined, now)
}

/// Makes a user no longer a member of an open group.
///
/// # Errors
/// 404; 403 for a group that is not open.
pub fn leave(conn: &mut AnyConnection, id: DbUuid, user: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    lock_open(conn, id)?;
    let left = diesel::delete(group_members::table.find((id, user))).execute(conn)?;
    touch(conn, id, left, now)
}

fn lock_open(conn: &mut AnyConnection, id: DbUuid) -> Result<(), Error> {
    let (_, open) = lock(conn, id)?;
    if open { Ok(()) } else { Err(Problem::forbidden("an open group").into()) }
}

fn touch(conn: &mut AnyConnection, id: DbUuid, changed: usize, now: DbTimestamp) -> Result<(), Error> {
    if changed > 0 {
        diesel::update(groups::table.find(id)).set(groups::updated_at.eq(now)).execute(conn)?;
    }
    Ok(())
}

/// Deletes a group, and with `force` its events that have not ended.
///
/// # Errors
/// 404; 403 for a group that was not made here, and for callers who may not; 409 `events-to-come` without `force`.
pub fn delete(conn: &mut AnyConnection, id: DbUuid, force: bool, me: &Caller, now: DbTimestamp) -> Result<(), Error> {
    lock_for_change(conn, id, me)?;
    let to_come = lock_events(conn, id, now)?;
    if !force && !to_come.is_empty() {
        return Err(Problem::new(codes::EVENTS_TO_COME).member("events", json!(to_come)).into());
    }
    delete_events(conn, &to_come, now)?;
    diesel::update(groups::table.find(id))
        .set((groups::deleted_at.eq(now), groups::updated_at.eq(now)))
        .execute(conn)?;
    Ok(())
}

/// The events of a locked group that have not ended, and with them their places, as for any change that may delete
/// rooms: who is booking one of these rooms has finished, and whoever comes next sees what became of it.
fn lock_events(conn: &mut AnyConnection, group: DbUuid, now: DbTimestamp) -> Result<Vec<DbUuid>, Error> {
    let to_come = || {
        events::table
            .filter(events::group_id.eq(group))
            .filter(events::deleted_at.is_null())
            .filter(events::ends_at.gt(now))
    };
    let ordered = || to_come().order((events::starts_at, events::id)).select((events::id, events::place_key));
    let found: Vec<(DbUuid, String)> = match conn {
        AnyConnection::Sqlite(sqlite) => ordered().load(sqlite)?,
        AnyConnection::Postgresql(pg) => {
            let locked: HashSet<String> = places::table
                .filter(places::key.eq_any(to_come().select(events::place_key)))
                .order(places::key)
                .select(places::key)
                .for_no_key_update()
                .load(pg)?
                .into_iter()
                .collect();
            let found: Vec<(DbUuid, String)> = ordered().for_update().load(pg)?;
            // One of them has moved while it was waited for.
            if found.iter().any(|(_, place)| !locked.contains(place)) {
                return Err(Error::Stale);
            }
            found
        }
    };
    Ok(found.into_iter().map(|(id, _)| id).collect())
}
