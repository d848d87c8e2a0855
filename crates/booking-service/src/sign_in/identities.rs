//! The users of identities, in the database.
//!
//! * After the first sign-in, the provider's stable subject identifies the user; the name there no longer matters.
//! * At the first sign-in, the user is the one with the subject as id, else the one with the name; otherwise a user is
//!   created, unless only people in the directory may sign in.
//! * A user never changes from one subject of a provider to another. A later owner of the same name is refused. Only
//!   the operator can remove the link ([`unlink`]).

use common::{problem::Problem, time::Timestamp};
use diesel::{
    OptionalExtension,
    prelude::*,
    result::{DatabaseErrorKind, Error as DieselError},
};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use crate::{
    auth::ACTIVE,
    codes,
    config::SignInPolicy,
    expressions::lower,
    groups::changes::join_everyone,
    schema::{identities, users},
    users::queries::no_user_called,
};

/// An account at a provider, as the provider describes it.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The provider.
    pub provider: String,
    /// The stable identifier of the account at the provider.
    pub subject: String,
    /// The subject as the id of a user, if it is a UUID. A traQ server uses the same ids in its directory.
    pub id: Option<DbUuid>,
    /// The sign-in name.
    pub name: String,
    /// The name to show.
    pub display_name: String,
    /// Whether the user is privileged, if the provider decides (`--privileged-claim`).
    pub is_privileged: Option<bool>,
}

/// The user of an identity, created if necessary.
///
/// # Errors
/// 403 `not-a-member` when the policy requires the directory and it does not list the user; 403 `name-taken` when the
/// user with this name belongs to another subject.
pub fn user_of(
    conn: &mut AnyConnection,
    identity: &Identity,
    policy: SignInPolicy,
    now: Timestamp,
) -> Result<DbUuid, Error> {
    let linked_user = identities::table.find((&identity.provider, &identity.subject)).select(identities::user_id);
    let linked_user: Option<DbUuid> = linked_user.first(conn).optional()?;
    let existing = match linked_user {
        Some(user) => Some(user),
        None => find_user(conn, identity)?,
    };
    if policy == SignInPolicy::Directory {
        check_listed(conn, existing, linked_user.is_some())?;
    }
    if let Some(user) = linked_user {
        return Ok(user);
    }
    let user = match existing {
        Some(user) => user,
        None => create_user(conn, identity, now)?,
    };
    let linked_subject = identities::table
        .filter(identities::user_id.eq(user))
        .filter(identities::provider.eq(&identity.provider))
        .select(identities::subject);
    match linked_subject.first::<String>(conn).optional()? {
        // A concurrent sign-in of the same identity was faster.
        Some(subject) if subject == identity.subject => return Ok(user),
        Some(_) => return Err(Problem::new(codes::NAME_TAKEN).into()),
        None => {}
    }
    retry_if_exists(
        diesel::insert_into(identities::table)
            .values((
                identities::provider.eq(&identity.provider),
                identities::subject.eq(&identity.subject),
                identities::user_id.eq(user),
                identities::created_at.eq(DbTimestamp(now)),
            ))
            .execute(conn),
    )?;
    Ok(user)
}

fn check_listed(conn: &mut AnyConnection, user: Option<DbUuid>, is_linked: bool) -> Result<(), Error> {
    let row: Option<(String, bool)> = match user {
        Some(user) => users::table.find(user).select((users::name, users::in_directory)).first(conn).optional()?,
        None => None,
    };
    let problem = Problem::new(codes::NOT_A_MEMBER);
    match row {
        Some((_, true)) => Ok(()),
        Some((name, false)) if is_linked => Err(problem
            .detail(format!(
                "The account belongs to the user {name}, whom the club's directory does not list. If you \
                 are a member, ask the operator of the service to add that user to the directory, or to unlink the \
                 account from it (`user unlink`)."
            ))
            .into()),
        _ => Err(problem.into()),
    }
}

/// Removes the link of a user to an account at a provider, for the command line: the next sign-in of the account finds
/// its user as the first one did. Returns whether there was a link.
///
/// # Errors
/// 404 for an unknown name.
pub fn unlink(conn: &mut AnyConnection, name: &str) -> Result<bool, Error> {
    let user: Option<DbUuid> = users::table.filter(users::name.eq(name)).select(users::id).first(conn).optional()?;
    let user = user.ok_or_else(|| no_user_called(name))?;
    Ok(diesel::delete(identities::table.filter(identities::user_id.eq(user))).execute(conn)? > 0)
}

/// The user with the id of the identity, else with its name.
fn find_user(conn: &mut AnyConnection, identity: &Identity) -> Result<Option<DbUuid>, Error> {
    if let Some(id) = identity.id {
        let user = users::table.find(id).select(users::id).first(conn).optional()?;
        if user.is_some() {
            return Ok(user);
        }
    }
    let of_name: Vec<(DbUuid, String)> = users::table
        .filter(lower(users::name).eq(identity.name.to_ascii_lowercase()))
        .select((users::id, users::name))
        .load(conn)?;
    match of_name.iter().find(|(_, name)| *name == identity.name) {
        Some((id, _)) => Ok(Some(*id)),
        // Names are unique regardless of case.
        None if !of_name.is_empty() => Err(Problem::new(codes::NAME_TAKEN)
            .detail(format!(
                "The sign-in provider says {:?}, and there is a user whose name differs only in upper or lower case. The \
                 operator of the service can resolve this: the club's directory must have the name as the provider says \
                 it.",
                identity.name
            ))
            .into()),
        None => Ok(None),
    }
}

fn create_user(conn: &mut AnyConnection, identity: &Identity, now: Timestamp) -> Result<DbUuid, Error> {
    // The default is a new id.
    let id = identity.id.unwrap_or_default();
    retry_if_exists(
        diesel::insert_into(users::table)
            .values((
                users::id.eq(id),
                users::name.eq(&identity.name),
                users::display_name.eq(&identity.display_name),
                users::icon.eq(""),
                users::state.eq(ACTIVE),
                users::privileged.eq(false),
                users::created_at.eq(DbTimestamp(now)),
                users::updated_at.eq(DbTimestamp(now)),
            ))
            .execute(conn),
    )?;
    join_everyone(conn, id, DbTimestamp(now))?;
    Ok(id)
}

/// Makes the transaction run again if a concurrent sign-in of the same identity has inserted the row.
fn retry_if_exists(inserted: Result<usize, DieselError>) -> Result<(), Error> {
    match inserted {
        Err(DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => Err(Error::Stale),
        other => other.map(|_| ()).map_err(Error::from),
    }
}
