//! What a sign-in changes of its user.

use club_sign_in::identities::{Identity, Users, retry_if_exists};
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{Author, By},
};

use crate::{
    auth::ACTIVE,
    codes,
    groups::changes::join_everyone,
    join_links,
    schema::users,
    users::queries::{record_privilege, set_privileged},
};

/// The users of this service.
pub const USERS: Users = Users {
    create,
    set_privileged: follow_provider,
    invitation: |conn, secret, now| join_links::find(conn, secret, true, now),
    accept: join_links::accept,
};

/// Creates the user of an identity.
fn create(
    conn: &mut AnyConnection,
    identity: &Identity,
    id: DbUuid,
    name: &str,
    now: DbTimestamp,
) -> Result<(), Error> {
    retry_if_exists(
        diesel::insert_into(users::table)
            .values((
                users::id.eq(id),
                users::name.eq(name),
                users::display_name.eq(&identity.display_name),
                users::icon.eq(""),
                users::state.eq(ACTIVE),
                users::privileged.eq(false),
                users::created_at.eq(now),
                users::updated_at.eq(now),
            ))
            .execute(conn),
    )?;
    join_everyone(conn, id, now)
}

/// Grants or revokes the privilege as the provider says. The last privileged user keeps it.
fn follow_provider(conn: &mut AnyConnection, user: DbUuid, is_privileged: bool, now: DbTimestamp) -> Result<(), Error> {
    match set_privileged(conn, user, is_privileged) {
        Ok(true) => {
            let by = Author { actor: Some(user), ..Author::new(By::Session, now) };
            record_privilege(conn, user, is_privileged, &by)
        }
        Err(Error::Problem(problem)) if problem.code() == codes::LAST_PRIVILEGED => {
            log::warn!(
                "the user {user} stays privileged, as the last one, although the sign-in provider says otherwise"
            );
            Ok(())
        }
        other => other.map(|_| ()),
    }
}
