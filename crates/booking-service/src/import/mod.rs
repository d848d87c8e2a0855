//! The command `import`: copies the database of the system that this service replaces.
//!
//! * Users and directory groups come from the club directory, by the ordinary sync. `users` adds privileges and feed
//!   addresses.
//! * `groups`, `rooms`, `events` and `answers` import the other tables. Ids, creators and times stay the same.
//! * `scan` reports data that breaks the rules of this service. It is imported as it is.
//! * Sessions and access tokens are never read.
//! * `webhooks` prints the commands that make the webhooks of the former system.

mod answers;
mod events;
mod groups;
mod rooms;
mod scan;
mod targets;
mod users;
pub mod webhooks;

use club_directory::Snapshot;
use common::time::Timestamp;
use diesel::{RunQueryDsl, sql_query};
use import::{Import, report::Report, row::SourceTable};
use service_kit::{
    database::{AnyConnection, Database, types::DbTimestamp},
    error::Error,
};

use self::targets::Targets;
use crate::{groups::queries::ensure_everyone_group, users::sync};

/// The tables of the source to read.
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

/// Imports everything in one transaction.
///
/// # Errors
/// When the source or the database fails. Then nothing is written.
pub async fn run(
    import: Import,
    db: &Database,
    directory: Snapshot,
    everyone_group: Option<String>,
    now: Timestamp,
) -> Result<Report, Error> {
    let now = DbTimestamp(now);
    let work = move |conn: &mut AnyConnection, import: &mut Import| {
        import.step("reading the club directory");
        lock(conn)?;
        ensure_everyone_group(conn, everyone_group.as_deref(), now)?;
        sync::apply(conn, &directory, false, now)?;
        let users = users::import_users(conn, import, &directory, now)?;
        let tags = groups::import_tags(conn, import)?;
        let groups = groups::import_groups(conn, import, &users, now)?;
        let mut targets = Targets { users, groups, tags, now };
        rooms::import_rooms(conn, import, &targets)?;
        events::import_events(conn, import, &mut targets)?;
        import.step("looking for double bookings");
        scan::report_violations(conn, import)?;
        import.record(conn, now)?;
        analyze(conn)
    };
    import.run(db, work).await
}

/// Locks the tables against other writers, which wait, so that neither transaction is aborted. Readers are not blocked.
fn lock(conn: &mut AnyConnection) -> Result<(), Error> {
    if let AnyConnection::Postgresql(pg) = conn {
        // In the order in which bookings take their locks.
        sql_query("LOCK TABLE places IN EXCLUSIVE MODE").execute(pg)?;
        sql_query("LOCK TABLE users, groups, tags, rooms, events IN SHARE ROW EXCLUSIVE MODE").execute(pg)?;
    }
    Ok(())
}

/// Updates the planner's statistics. Autovacuum would do so within minutes, but plans are bad until then.
fn analyze(conn: &mut AnyConnection) -> Result<(), Error> {
    if let AnyConnection::Postgresql(pg) = conn {
        // Other tables may be locked by other transactions.
        sql_query("ANALYZE users, groups, rooms, events, event_admins, event_tags, attendees, imported_rows")
            .execute(pg)?;
    }
    Ok(())
}
