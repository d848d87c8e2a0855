//! Pictures in the database.

use common::problem::Problem;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use super::encoding::Encoded;
use crate::{
    caller::ACTIVE,
    schema::{pictures, projects, users},
};

/// What has a picture.
#[derive(Debug, Clone, Copy)]
pub enum Subject {
    Project(DbUuid),
    User(DbUuid),
}

/// One form of a picture.
#[derive(Debug)]
pub struct Picture {
    pub hash: String,
    pub media_type: String,
    pub bytes: Vec<u8>,
}

/// The picture of a project, or of an active user.
///
/// # Errors
/// 404 when there is none.
pub fn get(conn: &mut AnyConnection, subject: Subject, is_small: bool) -> Result<Picture, Error> {
    type Row = ((Option<String>, Option<String>), String, Vec<u8>);
    let (Subject::Project(id) | Subject::User(id)) = subject;
    let is_active = users::id.eq(pictures::object_id).and(users::state.eq(ACTIVE));
    let picture = pictures::table
        .left_join(projects::table.on(projects::id.eq(pictures::object_id)))
        .left_join(users::table.on(is_active))
        .filter(pictures::object_id.eq(id));
    let hashes = (projects::picture.nullable(), users::picture.nullable());
    let row: Option<Row> = with_connection!(conn, c => if is_small {
        picture.select((hashes, pictures::media_type, pictures::small)).first(c)
    } else {
        picture.select((hashes, pictures::media_type, pictures::large)).first(c)
    })
    .optional()?;
    let ((of_project, of_user), media_type, bytes) = row.ok_or_else(not_found)?;
    let hash = if matches!(subject, Subject::Project(_)) { of_project } else { of_user };
    Ok(Picture { hash: hash.ok_or_else(not_found)?, media_type, bytes })
}

/// Gives a project or user a picture.
///
/// # Errors
/// 404 when there is no such project or user.
pub fn put(conn: &mut AnyConnection, subject: Subject, picture: &Encoded, now: DbTimestamp) -> Result<(), Error> {
    if !set_hash(conn, subject, Some(&picture.hash), now)? {
        return Ok(());
    }
    let (Subject::Project(id) | Subject::User(id)) = subject;
    let Encoded { media_type, hash: _, large, small } = picture;
    let values = || (pictures::media_type.eq(media_type), pictures::large.eq(large), pictures::small.eq(small));
    with_connection!(conn, c => diesel::insert_into(pictures::table)
        .values((pictures::object_id.eq(id), values()))
        .on_conflict(pictures::object_id)
        .do_update()
        .set(values())
        .execute(c)?);
    Ok(())
}

/// Removes the picture of a project or user.
///
/// # Errors
/// 404 when there is none.
pub fn delete(conn: &mut AnyConnection, subject: Subject, now: DbTimestamp) -> Result<(), Error> {
    if !set_hash(conn, subject, None, now)? {
        return Err(not_found());
    }
    let (Subject::Project(id) | Subject::User(id)) = subject;
    diesel::delete(pictures::table.find(id)).execute(conn)?;
    Ok(())
}

/// Sets the hash of a picture, and returns whether that is another one.
fn set_hash(conn: &mut AnyConnection, subject: Subject, hash: Option<&str>, now: DbTimestamp) -> Result<bool, Error> {
    let present: Option<Option<String>> = match subject {
        Subject::Project(id) => projects::table.find(id).select(projects::picture).first(conn).optional()?,
        Subject::User(id) => users::table.find(id).select(users::picture).first(conn).optional()?,
    };
    if present.ok_or_else(not_found)?.as_deref() == hash {
        return Ok(false);
    }
    match subject {
        Subject::Project(id) => diesel::update(projects::table.find(id))
            .set((projects::picture.eq(hash), projects::updated_at.eq(now)))
            .execute(conn)?,
        Subject::User(id) => diesel::update(users::table.find(id))
            .set((users::picture.eq(hash), users::updated_at.eq(now)))
            .execute(conn)?,
    };
    Ok(true)
}

fn not_found() -> Error {
    Problem::not_found("picture").into()
}
