//! Which user somebody is whom a provider vouches for, in the database.
//!
//! * Who has signed in before is known by the provider's stable id; what they are called there does not matter any
//!   more.
//! * Who signs in first is the user with that id, else the one with that name, whom the directory brought; else a user
//!   is made, unless only people of the directory may sign in.
//! * A user belongs to one person of a provider for ever. Whoever comes to have the name later is somebody else.

use common::{problem::Problem, time::Timestamp};
use diesel::{
    OptionalExtension, define_sql_function,
    prelude::*,
    result::{DatabaseErrorKind, Error as DieselError},
    sql_types::Text,
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
    schema::{identities, users},
};

define_sql_function! {
    /// Lower case, as the index `users_name_lower` has it.
    fn lower(text: Text) -> Text;
}

/// Somebody whom a provider vouches for.
#[derive(Debug, Clone)]
pub struct Person {
    /// Which provider.
    pub provider: String,
    /// What tells people apart there, for ever.
    pub subject: String,
    /// The subject as the id of a user, where it can be one: that of a traQ server is, also in its directory.
    pub id: Option<DbUuid>,
    /// Sign-in name.
    pub name: String,
    /// The name that is shown.
    pub display_name: String,
}

/// The user that a person is, made if need be.
///
/// # Errors
/// 403 `not-a-member` when the policy asks for the directory and it does not list the user; 403 `name-taken` when the
/// user with this name is another person.
pub fn user_of(
    conn: &mut AnyConnection,
    person: &Person,
    policy: SignInPolicy,
    now: Timestamp,
) -> Result<DbUuid, Error> {
    let linked_user = identities::table.find((&person.provider, &person.subject)).select(identities::user_id);
    let linked_user: Option<DbUuid> = linked_user.first(conn).optional()?;
    let present = match linked_user {
        Some(user) => Some(user),
        None => present(conn, person)?,
    };
    if policy == SignInPolicy::Directory {
        check_listed(conn, present)?;
    }
    if let Some(user) = linked_user {
        return Ok(user);
    }
    let user = match present {
        Some(user) => user,
        None => make(conn, person, now)?,
    };
    let linked = identities::table
        .filter(identities::user_id.eq(user))
        .filter(identities::provider.eq(&person.provider))
        .select(identities::subject);
    match linked.first::<String>(conn).optional()? {
        // A concurrent sign-in of the same person was faster.
        Some(subject) if subject == person.subject => return Ok(user),
        Some(_) => return Err(Problem::new(codes::NAME_TAKEN).into()),
        None => {}
    }
    once(
        diesel::insert_into(identities::table)
            .values((
                identities::provider.eq(&person.provider),
                identities::subject.eq(&person.subject),
                identities::user_id.eq(user),
                identities::created_at.eq(DbTimestamp(now)),
            ))
            .execute(conn),
    )?;
    Ok(user)
}

fn check_listed(conn: &mut AnyConnection, user: Option<DbUuid>) -> Result<(), Error> {
    let listed = match user {
        Some(user) => users::table.find(user).select(users::in_directory).first(conn).optional()?,
        None => None,
    };
    if listed == Some(true) { Ok(()) } else { Err(Problem::new(codes::NOT_A_MEMBER).into()) }
}

/// The user with the person's id, else with their name.
fn present(conn: &mut AnyConnection, person: &Person) -> Result<Option<DbUuid>, Error> {
    if let Some(id) = person.id {
        let found = users::table.find(id).select(users::id).first(conn).optional()?;
        if found.is_some() {
            return Ok(found);
        }
    }
    let of_name: Vec<(DbUuid, String)> = users::table
        .filter(lower(users::name).eq(person.name.to_ascii_lowercase()))
        .select((users::id, users::name))
        .load(conn)?;
    match of_name.iter().find(|(_, name)| *name == person.name) {
        Some((id, _)) => Ok(Some(*id)),
        // Names are unique regardless of case.
        None if !of_name.is_empty() => Err(Problem::new(codes::NAME_TAKEN).into()),
        None => Ok(None),
    }
}

fn make(conn: &mut AnyConnection, person: &Person, now: Timestamp) -> Result<DbUuid, Error> {
    // The default is a new one.
    let id = person.id.unwrap_or_default();
    once(
        diesel::insert_into(users::table)
            .values((
                users::id.eq(id),
                users::name.eq(&person.name),
                users::display_name.eq(&person.display_name),
                users::icon.eq(""),
                users::state.eq(ACTIVE),
                users::privileged.eq(false),
                users::created_at.eq(DbTimestamp(now)),
                users::updated_at.eq(DbTimestamp(now)),
            ))
            .execute(conn),
    )?;
    Ok(id)
}

/// Makes the transaction run again if a concurrent sign-in of the same person has inserted the row.
fn once(inserted: Result<usize, DieselError>) -> Result<(), Error> {
    match inserted {
        Err(DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => Err(Error::Stale),
        other => other.map(|_| ()).map_err(Error::from),
    }
}
