//! Imports the accounts of members on other sites.

use std::collections::{HashMap, HashSet};

use diesel::prelude::*;
use import::{
    CHUNK, Import,
    merge::Imported,
    row::{Fault, SourceRow, SourceTable},
};
use serde::Serialize;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    with_connection,
};

use super::{columns::link, targets::Targets};
use crate::{account_type::AccountType, schema::accounts};

pub const ACCOUNTS: SourceTable = SourceTable::new("accounts", &["id", "type", "name", "url", "user_id"]);

/// The heading of the addresses that their type does not accept.
const OTHER_ADDRESS: &str = "accounts with an address that their type does not accept, imported as they are";

/// The heading of the second and later accounts of a type.
const SEVERAL: &str = "further accounts of the same user and type, imported as they are";

#[derive(Serialize)]
struct Account {
    user: DbUuid,
    number: i16,
    display_name: String,
    url: String,
}

impl Imported for Account {
    const KIND: &'static str = ACCOUNTS.name;
}

/// Imports the accounts.
pub fn import_accounts(conn: &mut AnyConnection, import: &mut Import, targets: &Targets) -> Result<(), Error> {
    macro_rules! columns {
        ($account:expr) => {
            (
                (accounts::user_id.eq($account.user), accounts::type_.eq($account.number)),
                (accounts::display_name.eq(&$account.display_name), accounts::url.eq(&$account.url)),
            )
        };
    }
    let now = targets.now;
    import.each_page(conn, &ACCOUNTS, "id", |conn, import, page| {
        let ids: Vec<_> = page.iter().map(|(id, _)| *id).collect();
        let mut incoming = Vec::new();
        for (id, row) in page {
            match read(import, &row, targets) {
                Ok(account) => {
                    import.report.check_limits(ACCOUNTS.name, id, &[("name", &account.display_name, 1..=256)]);
                    incoming.push((id, account));
                }
                Err(fault) => import.report.left_out(ACCOUNTS.name, &row.label(), &fault),
            }
        }
        let present = load(conn, &ids)?;
        let changes = import.merge(conn, incoming, &present)?;
        let mut firsts = firsts(conn, changes.added.iter().chain(&changes.updated))?;
        let mut is_further = |id: DbUuid, account: &Account| {
            let first = *firsts.entry((account.user, account.number)).or_insert(id);
            if first != id {
                import.report.note(SEVERAL, || format!("{id}, besides {first}"));
            }
            first != id
        };
        for (id, account) in &changes.updated {
            diesel::update(accounts::table.find(*id))
                .set((columns!(account), accounts::further.eq(is_further(*id, account)), accounts::updated_at.eq(now)))
                .execute(conn)?;
        }
        let rows: Vec<_> = changes
            .added
            .iter()
            .map(|(id, account)| {
                let further = accounts::further.eq(is_further(*id, account));
                let times = (accounts::created_at.eq(now), accounts::updated_at.eq(now));
                (accounts::id.eq(*id), columns!(account), further, times)
            })
            .collect();
        with_connection!(conn, c => diesel::insert_into(accounts::table).values(&rows).execute(c))?;
        Ok(())
    })?;
    for ids in import.removed_from_source::<Account>(conn, load)?.chunks(CHUNK) {
        diesel::delete(accounts::table.filter(accounts::id.eq_any(ids))).execute(conn)?;
    }
    Ok(())
}

/// The first account of each user and type, for the users of these accounts.
fn firsts<'a>(
    conn: &mut AnyConnection,
    accounts: impl Iterator<Item = &'a (DbUuid, Account)>,
) -> Result<HashMap<(DbUuid, i16), DbUuid>, Error> {
    let users: HashSet<_> = accounts.map(|(_, account)| account.user).collect();
    let firsts = accounts::table.filter(accounts::user_id.eq_any(users)).filter(accounts::further.eq(false));
    let firsts = firsts.select((accounts::user_id, accounts::type_, accounts::id));
    Ok(firsts.load::<(DbUuid, i16, DbUuid)>(conn)?.into_iter().map(|(user, number, id)| ((user, number), id)).collect())
}

fn read(import: &mut Import, row: &SourceRow, targets: &Targets) -> Result<Account, Fault> {
    let mut columns = import.columns(row);
    let user = columns.member(&targets.users)?;
    let kind = columns.row.number("type").and_then(AccountType::from_number).unwrap_or_else(|| {
        columns.changed("type", &AccountType::HOMEPAGE.number().to_string());
        AccountType::HOMEPAGE
    });
    let (display_name, url) = (columns.text("name"), link(&mut columns, "url"));
    if !url.is_empty() && !kind.accepts(&url) {
        import.report.note(OTHER_ADDRESS, || format!("{}: {} {url}", row.label(), kind.name()));
    }
    Ok(Account { user, number: kind.number(), display_name, url })
}

fn load(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<HashMap<DbUuid, Account>, Error> {
    let rows = accounts::table.filter(accounts::id.eq_any(ids)).select((
        accounts::id,
        accounts::user_id,
        accounts::type_,
        accounts::display_name,
        accounts::url,
    ));
    let account = |(id, user, number, display_name, url)| (id, Account { user, number, display_name, url });
    Ok(rows.load::<(DbUuid, DbUuid, i16, String, String)>(conn)?.into_iter().map(account).collect())
}
