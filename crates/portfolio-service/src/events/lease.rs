//! Which replica does a background task: the holder of the task's row. Whoever stops without giving it back holds it
//! until it expires. By the clocks of the replicas, which must agree to well within the time a lease is for.

use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use crate::schema::leases;

/// Takes the lease when it is free or expired, or makes it last longer for its holder. Whether it is held now.
///
/// # Errors
/// When the database fails.
pub fn take(
    conn: &mut AnyConnection,
    task: &str,
    me: DbUuid,
    now: DbTimestamp,
    until: DbTimestamp,
) -> Result<bool, Error> {
    let mine = leases::holder.eq(me).or(leases::expires_at.le(now));
    let taken = diesel::update(leases::table.find(task).filter(mine))
        .set((leases::holder.eq(me), leases::expires_at.eq(until)))
        .execute(conn)?;
    if taken > 0 {
        return Ok(true);
    }
    // Nobody ever held it, or somebody does.
    let row = (leases::task.eq(task), leases::holder.eq(me), leases::expires_at.eq(until));
    let made = with_connection!(conn, c => diesel::insert_into(leases::table).values(row).on_conflict_do_nothing().execute(c)?);
    Ok(made > 0)
}

/// Makes the lease last longer, if it is still held. In the transaction of what only the holder may do, it keeps
/// everybody else out until the end of that transaction.
///
/// # Errors
/// When the database fails.
pub fn keep(conn: &mut AnyConnection, task: &str, me: DbUuid, until: DbTimestamp) -> Result<bool, Error> {
    let kept = diesel::update(leases::table.find(task).filter(leases::holder.eq(me)))
        .set(leases::expires_at.eq(until))
        .execute(conn)?;
    Ok(kept > 0)
}

/// Gives the lease back.
///
/// # Errors
/// When the database fails.
pub fn give_back(conn: &mut AnyConnection, task: &str, me: DbUuid) -> Result<(), Error> {
    diesel::delete(leases::table.find(task).filter(leases::holder.eq(me))).execute(conn)?;
    Ok(())
}
