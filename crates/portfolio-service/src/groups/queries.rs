//! Groups in the database.

use common::{problem::Problem, semester::YearWithSemesterDuration};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    after,
    database::{AnyConnection, PageBounds, types::DbUuid},
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
    pub id: DbUuid,
    pub name: String,
}

/// A group with its people.
#[derive(Debug, Clone)]
pub struct Detail {
    pub group: Group,
    pub link: String,
    pub description: String,
    /// Ordered by name.
    pub admins: Vec<Person>,
    /// Each span of each member, ordered by name and start.
    pub members: Vec<(Person, YearWithSemesterDuration)>,
}

/// Groups, ordered by name.
pub fn list(conn: &mut AnyConnection, bounds: &PageBounds<(String, DbUuid)>) -> Result<Vec<Group>, Error> {
    let mut query = groups::table.select(Group::as_select()).order((groups::name, groups::id)).into_boxed();
    if let Some((name, id)) = &bounds.after {
        query = after!(query, groups::name; > name, groups::id; > *id);
    }
    Ok(query.limit(bounds.rows).load(conn)?)
}

/// One group, in three statements for any number of members.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<Detail, Error> {
    let row: Option<(Group, String, String)> = groups::table
        .find(id)
        .select((Group::as_select(), groups::link, groups::description))
        .first(conn)
        .optional()?;
    let (group, link, description) = row.ok_or_else(|| Problem::not_found("group"))?;
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

/// A span in which a user is or was in a group.
#[derive(Debug, Clone, Queryable)]
pub struct Membership {
    /// The group.
    pub group: Group,
    since: Half,
    until: Option<Half>,
    id: DbUuid,
}

impl Membership {
    /// The values of the columns that lists are ordered by.
    pub fn position(&self) -> (String, DbUuid, Half, DbUuid) {
        (self.group.name.clone(), self.group.id, self.since, self.id)
    }

    /// The semesters in the group.
    pub fn span(&self) -> Result<YearWithSemesterDuration, Error> {
        Columns::from((self.since, self.until)).span()
    }
}

/// Each span in which a user is or was in a group, ordered by name of the group and start.
pub fn of_user(conn: &mut AnyConnection, user: DbUuid) -> Result<Vec<Membership>, Error> {
    let columns = (Group::as_select(), group_memberships::since, group_memberships::until, group_memberships::id);
    Ok(group_memberships::table
        .inner_join(groups::table)
        .filter(group_memberships::user_id.eq(user))
        .select(columns)
        .order((groups::name, groups::id, group_memberships::since, group_memberships::id))
        .load(conn)?)
}
