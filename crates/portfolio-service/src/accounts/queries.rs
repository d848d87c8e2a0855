//! Accounts in the database.

use common::problem::Problem;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, OnUnique},
};

use crate::{account_type::AccountType, codes, schema::accounts, users::queries::Account};

/// An account to be added.
#[derive(Debug, Clone)]
pub struct NewAccount {
    pub type_: AccountType,
    pub url: String,
    pub display_name: String,
}

/// What to change of an account. What is `None` stays.
#[derive(Debug, Clone)]
pub struct Change {
    pub type_: Option<AccountType>,
    pub url: Option<String>,
    pub display_name: Option<String>,
}

const ONE_OF_A_TYPE: &str = "accounts.user_id, accounts.type";

fn second() -> Problem {
    Problem::new(codes::SECOND_ACCOUNT)
}

fn not_found() -> Error {
    Problem::not_found("account of the user").into()
}

/// One account of this user.
///
/// # Errors
/// 404 when there is none, or it is another user's.
pub fn get(conn: &mut AnyConnection, user: DbUuid, id: DbUuid) -> Result<Account, Error> {
    let query = accounts::table.find(id).filter(accounts::user_id.eq(user)).select(Account::as_select());
    query.first(conn).optional()?.ok_or_else(not_found)
}

/// Adds an account to a user.
///
/// # Errors
/// 409 when the user has one of this type.
pub fn add(conn: &mut AnyConnection, user: DbUuid, new: &NewAccount, now: DbTimestamp) -> Result<Account, Error> {
    let id = DbUuid::new();
    let row = (
        accounts::id.eq(id),
        accounts::user_id.eq(user),
        accounts::type_.eq(new.type_.number()),
        accounts::display_name.eq(&new.display_name),
        accounts::url.eq(&new.url),
        accounts::created_at.eq(now),
        accounts::updated_at.eq(now),
    );
    diesel::insert_into(accounts::table).values(row).execute(conn).on_unique(ONE_OF_A_TYPE, second)?;
    Ok(Account { id, display_name: new.display_name.clone(), type_: new.type_.number(), url: new.url.clone() })
}

/// Changes an account of this user.
///
/// # Errors
/// 404 when there is none, or it is another user's; 400 when type and address do not fit afterwards; 409 when the user
/// has another one of the type.
pub fn edit(
    conn: &mut AnyConnection,
    user: DbUuid,
    id: DbUuid,
    change: &Change,
    now: DbTimestamp,
) -> Result<(), Error> {
    let query = accounts::table.find(id).filter(accounts::user_id.eq(user));
    // Held, so that two changes at the same time cannot leave a pair behind that neither of them checked.
    let present = match conn {
        AnyConnection::Postgresql(pg) => query.for_update().select(Account::as_select()).first(pg).optional()?,
        AnyConnection::Sqlite(sqlite) => query.select(Account::as_select()).first(sqlite).optional()?,
    };
    let present: Account = present.ok_or_else(not_found)?;
    let type_ = change.type_.or_else(|| AccountType::from_number(present.type_.into()));
    let type_ = type_.ok_or_else(|| Problem::internal("an account has an unknown type"))?;
    let url = change.url.as_ref().unwrap_or(&present.url);
    if !type_.accepts(url) {
        let at = if change.url.is_some() { "/url" } else { "/type" };
        return Err(Problem::invalid(at, "wrong-address", type_.refusal()).into());
    }
    diesel::update(accounts::table.find(id))
        .set((
            accounts::type_.eq(type_.number()),
            accounts::url.eq(url),
            accounts::display_name.eq(change.display_name.as_ref().unwrap_or(&present.display_name)),
            accounts::updated_at.eq(now),
        ))
        .execute(conn)
        .on_unique(ONE_OF_A_TYPE, second)?;
    Ok(())
}

/// Deletes an account of this user.
///
/// # Errors
/// 404 when there is none, or it is another user's.
pub fn delete(conn: &mut AnyConnection, user: DbUuid, id: DbUuid) -> Result<(), Error> {
    let account = accounts::table.find(id).filter(accounts::user_id.eq(user));
    match diesel::delete(account).execute(conn)? {
        0 => Err(not_found()),
        _ => Ok(()),
    }
}
