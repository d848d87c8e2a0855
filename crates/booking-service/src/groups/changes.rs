//! Changes of groups. Each change locks the row of its group, so that changes of one group run one after another.

use std::collections::{BTreeSet, HashSet};

use common::{
    input::IdSet,
    kept::Unchecked,
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
    history, with_connection,
};

use super::queries::{EVERYONE, MADE_HERE, check_may_change, get, not_found};
use crate::{
    auth::Caller,
    codes, deletion, invitations,
    objects::GROUP,
    schema::{events, group_admins, group_members, groups, places},
    users::queries::{note_unfit_admins, note_unknown},
};

/// A group as in the body of a request.
#[derive(Debug, Clone)]
pub struct GroupFields {
    pub name: String,
    pub description: String,
    pub open: bool,
    pub members: Option<IdSet<0>>,
    pub admins: IdSet<1>,
}

/// Replaces the rows of a group in a link table, in batches of 1000 rows.
macro_rules! replace_links {
    ($conn:expr, $table:ident, $group:expr, $before:expr, $after:expr) => {{
        let former: Vec<DbUuid> = $before.difference($after).copied().collect();
        for former in former.chunks(1000) {
            let links = $table::table.filter($table::group_id.eq($group)).filter($table::user_id.eq_any(former));
            diesel::delete(links).execute($conn)?;
        }
        let links = $after.difference($before).map(|user| ($table::group_id.eq($group), $table::user_id.eq(*user)));
        for links in links.collect::<Vec<_>>().chunks(1000) {
            with_connection!($conn, c => diesel::insert_into($table::table).values(links).execute(c))?;
        }
    }};
}

/// Locks a group until the end of the transaction against changes, new members and new events. Returns its kind and
/// whether it is open.
fn lock(conn: &mut AnyConnection, id: DbUuid) -> Result<(i16, bool), Error> {
    let query = groups::table.find(id).filter(groups::deleted_at.is_null()).select((groups::kind, groups::open));
    let row = match conn {
        AnyConnection::Postgresql(pg) => query.for_update().first(pg).optional()?,
        AnyConnection::Sqlite(sqlite) => query.first(sqlite).optional()?,
    };
    Ok(row.ok_or_else(not_found)?)
}

/// Locks a group and checks that the caller may change it.
fn lock_for_change(conn: &mut AnyConnection, id: DbUuid, me: &Caller) -> Result<(), Error> {
    let (kind, _) = lock(conn, id)?;
    check_may_change(conn, id, kind, me)
}

/// Creates a group.
///
/// # Errors
/// 400 for members and admins that are not users.
pub fn create(
    conn: &mut AnyConnection,
    group: &GroupFields,
    creator: DbUuid,
    now: DbTimestamp,
) -> Result<DbUuid, Error> {
    check_people(conn, group, &[])?;
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
    let (members, admins) = (group.members.as_ref().map(ids).unwrap_or_default(), ids(&group.admins));
    let none = BTreeSet::new();
    replace_links!(conn, group_members, id, &none, &members);
    replace_links!(conn, group_admins, id, &none, &admins);
    Ok(id)
}

/// Replaces the fields of a group. New members are invited to its coming events, and the invitations of former ones
/// withdrawn. A group that has these values already does not change.
///
/// # Errors
/// 404; 403 for a group that was not made here, and for callers who may not change it; 400 for members and admins that
/// are not users, and for a field that was not checked and is not what the group has.
pub fn update(
    conn: &mut AnyConnection,
    id: DbUuid,
    (group, unchecked): (&GroupFields, &Unchecked),
    me: &Caller,
    now: DbTimestamp,
) -> Result<(), Error> {
    lock_for_change(conn, id, me)?;
    let before = get(conn, id)?;
    let kept = unchecked.kept(&[("name", &before.row.name), ("description", &before.row.description)])?;
    let mut group = group.clone();
    for field in kept {
        if field == "name" {
            group.name.clone_from(&before.row.name);
        } else {
            group.description.clone_from(&before.row.description);
        }
    }
    let group = &group;
    check_people(conn, group, &before.admins)?;
    let (old_members, old_admins) = (BTreeSet::from_iter(before.members), BTreeSet::from_iter(before.admins));
    let GroupFields { name, description, open, members, admins } = group;
    let (members, admins) = (members.as_ref().map_or_else(|| old_members.clone(), ids), ids(admins));
    let row = &before.row;
    if (&row.name, &row.description, row.open) == (name, description, *open)
        && (&old_members, &old_admins) == (&members, &admins)
    {
        return Ok(());
    }
    diesel::update(groups::table.find(id))
        .set((
            groups::name.eq(name),
            groups::description.eq(description),
            groups::open.eq(*open),
            groups::updated_at.eq(now),
        ))
        .execute(conn)?;
    replace_links!(conn, group_members, id, &old_members, &members);
    replace_links!(conn, group_admins, id, &old_admins, &admins);
    let left: Vec<_> = old_members.difference(&members).copied().collect();
    invitations::leave(conn, &left, Some(id), now)?;
    let joined: Vec<_> = members.difference(&old_members).copied().collect();
    invitations::join(conn, &joined, Some(id), now)
}

/// Checks the members and administrators of a request; `admins` are those that the group has.
fn check_people(conn: &mut AnyConnection, group: &GroupFields, admins: &[DbUuid]) -> Result<(), Error> {
    let mut violations = Violations::default();
    if let Some(members) = &group.members {
        note_unknown(conn, "/members", members, &mut violations)?;
    }
    note_unfit_admins(conn, &group.admins, admins, &mut violations)?;
    Ok(violations.into_result()?)
}

fn ids<const MIN: usize>(set: &IdSet<MIN>) -> BTreeSet<DbUuid> {
    set.iter().map(|(_, id)| DbUuid(id)).collect()
}

/// Makes a user a member of an open group.
///
/// # Errors
/// 404; 403 for a group that is not open.
pub fn join(conn: &mut AnyConnection, id: DbUuid, user: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    lock_open(conn, id)?;
    let row = (group_members::group_id.eq(id), group_members::user_id.eq(user));
    let inserted = with_connection!(conn, c => diesel::insert_into(group_members::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(c))?;
    if inserted > 0 {
        mark_changed(conn, id, now)?;
        invitations::join(conn, &[user], Some(id), now)?;
    }
    Ok(())
}

/// Removes a member from an open group.
///
/// # Errors
/// 404; 403 for a group that is not open.
pub fn leave(conn: &mut AnyConnection, id: DbUuid, user: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    lock_open(conn, id)?;
    if diesel::delete(group_members::table.find((id, user))).execute(conn)? > 0 {
        mark_changed(conn, id, now)?;
        invitations::leave(conn, &[user], Some(id), now)?;
    }
    Ok(())
}

/// Invites a new active user to the coming events of the everyone group.
pub fn join_everyone(conn: &mut AnyConnection, user: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    lock(conn, EVERYONE)?;
    invitations::join(conn, &[user], Some(EVERYONE), now)
}

fn lock_open(conn: &mut AnyConnection, id: DbUuid) -> Result<(), Error> {
    let (_, open) = lock(conn, id)?;
    if open { Ok(()) } else { Err(Problem::forbidden("an open group").into()) }
}

/// Sets the time of a group's last change.
fn mark_changed(conn: &mut AnyConnection, id: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    diesel::update(groups::table.find(id)).set(groups::updated_at.eq(now)).execute(conn)?;
    Ok(())
}

/// Deletes a group, and with `force` its events that have not ended.
///
/// # Errors
/// 404; 403 for a group that was not made here, and for callers who may not change it; 409 `events-to-come` without
/// `force`.
pub fn delete(conn: &mut AnyConnection, id: DbUuid, force: bool, me: &Caller, now: DbTimestamp) -> Result<(), Error> {
    lock_for_change(conn, id, me)?;
    let event_ids = lock_events(conn, id, now)?;
    if !force && !event_ids.is_empty() {
        return Err(Problem::new(codes::EVENTS_TO_COME).member("events", json!(event_ids)).into());
    }
    deletion::delete_events(conn, &event_ids, &me.author, now)?;
    diesel::update(groups::table.find(id))
        .set((groups::deleted_at.eq(now), groups::updated_at.eq(now)))
        .execute(conn)?;
    history::deleted(conn, &me.author, &GROUP, &[id])
}

/// Takes the deletion of a group back, not that of the events that were deleted with it.
///
/// # Errors
/// 404, also 30 days after the deletion; 403 for a group that was not made here, and for callers who may not change it;
/// 409 `not-deleted`.
pub fn restore(conn: &mut AnyConnection, id: DbUuid, me: &Caller, now: DbTimestamp) -> Result<(), Error> {
    let query = groups::table.find(id).select((groups::kind, groups::deleted_at));
    let row = match conn {
        AnyConnection::Postgresql(pg) => query.for_update().first(pg).optional()?,
        AnyConnection::Sqlite(sqlite) => query.first(sqlite).optional()?,
    };
    let (kind, deleted_at): (i16, Option<DbTimestamp>) = row.ok_or_else(not_found)?;
    check_may_change(conn, id, kind, me)?;
    deletion::check_restorable("group", deleted_at, now)?;
    diesel::update(groups::table.find(id))
        .set((groups::deleted_at.eq(None::<DbTimestamp>), groups::updated_at.eq(now)))
        .execute(conn)?;
    history::restored(conn, &me.author, &GROUP, id)
}

/// Locks the events of a group that have not ended, and returns their ids. The group must be locked.
///
/// It first locks their places, like any change that may delete rooms: a concurrent booking of such a room then ends
/// before the deletion, or starts after it.
fn lock_events(conn: &mut AnyConnection, group: DbUuid, now: DbTimestamp) -> Result<Vec<DbUuid>, Error> {
    let not_ended = || {
        events::table
            .filter(events::group_id.eq(group))
            .filter(events::deleted_at.is_null())
            .filter(events::ends_at.gt(now))
    };
    let ordered = || not_ended().order((events::starts_at, events::id)).select((events::id, events::place_key));
    let events: Vec<(DbUuid, String)> = match conn {
        AnyConnection::Sqlite(sqlite) => ordered().load(sqlite)?,
        AnyConnection::Postgresql(pg) => {
            let locked_places: HashSet<String> = places::table
                .filter(places::key.eq_any(not_ended().select(events::place_key)))
                .order(places::key)
                .select(places::key)
                .for_no_key_update()
                .load(pg)?
                .into_iter()
                .collect();
            let events: Vec<(DbUuid, String)> = ordered().for_update().load(pg)?;
            // An event has moved to another place before it was locked.
            if events.iter().any(|(_, place)| !locked_places.contains(place)) {
                return Err(Error::Stale);
            }
            events
        }
    };
    Ok(events.into_iter().map(|(id, _)| id).collect())
}
