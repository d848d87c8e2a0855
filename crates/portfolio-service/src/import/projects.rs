//! Imports projects with their members.

use std::collections::HashMap;

use diesel::prelude::*;
use import::{
    CHUNK, Import,
    columns::Columns,
    merge::Imported,
    row::{SourceRow, SourceTable},
};
use serde::Serialize;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use super::{
    columns::{link, span, unique_name},
    targets::{CREATOR, Targets},
};
use crate::{
    schema::{project_members, projects},
    span::Half,
};

pub const PROJECTS: SourceTable = SourceTable::new(
    "projects",
    &[
        "id",
        "name",
        "description",
        "link",
        "since_year",
        "since_semester",
        "until_year",
        "until_semester",
        "created_at",
        "updated_at",
    ],
);
pub const MEMBERS: SourceTable = SourceTable::new(
    "project_members",
    &["project_id", "user_id", "since_year", "since_semester", "until_year", "until_semester"],
);

/// A member with their span.
type Member = (DbUuid, (Half, Option<Half>));

#[derive(Serialize)]
struct Project {
    name: String,
    link: String,
    description: String,
    since: Half,
    until: Option<Half>,
    created_at: DbTimestamp,
    updated_at: DbTimestamp,
    members: Vec<Member>,
}

impl Imported for Project {
    const KIND: &'static str = PROJECTS.name;
}

/// Imports the projects.
pub fn import_projects(conn: &mut AnyConnection, import: &mut Import, targets: &Targets) -> Result<(), Error> {
    let taken = projects::table.select((projects::name, projects::id));
    let mut taken: HashMap<_, _> = taken.load::<(String, DbUuid)>(conn)?.into_iter().collect();
    import.each_page(conn, &PROJECTS, "id", |conn, import, page| {
        let ids: Vec<_> = page.iter().map(|(id, _)| *id).collect();
        let member = |columns: &mut Columns<'_>| Ok((columns.member(&targets.users)?, span(columns)));
        let mut members = import.converted_children(&MEMBERS, "project_id", &ids, member)?;
        let mut incoming = Vec::new();
        for (id, row) in page {
            let mut members = members.remove(&id).unwrap_or_default();
            unite_spans(import, id, &mut members);
            let project = read(import, id, &row, &mut taken, members);
            let texts = [("name", project.name.as_str(), 1..=32), ("description", &project.description, 1..=256)];
            import.report.check_limits(PROJECTS.name, id, &texts);
            incoming.push((id, project));
        }
        let present = load(conn, &ids)?;
        let changes = import.merge(conn, incoming, &present)?;
        insert(conn, &changes.added)?;
        for (id, project) in &changes.updated {
            update(conn, *id, project)?;
        }
        insert_members(conn, &changes.updated)
    })?;
    for ids in import.removed_from_source::<Project>(conn, load)?.chunks(CHUNK) {
        diesel::delete(projects::table.filter(projects::id.eq_any(ids))).execute(conn)?;
    }
    Ok(())
}

/// A member has one span in a project: the rows of one user become one, from the first start to the last end.
fn unite_spans(import: &mut Import, project: DbUuid, members: &mut Vec<Member>) {
    members.dedup_by(|(user, (_, until)), (first, (_, last))| {
        if user != first {
            return false;
        }
        *last = last.zip(*until).map(|(last, until)| last.max(until));
        import.report.note("members with several spans in a project, imported as one", || format!("{project} {first}"));
        true
    });
}

fn read(
    import: &mut Import,
    id: DbUuid,
    row: &SourceRow,
    taken: &mut HashMap<String, DbUuid>,
    members: Vec<Member>,
) -> Project {
    let mut columns = import.columns(row);
    let (since, until) = span(&mut columns);
    let (created_at, updated_at) = columns.created_and_updated();
    Project {
        name: unique_name(&mut columns, id, taken),
        link: link(&mut columns, "link"),
        description: columns.text("description"),
        since,
        until,
        created_at,
        updated_at,
        members,
    }
}

fn load(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<HashMap<DbUuid, Project>, Error> {
    type Row = ((DbUuid, String, String, String), (Half, Option<Half>), (DbTimestamp, DbTimestamp));
    let rows = project_members::table
        .filter(project_members::project_id.eq_any(ids))
        .order((project_members::project_id, project_members::user_id))
        .select((
            project_members::project_id,
            project_members::user_id,
            (project_members::since, project_members::until),
        ));
    let mut members = HashMap::<DbUuid, Vec<Member>>::new();
    for (project, user, span) in rows.load::<(DbUuid, DbUuid, (Half, Option<Half>))>(conn)? {
        members.entry(project).or_default().push((user, span));
    }
    let rows = projects::table.filter(projects::id.eq_any(ids)).select((
        (projects::id, projects::name, projects::link, projects::description),
        (projects::since, projects::until),
        (projects::created_at, projects::updated_at),
    ));
    let project = |((id, name, link, description), (since, until), (created_at, updated_at)): Row| {
        let members = members.remove(&id).unwrap_or_default();
        (id, Project { name, link, description, since, until, created_at, updated_at, members })
    };
    Ok(rows.load::<Row>(conn)?.into_iter().map(project).collect())
}

/// The values of all columns except the id and the creator.
macro_rules! columns {
    ($project:expr) => {
        (
            (projects::name.eq(&$project.name), projects::link.eq(&$project.link)),
            projects::description.eq(&$project.description),
            (projects::since.eq($project.since), projects::until.eq($project.until)),
            (projects::created_at.eq($project.created_at), projects::updated_at.eq($project.updated_at)),
        )
    };
}

fn insert(conn: &mut AnyConnection, new: &[(DbUuid, Project)]) -> Result<(), Error> {
    let rows: Vec<_> = new
        .iter()
        .map(|(id, project)| (projects::id.eq(*id), projects::created_by.eq(CREATOR), columns!(project)))
        .collect();
    with_connection!(conn, c => diesel::insert_into(projects::table).values(&rows).execute(c))?;
    insert_members(conn, new)
}

/// Updates a project and deletes its members.
fn update(conn: &mut AnyConnection, id: DbUuid, project: &Project) -> Result<(), Error> {
    diesel::update(projects::table.find(id)).set(columns!(project)).execute(conn)?;
    diesel::delete(project_members::table.filter(project_members::project_id.eq(id))).execute(conn)?;
    Ok(())
}

fn insert_members(conn: &mut AnyConnection, new: &[(DbUuid, Project)]) -> Result<(), Error> {
    let members = new.iter().flat_map(|(id, project)| project.members.iter().map(|member| (*id, *member)));
    let rows: Vec<_> = members
        .map(|(id, (user, (since, until)))| {
            (
                (project_members::project_id.eq(id), project_members::user_id.eq(user)),
                (project_members::since.eq(since), project_members::until.eq(until)),
            )
        })
        .collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(project_members::table).values(rows).execute(c))?;
    }
    Ok(())
}
