//! The number of objects that one user may create and change in 24 hours (contract, "Fairness"). It is stored, so it holds
//! for all replicas and across restarts.

use chrono::TimeDelta;
use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use diesel::{dsl::case_when, prelude::*, upsert::excluded};

use crate::{
    database::{
        AnyConnection,
        schema::creations,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

/// The period begins with the first object.
const PERIOD: TimeDelta = TimeDelta::hours(24);

/// Counts objects that a user has created or changed, at the end of the transaction that does so: the lock on the user's
/// row is the last one that it takes.
pub(super) fn record(conn: &mut AnyConnection, user: DbUuid, number: i32, now: DbTimestamp) -> Result<(), Error> {
    let row = (
        creations::user_id.eq(user),
        creations::expires_at.eq(DbTimestamp(now.plus(PERIOD))),
        creations::number.eq(number),
    );
    with_connection!(conn, c => diesel::insert_into(creations::table)
        .values(row)
        .on_conflict(creations::user_id)
        .do_update()
        .set((
            creations::number.eq(case_when(creations::expires_at.gt(now), creations::number + number).otherwise(number)),
            creations::expires_at.eq(case_when(creations::expires_at.gt(now), creations::expires_at)
                .otherwise(excluded(creations::expires_at))),
        ))
        .execute(c))?;
    Ok(())
}

/// Refuses what exceeds the limit, after it has been counted.
pub(super) fn check(conn: &mut AnyConnection, user: DbUuid, limit: u32, now: Timestamp) -> Result<(), Error> {
    let row = creations::table
        .find(user)
        .filter(creations::expires_at.gt(DbTimestamp(now)))
        .select((creations::number, creations::expires_at));
    let row: Option<(i32, DbTimestamp)> = with_connection!(conn, c => row.first(c)).optional()?;
    match row {
        Some((number, expires_at)) if i64::from(number) > i64::from(limit) => {
            let wait = (*expires_at - now).num_seconds();
            Err(Problem::new(code::DAILY_LIMIT).retry_after(wait.max(1).unsigned_abs()).into())
        }
        _ => Ok(()),
    }
}
