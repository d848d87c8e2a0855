//! The data of users that the directory does not have: privileges and feed addresses.

use std::collections::{HashMap, HashSet};

use club_directory::Snapshot;
use diesel::prelude::*;
use import::{
    CHUNK, Import,
    merge::Imported,
    row::{SourceRow, SourceTable},
};
use serde::Serialize;
use service_kit::{
    credentials,
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use crate::{auth::ACTIVE, schema::users};

pub const USERS: SourceTable = SourceTable::new("users", &["id", "privilege", "ical_secret"]);

const UNKNOWN: &str = "users whom the directory does not know; new ones are deactivated";

#[derive(Serialize)]
struct Privilege(bool);

impl Imported for Privilege {
    const KIND: &'static str = "users";

    fn is_blank(&self) -> bool {
        !self.0
    }
}

/// The hash of a feed's address.
#[derive(Serialize)]
struct FeedAddress(Option<Vec<u8>>);

impl Imported for FeedAddress {
    const KIND: &'static str = "feed addresses";

    fn is_blank(&self) -> bool {
        self.0.is_none()
    }
}

/// Creates the users of the source that do not exist, imports the privileges and feed addresses of all, and returns the
/// ids of all users in this database.
pub fn import_users(
    conn: &mut AnyConnection,
    import: &mut Import,
    directory: &Snapshot,
    now: DbTimestamp,
) -> Result<HashSet<DbUuid>, Error> {
    let directory_ids: HashSet<_> = directory.users.iter().map(|user| DbUuid(user.id)).collect();
    import.each_page(conn, &USERS, "id", |conn, import, page| {
        let ids: Vec<_> = page.iter().map(|(id, _)| *id).collect();
        for id in ids.iter().filter(|id| !directory_ids.contains(id)) {
            import.report.note(UNKNOWN, || id.to_string());
        }
        create_missing(conn, &ids, now)?;
        let existing = users::table.filter(users::id.eq_any(&ids)).select((
            users::id,
            users::state,
            users::privileged,
            users::imported_feed_hash,
        ));
        let existing: Vec<(DbUuid, i16, bool, Option<Vec<u8>>)> = existing.load(conn)?;
        let active: HashSet<_> =
            existing.iter().filter(|(_, state, ..)| *state == ACTIVE).map(|(id, ..)| *id).collect();
        let (mut privileges, mut feeds) = (Vec::new(), Vec::new());
        for (id, row) in page {
            privileges.push((id, Privilege(import.columns(&row).flag("privilege"))));
            let feed = feed_address(id, &row);
            // A user who is not active has lost the feed for good.
            if !feed.is_blank() && active.contains(&id) {
                import.record_seen(FeedAddress::KIND, id);
                feeds.push((id, feed));
            }
        }
        let (present, present_feeds): (HashMap<_, _>, HashMap<_, _>) = existing
            .into_iter()
            .map(|(id, _, privileged, feed)| ((id, Privilege(privileged)), (id, FeedAddress(feed))))
            .unzip();
        let changes = import.merge(conn, privileges, &present)?;
        for (id, Privilege(privileged)) in changes.added.into_iter().chain(changes.updated) {
            let user = users::table.find(id).filter(users::privileged.ne(privileged));
            diesel::update(user).set(users::privileged.eq(privileged)).execute(conn)?;
        }
        let changes = import.merge(conn, feeds, &present_feeds)?;
        for (id, FeedAddress(hash)) in changes.added.into_iter().chain(changes.updated) {
            diesel::update(users::table.find(id)).set(users::imported_feed_hash.eq(hash)).execute(conn)?;
        }
        Ok(())
    })?;
    Ok(users::table.select(users::id).load(conn)?.into_iter().collect())
}

fn feed_address(id: DbUuid, row: &SourceRow) -> FeedAddress {
    let (secret, _) = row.text("ical_secret");
    // The path of the address contains the id followed by the secret.
    FeedAddress((!secret.is_empty()).then(|| credentials::hash(&format!("{id}{secret}"))))
}

/// Creates deactivated users for the ids that do not exist, named after the first eight digits of the id.
fn create_missing(conn: &mut AnyConnection, ids: &[DbUuid], now: DbTimestamp) -> Result<(), Error> {
    let existing: Vec<DbUuid> = users::table.filter(users::id.eq_any(ids)).select(users::id).load(conn)?;
    let existing: HashSet<_> = existing.into_iter().collect();
    let missing: Vec<_> = ids.iter().filter(|id| !existing.contains(id)).collect();
    let short: Vec<_> = missing.iter().map(|id| id.to_string()[..8].to_owned()).collect();
    let used = users::table.filter(users::name.eq_any(&short)).select(users::name);
    let mut used: HashSet<String> = used.load(conn)?.into_iter().collect();
    let rows: Vec<_> = missing
        .into_iter()
        .zip(short)
        .map(|(id, short)| {
            // UUIDs of version 7 created at about the same time have the same first digits. Then the name is the
            // complete id.
            let name = if used.insert(short.clone()) { short } else { id.to_string() };
            (
                (users::id.eq(*id), users::display_name.eq(name.clone()), users::name.eq(name)),
                (users::icon.eq(""), users::state.eq(0), users::privileged.eq(false)),
                (users::created_at.eq(now), users::updated_at.eq(now)),
            )
        })
        .collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(users::table).values(rows).execute(c))?;
    }
    Ok(())
}
