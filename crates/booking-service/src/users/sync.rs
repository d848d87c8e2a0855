//! The copy of the club directory: users and their groups (contract, `POST /users/sync` and "The club directory").
//!
//! * Users are identified by id, not by name. Names, pictures and states follow the directory.
//! * The directory decides who has a name. Another user with that name who is not in the directory is renamed to
//!   `name~` and the first 8 characters of the id.
//! * A user who is no longer active loses sessions, tokens and feed address for good, a deactivated one the privilege too:
//!   without ids in the directory, whoever gets the name later is the same user.
//! * Invitations to events follow members and states ([`invitations`]).
//! * A user whom the directory no longer lists is deactivated; one whom it never listed does not change. A group that
//!   it no longer lists is marked as deleted, and comes back when the directory has it again.
//! * A directory that would take access from more than half of the active users is refused, unless forced.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use club_directory::{DirectoryGroup, DirectoryUser, Snapshot, UserState};
use club_sign_in::sessions::end_all_of;
use common::time::Timestamp;
use diesel::{prelude::*, sql_query, upsert::excluded};
use service_kit::{
    database::{
        AnyConnection, Database, JobOwner,
        types::{DbTimestamp, DbUuid},
    },
    directory::{self, Changes, Synced},
    error::Error,
    history::{self, Author, By},
    with_connection,
};

use super::{queries::record_privilege, sign_in_name::NAMES, synced_groups};
use crate::{
    auth::ACTIVE,
    club::Club,
    invitations,
    objects::GROUP,
    schema::{api_tokens, group_admins, group_members, groups, users},
};

/// Rows of one statement: databases limit the number of values.
const CHUNK: usize = 1000;

/// `users.state` of a deactivated user.
const DEACTIVATED: i16 = UserState::Deactivated as i16;

/// `groups.kind` of a group of the directory.
pub const DIRECTORY: i16 = 2;

/// Reads the directory and copies its users and groups, in one transaction.
///
/// # Errors
/// 503 when there is no directory or it cannot be read; 409 when it is suspicious and `force` is not set. Nothing
/// changes then.
pub async fn run(db: &Database, club: &Club, force: bool, now: Timestamp) -> Result<Synced, Error> {
    let directory = directory::fetch(club.directory.as_ref()).await?;
    db.write(JobOwner::Internal, move |conn| apply(conn, &directory, force, DbTimestamp(now))).await
}

/// Copies the users and groups of a snapshot.
///
/// # Errors
/// 409 when the directory is suspicious and `force` is not set.
pub fn apply(conn: &mut AnyConnection, directory: &Snapshot, force: bool, now: DbTimestamp) -> Result<Synced, Error> {
    // No other transaction may change users between the reading and the changes, nor members of groups or the group of
    // an event before the invitations are. Readers do not wait.
    if let AnyConnection::Postgresql(pg) = conn {
        sql_query("LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE").execute(pg)?;
        sql_query("LOCK TABLE groups IN EXCLUSIVE MODE").execute(pg)?;
    }
    NAMES.warn(&directory.users);
    let (users, states) = update_users(conn, &directory.users, force, now)?;
    end_access(conn, &states.inactive, now)?;
    end_privileges(conn, now)?;
    let groups = update_groups(conn, &directory.groups, now)?;
    invitations::leave(conn, &states.deactivated, None, now)?;
    invitations::join(conn, &states.activated, None, now)?;
    Ok(Synced { users, groups })
}

/// The users whose states matter after [`update_users`].
struct States {
    /// Those of the directory who are not active, and those who have left it.
    inactive: Vec<DbUuid>,
    /// Those of them who were active before.
    deactivated: Vec<DbUuid>,
    /// New active users, and those who have become active.
    activated: Vec<DbUuid>,
}

#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = users)]
struct UserRow {
    id: DbUuid,
    name: String,
    display_name: String,
    icon: String,
    state: i16,
    in_directory: bool,
    email: Option<String>,
}

impl From<&DirectoryUser> for UserRow {
    fn from(user: &DirectoryUser) -> Self {
        Self {
            id: DbUuid(user.id),
            name: user.name.clone(),
            display_name: user.display_name.clone(),
            icon: user.icon.clone().unwrap_or_default(),
            state: user.state.number().into(),
            in_directory: true,
            email: user.email.clone(),
        }
    }
}

/// Makes the users equal to the directory.
fn update_users(
    conn: &mut AnyConnection,
    listed_users: &[DirectoryUser],
    force: bool,
    now: DbTimestamp,
) -> Result<(Changes, States), Error> {
    let present: Vec<UserRow> = users::table.select(UserRow::as_select()).load(conn)?;
    let target: Vec<UserRow> = listed_users.iter().map(UserRow::from).collect();
    let listed: HashSet<_> = target.iter().map(|user| user.id).collect();
    let unlisted = present.iter().filter(|user| user.in_directory && !listed.contains(&user.id));
    let unlisted: Vec<_> = unlisted.map(|user| user.id).collect();
    let active: HashSet<_> = present.iter().filter(|user| user.state == ACTIVE).map(|user| user.id).collect();
    if !force {
        directory::check_lost_access(&active, listed_users, &unlisted)?;
    }
    // Names are unique after each statement, so names that move to another user are freed first.
    save(conn, &freed_names(&present, &target), now)?;
    let present: HashMap<_, _> = present.into_iter().map(|user| (user.id, user)).collect();
    let changed: Vec<_> = target.iter().filter(|user| present.get(&user.id) != Some(user)).cloned().collect();
    let is_renamed =
        |user: &&UserRow| present.get(&user.id).is_some_and(|before| before.display_name != user.display_name);
    let renamed: Vec<_> = changed.iter().filter(is_renamed).map(|user| user.id).collect();
    for ids in renamed.chunks(CHUNK) {
        diesel::update(users::table.filter(users::id.eq_any(ids)))
            .set(users::display_name_changed_at.eq(now))
            .execute(conn)?;
    }
    save(conn, &changed, now)?;
    for ids in unlisted.chunks(CHUNK) {
        diesel::update(users::table.filter(users::id.eq_any(ids)))
            .set((
                (users::state.eq(DEACTIVATED), users::in_directory.eq(false)),
                (users::email.eq(None::<String>), users::updated_at.eq(now)),
            ))
            .execute(conn)?;
    }
    let counts = Changes::new(&changed, |user| present.contains_key(&user.id), unlisted.len());
    let is_active = |user: &&UserRow| user.state == ACTIVE;
    let activated = target.iter().filter(is_active).map(|user| user.id).filter(|id| !active.contains(id)).collect();
    let inactive = target.iter().filter(|user| !is_active(user)).map(|user| user.id).chain(unlisted);
    let inactive: Vec<_> = inactive.collect();
    let deactivated = inactive.iter().filter(|id| active.contains(id)).copied().collect();
    Ok((counts, States { inactive, deactivated, activated }))
}

/// The users whose names the directory gives to others, with new names: final ones for users who are not in the
/// directory, temporary ones for the others.
fn freed_names(present: &[UserRow], target: &[UserRow]) -> Vec<UserRow> {
    let new_owners: HashMap<_, _> = target.iter().map(|user| (user.name.as_str(), user.id)).collect();
    let listed: HashSet<_> = target.iter().map(|user| user.id).collect();
    let mut used: HashSet<_> = present.iter().chain(target).map(|user| user.name.clone()).collect();
    let conflicting =
        present.iter().filter(|user| new_owners.get(user.name.as_str()).is_some_and(|owner| *owner != user.id));
    conflicting
        .map(|user| {
            let id = user.id.to_string();
            // Ids that were made at about the same time begin with the same characters. Then more characters are used.
            let mut names = (8..=id.len()).map(|length| format!("{}~{}", user.name, &id[..length]));
            let name = names.find(|name| !listed.contains(&user.id) && used.insert(name.clone()));
            UserRow { name: name.unwrap_or_else(|| format!("~{id}")), ..user.clone() }
        })
        .collect()
}

fn save(conn: &mut AnyConnection, rows: &[UserRow], now: DbTimestamp) -> Result<(), Error> {
    for rows in rows.chunks(CHUNK) {
        let values: Vec<_> = rows
            .iter()
            .map(|user| {
                (
                    users::id.eq(user.id),
                    users::name.eq(&user.name),
                    users::display_name.eq(&user.display_name),
                    users::icon.eq(&user.icon),
                    users::state.eq(user.state),
                    users::in_directory.eq(user.in_directory),
                    users::email.eq(&user.email),
                    users::privileged.eq(false),
                    users::created_at.eq(now),
                    users::updated_at.eq(now),
                )
            })
            .collect();
        // The privileges and feeds of existing users stay.
        with_connection!(conn, c => diesel::insert_into(users::table)
            .values(&values)
            .on_conflict(users::id)
            .do_update()
            .set((
                users::name.eq(excluded(users::name)),
                users::display_name.eq(excluded(users::display_name)),
                users::icon.eq(excluded(users::icon)),
                users::state.eq(excluded(users::state)),
                users::in_directory.eq(excluded(users::in_directory)),
                users::email.eq(excluded(users::email)),
                users::updated_at.eq(excluded(users::updated_at)),
            ))
            .execute(c))?;
    }
    Ok(())
}

/// Ends the sessions, tokens and feeds of users who are not active.
pub(super) fn end_access(conn: &mut AnyConnection, inactive: &[DbUuid], now: DbTimestamp) -> Result<(), Error> {
    for ids in inactive.chunks(CHUNK) {
        end_all_of(conn, ids, now)?;
        diesel::update(
            api_tokens::table.filter(api_tokens::user_id.eq_any(ids)).filter(api_tokens::revoked_at.is_null()),
        )
        .set(api_tokens::revoked_at.eq(now))
        .execute(conn)?;
        let has_feed = users::feed_nonce.is_not_null().or(users::imported_feed_hash.is_not_null());
        diesel::update(users::table.filter(users::id.eq_any(ids)).filter(has_feed))
            .set((users::feed_nonce.eq(None::<String>), users::imported_feed_hash.eq(None::<Vec<u8>>)))
            .execute(conn)?;
    }
    Ok(())
}

/// Revokes the privilege of deactivated users, the last one's too.
fn end_privileges(conn: &mut AnyConnection, now: DbTimestamp) -> Result<(), Error> {
    let former = users::table.filter(users::state.eq(DEACTIVATED)).filter(users::privileged.eq(true));
    let former: Vec<DbUuid> = former.order(users::id).select(users::id).load(conn)?;
    for id in former {
        diesel::update(users::table.find(id)).set(users::privileged.eq(false)).execute(conn)?;
        record_privilege(conn, id, false, &Author::new(By::Directory, now))?;
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = groups)]
struct GroupRow {
    name: String,
    description: String,
    deleted_at: Option<DbTimestamp>,
}

/// Groups and the users of each.
type Links = BTreeMap<DbUuid, BTreeSet<DbUuid>>;

fn links(pairs: impl IntoIterator<Item = (DbUuid, DbUuid)>) -> Links {
    let mut links = Links::new();
    for (group, user) in pairs {
        links.entry(group).or_default().insert(user);
    }
    links
}

/// The links in `a` that are not in `b`.
fn difference(a: &Links, b: &Links) -> Links {
    let pairs = a.iter().flat_map(|(group, users)| users.iter().map(|user| (*group, *user)));
    links(pairs.filter(|(group, user)| !b.get(group).is_some_and(|users| users.contains(user))))
}

/// Reads the links of directory groups from a table of them.
macro_rules! load_links {
    ($conn:expr, $table:ident) => {{
        let ours = groups::table.filter(groups::kind.eq(DIRECTORY)).select(groups::id);
        let pairs = $table::table.filter($table::group_id.eq_any(ours)).select(($table::group_id, $table::user_id));
        links(pairs.load::<(DbUuid, DbUuid)>($conn)?)
    }};
}

/// Adds links to a table and removes others.
macro_rules! save_links {
    ($conn:expr, $table:ident, $added:expr, $removed:expr) => {{
        let added: Vec<_> = $added
            .iter()
            .flat_map(|(group, users)| users.iter().map(move |user| (*group, *user)))
            .map(|(group, user)| ($table::group_id.eq(group), $table::user_id.eq(user)))
            .collect();
        for added in added.chunks(CHUNK) {
            with_connection!($conn, c => diesel::insert_into($table::table).values(added).execute(c))?;
        }
        for (group, users) in $removed {
            for users in users.iter().copied().collect::<Vec<_>>().chunks(CHUNK) {
                let removed = $table::table.filter($table::group_id.eq(group)).filter($table::user_id.eq_any(users));
                diesel::delete(removed).execute($conn)?;
            }
        }
    }};
}

fn update_groups(conn: &mut AnyConnection, directory: &[DirectoryGroup], now: DbTimestamp) -> Result<Changes, Error> {
    let rows: Vec<(DbUuid, i16, GroupRow)> =
        groups::table.select((groups::id, groups::kind, GroupRow::as_select())).load(conn)?;
    let (ours, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, kind, _)| *kind == DIRECTORY);
    let others: HashSet<_> = others.into_iter().map(|(id, ..)| id).collect();
    let present: HashMap<_, _> = ours.into_iter().map(|(id, _, group)| (id, group)).collect();
    let (free, clashing): (Vec<_>, Vec<_>) =
        directory.iter().partition::<Vec<_>, _>(|group| !others.contains(&DbUuid(group.id)));
    for group in clashing {
        log::warn!("club directory: the group {} is left out, as its id is that of a group made here", group.id);
    }

    let (mut members, mut admins) = (load_links!(conn, group_members), load_links!(conn, group_admins));
    let pairs = |group: &DirectoryGroup, users: &[uuid::Uuid]| -> Vec<_> {
        users.iter().map(|user| (DbUuid(group.id), DbUuid(*user))).collect()
    };
    let target_members = links(free.iter().flat_map(|group| pairs(group, &group.members)));
    let target_admins = links(free.iter().flat_map(|group| pairs(group, &group.admins)));

    let changed: Vec<_> = free
        .iter()
        .filter(|group| {
            let id = DbUuid(group.id);
            let same = |row: &GroupRow| {
                row.name == group.name && row.description == group.description && row.deleted_at.is_none()
            };
            !present.get(&id).is_some_and(same)
                || members.get(&id) != target_members.get(&id)
                || admins.get(&id) != target_admins.get(&id)
        })
        .collect();
    save_groups(conn, &changed, now)?;

    // Deleted groups keep their members and administrators, for their past events.
    let listed: HashSet<_> = free.iter().map(|group| DbUuid(group.id)).collect();
    members.retain(|group, _| listed.contains(group));
    admins.retain(|group, _| listed.contains(group));
    let (joined, left) = (difference(&target_members, &members), difference(&members, &target_members));
    let (appointed, dismissed) = (difference(&target_admins, &admins), difference(&admins, &target_admins));
    save_links!(conn, group_members, &joined, &left);
    save_links!(conn, group_admins, &appointed, &dismissed);
    let entry = |group: &&&DirectoryGroup| {
        let before = present.get(&DbUuid(group.id)).map(|row| (&*row.name, &*row.description, row.deleted_at));
        synced_groups::entry(group, before, [("members", [&joined, &left]), ("admins", [&appointed, &dismissed])])
    };
    let author = Author::new(By::Directory, now);
    history::record(conn, &author, &changed.iter().map(entry).collect::<Vec<_>>())?;
    for (group, users) in left {
        invitations::leave(conn, &Vec::from_iter(users), Some(group), now)?;
    }
    for (group, users) in joined {
        invitations::join(conn, &Vec::from_iter(users), Some(group), now)?;
    }

    let removed = present.iter().filter(|(id, group)| group.deleted_at.is_none() && !listed.contains(id));
    let removed: Vec<_> = removed.map(|(id, _)| *id).collect();
    for ids in removed.chunks(CHUNK) {
        diesel::update(groups::table.filter(groups::id.eq_any(ids)))
            .set((groups::deleted_at.eq(now), groups::updated_at.eq(now)))
            .execute(conn)?;
    }
    history::deleted(conn, &author, &GROUP, &removed)?;
    Ok(Changes::new(changed, |group| present.contains_key(&DbUuid(group.id)), removed.len()))
}

fn save_groups(conn: &mut AnyConnection, changed: &[&&DirectoryGroup], now: DbTimestamp) -> Result<(), Error> {
    for changed in changed.chunks(CHUNK) {
        let values: Vec<_> = changed
            .iter()
            .map(|group| {
                (
                    groups::id.eq(DbUuid(group.id)),
                    groups::kind.eq(DIRECTORY),
                    groups::name.eq(&group.name),
                    groups::description.eq(&group.description),
                    groups::open.eq(false),
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
                groups::deleted_at.eq(None::<DbTimestamp>),
            ))
            .execute(c))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn user(id: u128, name: &str) -> UserRow {
        let name = name.to_owned();
        UserRow {
            id: DbUuid(Uuid::from_u128(id)),
            display_name: name.clone(),
            name,
            icon: String::new(),
            state: ACTIVE,
            in_directory: true,
            email: None,
        }
    }

    fn names(present: &[UserRow], target: &[UserRow]) -> Vec<String> {
        freed_names(present, target).into_iter().map(|user| user.name).collect()
    }

    #[test]
    fn only_who_holds_the_name_of_another_is_moved_aside() {
        let present = [user(1, "anna"), user(2, "ben"), user(3, "cleo")];
        assert!(names(&present, &present).is_empty());
        assert!(names(&present, &[user(1, "hannah"), user(4, "dora")]).is_empty());
        let swapped = [user(1, "ben"), user(2, "anna")];
        assert_eq!(names(&present, &swapped), [format!("~{}", present[0].id), format!("~{}", present[1].id)]);
        assert_eq!(names(&present, &[user(4, "anna")]), ["anna~00000000"]);
    }

    #[test]
    fn a_name_out_of_the_way_is_free() {
        let present = [user(1, "anna"), user(2, "anna~00000000")];
        assert_eq!(names(&present, &[user(4, "anna")]), ["anna~00000000-"]);
        assert_eq!(names(&present[..1], &[user(4, "anna"), user(5, "anna~00000000")]), ["anna~00000000-"]);
    }
}
