//! Creates, uses and deletes invitations.

use chrono::TimeDelta;
use club_sign_in::identities;
use common::problem::Problem;
use diesel::{OptionalExtension, prelude::*};
use serde_json::json;
use service_kit::{
    credentials::{hash, random_secret},
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{self, Action, Author, By, Changes, Entry},
};

use super::{
    queries::{self, Invitation},
    wire::NewInvitation,
};
use crate::{
    auth::ACTIVE,
    codes,
    objects::INVITATION,
    schema::{invitations, users},
    users::queries::{record_privilege, set_privileged},
};

/// The most invitations by which somebody can still join.
const MAX_INVITATIONS: usize = 100;

/// Creates an invitation, and records that in the history. Returns its secret as well. Those that have ended are deleted.
///
/// # Errors
/// 409 when there are too many.
pub fn create_recorded(
    conn: &mut AnyConnection,
    new: NewInvitation,
    by: &Author,
    now: DbTimestamp,
) -> Result<(Invitation, String), Error> {
    let ended = invitations::expires_at.le(now).or(invitations::used.ge(invitations::uses));
    diesel::delete(invitations::table.filter(ended)).execute(conn)?;
    if queries::list(conn, now)?.len() >= MAX_INVITATIONS {
        return Err(Problem::new(codes::TOO_MANY_INVITATIONS).into());
    }
    let (id, secret) = (DbUuid::new(), random_secret()?);
    diesel::insert_into(invitations::table)
        .values((
            invitations::id.eq(id),
            invitations::secret_hash.eq(hash(&secret)),
            invitations::uses.eq(i32::from(new.uses)),
            invitations::used.eq(0),
            invitations::privileged.eq(new.privileged),
            invitations::created_by.eq(by.actor),
            invitations::created_at.eq(now),
            invitations::expires_at.eq(DbTimestamp(now.0.plus(TimeDelta::days(new.days.into())))),
        ))
        .execute(conn)?;
    let invitation = queries::get(conn, id)?;
    let fields = json!({"uses": new.uses, "days": new.days, "privileged": new.privileged});
    history::created(conn, by, &INVITATION, [(id, fields)])?;
    Ok((invitation, secret))
}

/// The invitation with this secret, if somebody may join by it now. It is locked where it will be used.
pub fn find(
    conn: &mut AnyConnection,
    secret: &str,
    is_locked: bool,
    now: DbTimestamp,
) -> Result<Option<identities::Invitation>, Error> {
    let columns = (invitations::id, invitations::privileged, invitations::created_by);
    let live = invitations::table
        .filter(invitations::secret_hash.eq(hash(secret)))
        .filter(invitations::used.lt(invitations::uses))
        .filter(invitations::expires_at.gt(now))
        .select(columns);
    let row: Option<(DbUuid, bool, Option<DbUuid>)> = match conn {
        AnyConnection::Postgresql(pg) if is_locked => live.for_no_key_update().first(pg).optional()?,
        AnyConnection::Postgresql(pg) => live.first(pg).optional()?,
        // A transaction that writes is the only writer.
        AnyConnection::Sqlite(sqlite) => live.first(sqlite).optional()?,
    };
    let Some((id, is_privileged, maker)) = row else { return Ok(None) };
    if let Some(maker) = maker {
        let rights = users::table.find(maker).select((users::privileged, users::state));
        if rights.first::<(bool, i16)>(conn).optional()? != Some((true, ACTIVE)) {
            return Ok(None);
        }
    }
    Ok(Some(identities::Invitation { id, is_privileged }))
}

/// Uses an invitation, which is locked, for a user.
pub fn accept(
    conn: &mut AnyConnection,
    invitation: identities::Invitation,
    user: DbUuid,
    now: DbTimestamp,
) -> Result<(), Error> {
    let count: i32 = diesel::update(invitations::table.find(invitation.id))
        .set(invitations::used.eq(invitations::used + 1))
        .returning(invitations::used)
        .get_result(conn)?;
    let by = Author { actor: Some(user), ..Author::new(By::Session, now) };
    let changes = Changes::from_iter([("used".to_owned(), json!([count - 1, count]))]);
    history::record(
        conn,
        &by,
        &[Entry { kind: &INVITATION, object: invitation.id, action: Action::Changed, changes }],
    )?;
    if invitation.is_privileged && set_privileged(conn, user, true)? {
        record_privilege(conn, user, true, &by)?;
    }
    Ok(())
}

/// Deletes an invitation.
pub fn delete(conn: &mut AnyConnection, id: DbUuid, by: &Author) -> Result<(), Error> {
    match diesel::delete(invitations::table.find(id)).execute(conn)? {
        0 => Err(Problem::not_found("invitation").into()),
        _ => history::deleted(conn, by, &INVITATION, &[id]),
    }
}
