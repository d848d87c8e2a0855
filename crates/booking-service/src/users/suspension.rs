//! The command line ends the access of a user.

use club_directory::UserState;
use common::problem::Problem;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{Author, By},
};

use super::{
    queries::{no_user_called, record_privilege},
    sync::end_access,
};
use crate::{auth::ACTIVE, invitations, schema::users};

/// Ends sessions, tokens and the feed of the user with this name, for the command line.
///
/// # Errors
/// 404 for an unknown name.
pub fn end_access_of(conn: &mut AnyConnection, name: &str, now: DbTimestamp) -> Result<(), Error> {
    let id: Option<DbUuid> = users::table.filter(users::name.eq(name)).select(users::id).first(conn).optional()?;
    end_access(conn, &[id.ok_or_else(|| no_user_called(name))?], now)
}

/// Suspends the user with this name or ends that, for the command line. Returns whether that was a change.
///
/// # Errors
/// 404 for an unknown name; 403 for somebody whom the directory lists, as it decides.
pub fn set_suspended(conn: &mut AnyConnection, name: &str, suspended: bool, now: DbTimestamp) -> Result<bool, Error> {
    let row = users::table.filter(users::name.eq(name));
    let row: Option<(DbUuid, i16, bool, bool)> =
        row.select((users::id, users::state, users::in_directory, users::privileged)).first(conn).optional()?;
    let (id, state, in_directory, privileged) = row.ok_or_else(|| no_user_called(name))?;
    if in_directory {
        return Err(Problem::forbidden("a user whom the directory does not list").into());
    }
    let wanted = if suspended { UserState::Suspended as i16 } else { ACTIVE };
    if state == wanted {
        return Ok(false);
    }
    diesel::update(users::table.find(id)).set((users::state.eq(wanted), users::updated_at.eq(now))).execute(conn)?;
    if suspended {
        end_access(conn, &[id], now)?;
        invitations::leave(conn, &[id], None, now)?;
        if privileged {
            diesel::update(users::table.find(id)).set(users::privileged.eq(false)).execute(conn)?;
            record_privilege(conn, id, false, &Author::new(By::Command, now))?;
        }
    } else {
        invitations::join(conn, &[id], None, now)?;
    }
    Ok(true)
}
