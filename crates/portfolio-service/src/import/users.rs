//! Imports the profiles of members and their accounts on other sites.

use std::collections::{HashMap, HashSet};

use club_directory::Snapshot;
use diesel::prelude::*;
use import::{
    CHUNK, Import,
    merge::Imported,
    pages::existing_user,
    row::{Fault, SourceRow, SourceTable},
};
use serde::Serialize;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use super::targets::Targets;
use crate::{
    account_type::AccountType,
    identity::is_sign_in_name,
    schema::{accounts, users},
};

pub const USERS: SourceTable = SourceTable { name: "users", columns: &["id", "name", "description", "check"] };
pub const ACCOUNTS: SourceTable = SourceTable { name: "accounts", columns: &["id", "type", "name", "url", "user_id"] };

/// The heading of the users whom the directory does not have, in the report.
const UNKNOWN: &str = "users whom the directory does not know; new ones are deactivated";

#[derive(Serialize)]
struct Profile {
    bio: String,
    publishes_real_name: bool,
}

impl Imported for Profile {
    const KIND: &'static str = USERS.name;

    fn is_blank(&self) -> bool {
        self.bio.is_empty() && !self.publishes_real_name
    }
}

/// Adds the missing users, imports the profiles of all users of the source, and returns the ids of all users of this
/// service. The sync, which runs later, updates names and states from the directory.
pub fn import_users(
    conn: &mut AnyConnection,
    import: &mut Import,
    directory: &Snapshot,
    now: DbTimestamp,
) -> Result<HashSet<DbUuid>, Error> {
    let directory_ids: HashSet<_> = directory.users.iter().map(|user| DbUuid(user.id)).collect();
    import.each_page(conn, &USERS, "id", |conn, import, page| {
        let ids: Vec<_> = page.iter().map(|(id, _)| *id).collect();
        let existing: Vec<DbUuid> = users::table.filter(users::id.eq_any(&ids)).select(users::id).load(conn)?;
        let existing: HashSet<_> = existing.into_iter().collect();
        let (mut new, mut incoming) = (Vec::new(), Vec::new());
        for (id, row) in page {
            if !existing.contains(&id) {
                new.push((id, row.text("name").unwrap_or_default()));
            }
            if !directory_ids.contains(&id) {
                import.report.note(UNKNOWN, || id.to_string());
            }
            match read(&row) {
                Ok(profile) => {
                    import.report.check_limits(USERS.name, id, &[("description", &profile.bio, 0..=256)]);
                    incoming.push((id, profile));
                }
                Err(fault) => import.report.left_out(USERS.name, &id.to_string(), &fault),
            }
        }
        insert_deactivated(conn, &new, now)?;
        let profiles = users::table.filter(users::id.eq_any(&ids));
        let profiles: Vec<(DbUuid, String, bool)> =
            profiles.select((users::id, users::bio, users::publishes_real_name)).load(conn)?;
        let present =
            profiles.into_iter().map(|(id, bio, publishes_real_name)| (id, Profile { bio, publishes_real_name }));
        let changes = import.merge(conn, incoming, &present.collect())?;
        for (id, profile) in changes.added.iter().filter(|(_, profile)| !profile.is_blank()).chain(&changes.updated) {
            diesel::update(users::table.find(*id))
                .set((users::bio.eq(&profile.bio), users::publishes_real_name.eq(profile.publishes_real_name)))
                .execute(conn)?;
        }
        Ok(())
    })?;
    Ok(users::table.select(users::id).load(conn)?.into_iter().collect())
}

fn read(row: &SourceRow) -> Result<Profile, Fault> {
    Ok(Profile { bio: row.text("description")?, publishes_real_name: row.flag("check")? })
}

/// Inserts deactivated users with these ids and names. A user whose name is taken or is not a sign-in name is named by
/// the first eight digits of the id, or by all digits if those are taken as well.
pub fn insert_deactivated(conn: &mut AnyConnection, new: &[(DbUuid, String)], now: DbTimestamp) -> Result<(), Error> {
    let candidates = |id: &DbUuid, name: &str| {
        let digits = id.0.simple().to_string();
        [name.to_owned(), digits[..8].to_owned(), digits]
    };
    let names: Vec<_> = new.iter().flat_map(|(id, name)| candidates(id, name)).collect();
    let mut taken_names = HashSet::new();
    for names in names.chunks(CHUNK) {
        taken_names.extend(users::table.filter(users::name.eq_any(names)).select(users::name).load::<String>(conn)?);
    }
    let rows: Vec<_> = new
        .iter()
        .map(|(id, name)| {
            let mut names = candidates(id, name).into_iter();
            let name = names.find(|name| is_sign_in_name(name) && taken_names.insert(name.clone()));
            (
                (users::id.eq(*id), users::name.eq(name.unwrap_or_default()), users::real_name.eq("")),
                (users::state.eq(0), users::created_at.eq(now), users::updated_at.eq(now)),
            )
        })
        .collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(users::table).values(rows).execute(c))?;
    }
    Ok(())
}

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

/// Imports the accounts: of each user, the first account of each type.
pub fn import_accounts(conn: &mut AnyConnection, import: &mut Import, targets: &Targets) -> Result<(), Error> {
    import.each_page(conn, &ACCOUNTS, "id", |conn, import, page| {
        let ids: Vec<_> = page.iter().map(|(id, _)| *id).collect();
        let owners: Vec<_> = page.iter().filter_map(|(_, row)| row.id("user_id").ok()).collect();
        let ids_by_type = accounts::table.filter(accounts::user_id.eq_any(&owners));
        let ids_by_type: Vec<(DbUuid, i16, DbUuid)> =
            ids_by_type.select((accounts::user_id, accounts::type_, accounts::id)).load(conn)?;
        let mut ids_by_type: HashMap<_, _> =
            ids_by_type.into_iter().map(|(user, number, id)| ((user, number), id)).collect();
        let mut incoming = Vec::new();
        for (id, row) in page {
            let account = read_account(&row, targets).and_then(|account| {
                let first = *ids_by_type.entry((account.user, account.number)).or_insert(id);
                if first == id { Ok(account) } else { Err(format!("{first} is an account of the same type")) }
            });
            match account {
                Ok(account) => {
                    import.report.check_limits(ACCOUNTS.name, id, &[("name", &account.display_name, 1..=256)]);
                    incoming.push((id, account));
                }
                Err(fault) => import.report.left_out(ACCOUNTS.name, &id.to_string(), &fault),
            }
        }
        let present = load_accounts(conn, &ids)?;
        let changes = import.merge(conn, incoming, &present)?;
        for (id, account) in &changes.updated {
            diesel::update(accounts::table.find(*id))
                .set((
                    (accounts::user_id.eq(account.user), accounts::type_.eq(account.number)),
                    (accounts::display_name.eq(&account.display_name), accounts::url.eq(&account.url)),
                    accounts::updated_at.eq(targets.now),
                ))
                .execute(conn)?;
        }
        let rows: Vec<_> = changes
            .added
            .iter()
            .map(|(id, account)| {
                (
                    (accounts::id.eq(*id), accounts::user_id.eq(account.user), accounts::type_.eq(account.number)),
                    (accounts::display_name.eq(&account.display_name), accounts::url.eq(&account.url)),
                    (accounts::created_at.eq(targets.now), accounts::updated_at.eq(targets.now)),
                )
            })
            .collect();
        with_connection!(conn, c => diesel::insert_into(accounts::table).values(&rows).execute(c))?;
        Ok(())
    })?;
    for ids in import.removed_from_source::<Account>(conn, load_accounts)?.chunks(CHUNK) {
        diesel::delete(accounts::table.filter(accounts::id.eq_any(ids))).execute(conn)?;
    }
    Ok(())
}

fn read_account(row: &SourceRow, targets: &Targets) -> Result<Account, Fault> {
    let user = existing_user(row, "user_id", &targets.users)?;
    let (number, url) = (row.number("type")?, row.text("url")?);
    let kind = AccountType::from_number(number).ok_or_else(|| format!("type {number} is no type of account"))?;
    kind.check(&url).map_err(|message| format!("url {message}"))?;
    Ok(Account { user, number: kind.number(), display_name: row.text("name")?, url })
}

fn load_accounts(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<HashMap<DbUuid, Account>, Error> {
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
