//! The copy of the users.
//!
//! The directory decides who has a name. Another user with that name who is not in the directory is renamed. A user
//! whose name is not a sign-in name (contract, "Types": User) does not change. A user whom it no longer lists is
//! deactivated; one who has joined by signing in, and whom it never listed, does not change.

use std::collections::{HashMap, HashSet};

use club_directory::{DirectoryUser, UserState};
use club_sign_in::sessions::end_all_of;
use diesel::{prelude::*, upsert::excluded};
use service_kit::{
    database::{
        AnyConnection, ROWS_PER_STATEMENT,
        types::{DbTimestamp, DbUuid},
    },
    directory::{Changes, NameRule, check_lost_access},
    error::Error,
    with_connection,
};
use uuid::Uuid;

use crate::{caller::ACTIVE, identity::is_sign_in_name, schema::users};

/// Users with other names are left out of the copy.
pub const NAMES: NameRule = NameRule { accepts: is_sign_in_name, otherwise: "is left out" };

/// `users.state` of a deactivated user.
const DEACTIVATED: i16 = UserState::Deactivated as i16;

#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = users)]
struct Row {
    id: DbUuid,
    name: String,
    real_name: String,
    state: i16,
    email: Option<String>,
    in_directory: bool,
}

impl From<&DirectoryUser> for Row {
    fn from(user: &DirectoryUser) -> Self {
        Self {
            id: DbUuid(user.id),
            name: user.name.clone(),
            real_name: user.real_name.clone().unwrap_or_default(),
            state: user.state.number().into(),
            email: user.email.clone(),
            in_directory: true,
        }
    }
}

/// Makes the users equal to the directory. Also returns the ids of all users.
pub(super) fn update(
    conn: &mut AnyConnection,
    directory: &[DirectoryUser],
    force: bool,
    now: DbTimestamp,
) -> Result<(Changes, HashSet<DbUuid>), Error> {
    let present: Vec<Row> = users::table.select(Row::as_select()).load(conn)?;
    let listed: HashSet<_> = directory.iter().map(|user| DbUuid(user.id)).collect();
    let unlisted =
        present.iter().filter(|user| user.in_directory && user.state != DEACTIVATED && !listed.contains(&user.id));
    let unlisted: Vec<_> = unlisted.map(|user| user.id).collect();
    NAMES.warn(directory);
    let directory: Vec<_> = directory.iter().filter(|user| (NAMES.accepts)(&user.name)).cloned().collect();
    let target: Vec<Row> = directory.iter().map(Row::from).collect();
    if !force {
        let active: HashSet<_> = present.iter().filter(|user| user.state == ACTIVE).map(|user| user.id).collect();
        check_lost_access(&active, &directory, &unlisted)?;
    }
    // Names are unique after each statement, so names that move to another user are freed first.
    save(conn, &freed_names(&present, &target), now)?;
    let before: HashMap<_, _> = present.iter().map(|user| (user.id, user)).collect();
    let changed: Vec<_> = target.iter().filter(|user| before.get(&user.id) != Some(user)).cloned().collect();
    save(conn, &changed, now)?;
    for ids in unlisted.chunks(ROWS_PER_STATEMENT) {
        diesel::update(users::table.filter(users::id.eq_any(ids)))
            .set((
                users::state.eq(DEACTIVATED),
                users::in_directory.eq(false),
                users::email.eq(None::<String>),
                users::updated_at.eq(now),
            ))
            .execute(conn)?;
    }
    // Without ids in the directory, whoever gets the name later is the same user, and has not consented.
    let has_rights = users::publishes_real_name.eq(true).or(users::admin.eq(true));
    diesel::update(users::table.filter(users::state.eq(DEACTIVATED)).filter(has_rights))
        .set((users::publishes_real_name.eq(false), users::admin.eq(false), users::updated_at.eq(now)))
        .execute(conn)?;
    let inactive: Vec<_> = target.iter().filter(|user| user.state != ACTIVE).map(|user| user.id).collect();
    for ids in inactive.chunks(ROWS_PER_STATEMENT).chain(unlisted.chunks(ROWS_PER_STATEMENT)) {
        end_all_of(conn, ids, now)?;
    }
    let counts = Changes::new(&changed, |user| before.contains_key(&user.id), unlisted.len());
    Ok((counts, present.iter().chain(&target).map(|user| user.id).collect()))
}

/// Makes these users admins, and no others.
pub(super) fn set_admins(conn: &mut AnyConnection, admins: &HashSet<Uuid>, now: DbTimestamp) -> Result<(), Error> {
    let present: Vec<DbUuid> = users::table.filter(users::admin.eq(true)).select(users::id).load(conn)?;
    let (present, admins): (HashSet<_>, HashSet<_>) =
        (present.into_iter().collect(), admins.iter().map(|id| DbUuid(*id)).collect());
    for (is_admin, ids) in [(true, admins.difference(&present)), (false, present.difference(&admins))] {
        for ids in ids.copied().collect::<Vec<_>>().chunks(ROWS_PER_STATEMENT) {
            diesel::update(users::table.filter(users::id.eq_any(ids)))
                .set((users::admin.eq(is_admin), users::updated_at.eq(now)))
                .execute(conn)?;
        }
    }
    Ok(())
}

/// The users whose names the directory gives to others, with new names: final ones for users who are not in the
/// directory, temporary ones for the others.
fn freed_names(present: &[Row], target: &[Row]) -> Vec<Row> {
    let new_owners: HashMap<_, _> = target.iter().map(|user| (user.name.as_str(), user.id)).collect();
    let listed: HashSet<_> = target.iter().map(|user| user.id).collect();
    let mut used: HashSet<_> = present.iter().chain(target).map(|user| user.name.clone()).collect();
    let conflicting =
        present.iter().filter(|user| new_owners.get(user.name.as_str()).is_some_and(|owner| *owner != user.id));
    conflicting
        .map(|user| {
            let id = user.id.0.simple().to_string();
            // Also a sign-in name, with more characters of the id if a shorter name is taken.
            let mut names = (8..=30).map(|length| {
                let room = 31 - length;
                format!("{}-{}", &user.name[..user.name.len().min(room)], &id[id.len() - length..])
            });
            let name = names.find(|name| !listed.contains(&user.id) && used.insert(name.clone()));
            Row { name: name.unwrap_or_else(|| format!("~{id}")), ..user.clone() }
        })
        .collect()
}

fn save(conn: &mut AnyConnection, rows: &[Row], now: DbTimestamp) -> Result<(), Error> {
    for rows in rows.chunks(ROWS_PER_STATEMENT) {
        let values: Vec<_> = rows
            .iter()
            .map(|user| {
                (
                    users::id.eq(user.id),
                    users::name.eq(&user.name),
                    users::real_name.eq(&user.real_name),
                    users::state.eq(user.state),
                    users::email.eq(&user.email),
                    users::in_directory.eq(user.in_directory),
                    users::created_at.eq(now),
                    users::updated_at.eq(now),
                )
            })
            .collect();
        // The texts that users wrote themselves stay.
        with_connection!(conn, c => diesel::insert_into(users::table)
            .values(&values)
            .on_conflict(users::id)
            .do_update()
            .set((
                users::name.eq(excluded(users::name)),
                users::real_name.eq(excluded(users::real_name)),
                users::state.eq(excluded(users::state)),
                users::email.eq(excluded(users::email)),
                users::in_directory.eq(excluded(users::in_directory)),
                users::updated_at.eq(excluded(users::updated_at)),
            ))
            .execute(c))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::identity::is_sign_in_name;

    fn user(id: u128, name: &str) -> Row {
        Row {
            id: DbUuid(Uuid::from_u128(id)),
            name: name.to_owned(),
            real_name: String::new(),
            state: 1,
            email: None,
            in_directory: true,
        }
    }

    fn names(present: &[Row], target: &[Row]) -> Vec<String> {
        freed_names(present, target).into_iter().map(|user| user.name).collect()
    }

    #[test]
    fn only_users_with_the_name_of_another_are_renamed() {
        let present = [user(1, "anna"), user(2, "ben"), user(3, "cleo")];
        assert!(names(&present, &present).is_empty());
        assert!(names(&present, &[user(1, "hannah"), user(4, "dora")]).is_empty());
        let swapped = names(&present, &[user(1, "ben"), user(2, "anna")]);
        assert!(swapped.len() == 2 && swapped.iter().all(|name| name.starts_with('~')), "{swapped:?}");
        assert_eq!(names(&present, &[user(4, "anna")]), ["anna-00000001"]);
    }

    #[test]
    fn a_new_name_is_free_and_a_sign_in_name() {
        let present = [user(1, "anna"), user(2, "anna-00000001")];
        assert_eq!(names(&present, &[user(4, "anna")]), ["anna-000000001"]);
        let long = "x".repeat(32);
        let moved = names(&[user(1, &long)], &[user(4, &long)]);
        assert!(moved[0].len() == 32 && is_sign_in_name(&moved[0]), "{moved:?}");
    }
}
