//! Groups in the database.

use common::{problem::Problem, semester::YearWithSemesterDuration};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    db::{AnyConnection, sql::Uid},
    error::Error,
};

use crate::{
    schema::{group_admins, group_memberships, groups, users},
    span::{Columns, Half},
    users::Person,
};

/// A group as listed.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = groups)]
pub struct Group {
    pub id: Uid,
    pub name: String,
}

/// A group with its people.
#[derive(Debug, Clone)]
pub struct Detail {
    pub group: Group,
    pub link: String,
    pub description: String,
    /// By name.
    pub admins: Vec<Person>,
    /// Each span, by name and time.
    pub members: Vec<(Person, YearWithSemesterDuration)>,
}

/// Groups by name.
///
/// # Errors
/// When the database fails.
pub fn list(conn: &mut AnyConnection, limit: i64) -> Result<Vec<Group>, Error> {
    Ok(groups::table.select(Group::as_select()).order((groups::name, groups::id)).limit(limit).load(conn)?)
}

/// One group, in three statements whatever the number of its people.
///
/// # Errors
/// 404 when there is none.
pub fn get(conn: &mut AnyConnection, id: Uid) -> Result<Detail, Error> {
    let found: Option<(Group, String, String)> = groups::table
        .find(id)
        .select((Group::as_select(), groups::link, groups::description))
        .first(conn)
        .optional()?;
    let (group, link, description) = found.ok_or_else(|| Problem::not_found("group"))?;
    let admins = group_admins::table
        .inner_join(users::table)
        .filter(group_admins::group_id.eq(id))
        .select(Person::as_select())
        .order((users::name, users::id))
        .load(conn)?;
    let members: Vec<(Person, Half, Option<Half>)> = group_memberships::table
        .inner_join(users::table)
        .filter(group_memberships::group_id.eq(id))
        .select((Person::as_select(), group_memberships::since, group_memberships::until))
        .order((users::name, users::id, group_memberships::since, group_memberships::id))
        .load(conn)?;
    let members = members.into_iter().map(|(person, since, until)| Ok((person, Columns { since, until }.span()?)));
    Ok(Detail { group, link, description, admins, members: members.collect::<Result<_, Error>>()? })
}

/// The groups in which a user is or was, each span, by name and time.
///
/// # Errors
/// When the database fails.
pub fn of_user(
    conn: &mut AnyConnection,
    user: Uid,
    limit: i64,
) -> Result<Vec<(Group, YearWithSemesterDuration)>, Error> {
    let found: Vec<(Group, Half, Option<Half>)> = group_memberships::table
        .inner_join(groups::table)
        .filter(group_memberships::user_id.eq(user))
        .select((Group::as_select(), group_memberships::since, group_memberships::until))
        .order((groups::name, groups::id, group_memberships::since, group_memberships::id))
        .limit(limit)
        .load(conn)?;
    found.into_iter().map(|(group, since, until)| Ok((group, Columns { since, until }.span()?))).collect()
}
