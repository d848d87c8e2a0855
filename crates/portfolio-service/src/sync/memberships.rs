//! The copy of groups, and the spans of their members (contract, "Where the data comes from").
//!
//! The span of a new member begins in the present semester, and that of a missing member ends in it. A member who
//! returns gets a new span, unless the last one ended in this semester or the one before. A group that the directory no longer lists stays, without administrators and present
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

/// A stored span of a member. A new one has no id yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    id: Option<DbUuid>,
    since: Half,
    until: Option<Half>,
}

impl Span {
    fn begins_by_end_of(self, other: Self) -> bool {
        other.until.is_none_or(|until| self.since <= until.next())
    }
}

/// The spans of a user in a group after a sync, by time: as stored, but with an open one if and only if the user is a
/// member, and with spans that overlap or touch as one.
fn spans_after(mut spans: Vec<Span>, is_member: bool, present: Half) -> Vec<Span> {
    if is_member {
        spans.push(Span { id: None, since: present, until: None });
    } else {
        for span in spans.iter_mut().filter(|span| span.until.is_none()) {
            // A span that began after the present semester, by a wrong clock, ends in its first one.
            span.until = Some(present.max(span.since));
        }
    }
    spans.sort_unstable_by_key(|span| (span.since, span.id));
    let mut result: Vec<Span> = Vec::new();
    for span in spans {
        match result.last_mut() {
            Some(last) if span.begins_by_end_of(*last) => {
                last.id = last.id.or(span.id);
                last.until = last.until.zip(span.until).map(|(one, other)| one.max(other));
            }
            _ => result.push(span),
        }
    }
    result
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

    changed_groups.extend(update_spans(conn, &links(|group| &group.members), present.into())?);
    // A group that is not listed stays.
    Ok(directory::Changes::new(changed_groups, |group| present_groups.contains(&group), 0))
}

/// Updates the spans of members. Returns the ids of the groups whose spans have changed.
fn update_spans(conn: &mut AnyConnection, members: &BTreeSet<Link>, present: Half) -> Result<BTreeSet<DbUuid>, Error> {
    use group_memberships as rows;
    let stored: Vec<(DbUuid, Link, (Half, Option<Half>))> =
        rows::table.select((rows::id, (rows::group_id, rows::user_id), (rows::since, rows::until))).load(conn)?;
    let mut spans: BTreeMap<Link, Vec<Span>> = members.iter().map(|link| (*link, Vec::new())).collect();
    for (id, link, (since, until)) in stored {
        spans.entry(link).or_default().push(Span { id: Some(id), since, until });
    }
    let (mut changed, mut deleted, mut saved) = (BTreeSet::new(), Vec::new(), Vec::new());
    for ((group, user), before) in spans {
        let after = spans_after(before.clone(), members.contains(&(group, user)), present);
        let kept: HashSet<_> = after.iter().filter_map(|span| span.id).collect();
        let unchanged = deleted.len() + saved.len();
        deleted.extend(before.iter().filter_map(|span| span.id).filter(|id| !kept.contains(id)));
        saved.extend(after.into_iter().filter(|span| !before.contains(span)).map(|span| {
            (
                rows::id.eq(span.id.unwrap_or_else(DbUuid::new)),
                rows::group_id.eq(group),
                rows::user_id.eq(user),
                rows::since.eq(span.since),
                rows::until.eq(span.until),
            )
        }));
        if deleted.len() + saved.len() > unchanged {
            changed.insert(group);
        }
    }
    for ids in deleted.chunks(ROWS_PER_STATEMENT) {
        diesel::delete(rows::table.filter(rows::id.eq_any(ids))).execute(conn)?;
    }
    for values in saved.chunks(ROWS_PER_STATEMENT) {
        with_connection!(conn, c => diesel::insert_into(rows::table)
            .values(values)
            .on_conflict(rows::id)
            .do_update()
            .set((rows::since.eq(excluded(rows::since)), rows::until.eq(excluded(rows::until))))
            .execute(c))?;
    }
    Ok(changed)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn half(n: i32) -> Half {
        Half::from(YearWithSemester::new(2026, common::semester::Semester::First).unwrap()).plus(n)
    }

    fn is_in(spans: &[Span], semester: Half) -> bool {
        spans.iter().any(|span| span.since <= semester && span.until.is_none_or(|until| semester <= until))
    }

    proptest! {
        #[test]
        fn spans_stay_the_same_semesters_and_never_touch(
            stored in prop::collection::vec((0..12, prop::option::of(0..4)), 0..6),
            is_member: bool,
            present in 0..12,
        ) {
            let stored: Vec<_> = stored.into_iter().map(|(since, length)| Span {
                id: Some(DbUuid::new()),
                since: half(since),
                until: length.map(|length| half(since + length)),
            }).collect();
            let after = spans_after(stored.clone(), is_member, half(present));
            for pair in after.windows(2) {
                prop_assert!(pair[0].until.unwrap().next() < pair[1].since, "{:?}", after);
            }
            prop_assert_eq!(after.iter().filter(|span| span.until.is_none()).count(), usize::from(is_member));
            for semester in 0..20 {
                let was_in = is_in(&stored, half(semester));
                let expected = match semester.cmp(&present) {
                    std::cmp::Ordering::Less => was_in,
                    _ if is_member => true,
                    std::cmp::Ordering::Equal => was_in,
                    std::cmp::Ordering::Greater => stored.iter().any(|span| match span.until {
                        Some(until) => span.since <= half(semester) && half(semester) <= until,
                        None => span.since == half(semester),
                    }),
                };
                prop_assert_eq!(is_in(&after, half(semester)), expected, "{} {:?} {:?}", semester, stored, after);
            }
            prop_assert_eq!(spans_after(after.clone(), is_member, half(present)), after);
        }
    }
}
