//! Deletes contests so that they can be restored.

use diesel::{OptionalExtension, prelude::*};
use serde::{Deserialize, Serialize};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, OnUnique},
    history,
};

use super::queries::{name_taken, not_found};
use crate::{
    caller::Caller,
    deletion::{self, Deleted, People},
    objects::{CONTEST, TEAM},
    schema::contests,
    teams,
};

/// The rows of a contest.
#[derive(Serialize, Deserialize)]
struct Stored {
    contest: Columns,
    teams: teams::Stored,
}

/// Name, link, description, since, until, creator and time of creation.
type Columns = (String, String, String, DbTimestamp, Option<DbTimestamp>, DbUuid, DbTimestamp);

/// The name of a deleted contest; `None` for what is none.
pub fn name_of(deleted: &Deleted) -> Option<String> {
    serde_json::from_str::<Stored>(&deleted.content).ok().map(|stored| stored.contest.0)
}

/// Deletes a contest with its teams, and records that.
pub fn delete(conn: &mut AnyConnection, id: DbUuid, me: &Caller, now: DbTimestamp) -> Result<(), Error> {
    let row = contests::table.find(id).select((
        contests::name,
        contests::link,
        contests::description,
        contests::since,
        contests::until,
        contests::created_by,
        contests::created_at,
    ));
    // Against changes after it has been read.
    let contest: Option<Columns> = match conn {
        AnyConnection::Postgresql(pg) => row.for_update().first(pg).optional()?,
        AnyConnection::Sqlite(sqlite) => row.first(sqlite).optional()?,
    };
    let contest = contest.ok_or_else(not_found)?;
    let teams = teams::Stored::load(conn, id)?;
    let ids = teams.ids();
    let people = People { creator: contest.5, editors: Vec::new() };
    deletion::store(conn, (deletion::CONTESTS, id), &people, &Stored { contest, teams }, now)?;
    diesel::delete(contests::table.find(id)).execute(conn)?;
    history::deleted(conn, &me.author, &TEAM, &ids)?;
    history::deleted(conn, &me.author, &CONTEST, &[id])
}

/// Takes the deletion of a contest and its teams back, and records that.
///
/// # Errors
/// 404, also 30 days after the deletion; 409 when the name is taken.
pub fn restore(conn: &mut AnyConnection, id: DbUuid, me: &Caller, now: DbTimestamp) -> Result<(), Error> {
    let Stored { contest: (name, link, description, since, until, created_by, created_at), teams } =
        deletion::take(conn, id, now)?;
    diesel::insert_into(contests::table)
        .values((
            (contests::id.eq(id), contests::name.eq(name), contests::link.eq(link)),
            contests::description.eq(description),
            (contests::since.eq(since), contests::until.eq(until)),
            (contests::created_by.eq(created_by), contests::created_at.eq(created_at), contests::updated_at.eq(now)),
        ))
        .execute(conn)
        .on_unique("contests.name", name_taken)?;
    teams.insert(conn, id)?;
    for team in teams.ids() {
        history::restored(conn, &me.author, &TEAM, team)?;
    }
    history::restored(conn, &me.author, &CONTEST, id)
}
