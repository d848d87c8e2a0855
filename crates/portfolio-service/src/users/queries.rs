//! Users in the database.

use diesel::prelude::*;
use service_kit::{
    db::{AnyConnection, sql::Uid},
    error::Error,
};

use crate::{auth::ACTIVE, schema::users};

/// A user as everybody may see them.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = users)]
pub struct Person {
    /// Who.
    pub id: Uid,
    /// The sign-in name.
    pub name: String,
    real_name: String,
    publishes_real_name: bool,
}

impl Person {
    /// The name in real life if its owner publishes it, else empty.
    #[must_use]
    pub fn into_real_name(self) -> String {
        if self.publishes_real_name { self.real_name } else { String::new() }
    }
}

/// Which users to list.
#[derive(Debug, Clone)]
pub enum Selection {
    /// The active ones.
    Active,
    /// All.
    All,
    /// The one of this sign-in name, in any state.
    Named(String),
}

/// The selected users by name.
///
/// # Errors
/// When the database fails.
pub fn list(conn: &mut AnyConnection, selection: &Selection, limit: i64) -> Result<Vec<Person>, Error> {
    let query = users::table.select(Person::as_select()).order((users::name, users::id)).limit(limit).into_boxed();
    let query = match selection {
        Selection::Active => query.filter(users::state.eq(ACTIVE)),
        Selection::All => query,
        Selection::Named(name) => query.filter(users::name.eq(name)),
    };
    Ok(query.load(conn)?)
}
