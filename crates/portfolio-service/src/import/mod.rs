//! `import`: the database of the system that this service replaces.
//!
//! * `users`: what members say of themselves, and their accounts.
//! * `groups`: their links, and since when who was in them. Names, descriptions and administrators come from the club
//!   directory, by the ordinary sync, which runs last and also says who is in them now.
//! * `events`: their levels. The events come from the booking-service.
//! * `projects`, `contests`: with their members and teams. That system does not know who made them, so that they belong
//!   to a deactivated user: members of a project may edit it, and admins everything.

mod columns;
mod contests;
mod events;
mod groups;
mod projects;
mod targets;
mod users;

use common::{semester::YearWithSemester, time::Timestamp};
use diesel::{prelude::*, sql_query};
use service_kit::{
    database::{
        AnyConnection, Database,
        types::{DbTimestamp, DbUuid},
    },
    directory::Snapshot,
    error::Error,
    import::{Import, report::Report, row::SourceTable},
};

use self::targets::{CREATOR, Targets};
use crate::{schema::users as user_rows, sync};

/// The tables that are read.
pub const TABLES: &[SourceTable] = &[
    users::USERS,
    users::ACCOUNTS,
    groups::GROUPS,
    groups::MEMBERS,
    events::LEVELS,
    projects::PROJECTS,
    projects::MEMBERS,
    contests::CONTESTS,
    contests::TEAMS,
    contests::TEAM_MEMBERS,
];

/// Brings all of it in, in one transaction.
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
        make_creator(conn, now)?;
        let targets = Targets { users: users::bring_in(conn, import, &directory, now)?, now };
        users::bring_accounts_in(conn, import, &targets)?;
        groups::bring_in(conn, import, &targets)?;
        events::bring_in(conn, import)?;
        projects::bring_in(conn, import, &targets)?;
        contests::bring_in(conn, import)?;
        contests::bring_teams_in(conn, import, &targets)?;
        sync::apply(conn, &directory, false, present, now)?;
        // What the server would find out by itself within minutes; plans are bad until then.
        if let AnyConnection::Postgresql(pg) = conn {
            // Not of other tables, which somebody else may have locked.
            sql_query(
                "ANALYZE users, accounts, groups, projects, project_members, contests, contest_teams, imported_rows",
            )
            .execute(pg)?;
        }
        Ok(())
    };
    import.run(db, work).await
}

/// Lets nobody else write meanwhile, so that they wait and none of the two has to be broken off. Others read on.
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

fn make_creator(conn: &mut AnyConnection, now: DbTimestamp) -> Result<(), Error> {
    let here = user_rows::table.find(CREATOR).select(user_rows::id).first::<DbUuid>(conn).optional()?;
    if here.is_none() {
        users::make(conn, &[(CREATOR, "imported".to_owned())], now)?;
    }
    Ok(())
}
