//! `import`: the database of the system that this service replaces.
//!
//! * Users and directory groups come from the club directory, by the ordinary sync; `users` adds what else is known of
//!   them.
//! * `groups`, `rooms`, `events` and `answers` bring the rest, each with the rows that belong to it. Ids, creators and times stay.
//! * `scan` lists what that system allowed and this one refuses. It is imported as it is.
//! * Sessions and the access tokens of another server are never read.

mod answers;
mod events;
mod groups;
mod rooms;
mod scan;
mod targets;
mod users;

use common::time::Timestamp;
use diesel::{RunQueryDsl, sql_query};
use service_kit::{
    database::{AnyConnection, Database, types::DbTimestamp},
    directory::Snapshot,
    error::Error,
    import::{Import, report::Report, row::SourceTable},
};

use self::targets::Targets;
use crate::{groups::queries::ensure_everyone_group, users::sync};

/// The tables that are read.
pub const TABLES: &[SourceTable] = &[
    users::USERS,
    groups::TAGS,
    groups::GROUPS,
    groups::MEMBERS,
    groups::ADMINS,
    rooms::ROOMS,
    rooms::ADMINS,
    events::EVENTS,
    events::TAGS,
    events::ADMINS,
    answers::ATTENDEES,
];

/// Brings all of it in, in one transaction.
///
/// # Errors
/// When the source or the database fails; nothing is written then.
pub async fn run(
    import: Import,
    db: &Database,
    directory: Snapshot,
    everyone_group: String,
    now: Timestamp,
) -> Result<Report, Error> {
    let now = DbTimestamp(now);
    let work = move |conn: &mut AnyConnection, import: &mut Import| {
        lock(conn)?;
        ensure_everyone_group(conn, &everyone_group, now)?;
        sync::apply(conn, &directory, false, now)?;
        let users = users::bring_in(conn, import, &directory, now)?;
        let tags = groups::bring_tags_in(conn, import)?;
        let groups = groups::bring_in(conn, import, &users, now)?;
        let mut targets = Targets { users, groups, tags, now };
        rooms::bring_in(conn, import, &targets)?;
        events::bring_in(conn, import, &mut targets)?;
        scan::list(conn, import)?;
        analyze(conn)
    };
    import.run(db, work).await
}

/// Lets nobody else write meanwhile, so that they wait and none of the two has to be broken off. Others read on.
fn lock(conn: &mut AnyConnection) -> Result<(), Error> {
    if let AnyConnection::Postgresql(pg) = conn {
        // In the order in which bookings take them.
        sql_query("LOCK TABLE places IN EXCLUSIVE MODE").execute(pg)?;
        sql_query("LOCK TABLE users, groups, tags, rooms, events IN SHARE ROW EXCLUSIVE MODE").execute(pg)?;
    }
    Ok(())
}

/// What the server would find out by itself within minutes; plans are bad until then.
fn analyze(conn: &mut AnyConnection) -> Result<(), Error> {
    if let AnyConnection::Postgresql(pg) = conn {
        // Not of other tables, which somebody else may have locked.
        sql_query("ANALYZE users, groups, rooms, events, event_admins, event_tags, attendees, imported_rows")
            .execute(pg)?;
    }
    Ok(())
}
