//! Groups in the database.

use std::collections::{BTreeSet, HashMap};

pub use crate::invitations::EVERYONE;
use crate::{
    auth::{ACTIVE, Caller},
    expressions::{IdList, folded_ids},
    schema::{group_admins, group_members, groups, users as user_rows},
    users::queries::{User, active_ids},
};
use common::{
    input::IdSet,
    problem::{Problem, Rule, Violations},
};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    after,
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

/// `groups.kind` of a group made here. The everyone group is 1, a directory group 2.
pub const MADE_HERE: i16 = 0;
const EVERYONE_KIND: i16 = 1;

/// The columns of a group.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = groups)]
pub struct Row {
    pub id: DbUuid,
    pub kind: i16,
    pub name: String,
    pub description: String,
    pub open: bool,
    pub created_by: Option<DbUuid>,
    pub created_at: DbTimestamp,
    pub updated_at: DbTimestamp,
}

/// A group with its members and admins, each in the order of ids.
#[derive(Debug, Clone)]
pub struct Group {
    pub row: Row,
    pub members: Vec<DbUuid>,
    pub admins: Vec<DbUuid>,
}

/// The name of a new everyone group.
const EVERYONE_NAME: &str = "Everyone";

/// Creates the everyone group if there is none, or renames it to the configured name, and returns the name that it has.
pub fn ensure_everyone_group(conn: &mut AnyConnection, name: Option<&str>, now: DbTimestamp) -> Result<String, Error> {
    let group = (
        (groups::id.eq(EVERYONE), groups::kind.eq(EVERYONE_KIND)),
        groups::name.eq(name.unwrap_or(EVERYONE_NAME)),
        groups::description.eq(""),
        groups::open.eq(false),
        groups::created_at.eq(now),
        groups::updated_at.eq(now),
    );
    with_connection!(conn, c => diesel::insert_into(groups::table).values(group).on_conflict_do_nothing().execute(c))?;
    if let Some(name) = name {
        diesel::update(groups::table.find(EVERYONE).filter(groups::name.ne(name)))
            .set((groups::name.eq(name), groups::updated_at.eq(now)))
            .execute(conn)?;
    }
    Ok(groups::table.find(EVERYONE).select(groups::name).first(conn)?)
}

/// The sort key of lists of groups.
pub type Position = (i16, String, DbUuid);

/// One page of the groups: groups made here, the everyone group, directory groups; each kind by name.
pub fn list(conn: &mut AnyConnection, bounds: &PageBounds<Position>) -> Result<Vec<Group>, Error> {
    let mut query = groups::table.filter(groups::deleted_at.is_null()).into_boxed();
    if let Some((kind, name, id)) = &bounds.after {
        query = after!(query, groups::kind; > *kind, groups::name; > name.clone(), groups::id; > *id);
    }
    let query = query.order((groups::kind, groups::name, groups::id)).select(Row::as_select());
    let rows: Vec<Row> = query.limit(bounds.rows).load(conn)?;
    let ids: Vec<DbUuid> = rows.iter().map(|row| row.id).collect();
    let members: Vec<(DbUuid, IdList)> = with_connection!(conn, c => group_members::table
        .filter(group_members::group_id.eq_any(&ids))
        .group_by(group_members::group_id)
        .select((group_members::group_id, folded_ids(group_members::user_id)))
        .load(c)?);
    let admins: Vec<(DbUuid, IdList)> = with_connection!(conn, c => group_admins::table
        .filter(group_admins::group_id.eq_any(&ids))
        .group_by(group_admins::group_id)
        .select((group_admins::group_id, folded_ids(group_admins::user_id)))
        .load(c)?);
    let mut members: HashMap<_, _> = members.into_iter().collect();
    let mut admins: HashMap<_, _> = admins.into_iter().collect();
    if rows.iter().any(|row| row.id == EVERYONE) {
        members.insert(EVERYONE, IdList(active_ids(conn)?));
    }
    let group = |row: Row| Group {
        members: members.remove(&row.id).unwrap_or_default().0,
        admins: admins.remove(&row.id).unwrap_or_default().0,
        row,
    };
    Ok(rows.into_iter().map(group).collect())
}

/// One group.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<Group, Error> {
    let row = groups::table.find(id).filter(groups::deleted_at.is_null()).select(Row::as_select()).first(conn);
    let row: Row = row.optional()?.ok_or_else(not_found)?;
    let members = member_ids(conn, row.id)?;
    let admins = with_connection!(conn, c => group_admins::table
        .filter(group_admins::group_id.eq(row.id))
        .select(group_admins::user_id)
        .order(group_admins::user_id)
        .load(c)?);
    Ok(Group { row, members, admins })
}

/// Checks that a group exists.
pub fn check_exists(conn: &mut AnyConnection, id: DbUuid) -> Result<(), Error> {
    let rows: i64 = groups::table.find(id).filter(groups::deleted_at.is_null()).count().get_result(conn)?;
    if rows > 0 { Ok(()) } else { Err(not_found().into()) }
}

pub(super) fn not_found() -> Problem {
    Problem::not_found("group")
}

/// The members of a group in the order of ids; for the everyone group all active users. Empty if there is no such
/// group.
pub fn member_ids(conn: &mut AnyConnection, group: DbUuid) -> Result<Vec<DbUuid>, Error> {
    if group == EVERYONE {
        return active_ids(conn);
    }
    Ok(with_connection!(conn, c => group_members::table
        .filter(group_members::group_id.eq(group))
        .select(group_members::user_id)
        .order(group_members::user_id)
        .load(c)?))
}

/// The active members of any of these groups, each once, in the order of ids.
pub fn members_of_all(conn: &mut AnyConnection, groups: &[DbUuid]) -> Result<Vec<DbUuid>, Error> {
    let mut members = BTreeSet::new();
    if groups.contains(&EVERYONE) {
        members.extend(active_ids(conn)?);
    }
    for groups in groups.chunks(1000) {
        members.extend(with_connection!(conn, c => group_members::table
            .inner_join(user_rows::table.on(user_rows::id.eq(group_members::user_id)))
            .filter(group_members::group_id.eq_any(groups))
            .filter(user_rows::state.eq(ACTIVE))
            .select(group_members::user_id)
            .load::<DbUuid>(c)?));
    }
    Ok(members.into_iter().collect())
}

/// Adds a violation for each id of a request's list that is not the id of a group. `pointer` is that of the list, such
/// as `/inviteGroups`; the violations are at `/inviteGroups/3` and so on.
pub fn note_unknown(
    conn: &mut AnyConnection,
    pointer: &str,
    set: &IdSet<0>,
    violations: &mut Violations,
) -> Result<(), Error> {
    let (indices, ids): (Vec<_>, Vec<_>) = set.iter().map(|(index, id)| (index, DbUuid(id))).unzip();
    for index in unknown_indexes(conn, &ids)? {
        violations.push(format!("{pointer}/{}", indices[index]), Rule::UnknownGroup, "names no group");
    }
    Ok(())
}

/// The indexes in `ids` of those that are not the id of a group.
pub fn unknown_indexes(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<Vec<usize>, Error> {
    let mut existing = BTreeSet::new();
    for ids in ids.chunks(1000) {
        let live = groups::table.filter(groups::id.eq_any(ids)).filter(groups::deleted_at.is_null());
        existing.extend(live.select(groups::id).load::<DbUuid>(conn)?);
    }
    Ok(ids.iter().enumerate().filter(|(_, id)| !existing.contains(id)).map(|(index, _)| index).collect())
}

/// Whether a user is a member of a group. Active users are members of the everyone group.
pub fn is_member(conn: &mut AnyConnection, group: DbUuid, user: DbUuid) -> Result<bool, Error> {
    let rows: i64 = if group == EVERYONE {
        user_rows::table.find(user).filter(user_rows::state.eq(ACTIVE)).count().get_result(conn)?
    } else {
        group_members::table.find((group, user)).count().get_result(conn)?
    };
    Ok(rows > 0)
}

/// Locks a group against deletion until the end of the transaction, and returns whether it exists. Every change that
/// gives an event a group calls this first.
pub fn lock_against_deletion(conn: &mut AnyConnection, id: DbUuid) -> Result<bool, Error> {
    let query = groups::table.find(id).filter(groups::deleted_at.is_null()).select(groups::id);
    let row: Option<DbUuid> = match conn {
        AnyConnection::Postgresql(pg) => query.for_key_share().first(pg).optional()?,
        AnyConnection::Sqlite(sqlite) => query.first(sqlite).optional()?,
    };
    Ok(row.is_some())
}

/// The groups that a user is a member of, if `belongs`, and those that the user administers, if `admins`; by kind, name
/// and id. An active user belongs to the everyone group.
pub fn of_user(conn: &mut AnyConnection, user: &User, belongs: bool, admins: bool) -> Result<Vec<Position>, Error> {
    let live = groups::table.filter(groups::deleted_at.is_null()).select((groups::kind, groups::name, groups::id));
    let mut positions = BTreeSet::<Position>::new();
    if belongs {
        let ids = group_members::table.filter(group_members::user_id.eq(user.id)).select(group_members::group_id);
        positions.extend(live.filter(groups::id.eq_any(ids)).load(conn)?);
    }
    if belongs && user.state == ACTIVE {
        positions.insert((EVERYONE_KIND, String::new(), EVERYONE));
    }
    if admins {
        let ids = group_admins::table.filter(group_admins::user_id.eq(user.id)).select(group_admins::group_id);
        positions.extend(live.filter(groups::id.eq_any(ids)).load(conn)?);
    }
    Ok(positions.into_iter().collect())
}

/// Checks that the caller is an admin of a group or privileged.
pub fn check_admin_or_privileged(conn: &mut AnyConnection, group: DbUuid, me: &Caller) -> Result<(), Error> {
    let administers = group_admins::table.find((group, me.id)).count().get_result::<i64>(conn)? > 0;
    if administers || me.privileged {
        return Ok(());
    }
    Err(Problem::forbidden("an admin of the group or a privileged user").into())
}

/// Checks that the caller may change a group of this kind.
pub fn check_may_change(conn: &mut AnyConnection, group: DbUuid, kind: i16, me: &Caller) -> Result<(), Error> {
    if kind != MADE_HERE {
        return Err(Problem::forbidden("a group that was made here").into());
    }
    check_admin_or_privileged(conn, group, me)
}

/// Checks that the caller may change the group with this id.
pub fn check_found_and_may_change(conn: &mut AnyConnection, group: DbUuid, me: &Caller) -> Result<(), Error> {
    let kind = get(conn, group)?.row.kind;
    check_may_change(conn, group, kind, me)
}

/// Checks that the caller may read the history of a group, deleted or not; for a group that was not made here, that they are
/// privileged.
pub fn check_editor(conn: &mut AnyConnection, group: DbUuid, me: &Caller) -> Result<(), Error> {
    let kind: Option<i16> = groups::table.find(group).select(groups::kind).first(conn).optional()?;
    match kind {
        None => Err(not_found().into()),
        Some(kind) if kind != MADE_HERE && !me.privileged => Err(Problem::forbidden("a privileged user").into()),
        Some(_) => check_admin_or_privileged(conn, group, me),
    }
}
