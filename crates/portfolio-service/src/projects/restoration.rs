//! Deletes projects so that they can be restored.

use diesel::{OptionalExtension, prelude::*};
use serde::{Deserialize, Serialize};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, OnUnique},
    history, with_connection,
};

use super::queries::{name_taken, not_found};
use crate::{
    caller::Caller,
    deletion::{self, Deleted, People},
    objects::PROJECT,
    schema::{project_members, projects},
    span::Half,
};

/// The rows of a project.
#[derive(Serialize, Deserialize)]
struct Stored {
    project: Columns,
    members: Vec<Member>,
    /// The hash of the picture, which stays where it is.
    #[serde(default)]
    picture: Option<String>,
}

/// Name, link, description, since, until, creator and time of creation.
type Columns = (String, String, String, Half, Option<Half>, DbUuid, DbTimestamp);

/// User, since, until, and whether these follow the project's.
type Member = (DbUuid, Half, Option<Half>, bool, bool);

/// The name of a deleted project; `None` for what is none.
pub fn name_of(deleted: &Deleted) -> Option<String> {
    serde_json::from_str::<Stored>(&deleted.content).ok().map(|stored| stored.project.0)
}

/// Deletes a project with its list of members, and records that.
pub fn delete(conn: &mut AnyConnection, id: DbUuid, me: &Caller, now: DbTimestamp) -> Result<(), Error> {
    let columns = (
        projects::name,
        projects::link,
        projects::description,
        projects::since,
        projects::until,
        projects::created_by,
        projects::created_at,
    );
    let row = projects::table.find(id).select((columns, projects::picture));
    // Against changes after it has been read.
    let project: Option<(Columns, Option<String>)> = match conn {
        AnyConnection::Postgresql(pg) => row.for_update().first(pg).optional()?,
        AnyConnection::Sqlite(sqlite) => row.first(sqlite).optional()?,
    };
    let (project, picture) = project.ok_or_else(not_found)?;
    let members: Vec<Member> = project_members::table
        .filter(project_members::project_id.eq(id))
        .select((
            project_members::user_id,
            project_members::since,
            project_members::until,
            project_members::follows_since,
            project_members::follows_until,
        ))
        .load(conn)?;
    let people = People { creator: project.5, editors: members.iter().map(|member| member.0).collect() };
    deletion::store(conn, (deletion::PROJECTS, id), &people, &Stored { project, members, picture }, now)?;
    diesel::delete(projects::table.find(id)).execute(conn)?;
    history::deleted(conn, &me.author, &PROJECT, &[id])
}

/// Takes the deletion of a project back, and records that.
///
/// # Errors
/// 404, also 30 days after the deletion; 409 when the name is taken.
pub fn restore(conn: &mut AnyConnection, id: DbUuid, me: &Caller, now: DbTimestamp) -> Result<(), Error> {
    let Stored { project: (name, link, description, since, until, created_by, created_at), members, picture } =
        deletion::take(conn, id, now)?;
    diesel::insert_into(projects::table)
        .values((
            (projects::id.eq(id), projects::name.eq(name), projects::link.eq(link)),
            (projects::description.eq(description), projects::picture.eq(picture)),
            (projects::since.eq(since), projects::until.eq(until)),
            (projects::created_by.eq(created_by), projects::created_at.eq(created_at), projects::updated_at.eq(now)),
        ))
        .execute(conn)
        .on_unique("projects.name", name_taken)?;
    let row = |(user, since, until, follows_since, follows_until): &Member| {
        (
            project_members::project_id.eq(id),
            project_members::user_id.eq(*user),
            project_members::since.eq(*since),
            project_members::until.eq(*until),
            project_members::follows_since.eq(*follows_since),
            project_members::follows_until.eq(*follows_until),
        )
    };
    let rows: Vec<_> = members.iter().map(row).collect();
    for rows in rows.chunks(1000) {
        with_connection!(&mut *conn, c => diesel::insert_into(project_members::table).values(rows).execute(c)?);
    }
    history::restored(conn, &me.author, &PROJECT, id)
}
