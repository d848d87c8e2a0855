//! Groups in the database.

use std::collections::{BTreeSet, HashMap};

use common::{
    input::IdSet,
    problem::{Problem, Violations},
    time::Timestamp,
};
use diesel::{OptionalExtension, prelude::*};
use serde_json::json;
use service_kit::{
    db::{
        AnyConnection,
        sql::{Moment, Uid},
    },
    error::Error,
    on_each,
};
use uuid::{Uuid, uuid};

use crate::{
    auth::{ACTIVE, Caller},
    codes,
    schema::{events, group_admins, group_members, groups, rooms, users as user_rows},
    users::queries::{User, active_ids, note_unknown},
};

/// The everyone group (contract, "Groups").
pub const EVERYONE: Uid = Uid(uuid!("11111111-1111-1111-1111-111111111111"));

/// `groups.kind` of a group made here. The everyone group is 1, a directory group 2.
pub const MADE_HERE: i16 = 0;
const EVERYONE_KIND: i16 = 1;

/// A group without its people.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = groups)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct Row {
    pub id: Uid,
    pub kind: i16,
    pub name: String,
    pub description: String,
    pub open: bool,
    pub created_by: Option<Uid>,
    pub created_at: Moment,
    pub updated_at: Moment,
}

/// A group with its people, each list in the order of ids.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Group {
    pub row: Row,
    pub members: Vec<Uid>,
    pub admins: Vec<Uid>,
}

/// What a group is to be.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct Edit {
    pub name: String,
    pub description: String,
    pub open: bool,
    pub members: Option<IdSet<0>>,
    pub admins: IdSet<1>,
}

/// Makes the everyone group, or gives it its present name.
///
/// # Errors
/// When the database fails.
pub fn ensure_everyone_group(conn: &mut AnyConnection, name: &str, now: Timestamp) -> Result<(), Error> {
    let now = Moment(now);
    let group = (
        groups::id.eq(EVERYONE),
        groups::kind.eq(EVERYONE_KIND),
        groups::name.eq(name),
        groups::description.eq(""),
        groups::open.eq(false),
        groups::created_at.eq(now),
        groups::updated_at.eq(now),
    );
    on_each!(conn, c => diesel::insert_into(groups::table).values(group).on_conflict_do_nothing().execute(c))?;
    diesel::update(groups::table.find(EVERYONE).filter(groups::name.ne(name)))
        .set((groups::name.eq(name), groups::updated_at.eq(now)))
        .execute(conn)?;
    Ok(())
}

/// All groups: made here, everyone, from the directory; each by name.
///
/// # Errors
/// When the database fails.
pub fn list(conn: &mut AnyConnection) -> Result<Vec<Group>, Error> {
    let live = groups::table.filter(groups::deleted_at.is_null());
    let rows = live.order((groups::kind, groups::name, groups::id)).select(Row::as_select()).load(conn)?;
    let members = group_members::table
        .filter(group_members::group_id.eq_any(live.select(groups::id)))
        .order((group_members::group_id, group_members::user_id))
        .load(conn)?;
    let admins = group_admins::table
        .filter(group_admins::group_id.eq_any(live.select(groups::id)))
        .order((group_admins::group_id, group_admins::user_id))
        .load(conn)?;
    let (mut members, mut admins) = (by_group(members), by_group(admins));
    members.insert(EVERYONE, active_ids(conn)?);
    let mut take = |row: Row| {
        let (members, admins) = (members.remove(&row.id), admins.remove(&row.id));
        Group { row, members: members.unwrap_or_default(), admins: admins.unwrap_or_default() }
    };
    Ok(rows.into_iter().map(&mut take).collect())
}

fn by_group(pairs: Vec<(Uid, Uid)>) -> HashMap<Uid, Vec<Uid>> {
    let mut people = HashMap::<_, Vec<_>>::new();
    for (group, user) in pairs {
        people.entry(group).or_default().push(user);
    }
    people
}

/// One group.
///
/// # Errors
/// 404 when there is none, or it is deleted.
pub fn get(conn: &mut AnyConnection, id: Uid) -> Result<Group, Error> {
    let row = groups::table.find(id).filter(groups::deleted_at.is_null()).select(Row::as_select()).first(conn);
    with_people(conn, row.optional()?)
}

/// One group, which may be deleted: what its events show.
///
/// # Errors
/// 404 when there never was one.
pub fn get_with_deleted(conn: &mut AnyConnection, id: Uid) -> Result<Group, Error> {
    let row = groups::table.find(id).select(Row::as_select()).first(conn).optional()?;
    with_people(conn, row)
}

fn with_people(conn: &mut AnyConnection, row: Option<Row>) -> Result<Group, Error> {
    let row = row.ok_or_else(not_found)?;
    let members = member_ids(conn, row.id)?;
    let admins = group_admins::table
        .filter(group_admins::group_id.eq(row.id))
        .select(group_admins::user_id)
        .order(group_admins::user_id)
        .load(conn)?;
    Ok(Group { row, members, admins })
}

fn not_found() -> Problem {
    Problem::not_found("group")
}

/// The members of a group in the order of ids; of the everyone group all active users. None when there is no group.
///
/// # Errors
/// When the database fails.
pub fn member_ids(conn: &mut AnyConnection, group: Uid) -> Result<Vec<Uid>, Error> {
    if group == EVERYONE {
        return active_ids(conn);
    }
    Ok(group_members::table
        .filter(group_members::group_id.eq(group))
        .select(group_members::user_id)
        .order(group_members::user_id)
        .load(conn)?)
}

/// Whether a user belongs to a group; to the everyone group if active.
///
/// # Errors
/// When the database fails.
pub fn is_member(conn: &mut AnyConnection, group: Uid, user: Uid) -> Result<bool, Error> {
    let found: i64 = if group == EVERYONE {
        user_rows::table.find(user).filter(user_rows::state.eq(ACTIVE)).count().get_result(conn)?
    } else {
        group_members::table.find((group, user)).count().get_result(conn)?
    };
    Ok(found > 0)
}

/// Whether there is such a group, which then cannot be deleted before the transaction ends. Whatever gives an event a
/// group asks this first.
///
/// # Errors
/// When the database fails.
pub fn hold(conn: &mut AnyConnection, id: Uid) -> Result<bool, Error> {
    let query = groups::table.find(id).filter(groups::deleted_at.is_null()).select(groups::id);
    let found: Option<Uid> = match conn {
        AnyConnection::Postgresql(pg) => query.for_key_share().first(pg).optional()?,
        AnyConnection::Sqlite(sqlite) => query.first(sqlite).optional()?,
    };
    Ok(found.is_some())
}

/// Kind and openness of a group, which nobody else changes, joins or gives an event to before the transaction ends.
fn lock(conn: &mut AnyConnection, id: Uid) -> Result<(i16, bool), Error> {
    let query = groups::table.find(id).filter(groups::deleted_at.is_null()).select((groups::kind, groups::open));
    let found = match conn {
        AnyConnection::Postgresql(pg) => query.for_update().first(pg).optional()?,
        AnyConnection::Sqlite(sqlite) => query.first(sqlite).optional()?,
    };
    Ok(found.ok_or_else(not_found)?)
}

/// Like [`lock`], for somebody who may change the group.
fn lock_for_change(conn: &mut AnyConnection, id: Uid, me: &Caller) -> Result<(), Error> {
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
pub fn create(conn: &mut AnyConnection, group: &Edit, creator: Uid, now: Timestamp) -> Result<Uid, Error> {
    check_people(conn, group)?;
    let (id, now) = (Uid::new(), Moment(now));
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
pub fn update(conn: &mut AnyConnection, id: Uid, group: &Edit, me: &Caller, now: Timestamp) -> Result<(), Error> {
    lock_for_change(conn, id, me)?;
    check_people(conn, group)?;
    diesel::update(groups::table.find(id))
        .set((
            groups::name.eq(&group.name),
            groups::description.eq(&group.description),
            groups::open.eq(group.open),
            groups::updated_at.eq(Moment(now)),
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
        let users: Vec<Uid> = $users.iter().map(|(_, id): (usize, Uuid)| Uid(id)).collect();
        diesel::delete($table::table.filter($table::group_id.eq($group))).execute($conn)?;
        for users in users.chunks(1000) {
            let rows: Vec<_> = users.iter().map(|id| ($table::group_id.eq($group), $table::user_id.eq(*id))).collect();
            on_each!($conn, c => diesel::insert_into($table::table).values(&rows).execute(c))?;
        }
    }};
}

fn put_people(conn: &mut AnyConnection, id: Uid, group: &Edit) -> Result<(), Error> {
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
pub fn join(conn: &mut AnyConnection, id: Uid, user: Uid, now: Timestamp) -> Result<(), Error> {
    lock_open(conn, id)?;
    let row = (group_members::group_id.eq(id), group_members::user_id.eq(user));
    let joined =
        on_each!(conn, c => diesel::insert_into(group_members::table).values(row).on_conflict_do_nothing().execute(c))?;
    touch(conn, id, joined, now)
}

/// Makes a user no longer a member of an open group.
///
/// # Errors
/// 404; 403 for a group that is not open.
pub fn leave(conn: &mut AnyConnection, id: Uid, user: Uid, now: Timestamp) -> Result<(), Error> {
    lock_open(conn, id)?;
    let left = diesel::delete(group_members::table.find((id, user))).execute(conn)?;
    touch(conn, id, left, now)
}

fn lock_open(conn: &mut AnyConnection, id: Uid) -> Result<(), Error> {
    let (_, open) = lock(conn, id)?;
    if open { Ok(()) } else { Err(Problem::forbidden("an open group").into()) }
}

fn touch(conn: &mut AnyConnection, id: Uid, changed: usize, now: Timestamp) -> Result<(), Error> {
    if changed > 0 {
        diesel::update(groups::table.find(id)).set(groups::updated_at.eq(Moment(now))).execute(conn)?;
    }
    Ok(())
}

/// Deletes a group, and with `force` its events that have not ended.
///
/// # Errors
/// 404; 403 for a group that was not made here, and for callers who may not; 409 `events-to-come` without `force`.
pub fn delete(conn: &mut AnyConnection, id: Uid, force: bool, me: &Caller, now: Timestamp) -> Result<(), Error> {
    lock_for_change(conn, id, me)?;
    let to_come = events::table
        .filter(events::group_id.eq(id))
        .filter(events::deleted_at.is_null())
        .filter(events::ends_at.gt(Moment(now)))
        .order((events::starts_at, events::id))
        .select(events::id);
    let to_come: Vec<Uid> = match conn {
        AnyConnection::Postgresql(pg) => to_come.for_update().load(pg)?,
        AnyConnection::Sqlite(sqlite) => to_come.load(sqlite)?,
    };
    if !force && !to_come.is_empty() {
        return Err(Problem::new(codes::EVENTS_TO_COME).member("events", json!(to_come)).into());
    }
    delete_events(conn, &to_come, now)?;
    diesel::update(groups::table.find(id))
        .set((groups::deleted_at.eq(Moment(now)), groups::updated_at.eq(Moment(now))))
        .execute(conn)?;
    Ok(())
}

/// Deletes events as `DELETE /events/{eventID}` does, and the rooms made for them that no other event uses: marked,
/// for the activity list and the feeds.
///
/// # Errors
/// When the database fails.
pub fn delete_events(conn: &mut AnyConnection, ids: &[Uid], now: Timestamp) -> Result<(), Error> {
    let now = Moment(now);
    for ids in ids.chunks(1000) {
        diesel::update(events::table.filter(events::id.eq_any(ids)).filter(events::deleted_at.is_null()))
            .set((events::deleted_at.eq(now), events::updated_at.eq(now), events::sequence.eq(events::sequence + 1)))
            .execute(conn)?;
    }
    for ids in ids.chunks(1000) {
        let owners = events::table.filter(events::id.eq_any(ids)).filter(events::owns_room).select(events::room_id);
        let users = events::table.filter(events::room_id.eq(rooms::id)).filter(events::deleted_at.is_null());
        diesel::update(
            rooms::table
                .filter(rooms::id.eq_any(owners))
                .filter(rooms::deleted_at.is_null())
                .filter(diesel::dsl::not(diesel::dsl::exists(users))),
        )
        .set(rooms::deleted_at.eq(now))
        .execute(conn)?;
    }
    Ok(())
}

/// The ids of the groups that a user belongs to (the everyone group if active) or administers, in the order of
/// [`list`].
///
/// # Errors
/// When the database fails.
pub fn of_user(conn: &mut AnyConnection, user: &User, belongs: bool, admins: bool) -> Result<Vec<Uid>, Error> {
    let live = groups::table.filter(groups::deleted_at.is_null()).select((groups::kind, groups::name, groups::id));
    let mut found = BTreeSet::<(i16, String, Uid)>::new();
    if belongs {
        let ids = group_members::table.filter(group_members::user_id.eq(user.id)).select(group_members::group_id);
        found.extend(live.filter(groups::id.eq_any(ids)).load(conn)?);
    }
    if belongs && user.state == ACTIVE {
        found.insert((EVERYONE_KIND, String::new(), EVERYONE));
    }
    if admins {
        let ids = group_admins::table.filter(group_admins::user_id.eq(user.id)).select(group_admins::group_id);
        found.extend(live.filter(groups::id.eq_any(ids)).load(conn)?);
    }
    Ok(found.into_iter().map(|(.., id)| id).collect())
}
