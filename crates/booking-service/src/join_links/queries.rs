//! Reads invitations.

use common::problem::Problem;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use crate::schema::invitations;

/// An invitation as listed.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = invitations)]
pub struct Invitation {
    pub id: DbUuid,
    pub uses: i32,
    pub used: i32,
    pub privileged: bool,
    pub created_by: Option<DbUuid>,
    pub created_at: DbTimestamp,
    pub expires_at: DbTimestamp,
}

/// The invitations by which somebody can still join, the newest first.
pub fn list(conn: &mut AnyConnection, now: DbTimestamp) -> Result<Vec<Invitation>, Error> {
    let live = invitations::table.filter(invitations::expires_at.gt(now));
    let live = live.filter(invitations::used.lt(invitations::uses));
    let live = live.order((invitations::created_at.desc(), invitations::id));
    Ok(live.select(Invitation::as_select()).load(conn)?)
}

/// One invitation.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<Invitation, Error> {
    let invitation = invitations::table.find(id).select(Invitation::as_select()).first(conn).optional()?;
    invitation.ok_or_else(|| Problem::not_found("invitation").into())
}
