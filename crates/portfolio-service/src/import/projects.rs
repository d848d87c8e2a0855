//! Imports projects with their members.

use std::collections::HashMap;

use diesel::prelude::*;
use import::{
    CHUNK, Import,
    merge::Imported,
    pages::existing_user,
    row::{Fault, SourceRow, SourceTable},
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
    columns::{link, span},
    targets::{CREATOR, Targets},
};
use crate::{
    schema::{project_members, projects},
    span::Half,
};

pub const PROJECTS: SourceTable = SourceTable {
    name: "projects",
    columns: &[
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
};
pub const MEMBERS: SourceTable = SourceTable {
    name: "project_members",
    columns: &["project_id", "user_id", "since_year", "since_semester", "until_year", "until_semester"],
};

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
    import.each_page(conn, &PROJECTS, "id", |conn, import, page| {
        let ids: Vec<_> = page.iter().map(|(id, _)| *id).collect();
        let member = |row: &SourceRow| Ok((existing_user(row, "user_id", &targets.users)?, span(row)?));
        let mut members = import.converted_children(&MEMBERS, "project_id", &ids, member)?;
        for members in members.values_mut() {
            members.dedup_by_key(|(user, _)| *user);
        }
        let names: Vec<_> = page.iter().filter_map(|(_, row)| row.text("name").ok()).collect();
        let ids_by_name = projects::table.filter(projects::name.eq_any(&names)).select((projects::name, projects::id));
        let mut ids_by_name: HashMap<_, _> = ids_by_name.load::<(String, DbUuid)>(conn)?.into_iter().collect();
        let mut incoming = Vec::new();
        for (id, row) in page {
            let project = read(import, id, &row, members.remove(&id).unwrap_or_default()).and_then(|project| {
                let first = *ids_by_name.entry(project.name.clone()).or_insert(id);
                if first == id { Ok(project) } else { Err(format!("the project {first} has the same name")) }
            });
            match project {
                Ok(project) => {
                    let texts =
                        [("name", project.name.as_str(), 1..=32), ("description", &project.description, 1..=256)];
                    import.report.check_limits(PROJECTS.name, id, &texts);
                    incoming.push((id, project));
                }
                Err(fault) => import.report.left_out(PROJECTS.name, &id.to_string(), &fault),
            }
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

fn read(import: &mut Import, id: DbUuid, row: &SourceRow, members: Vec<Member>) -> Result<Project, Fault> {
    let (since, until) = span(row)?;
    Ok(Project {
        name: row.text("name")?,
        link: link(row, "link")?,
        description: row.text("description")?,
        since,
        until,
        created_at: import.time(row, PROJECTS.name, id, "created_at")?,
        updated_at: import.time(row, PROJECTS.name, id, "updated_at")?,
        members,
    })
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
