//! Projects in the database.

use std::collections::BTreeMap;

use common::{
    problem::{Problem, code},
    semester::YearWithSemesterDuration,
};
use diesel::{OptionalExtension, prelude::*, upsert::excluded};
use service_kit::{
    after,
    database::{
        AnyConnection, PageBounds, ROWS_PER_STATEMENT,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, OnUnique},
    with_connection,
};

use crate::{
    departures, picture,
    schema::{project_members, projects, users},
    span::{Columns, Half},
    users::{self as people, Person, references},
};

/// A project as listed.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = projects)]
pub struct Row {
    pub id: DbUuid,
    pub name: String,
    since: Half,
    until: Option<Half>,
    picture: Option<String>,
}

/// The columns that lists of projects are ordered by.
pub type Position = (Half, DbUuid);

impl Row {
    /// The values of the columns that lists are ordered by.
    pub fn position(&self) -> Position {
        (self.since, self.id)
    }

    /// The address of its picture, if it has one.
    pub fn picture(&self) -> Option<String> {
        self.picture.as_deref().map(|hash| picture::address("projects", self.id, hash))
    }

    /// Its semesters.
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

/// A project, its link and its description.
pub type Detail = (Row, String, String);

/// A new project.
#[derive(Debug, Clone)]
pub struct Draft {
    pub name: String,
    pub link: String,
    pub description: String,
    pub span: YearWithSemesterDuration,
}

/// Changes of a project. A field that is `None` stays.
#[derive(Debug, Clone)]
pub struct Changes {
    pub name: Option<String>,
    pub link: Option<String>,
    pub description: Option<String>,
    pub span: Option<YearWithSemesterDuration>,
}

impl Changes {
    /// Whether the project has these values already.
    fn are_in(&self, (row, present_link, present_description): &Detail) -> bool {
        let Self { name, link, description, span } = self;
        name.as_ref().is_none_or(|name| *name == row.name)
            && link.as_ref().is_none_or(|new| new == present_link)
            && description.as_ref().is_none_or(|new| new == present_description)
            && span.is_none_or(|span| Columns::from(span) == Columns::from((row.since, row.until)))
    }
}

/// Projects, the newest first: by the semester they began in, the latest one first, then by id.
pub fn list(conn: &mut AnyConnection, bounds: &PageBounds<Position>) -> Result<Vec<Row>, Error> {
    Ok(with_connection!(conn, c => {
        let mut query = projects::table.order((projects::since.desc(), projects::id)).into_boxed();
        if let Some((since, id)) = bounds.after {
            query = after!(query, projects::since; < since, projects::id; > id);
        }
        query.limit(bounds.rows).select(Row::as_select()).load(c)
    })?)
}

/// The newest projects in the order of [`list`], with all their fields.
pub fn newest(conn: &mut AnyConnection, rows: i64) -> Result<Vec<Detail>, Error> {
    let newest = projects::table.order((projects::since.desc(), projects::id)).limit(rows);
    Ok(with_connection!(conn, c => {
        newest.select((Row::as_select(), projects::link, projects::description)).load(c)
    })?)
}

/// One project.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<Detail, Error> {
    let project = projects::table.find(id);
    let row = with_connection!(conn, c => {
        project.select((Row::as_select(), projects::link, projects::description)).first(c)
    });
    row.optional()?.ok_or_else(not_found)
}

/// A member of a project, and the span that answers show.
pub type Member = (Person, YearWithSemesterDuration);

/// One project, and its members, ordered by name.
pub fn get_with_members(conn: &mut AnyConnection, id: DbUuid) -> Result<(Detail, Vec<Member>), Error> {
    type JoinedRow = (Row, String, String, Option<Person>, Option<MemberSpan>);
    let project = projects::table
        .left_join(project_members::table)
        .left_join(users::table.on(users::id.nullable().eq(project_members::user_id.nullable())))
        .filter(projects::id.eq(id))
        .order((users::name, users::id));
    let rows: Vec<JoinedRow> = with_connection!(conn, c => project
        .select((
            Row::as_select(),
            projects::link,
            projects::description,
            Option::<Person>::as_select(),
            Option::<MemberSpan>::as_select(),
        ))
        .load(c)?);
    let (mut project, mut members) = (None, Vec::new());
    for (row, link, description, person, span) in rows {
        if let (Some(person), Some(span)) = (person, span) {
            members.push((person, span.shown_within(row.span()?)?));
        }
        project = Some((row, link, description));
    }
    Ok((project.ok_or_else(not_found)?, members))
}

/// The members of a project, ordered by name.
pub fn members(
    conn: &mut AnyConnection,
    id: DbUuid,
    bounds: &PageBounds<people::queries::Position>,
) -> Result<Vec<Member>, Error> {
    let project: Option<Row> = projects::table.find(id).select(Row::as_select()).first(conn).optional()?;
    members_within(conn, id, project.ok_or_else(not_found)?.span()?, bounds)
}

/// The members of a project that has this span.
pub fn members_within(
    conn: &mut AnyConnection,
    id: DbUuid,
    project: YearWithSemesterDuration,
    bounds: &PageBounds<people::queries::Position>,
) -> Result<Vec<Member>, Error> {
    let rows: Vec<(Person, MemberSpan)> = with_connection!(conn, c => {
        let members = project_members::table.inner_join(users::table).filter(project_members::project_id.eq(id));
        let mut members = members.order((users::name, users::id)).limit(bounds.rows).into_boxed();
        if let Some((name, id)) = &bounds.after {
            members = after!(members, users::name; > name, users::id; > *id);
        }
        members.select((Person::as_select(), MemberSpan::as_select())).load(c)
    })?;
    rows.into_iter().map(|(person, span)| Ok((person, span.shown_within(project)?))).collect()
}

/// The members of a project, each with the span that is stored.
type Stored = BTreeMap<DbUuid, MemberSpan>;

/// The members of a project by id, each with the span that answers show.
pub type Spans = Vec<(DbUuid, YearWithSemesterDuration)>;

/// The members of a project by id.
pub fn spans_of_members(conn: &mut AnyConnection, id: DbUuid) -> Result<Spans, Error> {
    let (project, members) = load_members(conn, id)?;
    shown_spans(project, &members, &BTreeMap::new())
}

/// Those of `members` who are not in `others`, or have another span there.
fn shown_spans(project: Columns, members: &Stored, others: &Stored) -> Result<Spans, Error> {
    let different = members.iter().filter(|(user, span)| others.get(user) != Some(span));
    different.map(|(user, span)| Ok((*user, span.shown_within(project.span()?)?))).collect()
}

/// A project of a user, and the user's span that answers show.
pub type OfUser = (Row, YearWithSemesterDuration);

/// The projects of a user, the newest first, each with the user's span that answers show.
pub fn of_user(conn: &mut AnyConnection, user: DbUuid, bounds: &PageBounds<Position>) -> Result<Vec<OfUser>, Error> {
    people::queries::check_exists(conn, user)?;
    let query = project_members::table.inner_join(projects::table).filter(project_members::user_id.eq(user));
    let query = query.select((Row::as_select(), MemberSpan::as_select()));
    let mut query = query.order((projects::since.desc(), projects::id)).into_boxed();
    if let Some((since, id)) = bounds.after {
        query = after!(query, projects::since; < since, projects::id; > id);
    }
    let rows: Vec<(Row, MemberSpan)> = query.limit(bounds.rows).load(conn)?;
    let shown = |(row, span): (Row, MemberSpan)| span.shown_within(row.span()?).map(|shown| (row, shown));
    rows.into_iter().map(shown).collect()
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
    let Changes { name, link, description, span } = changes;
    let span = span.map(Columns::from);
    let rows = diesel::update(projects::table.find(id))
        .set((
            name.as_ref().map(|name| projects::name.eq(name)),
            link.as_ref().map(|link| projects::link.eq(link)),
            description.as_ref().map(|description| projects::description.eq(description)),
            span.map(|span| (projects::since.eq(span.since), projects::until.eq(span.until))),
            projects::updated_at.eq(now),
        ))
        .execute(conn)
        .on_unique("projects.name", name_taken)?;
    if rows == 0 { Err(not_found()) } else { Ok(()) }
}

/// Replaces the members of a project on behalf of `me`, and returns the spans that changed, before and after.
/// `members` has no repeated users. The target of the operation is exclusive: otherwise two concurrent lists would mix.
///
/// # Errors
/// 404 when there is no such project; 400 for an unknown user.
pub fn put_members(
    conn: &mut AnyConnection,
    id: DbUuid,
    members: &[(DbUuid, YearWithSemesterDuration)],
    me: DbUuid,
    now: DbTimestamp,
) -> Result<(Spans, Spans), Error> {
    let (project, former) = load_members(conn, id)?;
    let users: Vec<_> = members.iter().map(|(user, _)| *user).collect();
    let members = members.iter().map(|(user, span)| (*user, MemberSpan::of_project(project, *span))).collect();
    if users.iter().any(|user| !former.contains_key(user)) {
        references::check_exist(conn, &users, |n| format!("/members/{n}/userId"))?;
    }
    replace_members(conn, id, &former, &members, me, now)?;
    Ok((shown_spans(project, &former, &members)?, shown_spans(project, &members, &former)?))
}

/// Gives a user a span in a project, or removes them from it, on behalf of `me`. The other members stay as they are.
/// The target of the operation is exclusive.
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
    let (project, former) = load_members(conn, id)?;
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

/// The spans of a project and of its members.
fn load_members(conn: &mut AnyConnection, id: DbUuid) -> Result<(Columns, Stored), Error> {
    type JoinedRow = ((Half, Option<Half>), Option<DbUuid>, Option<MemberSpan>);
    let project = projects::table.left_join(project_members::table).filter(projects::id.eq(id));
    let rows: Vec<JoinedRow> = with_connection!(conn, c => project
        .select((
            (projects::since, projects::until),
            project_members::user_id.nullable(),
            Option::<MemberSpan>::as_select(),
        ))
        .load(c)?);
    let (span, ..) = rows.first().ok_or_else(not_found)?;
    Ok((Columns::from(*span), rows.into_iter().filter_map(|(_, user, span)| user.zip(span)).collect()))
}

/// Writes only the rows that differ.
fn replace_members(
    conn: &mut AnyConnection,
    id: DbUuid,
    former: &Stored,
    members: &Stored,
    me: DbUuid,
    now: DbTimestamp,
) -> Result<(), Error> {
    if former == members {
        return Ok(());
    }
    with_connection!(conn, c => diesel::update(projects::table.find(id)).set(projects::updated_at.eq(now)).execute(c)?);
    let gone: Vec<_> = former.keys().filter(|user| !members.contains_key(user)).copied().collect();
    let stored = project_members::table.filter(project_members::project_id.eq(id));
    for users in gone.chunks(ROWS_PER_STATEMENT) {
        with_connection!(conn, c => diesel::delete(stored.filter(project_members::user_id.eq_any(users))).execute(c)?);
    }
    if gone.contains(&me) {
        departures::record(conn, id, me, now)?;
    }
    let row = |(user, span): (&DbUuid, &MemberSpan)| {
        (
            (project_members::project_id.eq(id), project_members::user_id.eq(*user)),
            (project_members::since.eq(span.since), project_members::until.eq(span.until)),
            project_members::follows_since.eq(span.follows_since),
            project_members::follows_until.eq(span.follows_until),
        )
    };
    let rows: Vec<_> = members.iter().filter(|(user, span)| former.get(user) != Some(span)).map(row).collect();
    for rows in rows.chunks(ROWS_PER_STATEMENT) {
        with_connection!(conn, c => diesel::insert_into(project_members::table)
            .values(rows)
            .on_conflict((project_members::project_id, project_members::user_id))
            .do_update()
            .set((
                project_members::since.eq(excluded(project_members::since)),
                project_members::until.eq(excluded(project_members::until)),
                project_members::follows_since.eq(excluded(project_members::follows_since)),
                project_members::follows_until.eq(excluded(project_members::follows_until)),
            ))
            .execute(c)?);
    }
    Ok(())
}

pub(super) fn not_found() -> Error {
    Problem::not_found("project").into()
}

pub(super) fn name_taken() -> Problem {
    Problem::new(code::DUPLICATE_NAME).detail("There is a project of this name already.")
}
