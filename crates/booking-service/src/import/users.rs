//! What is known of users besides the directory: who is privileged, and the addresses of their feeds.

use std::collections::{HashMap, HashSet};

use diesel::prelude::*;
use serde::Serialize;
use service_kit::{
    credentials,
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    directory::Snapshot,
    error::Error,
    import::{
        CHUNK, Import,
        merge::Imported,
        row::{Fault, SourceRow, SourceTable},
    },
    with_connection,
};

use crate::{auth::ACTIVE, schema::users};

pub const USERS: SourceTable = SourceTable { name: "users", columns: &["id", "privilege", "ical_secret"] };

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

/// Makes the users of the source whom the directory does not know, adds what is known of all, and returns the ids of
/// everybody here.
pub fn bring_in(
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
        make_unknown(conn, &ids, now)?;
        let here = users::table.filter(users::id.eq_any(&ids)).select((
            users::id,
            users::state,
            users::privileged,
            users::imported_feed_hash,
        ));
        let here: Vec<(DbUuid, i16, bool, Option<Vec<u8>>)> = here.load(conn)?;
        let active: HashSet<_> = here.iter().filter(|(_, state, ..)| *state == ACTIVE).map(|(id, ..)| *id).collect();
        let (mut privileges, mut feeds) = (Vec::new(), Vec::new());
        for (id, row) in page {
            match read(id, &row) {
                Ok((privilege, feed)) => {
                    privileges.push((id, privilege));
                    // Whoever is not active has lost their feed for good.
                    if !feed.is_blank() && active.contains(&id) {
                        import.saw(FeedAddress::KIND, id);
                        feeds.push((id, feed));
                    }
                }
                Err(fault) => import.report.left_out(USERS.name, &id.to_string(), &fault),
            }
        }
        let (present, present_feeds): (HashMap<_, _>, HashMap<_, _>) = here
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

fn read(id: DbUuid, row: &SourceRow) -> Result<(Privilege, FeedAddress), Fault> {
    let secret = row.text("ical_secret")?;
    // As in the path of the address.
    let hash = (!secret.is_empty()).then(|| credentials::hash(&format!("{id}{secret}")));
    Ok((Privilege(row.flag("privilege")?), FeedAddress(hash)))
}

/// Makes deactivated users for the ids that nobody here has, named after their first eight digits.
fn make_unknown(conn: &mut AnyConnection, ids: &[DbUuid], now: DbTimestamp) -> Result<(), Error> {
    let here: Vec<DbUuid> = users::table.filter(users::id.eq_any(ids)).select(users::id).load(conn)?;
    let here: HashSet<_> = here.into_iter().collect();
    let unknown: Vec<_> = ids.iter().filter(|id| !here.contains(id)).collect();
    let short: Vec<_> = unknown.iter().map(|id| id.to_string()[..8].to_owned()).collect();
    let taken = users::table.filter(users::name.eq_any(&short)).select(users::name);
    let mut taken: HashSet<String> = taken.load(conn)?.into_iter().collect();
    let rows: Vec<_> = unknown
        .into_iter()
        .zip(short)
        .map(|(id, short)| {
            // Ids made at about the same time begin alike; then the whole id tells them apart.
            let name = if taken.insert(short.clone()) { short } else { id.to_string() };
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
