//! Leases of background tasks: only the replica that holds a task's lease runs the task. The lease of a replica that
//! stops without releasing it stays until it expires. Expiry goes by the clocks of the replicas, which must differ by
//! much less than the duration of a lease.

use chrono::TimeDelta;
use diesel::prelude::*;

use crate::{
    database::{
        AnyConnection,
        schema::leases,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

/// How much later than an own lease another one may expire. A clock that was wrong has set a later one.
const CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(5);

/// Takes the lease when it is free or expired, or extends it for its holder. Returns whether `me` holds it now.
pub fn take(
    conn: &mut AnyConnection,
    task: &str,
    me: DbUuid,
    now: DbTimestamp,
    until: DbTimestamp,
) -> Result<bool, Error> {
    let last = DbTimestamp(until.plus(CLOCK_DIFFERENCE));
    let can_be_taken = leases::holder.eq(me).or(leases::expires_at.le(now)).or(leases::expires_at.gt(last));
    let updated = diesel::update(leases::table.find(task).filter(can_be_taken))
        .set((leases::holder.eq(me), leases::expires_at.eq(until)))
        .execute(conn)?;
    if updated > 0 {
        return Ok(true);
    }
    // There is no row, or another replica holds the lease.
    let row = (leases::task.eq(task), leases::holder.eq(me), leases::expires_at.eq(until));
    let inserted = with_connection!(conn, c => diesel::insert_into(leases::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(c)?);
    Ok(inserted > 0)
}

/// Extends the lease if `me` still holds it, and returns whether it does. This locks the row, so no other replica can
/// take the lease before the transaction ends.
pub fn extend(conn: &mut AnyConnection, task: &str, me: DbUuid, until: DbTimestamp) -> Result<bool, Error> {
    let updated = diesel::update(leases::table.find(task).filter(leases::holder.eq(me)))
        .set(leases::expires_at.eq(until))
        .execute(conn)?;
    Ok(updated > 0)
}

/// Releases the lease if `me` holds it.
pub fn release(conn: &mut AnyConnection, task: &str, me: DbUuid) -> Result<(), Error> {
    diesel::delete(leases::table.find(task).filter(leases::holder.eq(me))).execute(conn)?;
    Ok(())
}
