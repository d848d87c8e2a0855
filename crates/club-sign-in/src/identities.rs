//! The users of identities, in the database.
//!
//! * After the first sign-in, the provider's stable subject identifies the user; the name there no longer matters.
//! * At the first sign-in, the user is the one with the id of the identity, else the one in the directory with the
//!   verified address, else the one with the name, if the provider's names can be trusted. Otherwise a user is created,
//!   unless only people in the directory may sign in.
//! * A user never changes from one subject of a provider to another. A later owner of the same name has another name
//!   here, or is refused if only people in the directory may sign in. Only the operator can remove the link
//!   ([`unlink`]).

use club_issuer::joining;
use common::{
    problem::{Problem, code},
    time::Timestamp,
};
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
    SignInPolicy, codes,
    schema::{identities, users},
};

diesel::define_sql_function! {
    /// Lower case of ASCII letters, as the index `users_name_lower` has it.
    fn lower(text: diesel::sql_types::Text) -> Text;
}

/// The users of a service, as far as sign-in does not know their tables.
#[derive(Debug)]
pub struct Users {
    /// Inserts the user of an identity, with this id and name; see [`retry_if_exists`].
    pub create: fn(&mut AnyConnection, &Identity, DbUuid, &str, DbTimestamp) -> Result<(), Error>,
    /// Grants or revokes the privilege, as the provider says at a sign-in.
    pub set_privileged: fn(&mut AnyConnection, DbUuid, bool, DbTimestamp) -> Result<(), Error>,
    /// Locks the invitation with this secret, if somebody may join by it.
    pub invitation: fn(&mut AnyConnection, &str, DbTimestamp) -> Result<Option<Invitation>, Error>,
    /// Uses the invitation for this user.
    pub accept: fn(&mut AnyConnection, Invitation, DbUuid, DbTimestamp) -> Result<(), Error>,
}

/// An invitation by which somebody may join.
#[derive(Debug, Clone, Copy)]
pub struct Invitation {
    /// Its id.
    pub id: DbUuid,
    /// Whether it makes privileged.
    pub is_privileged: bool,
}

/// An account at a provider, as the provider describes it.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The provider.
    pub provider: String,
    /// The stable identifier of the account at the provider.
    pub subject: String,
    /// The id of the user: the subject, if it is a UUID, because a traQ server uses the same ids in its directory; else
    /// one that is made of provider and subject.
    pub id: DbUuid,
    /// The sign-in name.
    pub name: String,
    /// Whether it is the name at the provider, and proof of being the user of that name. Otherwise it was made from
    /// something else.
    pub is_given: bool,
    /// The verified e-mail address, in lower case.
    pub address: Option<String>,
    /// Whether a rule makes the person a member.
    pub is_admitted: bool,
    /// Whether an invitation does.
    pub is_invited: bool,
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
    service: &Users,
    now: Timestamp,
) -> Result<DbUuid, Error> {
    let link = identities::table.find((&identity.provider, &identity.subject));
    let link: Option<(DbUuid, bool)> =
        link.select((identities::user_id, identities::invited)).first(conn).optional()?;
    let (linked_user, was_invited) = (link.map(|(user, _)| user), link.is_some_and(|(_, invited)| invited));
    let existing = match linked_user {
        Some(user) => Some(user),
        None => find_user(conn, identity)?,
    };
    let is_admitted = identity.is_admitted || identity.is_invited || was_invited;
    let must_be_listed = policy != SignInPolicy::Anyone && !is_admitted;
    if must_be_listed {
        check_listed(conn, identity, existing, linked_user.is_some())?;
    }
    if let Some(user) = linked_user {
        if identity.is_invited && !was_invited {
            diesel::update(identities::table.find((&identity.provider, &identity.subject)))
                .set(identities::invited.eq(true))
                .execute(conn)?;
        }
        return Ok(user);
    }
    let user = match existing {
        Some(user) => match subject_of(conn, user, &identity.provider)? {
            None => user,
            // A concurrent sign-in of the same identity was faster.
            Some(subject) if subject == identity.subject => return Ok(user),
            Some(_) if must_be_listed => return Err(Problem::new(codes::NAME_TAKEN).into()),
            Some(_) => create_user(conn, identity, Some(user), service, now)?,
        },
        None => create_user(conn, identity, None, service, now)?,
    };
    retry_if_exists(
        diesel::insert_into(identities::table)
            .values((
                identities::provider.eq(&identity.provider),
                identities::subject.eq(&identity.subject),
                identities::user_id.eq(user),
                identities::created_at.eq(DbTimestamp(now)),
                identities::invited.eq(identity.is_invited),
            ))
            .execute(conn),
    )?;
    Ok(user)
}

/// The subject to which a user is linked.
fn subject_of(conn: &mut AnyConnection, user: DbUuid, provider: &str) -> Result<Option<String>, Error> {
    let of_user = identities::table.filter(identities::user_id.eq(user)).filter(identities::provider.eq(provider));
    Ok(of_user.select(identities::subject).first(conn).optional()?)
}

fn check_listed(
    conn: &mut AnyConnection,
    identity: &Identity,
    user: Option<DbUuid>,
    is_linked: bool,
) -> Result<(), Error> {
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
        None if identity.is_given && has_name(conn, &identity.name)? => Err(Problem::new(codes::NAME_TAKEN)
            .detail(format!(
                "The sign-in provider says {:?}, and there is a user whose name differs only in upper or lower case. The \
                 operator of the service can resolve this: the club's directory must have the name as the provider says \
                 it.",
                identity.name
            ))
            .into()),
        _ => Err(problem.into()),
    }
}

/// Whether a user has this name, in upper or lower case: names are unique regardless of it.
fn has_name(conn: &mut AnyConnection, name: &str) -> Result<bool, Error> {
    let of_name = users::table.filter(lower(users::name).eq(name.to_ascii_lowercase())).select(users::id);
    Ok(of_name.first::<DbUuid>(conn).optional()?.is_some())
}

/// Removes the link of a user to an account at a provider, for the command line: the next sign-in of the account finds
/// its user as the first one did. Returns whether there was a link.
///
/// # Errors
/// 404 for an unknown name.
pub fn unlink(conn: &mut AnyConnection, name: &str) -> Result<bool, Error> {
    let user: Option<DbUuid> = users::table.filter(users::name.eq(name)).select(users::id).first(conn).optional()?;
    let user = user.ok_or_else(|| Problem::new(code::NOT_FOUND).detail(format!("There is no user {name:?}.")))?;
    Ok(diesel::delete(identities::table.filter(identities::user_id.eq(user))).execute(conn)? > 0)
}

/// The user with the id of the identity, else the one in the directory with its address, else the one with its name. A
/// name or address whose user has another subject finds nobody.
fn find_user(conn: &mut AnyConnection, identity: &Identity) -> Result<Option<DbUuid>, Error> {
    let of_id: Option<DbUuid> = users::table.find(identity.id).select(users::id).first(conn).optional()?;
    if of_id.is_some() {
        return Ok(of_id);
    }
    if let Some(address) = &identity.address {
        let of_address = users::table.filter(users::email.eq(address)).filter(users::in_directory);
        let of_address: Option<DbUuid> = of_address.select(users::id).first(conn).optional()?;
        if of_address.is_some() {
            return Ok(of_address);
        }
    }
    if !identity.is_given {
        return Ok(None);
    }
    let of_name = users::table.filter(users::name.eq(&identity.name)).select(users::id);
    Ok(of_name.first(conn).optional()?)
}

/// Creates the user of an identity. `namesake` is the user of another subject whom it would be otherwise.
fn create_user(
    conn: &mut AnyConnection,
    identity: &Identity,
    namesake: Option<DbUuid>,
    service: &Users,
    now: Timestamp,
) -> Result<DbUuid, Error> {
    let id = if namesake == Some(identity.id) { DbUuid::new() } else { identity.id };
    let name = free_name(conn, identity)?;
    (service.create)(conn, identity, id, &name, DbTimestamp(now))?;
    Ok(id)
}

/// The name of a new user: that of the identity, or if another user has it, in upper or lower case, one that is made
/// from it.
fn free_name(conn: &mut AnyConnection, identity: &Identity) -> Result<String, Error> {
    let other = joining::other_name(&identity.name, &identity.provider, &identity.subject);
    for name in [&identity.name, &other] {
        if !has_name(conn, name)? {
            return Ok(name.clone());
        }
    }
    Err(Problem::new(codes::NAME_TAKEN).into())
}

/// Makes the transaction run again if a concurrent sign-in of the same identity has inserted the row.
///
/// # Errors
/// [`Error::Stale`] in this case, and any other error of the database.
pub fn retry_if_exists(inserted: Result<usize, DieselError>) -> Result<(), Error> {
    match inserted {
        Err(DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => Err(Error::Stale),
        other => other.map(|_| ()).map_err(Error::from),
    }
}
