//! The copy of groups, and the spans of their members (contract, "Where the data comes from").
//!
//! The span of a new member begins in the present semester, and that of a missing member ends in it. A member who
//! returns gets a new span. A group that the directory no longer lists stays, without administrators and present
//! members.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use club_directory::DirectoryGroup;
use common::semester::YearWithSemester;
use diesel::{prelude::*, upsert::excluded};
use service_kit::{
    database::{
        AnyConnection, ROWS_PER_STATEMENT,
        types::{DbTimestamp, DbUuid},
    },
    directory,
    error::Error,
    with_connection,
};

use crate::{
    schema::{group_admins, group_memberships, groups},
    span::Half,
};

/// A group and a user in it.
type Link = (DbUuid, DbUuid);

/// The changes after which the open spans are those of the present members.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    /// Spans that begin now.
    opened: Vec<Link>,
    /// Ids of spans that end, by their last semester.
    closed: BTreeMap<Half, Vec<DbUuid>>,
}

fn changes(open: &BTreeMap<Link, (DbUuid, Half)>, members: &BTreeSet<Link>, present: Half) -> Changes {
    let opened = members.iter().filter(|link| !open.contains_key(link)).copied().collect();
    let mut closed: BTreeMap<Half, Vec<DbUuid>> = BTreeMap::new();
    for (_, (id, since)) in open.iter().filter(|(link, _)| !members.contains(link)) {
        // A span that began after the present semester, by a wrong clock, ends in its first one.
        closed.entry(present.max(*since)).or_default().push(*id);
    }
    Changes { opened, closed }
}

/// Updates groups, their administrators and the spans of their members. People who are not in `users` are left out.
pub(super) fn update(
    conn: &mut AnyConnection,
    directory: &[DirectoryGroup],
    users: &HashSet<DbUuid>,
    present: YearWithSemester,
    now: DbTimestamp,
) -> Result<directory::Changes, Error> {
    let (present_groups, mut changed_groups) = update_groups(conn, directory, now)?;
    let links = |people: fn(&DirectoryGroup) -> &[uuid::Uuid]| -> BTreeSet<Link> {
        let all = directory.iter().flat_map(|group| people(group).iter().map(|user| (DbUuid(group.id), DbUuid(*user))));
        all.filter(|(_, user)| users.contains(user)).collect()
    };
    changed_groups.extend(update_admins(conn, &links(|group| &group.admins))?);

    let open: Vec<(DbUuid, DbUuid, DbUuid, Half)> = group_memberships::table
        .filter(group_memberships::until.is_null())
        .select((
            group_memberships::group_id,
            group_memberships::user_id,
            group_memberships::id,
            group_memberships::since,
        ))
        .load(conn)?;
    let open = open.into_iter().map(|(group, user, id, since)| ((group, user), (id, since))).collect();
    let members = links(|group| &group.members);
    let changes = changes(&open, &members, present.into());
    let former = open.keys().filter(|link| !members.contains(link));
    changed_groups.extend(changes.opened.iter().chain(former).map(|(group, _)| *group));
    let opened = changes.opened.into_iter().map(|(group, user)| {
        (
            group_memberships::id.eq(DbUuid::new()),
            group_memberships::group_id.eq(group),
            group_memberships::user_id.eq(user),
            group_memberships::since.eq(Half::from(present)),
        )
    });
    for rows in opened.collect::<Vec<_>>().chunks(ROWS_PER_STATEMENT) {
        with_connection!(conn, c => diesel::insert_into(group_memberships::table).values(rows).execute(c))?;
    }
    for (until, ids) in changes.closed {
        for ids in ids.chunks(ROWS_PER_STATEMENT) {
            diesel::update(group_memberships::table.filter(group_memberships::id.eq_any(ids)))
                .set(group_memberships::until.eq(until))
                .execute(conn)?;
        }
    }
    // A group that is not listed stays.
    Ok(directory::Changes::new(changed_groups, |group| present_groups.contains(&group), 0))
}

/// Updates groups. Returns the ids of those that were there before, and of those that are new or have changed.
fn update_groups(
    conn: &mut AnyConnection,
    directory: &[DirectoryGroup],
    now: DbTimestamp,
) -> Result<(HashSet<DbUuid>, BTreeSet<DbUuid>), Error> {
    let present: Vec<(DbUuid, String, String)> =
        groups::table.select((groups::id, groups::name, groups::description)).load(conn)?;
    let present: HashMap<_, _> = present.into_iter().map(|(id, name, description)| (id, (name, description))).collect();
    let is_same = |group: &DirectoryGroup| {
        let row = present.get(&DbUuid(group.id));
        row.is_some_and(|(name, description)| *name == group.name && *description == group.description)
    };
    let changed: Vec<_> = directory.iter().filter(|group| !is_same(group)).collect();
    for changed in changed.chunks(ROWS_PER_STATEMENT) {
        let values: Vec<_> = changed
            .iter()
            .map(|group| {
                (
                    groups::id.eq(DbUuid(group.id)),
                    groups::name.eq(&group.name),
                    groups::description.eq(&group.description),
                    groups::created_at.eq(now),
                    groups::updated_at.eq(now),
                )
            })
            .collect();
        with_connection!(conn, c => diesel::insert_into(groups::table)
            .values(&values)
            .on_conflict(groups::id)
            .do_update()
            .set((
                groups::name.eq(excluded(groups::name)),
                groups::description.eq(excluded(groups::description)),
                groups::updated_at.eq(excluded(groups::updated_at)),
            ))
            .execute(c))?;
    }
    Ok((present.into_keys().collect(), changed.iter().map(|group| DbUuid(group.id)).collect()))
}

/// Updates the administrators of groups. Returns the ids of the groups whose administrators have changed.
fn update_admins(conn: &mut AnyConnection, target: &BTreeSet<Link>) -> Result<BTreeSet<DbUuid>, Error> {
    let present: BTreeSet<Link> = group_admins::table.load::<Link>(conn)?.into_iter().collect();
    let added: Vec<_> = target
        .difference(&present)
        .map(|(group, user)| (group_admins::group_id.eq(*group), group_admins::user_id.eq(*user)))
        .collect();
    for added in added.chunks(ROWS_PER_STATEMENT) {
        with_connection!(conn, c => diesel::insert_into(group_admins::table).values(added).execute(c))?;
    }
    let changed = target.symmetric_difference(&present).map(|(group, _)| *group).collect();
    let mut removed: BTreeMap<DbUuid, Vec<DbUuid>> = BTreeMap::new();
    for (group, user) in present.difference(target) {
        removed.entry(*group).or_default().push(*user);
    }
    for (group, users) in removed {
        for users in users.chunks(ROWS_PER_STATEMENT) {
            let rows = group_admins::table.filter(group_admins::group_id.eq(group));
            diesel::delete(rows.filter(group_admins::user_id.eq_any(users))).execute(conn)?;
        }
    }
    Ok(changed)
}
