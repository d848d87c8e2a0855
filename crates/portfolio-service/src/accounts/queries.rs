//! Accounts in the database.

use common::problem::{Problem, Rule};
use diesel::{OptionalExtension, dsl::exists, prelude::*, select};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, OnUnique},
};

use crate::{account_type::AccountType, codes, schema::accounts, users::queries::Account};

/// A new account.
#[derive(Debug, Clone)]
pub struct NewAccount {
    pub type_: AccountType,
    pub url: String,
    pub display_name: String,
}

/// Changes of an account. A field that is `None` stays.
#[derive(Debug, Clone)]
pub struct Change {
    pub type_: Option<AccountType>,
    pub url: Option<String>,
    pub display_name: Option<String>,
}

/// The columns of the constraint that a user has at most one account of each type.
const UNIQUE_TYPE: &str = "accounts.user_id, accounts.type";

fn second_account() -> Problem {
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
/// 409 when the user has an account of this type.
pub fn add(conn: &mut AnyConnection, user: DbUuid, new: &NewAccount, now: DbTimestamp) -> Result<Account, Error> {
    refuse_second(conn, user, new.type_)?;
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
    diesel::insert_into(accounts::table).values(row).execute(conn).on_unique(UNIQUE_TYPE, second_account)?;
    Ok(Account { id, display_name: new.display_name.clone(), type_: new.type_.number(), url: new.url.clone() })
}

/// Refuses an account of a type of which the user has one. The unique constraint does not count the accounts that an
/// import added besides the first of their type.
fn refuse_second(conn: &mut AnyConnection, user: DbUuid, type_: AccountType) -> Result<(), Error> {
    let of_type = accounts::table.filter(accounts::user_id.eq(user)).filter(accounts::type_.eq(type_.number()));
    if select(exists(of_type)).get_result(conn)? { Err(second_account().into()) } else { Ok(()) }
}

/// Changes an account of this user. Type and address are checked if either changes: an import keeps what today's rules
/// refuse.
///
/// # Errors
/// 404 when there is none, or it is another user's; 400 when the new type or address does not fit the other; 409 when
/// the user has another account of a new type.
pub fn edit(
    conn: &mut AnyConnection,
    user: DbUuid,
    id: DbUuid,
    change: &Change,
    now: DbTimestamp,
) -> Result<(), Error> {
    let query = accounts::table.find(id).filter(accounts::user_id.eq(user));
    // The lock keeps concurrent changes of type and address from leaving a pair that neither of them has checked.
    let present = match conn {
        AnyConnection::Postgresql(pg) => query.for_update().select(Account::as_select()).first(pg).optional()?,
        AnyConnection::Sqlite(sqlite) => query.select(Account::as_select()).first(sqlite).optional()?,
    };
    let present: Account = present.ok_or_else(not_found)?;
    let type_ = change.type_.or_else(|| AccountType::from_number(present.type_.into()));
    let type_ = type_.ok_or_else(|| Problem::internal("an account has an unknown type"))?;
    let url = change.url.as_ref().unwrap_or(&present.url);
    let is_other_type = type_.number() != present.type_;
    if is_other_type || *url != present.url {
        type_.check(url).map_err(|message| {
            let pointer = if change.url.is_some() { "/url" } else { "/type" };
            Problem::invalid(pointer, Rule::WrongAddress, message)
        })?;
    }
    if is_other_type {
        refuse_second(conn, user, type_)?;
    }
    let display_name = change.display_name.as_ref().unwrap_or(&present.display_name);
    if (type_.number(), url, display_name) == (present.type_, &present.url, &present.display_name) {
        return Ok(());
    }
    diesel::update(accounts::table.find(id))
        .set((
            // Of another type it must be the first.
            accounts::further.eq(accounts::further.and(accounts::type_.eq(type_.number()))),
            accounts::type_.eq(type_.number()),
            accounts::url.eq(url),
            accounts::display_name.eq(display_name),
            accounts::updated_at.eq(now),
        ))
        .execute(conn)
        .on_unique(UNIQUE_TYPE, second_account)?;
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
