//! Deleted projects and contests, which can be restored for 30 days. A deleted object is moved to a row of its own, so
//! that no other query must leave it out, and its name is free.

use common::problem::{Problem, code};
use diesel::{OptionalExtension, prelude::*};
use serde::{Serialize, de::DeserializeOwned};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    removal::Removal,
    retention::RESTORABLE,
    with_connection,
};

use crate::schema::{deleted_objects, last_deletions, pictures};

/// The kind of deleted projects.
pub const PROJECTS: &str = "projects";
/// The kind of deleted contests.
pub const CONTESTS: &str = "contests";

/// The people of a deleted object.
pub struct People {
    /// Who created it.
    pub creator: DbUuid,
    /// Who could change it besides the creator.
    pub editors: Vec<DbUuid>,
}

/// Stores an object that is being deleted.
pub fn store(
    conn: &mut AnyConnection,
    (kind, id): (&str, DbUuid),
    people: &People,
    content: &impl Serialize,
    now: DbTimestamp,
) -> Result<(), Error> {
    note(conn, kind, now)?;
    diesel::insert_into(deleted_objects::table)
        .values((
            deleted_objects::id.eq(id),
            deleted_objects::created_by.eq(people.creator),
            deleted_objects::deleted_at.eq(now),
            deleted_objects::editors.eq(serde_json::to_string(&people.editors).map_err(Problem::internal)?),
            deleted_objects::content.eq(serde_json::to_string(content).map_err(Problem::internal)?),
        ))
        .execute(conn)?;
    Ok(())
}

/// Stores when an object of a kind was deleted last. That time never goes back, whatever the clock says.
fn note(conn: &mut AnyConnection, kind: &str, now: DbTimestamp) -> Result<(), Error> {
    let at = last(conn, kind)?.map_or(now, |last| last.max(now));
    let row = (last_deletions::kind.eq(kind), last_deletions::deleted_at.eq(at));
    with_connection!(conn, c => diesel::insert_into(last_deletions::table)
        .values(row)
        .on_conflict(last_deletions::kind)
        .do_update()
        .set(last_deletions::deleted_at.eq(at))
        .execute(c)?);
    Ok(())
}

/// When an object of a kind was deleted last.
pub fn last(conn: &mut AnyConnection, kind: &str) -> Result<Option<DbTimestamp>, Error> {
    Ok(last_deletions::table.find(kind).select(last_deletions::deleted_at).first(conn).optional()?)
}

/// The people of a deleted object, if there is one.
pub fn people(conn: &mut AnyConnection, id: DbUuid) -> Result<Option<People>, Error> {
    let row = deleted_objects::table.find(id).select((deleted_objects::created_by, deleted_objects::editors));
    let row: Option<(DbUuid, String)> = row.first(conn).optional()?;
    row.map(|(creator, editors)| {
        let editors = serde_json::from_str(&editors).map_err(Problem::internal)?;
        Ok(People { creator, editors })
    })
    .transpose()
}

/// A deleted object.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = deleted_objects)]
pub struct Deleted {
    pub id: DbUuid,
    pub deleted_at: DbTimestamp,
    /// What the slice of the object has stored.
    pub content: String,
}

/// One deleted object, if there is one.
pub fn find(conn: &mut AnyConnection, id: DbUuid) -> Result<Option<Deleted>, Error> {
    Ok(deleted_objects::table.find(id).select(Deleted::as_select()).first(conn).optional()?)
}

/// The objects that can still be restored, of one creator or of all, the last deletion first, at most
/// `at_most` of those that follow `after`.
pub fn restorable(
    conn: &mut AnyConnection,
    creator: Option<DbUuid>,
    now: DbTimestamp,
    after: Option<(DbTimestamp, DbUuid)>,
    at_most: i64,
) -> Result<Vec<Deleted>, Error> {
    let oldest = DbTimestamp(now.plus(-RESTORABLE));
    let mut query = deleted_objects::table.filter(deleted_objects::deleted_at.gt(oldest)).into_boxed();
    if let Some(creator) = creator {
        query = query.filter(deleted_objects::created_by.eq(creator));
    }
    if let Some((at, id)) = after {
        query = query.filter(deleted_objects::deleted_at.le(at));
        query = query.filter(deleted_objects::deleted_at.lt(at).or(deleted_objects::id.gt(id)));
    }
    let order = (deleted_objects::deleted_at.desc(), deleted_objects::id);
    Ok(query.order(order).limit(at_most).select(Deleted::as_select()).load(conn)?)
}

/// Takes the content of a deleted object out, to restore it.
///
/// # Errors
/// 409 `not-deleted` when there is none: the caller's right to it shows that it exists. 404 30 days after its deletion.
pub fn take<T: DeserializeOwned>(conn: &mut AnyConnection, id: DbUuid, now: DbTimestamp) -> Result<T, Error> {
    let row = deleted_objects::table.find(id).select((deleted_objects::content, deleted_objects::deleted_at));
    let row: Option<(String, DbTimestamp)> = row.first(conn).optional()?;
    let (content, deleted_at) = row.ok_or_else(|| Problem::new(code::NOT_DELETED))?;
    if deleted_at.plus(RESTORABLE) <= *now {
        return Err(Problem::not_found("object").into());
    }
    // Nothing is deleted when a concurrent request was faster.
    if diesel::delete(deleted_objects::table.find(id)).execute(conn)? == 0 {
        return Err(Error::Stale);
    }
    Ok(serde_json::from_str(&content).map_err(Problem::internal)?)
}

/// Nothing refers to a deleted object. Its picture goes with it.
pub const REMOVALS: &[Removal] = &[Removal {
    deleted: |conn, oldest, (at, id), limit| {
        let deleted = deleted_objects::table
            .filter(deleted_objects::deleted_at.le(oldest).and(deleted_objects::deleted_at.ge(at)))
            .filter(deleted_objects::deleted_at.gt(at).or(deleted_objects::id.gt(id)))
            .order((deleted_objects::deleted_at, deleted_objects::id))
            .select((deleted_objects::deleted_at, deleted_objects::id))
            .limit(limit);
        Ok(deleted.load(conn)?)
    },
    unused: |_, ids| Ok(ids.to_vec()),
    remove: |conn, ids| {
        diesel::delete(pictures::table.filter(pictures::object_id.eq_any(ids))).execute(conn)?;
        diesel::delete(deleted_objects::table.filter(deleted_objects::id.eq_any(ids))).execute(conn)?;
        Ok(())
    },
}];
