//! Projects in the database.

use std::collections::HashMap;

use common::{
    problem::{Problem, code},
    semester::YearWithSemesterDuration,
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
    departures,
    schema::{project_members, projects, users},
    span::{Columns, Half},
    users::{self as people, Person, references},
};

/// A project as listed.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = projects)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct Row {
    pub id: DbUuid,
    pub name: String,
    since: Half,
    until: Option<Half>,
}

/// The columns that lists of projects are ordered by.
pub type Position = (Half, DbUuid);

impl Row {
    /// The values of the columns that lists are ordered by.
    #[must_use]
    pub fn position(&self) -> Position {
        (self.since, self.id)
    }

    /// Its semesters.
    ///
    /// # Errors
    /// 500 for data that no write creates.
    pub fn span(&self) -> Result<YearWithSemesterDuration, Error> {
        Columns::from((self.since, self.until)).span()
    }
}

/// The span of a member of a project.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = project_members)]
struct MemberSpan {
    since: Half,
    until: Option<Half>,
    follows_since: bool,
    follows_until: bool,
}

impl MemberSpan {
    /// A span as it is sent for a project with this span. An edge that is equal to the project's follows it.
    fn of_project(project: Columns, span: YearWithSemesterDuration) -> Self {
        let Columns { since, until } = span.into();
        Self { since, until, follows_since: since == project.since, follows_until: until == project.until }
    }

    /// The part inside the project's span, or all of it if the two do not overlap (contract, "Member spans").
    fn shown_within(&self, project: YearWithSemesterDuration) -> Result<YearWithSemesterDuration, Error> {
        let stored = Columns::from((self.since, self.until)).span()?;
        let since = if self.follows_since { project.since() } else { stored.since() };
        let until = if self.follows_until { project.until() } else { stored.until() };
        // Without a span between the edges, the two do not overlap.
        Ok(YearWithSemesterDuration::new(since, until).unwrap_or(stored).shown_within(project))
    }
}

/// A new project.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct Draft {
    pub name: String,
    pub link: String,
    pub description: String,
    pub span: YearWithSemesterDuration,
}

/// Changes of a project. A field that is `None` stays.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct Changes {
    pub name: Option<String>,
    pub link: Option<String>,
    pub description: Option<String>,
    pub span: Option<YearWithSemesterDuration>,
}

impl Changes {
    /// Whether the project has these values already.
    fn are_in(&self, (row, link, description): &(Row, String, String)) -> bool {
        self.name.as_ref().is_none_or(|name| *name == row.name)
            && self.link.as_ref().is_none_or(|new| new == link)
            && self.description.as_ref().is_none_or(|new| new == description)
            && self.span.is_none_or(|span| Columns::from(span) == Columns::from((row.since, row.until)))
    }
}

/// Projects, the newest first: by the semester they began in, the latest one first, then by id.
pub fn list(conn: &mut AnyConnection, bounds: &PageBounds<Position>) -> Result<Vec<Row>, Error> {
    let newest = (projects::since.desc(), projects::id);
    let mut query = projects::table.select(Row::as_select()).order(newest).into_boxed();
    if let Some((since, id)) = bounds.after {
        query = after!(query, projects::since; < since, projects::id; > id);
    }
    Ok(query.limit(bounds.rows).load(conn)?)
}

/// One project with its link and its description.
///
/// # Errors
/// 404 when there is none.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<(Row, String, String), Error> {
    let project = projects::table.find(id);
    let row = with_connection!(conn, c => {
        project.select((Row::as_select(), projects::link, projects::description)).first(c)
    });
    row.optional()?.ok_or_else(not_found)
}

/// The members of a project, ordered by name, each with the span that answers show.
///
/// # Errors
/// 404 when there is no such project.
pub fn members(
    conn: &mut AnyConnection,
    id: DbUuid,
    bounds: &PageBounds<people::queries::Position>,
) -> Result<Vec<(Person, YearWithSemesterDuration)>, Error> {
    let project: Option<Row> = projects::table.find(id).select(Row::as_select()).first(conn).optional()?;
    members_within(conn, id, project.ok_or_else(not_found)?.span()?, bounds)
}

/// The members of a project that has this span.
pub fn members_within(
    conn: &mut AnyConnection,
    id: DbUuid,
    project: YearWithSemesterDuration,
    bounds: &PageBounds<people::queries::Position>,
) -> Result<Vec<(Person, YearWithSemesterDuration)>, Error> {
    let members = project_members::table
        .inner_join(users::table)
        .filter(project_members::project_id.eq(id))
        .order((users::name, users::id))
        .limit(bounds.rows);
    let rows: Vec<(Person, MemberSpan)> = match &bounds.after {
        None => with_connection!(conn, c => members.select((Person::as_select(), MemberSpan::as_select())).load(c)),
        Some((name, id)) => after!(members, users::name; > name, users::id; > *id)
            .select((Person::as_select(), MemberSpan::as_select()))
            .load(conn),
    }?;
    rows.into_iter().map(|(person, span)| Ok((person, span.shown_within(project)?))).collect()
}

/// The members of a project by id, each with the span that answers show. Empty if there is no such project.
pub fn spans_of_members(
    conn: &mut AnyConnection,
    id: DbUuid,
) -> Result<Vec<(DbUuid, YearWithSemesterDuration)>, Error> {
    let members = project_members::table.inner_join(projects::table).filter(project_members::project_id.eq(id));
    let rows: Vec<(DbUuid, MemberSpan, (Half, Option<Half>))> = with_connection!(conn, c => members
        .order(project_members::user_id)
        .select((project_members::user_id, MemberSpan::as_select(), (projects::since, projects::until)))
        .load(c)?);
    let shown = |(user, span, project): (DbUuid, MemberSpan, (Half, Option<Half>))| {
        Ok((user, span.shown_within(Columns::from(project).span()?)?))
    };
    rows.into_iter().map(shown).collect()
}

/// A project of a user, and the user's span that answers show.
pub type OfUser = (Row, YearWithSemesterDuration);

/// The projects of a user, the newest first, each with the user's span that answers show.
///
/// # Errors
/// 404 when there is no such user.
pub fn of_user(conn: &mut AnyConnection, user: DbUuid, bounds: &PageBounds<Position>) -> Result<Vec<OfUser>, Error> {
    people::queries::check_exists(conn, user)?;
    let mut query = project_members::table
        .inner_join(projects::table)
        .filter(project_members::user_id.eq(user))
        .select((Row::as_select(), MemberSpan::as_select()))
        .order((projects::since.desc(), projects::id))
        .into_boxed();
    if let Some((since, id)) = bounds.after {
        query = after!(query, projects::since; < since, projects::id; > id);
    }
    let rows: Vec<(Row, MemberSpan)> = query.limit(bounds.rows).load(conn)?;
    let project = |(row, span): (Row, MemberSpan)| {
        let shown = span.shown_within(row.span()?)?;
        Ok((row, shown))
    };
    rows.into_iter().map(project).collect()
}

/// Creates a project without members.
///
/// # Errors
/// 409 when the name is taken.
pub fn create(conn: &mut AnyConnection, draft: &Draft, me: DbUuid, now: DbTimestamp) -> Result<DbUuid, Error> {
    let (id, span) = (DbUuid::new(), Columns::from(draft.span));
    diesel::insert_into(projects::table)
        .values((
            (projects::id.eq(id), projects::name.eq(&draft.name), projects::link.eq(&draft.link)),
            projects::description.eq(&draft.description),
            (projects::since.eq(span.since), projects::until.eq(span.until)),
            (projects::created_by.eq(me), projects::created_at.eq(now), projects::updated_at.eq(now)),
        ))
        .execute(conn)
        .on_unique("projects.name", name_taken)?;
    Ok(id)
}

/// Changes a project.
///
/// # Errors
/// 404 when there is none; 409 when the name is taken.
pub fn update(conn: &mut AnyConnection, id: DbUuid, changes: &Changes, now: DbTimestamp) -> Result<(), Error> {
    if changes.are_in(&get(conn, id)?) {
        return Ok(());
    }
    let span = changes.span.map(Columns::from);
    let rows = diesel::update(projects::table.find(id))
        .set((
            changes.name.as_ref().map(|name| projects::name.eq(name)),
            changes.link.as_ref().map(|link| projects::link.eq(link)),
            changes.description.as_ref().map(|description| projects::description.eq(description)),
            span.map(|span| (projects::since.eq(span.since), projects::until.eq(span.until))),
            projects::updated_at.eq(now),
        ))
        .execute(conn)
        .on_unique("projects.name", name_taken)?;
    if rows == 0 { Err(not_found()) } else { Ok(()) }
}

/// Replaces the members of a project on behalf of `me`. `members` has no repeated users.
///
/// # Errors
/// 404 when there is no such project; 400 for an unknown user.
pub fn put_members(
    conn: &mut AnyConnection,
    id: DbUuid,
    members: &[(DbUuid, YearWithSemesterDuration)],
    me: DbUuid,
    now: DbTimestamp,
) -> Result<(), Error> {
    let users: Vec<_> = members.iter().map(|(user, _)| *user).collect();
    let (project, former) = lock_members(conn, id)?;
    let members = members.iter().map(|(user, span)| (*user, MemberSpan::of_project(project, *span))).collect();
    if users.iter().any(|user| !former.contains_key(user)) {
        references::check_exist(conn, &users, |n| format!("/members/{n}/userId"))?;
    }
    replace_members(conn, id, &former, &members, me, now)
}

/// Gives a user a span in a project, or removes them from it, on behalf of `me`. The other members stay as they are.
///
/// # Errors
/// 404 when there is no such project or user.
pub fn put_member(
    conn: &mut AnyConnection,
    id: DbUuid,
    (user, span): (DbUuid, Option<YearWithSemesterDuration>),
    me: DbUuid,
    now: DbTimestamp,
) -> Result<(), Error> {
    let (project, former) = lock_members(conn, id)?;
    let mut members = former.clone();
    match span {
        Some(span) => {
            people::queries::check_exists(conn, user)?;
            members.insert(user, MemberSpan::of_project(project, span));
        }
        None => _ = members.remove(&user),
    }
    replace_members(conn, id, &former, &members, me, now)
}

/// The spans of a project and of its members. Locks the project: otherwise two concurrent lists would mix, or conflict in
/// a row that both insert.
fn lock_members(conn: &mut AnyConnection, id: DbUuid) -> Result<(Columns, HashMap<DbUuid, MemberSpan>), Error> {
    let project = projects::table.find(id).select((projects::since, projects::until));
    let span: Option<(Half, Option<Half>)> = match conn {
        AnyConnection::Postgresql(pg) => project.for_no_key_update().first(pg).optional()?,
        AnyConnection::Sqlite(sqlite) => project.first(sqlite).optional()?,
    };
    let span = span.ok_or_else(not_found)?;
    let members = project_members::table.filter(project_members::project_id.eq(id));
    let members: Vec<(DbUuid, MemberSpan)> = with_connection!(conn, c => members
        .select((project_members::user_id, MemberSpan::as_select()))
        .load(c)?);
    Ok((span.into(), members.into_iter().collect()))
}

fn replace_members(
    conn: &mut AnyConnection,
    id: DbUuid,
    former: &HashMap<DbUuid, MemberSpan>,
    members: &HashMap<DbUuid, MemberSpan>,
    me: DbUuid,
    now: DbTimestamp,
) -> Result<(), Error> {
    if former == members {
        return Ok(());
    }
    let stored = project_members::table.filter(project_members::project_id.eq(id));
    with_connection!(conn, c => {
        diesel::update(projects::table.find(id)).set(projects::updated_at.eq(now)).execute(c)?;
        diesel::delete(stored).execute(c)?
    });
    if former.contains_key(&me) && !members.contains_key(&me) {
        departures::record(conn, id, me, now)?;
    }
    let row = |(user, span): (&DbUuid, &MemberSpan)| {
        (
            project_members::project_id.eq(id),
            project_members::user_id.eq(*user),
            project_members::since.eq(span.since),
            project_members::until.eq(span.until),
            project_members::follows_since.eq(span.follows_since),
            project_members::follows_until.eq(span.follows_until),
        )
    };
    let rows: Vec<_> = members.iter().map(row).collect();
    for rows in rows.chunks(1000) {
        with_connection!(conn, c => diesel::insert_into(project_members::table).values(rows).execute(c)?);
    }
    Ok(())
}

pub(super) fn not_found() -> Error {
    Problem::not_found("project").into()
}

pub(super) fn name_taken() -> Problem {
    Problem::new(code::DUPLICATE_NAME).detail("There is a project of this name already.")
}
