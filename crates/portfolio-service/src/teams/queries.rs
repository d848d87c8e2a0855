//! Teams in the database.

use std::collections::{HashMap, HashSet};

use common::problem::Problem;
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

use crate::{
    departures,
    schema::{contest_team_members, contest_teams, contests, users},
    users::{self as people, Person, references},
};

/// A team as listed.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = contest_teams)]
pub struct Row {
    pub id: DbUuid,
    pub name: String,
    pub result: String,
}

/// A team with its members, ordered by name.
pub type Team = (Row, Vec<Person>);

/// A new team.
#[derive(Debug, Clone)]
pub struct Draft {
    pub name: String,
    pub link: String,
    pub description: String,
    pub result: String,
}

/// Changes of a team. A field that is `None` stays.
#[derive(Debug, Clone)]
pub struct Changes {
    pub name: Option<String>,
    pub link: Option<String>,
    pub description: Option<String>,
    pub result: Option<String>,
}

impl Changes {
    /// Whether the team has these values already.
    fn are_in(&self, (row, present_link, present_description): &(Row, String, String)) -> bool {
        let Self { name, link, description, result } = self;
        name.as_ref().is_none_or(|name| *name == row.name)
            && link.as_ref().is_none_or(|new| new == present_link)
            && description.as_ref().is_none_or(|new| new == present_description)
            && result.as_ref().is_none_or(|result| *result == row.result)
    }
}

/// The teams of a contest, ordered by name and id. The list is empty when there is no such contest.
pub fn of_contest(conn: &mut AnyConnection, contest: DbUuid) -> Result<Vec<Team>, Error> {
    let rows = contest_teams::table
        .left_join(contest_team_members::table)
        .left_join(users::table.on(users::id.nullable().eq(contest_team_members::user_id.nullable())))
        .filter(contest_teams::contest_id.eq(contest))
        .order((contest_teams::name, contest_teams::id));
    let rows: Vec<(Row, Option<Person>)> = with_connection!(conn, c => rows
        .select((Row::as_select(), Option::<Person>::as_select()))
        .load(c)?);
    let mut teams: Vec<Team> = Vec::new();
    for (row, person) in rows {
        match teams.last_mut() {
            Some((team, members)) if team.id == row.id => members.extend(person),
            _ => teams.push((row, Vec::from_iter(person))),
        }
    }
    // Not sorted by the query: an index has the teams in their order, so the database sorts nothing.
    for (_, members) in &mut teams {
        members.sort_unstable_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
    }
    Ok(teams)
}

/// A page of that list.
pub fn page_of_contest(
    conn: &mut AnyConnection,
    contest: DbUuid,
    bounds: &PageBounds<(String, DbUuid)>,
) -> Result<Vec<Team>, Error> {
    let mut teams = contest_teams::table
        .filter(contest_teams::contest_id.eq(contest))
        .order((contest_teams::name, contest_teams::id))
        .select(Row::as_select())
        .into_boxed();
    if let Some((name, id)) = &bounds.after {
        teams = after!(teams, contest_teams::name; > name, contest_teams::id; > *id);
    }
    let rows: Vec<Row> = teams.limit(bounds.rows).load(conn)?;
    let members: Vec<(DbUuid, Person)> = contest_team_members::table
        .inner_join(users::table)
        .filter(contest_team_members::team_id.eq_any(rows.iter().map(|row| row.id)))
        .order((users::name, users::id))
        .select((contest_team_members::team_id, Person::as_select()))
        .load(conn)?;
    let mut of_team: HashMap<DbUuid, Vec<Person>> = HashMap::new();
    for (team, person) in members {
        of_team.entry(team).or_default().push(person);
    }
    let team = |row: Row| {
        let members = of_team.remove(&row.id).unwrap_or_default();
        (row, members)
    };
    Ok(rows.into_iter().map(team).collect())
}

/// The teams of these contests, or of all, that a user is a member of: for each contest, ordered by name and id.
pub fn of_user(
    conn: &mut AnyConnection,
    user: DbUuid,
    contests: Option<Vec<DbUuid>>,
) -> Result<HashMap<DbUuid, Vec<Row>>, Error> {
    let mut query = contest_team_members::table
        .inner_join(contest_teams::table)
        .filter(contest_team_members::user_id.eq(user))
        .select((contest_teams::contest_id, Row::as_select()))
        .order((contest_teams::name, contest_teams::id))
        .into_boxed();
    if let Some(contests) = contests {
        query = query.filter(contest_teams::contest_id.eq_any(contests));
    }
    let rows: Vec<(DbUuid, Row)> = query.load(conn)?;
    let mut of_contest: HashMap<DbUuid, Vec<Row>> = HashMap::new();
    for (contest, row) in rows {
        of_contest.entry(contest).or_default().push(row);
    }
    Ok(of_contest)
}

/// The links and the descriptions of the teams of a contest.
pub fn about(conn: &mut AnyConnection, contest: DbUuid) -> Result<HashMap<DbUuid, (String, String)>, Error> {
    let teams = contest_teams::table.filter(contest_teams::contest_id.eq(contest));
    let teams: Vec<(DbUuid, (String, String))> =
        teams.select((contest_teams::id, (contest_teams::link, contest_teams::description))).load(conn)?;
    Ok(teams.into_iter().collect())
}

/// One team of a contest with its link and its description.
///
/// # Errors
/// 404 when the contest has none of this id.
pub fn get(conn: &mut AnyConnection, contest: DbUuid, id: DbUuid) -> Result<(Row, String, String), Error> {
    let row = contest_teams::table
        .filter(contest_teams::id.eq(id).and(contest_teams::contest_id.eq(contest)))
        .select((Row::as_select(), contest_teams::link, contest_teams::description))
        .first(conn)
        .optional()?;
    row.ok_or_else(not_found)
}

/// The members of a team, ordered by name.
pub fn members(
    conn: &mut AnyConnection,
    id: DbUuid,
    bounds: &PageBounds<people::queries::Position>,
) -> Result<Vec<Person>, Error> {
    let mut query = contest_team_members::table
        .inner_join(users::table)
        .filter(contest_team_members::team_id.eq(id))
        .select(Person::as_select())
        .order((users::name, users::id))
        .into_boxed();
    if let Some((name, id)) = &bounds.after {
        query = after!(query, users::name; > name, users::id; > *id);
    }
    Ok(query.limit(bounds.rows).load(conn)?)
}

/// Checks that there is a contest with this id.
pub fn check_contest(conn: &mut AnyConnection, id: DbUuid) -> Result<(), Error> {
    let contest = contests::table.find(id).select(contests::id).first::<DbUuid>(conn).optional()?;
    contest.map(|_| ()).ok_or_else(|| Problem::not_found("contest").into())
}

/// Creates a team without members.
pub fn create(
    conn: &mut AnyConnection,
    contest: DbUuid,
    draft: &Draft,
    me: DbUuid,
    now: DbTimestamp,
) -> Result<Row, Error> {
    // Locks the contest. Otherwise its concurrent deletion would make the insert violate the foreign key.
    let rows = diesel::update(contests::table.find(contest)).set(contests::updated_at.eq(now)).execute(conn)?;
    if rows == 0 {
        return Err(Problem::not_found("contest").into());
    }
    let id = DbUuid::new();
    diesel::insert_into(contest_teams::table)
        .values((
            (contest_teams::id.eq(id), contest_teams::contest_id.eq(contest), contest_teams::name.eq(&draft.name)),
            (contest_teams::link.eq(&draft.link), contest_teams::description.eq(&draft.description)),
            contest_teams::result.eq(&draft.result),
            (contest_teams::created_by.eq(me), contest_teams::created_at.eq(now), contest_teams::updated_at.eq(now)),
        ))
        .execute(conn)?;
    Ok(Row { id, name: draft.name.clone(), result: draft.result.clone() })
}

/// Changes a team.
pub fn update(
    conn: &mut AnyConnection,
    contest: DbUuid,
    id: DbUuid,
    changes: &Changes,
    now: DbTimestamp,
) -> Result<(), Error> {
    if changes.are_in(&get(conn, contest, id)?) {
        return Ok(());
    }
    let Changes { name, link, description, result } = changes;
    let rows = diesel::update(contest_teams::table.find(id))
        .set((
            name.as_ref().map(|name| contest_teams::name.eq(name)),
            link.as_ref().map(|link| contest_teams::link.eq(link)),
            description.as_ref().map(|description| contest_teams::description.eq(description)),
            result.as_ref().map(|result| contest_teams::result.eq(result)),
            contest_teams::updated_at.eq(now),
        ))
        .execute(conn)?;
    if rows == 0 { Err(not_found()) } else { Ok(()) }
}

/// Deletes a team with its list of members.
pub fn delete(conn: &mut AnyConnection, id: DbUuid) -> Result<(), Error> {
    let deleted = diesel::delete(contest_teams::table.find(id)).execute(conn)?;
    if deleted == 0 { Err(not_found()) } else { Ok(()) }
}

/// Replaces the members of a team on behalf of `me`. `members` has no repeated ids.
///
/// # Errors
/// 404 when there is no such team; 400 for an unknown user.
pub fn put_members(
    conn: &mut AnyConnection,
    id: DbUuid,
    members: &[DbUuid],
    me: DbUuid,
    now: DbTimestamp,
) -> Result<(), Error> {
    references::check_exist(conn, members, |n| format!("/members/{n}"))?;
    // Otherwise two concurrent lists would mix, or conflict in a row that both insert.
    let team = contest_teams::table.find(id).select(contest_teams::id);
    let team: Option<DbUuid> = match conn {
        AnyConnection::Postgresql(pg) => team.for_no_key_update().first(pg).optional()?,
        AnyConnection::Sqlite(sqlite) => team.first(sqlite).optional()?,
    };
    team.ok_or_else(not_found)?;
    let stored = contest_team_members::table.filter(contest_team_members::team_id.eq(id));
    let former: HashSet<DbUuid> =
        stored.select(contest_team_members::user_id).load::<DbUuid>(conn)?.into_iter().collect();
    if former.len() == members.len() && members.iter().all(|user| former.contains(user)) {
        return Ok(());
    }
    diesel::update(contest_teams::table.find(id)).set(contest_teams::updated_at.eq(now)).execute(conn)?;
    diesel::delete(stored).execute(conn)?;
    if former.contains(&me) && !members.contains(&me) {
        departures::record(conn, id, me, now)?;
    }
    let row = |user: &DbUuid| (contest_team_members::team_id.eq(id), contest_team_members::user_id.eq(*user));
    let rows: Vec<_> = members.iter().map(row).collect();
    for rows in rows.chunks(1000) {
        with_connection!(conn, c => diesel::insert_into(contest_team_members::table).values(rows).execute(c)?);
    }
    Ok(())
}

fn not_found() -> Error {
    Problem::not_found("team").into()
}
