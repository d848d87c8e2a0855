//! `import`: copies the database of the system that this service replaces.
//!
//! * `users`, `accounts`: profiles and accounts of members.
//! * `groups`: links of groups and spans of their members. The ordinary sync, which runs last, updates names,
//!   descriptions, administrators and present members from the club directory.
//! * `events`: levels of events. The events come from the booking-service.
//! * `projects`, `contests`: with their members and teams. The source does not store their creators, so they belong to
//!   a deactivated user. Members of a project may edit it, and admins may edit everything.

mod accounts;
mod columns;
mod contests;
mod events;
mod groups;
mod projects;
mod targets;
mod users;

use club_directory::Snapshot;
use common::{semester::YearWithSemester, time::Timestamp};
use diesel::{prelude::*, sql_query};
use import::{Import, report::Report, row::SourceTable};
use service_kit::{
    database::{
        AnyConnection, Database,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use self::targets::{CREATOR, Targets};
use crate::{schema::users as user_rows, sync};

/// The tables of the source.
pub const TABLES: &[SourceTable] = &[
    users::USERS,
    accounts::ACCOUNTS,
    groups::GROUPS,
    groups::MEMBERS,
    events::LEVELS,
    projects::PROJECTS,
    projects::MEMBERS,
    contests::CONTESTS,
    contests::TEAMS,
    contests::TEAM_MEMBERS,
];

/// Imports all tables in one transaction.
///
/// # Errors
/// When the source or the database fails; nothing is written then.
pub async fn run(
    import: Import,
    db: &Database,
    directory: Snapshot,
    present: YearWithSemester,
    now: Timestamp,
) -> Result<Report, Error> {
    let now = DbTimestamp(now);
    let work = move |conn: &mut AnyConnection, import: &mut Import| {
        lock(conn)?;
        create_creator(conn, now)?;
        let targets = Targets { users: users::import_users(conn, import, &directory, now)?, now };
        accounts::import_accounts(conn, import, &targets)?;
        groups::import_groups(conn, import, &targets, &directory)?;
        events::import_levels(conn, import)?;
        projects::import_projects(conn, import, &targets)?;
        contests::import_contests(conn, import)?;
        contests::import_teams(conn, import, &targets)?;
        import.step("reading the club directory");
        sync::apply(conn, &directory, false, present, now)?;
        import.record(conn, now)?;
        // Autovacuum would collect the statistics only some minutes later.
        if let AnyConnection::Postgresql(pg) = conn {
            // Only these tables: another transaction may have locked others.
            sql_query(
                "ANALYZE users, accounts, groups, projects, project_members, contests, contest_teams, imported_rows",
            )
            .execute(pg)?;
        }
        Ok(())
    };
    import.run(db, work).await
}

/// Locks the tables against other writers, who wait, so that no deadlock or conflict ends a transaction. Reads
/// continue.
fn lock(conn: &mut AnyConnection) -> Result<(), Error> {
    if let AnyConnection::Postgresql(pg) = conn {
        sql_query(
            "LOCK TABLE users, accounts, groups, event_levels, projects, contests, contest_teams \
             IN SHARE ROW EXCLUSIVE MODE",
        )
        .execute(pg)?;
    }
    Ok(())
}

fn create_creator(conn: &mut AnyConnection, now: DbTimestamp) -> Result<(), Error> {
    let creator = user_rows::table.find(CREATOR).select(user_rows::id).first::<DbUuid>(conn).optional()?;
    if creator.is_none() {
        users::insert_deactivated(conn, &[(CREATOR, "imported".to_owned())], now)?;
    }
    Ok(())
}
