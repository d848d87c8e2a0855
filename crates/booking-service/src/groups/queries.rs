#![allow(missing_docs, clippy::all, clippy::pedantic, reason = "stub")]
use crate::schema::{group_members, groups};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    db::{AnyConnection, sql::Uid},
    error::Error,
};
pub struct Row {
    pub name: String,
}
pub struct Group {
    pub row: Row,
}
pub fn exists(conn: &mut AnyConnection, id: Uid) -> Result<bool, Error> {
    Ok(groups::table.find(id).select(groups::id).first::<Uid>(conn).optional()?.is_some())
}
pub fn need(conn: &mut AnyConnection, id: Uid) -> Result<(), Error> {
    if exists(conn, id)? { Ok(()) } else { Err(common::problem::Problem::not_found("group").into()) }
}
pub fn is_member(conn: &mut AnyConnection, id: Uid, user: Uid) -> Result<bool, Error> {
    Ok(id == super::EVERYONE
        || group_members::table
            .find((id, user))
            .select(group_members::user_id)
            .first::<Uid>(conn)
            .optional()?
            .is_some())
}
pub fn get_even_deleted(conn: &mut AnyConnection, id: Uid) -> Result<Group, Error> {
    Ok(Group { row: Row { name: groups::table.find(id).select(groups::name).first(conn)? } })
}
