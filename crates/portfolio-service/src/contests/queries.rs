//! Contests in the database.

use common::{
    duration::Duration,
    problem::{Problem, code},
};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    after,
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, OnUnique},
    with_connection,
};

use crate::{
    schema::{contest_team_members, contest_teams, contests},
    teams, users,
};

/// A contest as listed.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = contests)]
pub struct Row {
    pub id: DbUuid,
    pub name: String,
    since: DbTimestamp,
    until: Option<DbTimestamp>,
}

/// The columns that lists of contests are ordered by.
pub type Position = (DbTimestamp, DbUuid);

impl Row {
    /// The values of the columns that lists are ordered by.
    pub fn position(&self) -> Position {
        (self.since, self.id)
    }

    /// When it takes place.
    pub fn duration(&self) -> Result<Duration, Error> {
        let until = self.until.map(|until| until.0);
        Duration::new(self.since.0, until).ok_or_else(|| Problem::internal("a contest ends before it begins").into())
    }
}

/// A new contest.
#[derive(Debug, Clone)]
pub struct Draft {
    pub name: String,
    pub link: String,
    pub description: String,
    pub duration: Duration,
}

/// Changes of a contest. A field that is `None` stays.
#[derive(Debug, Clone)]
pub struct Changes {
    pub name: Option<String>,
    pub link: Option<String>,
    pub description: Option<String>,
    pub duration: Option<Duration>,
}

impl Changes {
    /// Whether the contest has these values already.
    fn are_in(&self, (row, present_link, present_description): &(Row, String, String)) -> bool {
        let Self { name, link, description, duration } = self;
        name.as_ref().is_none_or(|name| *name == row.name)
            && link.as_ref().is_none_or(|new| new == present_link)
            && description.as_ref().is_none_or(|new| new == present_description)
            && duration.is_none_or(|duration| timestamps(duration) == (row.since, row.until))
    }
}

/// Contests, ordered by start, the latest first, and by id.
pub fn list(conn: &mut AnyConnection, bounds: &PageBounds<Position>) -> Result<Vec<Row>, Error> {
    Ok(with_connection!(conn, c => {
        let mut query = contests::table.order((contests::since.desc(), contests::id)).into_boxed();
        if let Some((since, id)) = bounds.after {
            query = after!(query, contests::since; < since, contests::id; > id);
        }
        query.limit(bounds.rows).select(Row::as_select()).load(c)
    })?)
}

/// A contest of a user, and the user's teams in it.
pub type OfUser = (Row, Vec<teams::queries::Row>);

/// The contests with a team that a user is a member of, in the order of [`list`], each with those teams.
pub fn of_user(conn: &mut AnyConnection, user: DbUuid, bounds: &PageBounds<Position>) -> Result<Vec<OfUser>, Error> {
    users::queries::check_exists(conn, user)?;
    let ids = contest_team_members::table
        .inner_join(contest_teams::table)
        .filter(contest_team_members::user_id.eq(user))
        .select(contest_teams::contest_id);
    let mut query = contests::table
        .filter(contests::id.eq_any(ids))
        .select(Row::as_select())
        .order((contests::since.desc(), contests::id))
        .into_boxed();
    if let Some((since, id)) = bounds.after {
        query = after!(query, contests::since; < since, contests::id; > id);
    }
    let rows: Vec<Row> = query.limit(bounds.rows).load(conn)?;
    let of_these = bounds.is_page().then(|| rows.iter().map(|row| row.id).collect());
    let mut of_contest = teams::queries::of_user(conn, user, of_these)?;
    let contest = |row: Row| {
        let teams = of_contest.remove(&row.id).unwrap_or_default();
        (row, teams)
    };
    Ok(rows.into_iter().map(contest).collect())
}

/// One contest with its link and its description.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<(Row, String, String), Error> {
    let contest = contests::table.find(id);
    let row = with_connection!(conn, c => {
        contest.select((Row::as_select(), contests::link, contests::description)).first(c)
    });
    row.optional()?.ok_or_else(not_found)
}

/// Creates a contest without teams.
///
/// # Errors
/// 409 when the name is taken.
pub fn create(conn: &mut AnyConnection, draft: &Draft, me: DbUuid, now: DbTimestamp) -> Result<DbUuid, Error> {
    let id = DbUuid::new();
    let (since, until) = timestamps(draft.duration);
    diesel::insert_into(contests::table)
        .values((
            (contests::id.eq(id), contests::name.eq(&draft.name), contests::link.eq(&draft.link)),
            contests::description.eq(&draft.description),
            (contests::since.eq(since), contests::until.eq(until)),
            (contests::created_by.eq(me), contests::created_at.eq(now), contests::updated_at.eq(now)),
        ))
        .execute(conn)
        .on_unique("contests.name", name_taken)?;
    Ok(id)
}

/// Changes a contest.
///
/// # Errors
/// 404 when there is none; 409 when the name is taken.
pub fn update(conn: &mut AnyConnection, id: DbUuid, changes: &Changes, now: DbTimestamp) -> Result<(), Error> {
    if changes.are_in(&get(conn, id)?) {
        return Ok(());
    }
    let Changes { name, link, description, duration } = changes;
    let rows = diesel::update(contests::table.find(id))
        .set((
            name.as_ref().map(|name| contests::name.eq(name)),
            link.as_ref().map(|link| contests::link.eq(link)),
            description.as_ref().map(|description| contests::description.eq(description)),
            duration.map(timestamps).map(|(since, until)| (contests::since.eq(since), contests::until.eq(until))),
            contests::updated_at.eq(now),
        ))
        .execute(conn)
        .on_unique("contests.name", name_taken)?;
    if rows == 0 { Err(not_found()) } else { Ok(()) }
}

fn timestamps(duration: Duration) -> (DbTimestamp, Option<DbTimestamp>) {
    (DbTimestamp(duration.since()), duration.until().map(DbTimestamp))
}

pub(super) fn not_found() -> Error {
    Problem::not_found("contest").into()
}

pub(super) fn name_taken() -> Problem {
    Problem::new(code::DUPLICATE_NAME).detail("There is a contest of this name already.")
}
