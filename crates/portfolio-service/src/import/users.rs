//! Imports the profiles of members.

use std::collections::{HashMap, HashSet};

use club_directory::Snapshot;
use diesel::prelude::*;
use import::{CHUNK, Import, merge::Imported, row::SourceTable};
use serde::Serialize;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use crate::{identity::is_sign_in_name, schema::users};

pub const USERS: SourceTable = SourceTable::new("users", &["id", "name", "description", "check"]);

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
        let (mut new, mut incoming, mut rows) = (Vec::new(), Vec::new(), HashMap::new());
        for (id, row) in page {
            if !existing.contains(&id) {
                new.push((id, row.text("name").0));
            }
            if !directory_ids.contains(&id) {
                import.report.note(UNKNOWN, || id.to_string());
            }
            let mut columns = import.columns(&row);
            let profile = Profile { bio: columns.text("description"), publishes_real_name: columns.flag("check") };
            import.report.check_limits(USERS.name, id, &[("description", &profile.bio, 0..=256)]);
            incoming.push((id, profile));
            rows.insert(id, row);
        }
        for (id, name) in insert_deactivated(conn, &new, now)? {
            if let Some(row) = rows.get(&id).filter(|row| row.text("name").0 != name) {
                import.report.changed(row, "name", format_args!("{name:?}"));
            }
        }
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

/// Inserts deactivated users with these ids and names. A user whose name is taken or is not a sign-in name is named by
/// the first eight digits of the id, or by all digits if those are taken as well. Returns the names.
pub fn insert_deactivated(
    conn: &mut AnyConnection,
    new: &[(DbUuid, String)],
    now: DbTimestamp,
) -> Result<Vec<(DbUuid, String)>, Error> {
    let candidates = |id: &DbUuid, name: &str| {
        let digits = id.0.simple().to_string();
        [name.to_owned(), digits[..8].to_owned(), digits]
    };
    let names: Vec<_> = new.iter().flat_map(|(id, name)| candidates(id, name)).collect();
    let mut taken_names = HashSet::new();
    for names in names.chunks(CHUNK) {
        taken_names.extend(users::table.filter(users::name.eq_any(names)).select(users::name).load::<String>(conn)?);
    }
    let chosen: Vec<_> = new
        .iter()
        .map(|(id, name)| {
            let mut names = candidates(id, name).into_iter();
            let name = names.find(|name| is_sign_in_name(name) && taken_names.insert(name.clone()));
            (*id, name.unwrap_or_default())
        })
        .collect();
    let rows: Vec<_> = chosen
        .iter()
        .map(|(id, name)| {
            (
                (users::id.eq(*id), users::name.eq(name), users::real_name.eq("")),
                (users::state.eq(0), users::created_at.eq(now), users::updated_at.eq(now)),
            )
        })
        .collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(users::table).values(rows).execute(c))?;
    }
    Ok(chosen)
}
