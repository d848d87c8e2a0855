//! `--demo`: the data of a made-up club, the same in every installation in the same semester.
//!
//! Members and groups come from the made-up directory by the ordinary sync, with the same ids as in the
//! booking-service's demo. This module adds what the directory does not have, with one function for each slice.

mod club;
mod works;

use club_directory::demo::{member_id, members};
use common::time::Timestamp;
use diesel::{OptionalExtension, prelude::*, sql_query};
use service_kit::{
    database::{
        AnyConnection, Database, JobOwner, ROWS_PER_STATEMENT,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use self::club::DemoClub;
pub use self::club::semester_before;
use crate::{
    club::Club,
    schema::{accounts, group_memberships, groups, projects, users},
    span::Half,
};

/// Fills a database that has the members of the made-up club, but no account and no project. When several replicas
/// start at the same time, one of them fills it.
pub async fn fill(db: &Database, club: &Club, now: Timestamp) -> Result<(), Error> {
    let present = club.semester(now);
    let filled = db.write(JobOwner::Internal, move |conn| {
        if let AnyConnection::Postgresql(pg) = conn {
            sql_query("LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE").execute(pg)?;
        }
        if !is_unfilled(conn)? {
            return Ok(false);
        }
        let members = members().map(|name| (name, DbUuid(member_id(name)))).collect();
        let demo = DemoClub { members, present, now: DbTimestamp(now) };
        write_profiles(conn, &demo)?;
        create_accounts(conn, &demo)?;
        create_memberships(conn, &demo)?;
        works::create_projects(conn, &demo)?;
        works::create_contests(conn, &demo)?;
        Ok(true)
    });
    if filled.await? {
        log::info!("filled the database with a made-up club");
    }
    Ok(())
}

/// Whether the database has all members of the made-up club, but no account and no project.
fn is_unfilled(conn: &mut AnyConnection) -> Result<bool, Error> {
    let ids = members().map(|name| DbUuid(member_id(name)));
    let present: i64 = users::table.filter(users::id.eq_any(ids)).count().get_result(conn)?;
    let account: Option<DbUuid> = accounts::table.select(accounts::id).first(conn).optional()?;
    let project: Option<DbUuid> = projects::table.select(projects::id).first(conn).optional()?;
    Ok(usize::try_from(present) == Ok(members().count()) && account.is_none() && project.is_none())
}

const BIOS: [&str; 6] = [
    "I make games and break servers.",
    "絵を描きます。リクエスト歓迎です。",
    "Rust, synthesizers, and long walks.",
    "競プロと音楽が好きです。\n普段は部室にいます。",
    "First year. Ask me anything about coffee.",
    "CTF player by night, student by day.",
];

/// Writes the biographies of most members. Every third member publishes the real name.
fn write_profiles(conn: &mut AnyConnection, demo: &DemoClub) -> Result<(), Error> {
    for (index, bio) in BIOS.iter().enumerate() {
        let ids = demo.members.iter().skip(index).step_by(BIOS.len() + 2).map(|(_, id)| *id);
        let change = (users::bio.eq(*bio), users::updated_at.eq(demo.now));
        diesel::update(users::table.filter(users::id.eq_any(ids))).set(change).execute(conn)?;
    }
    let publishers = demo.members.iter().step_by(3).map(|(_, id)| *id);
    diesel::update(users::table.filter(users::id.eq_any(publishers)))
        .set(users::publishes_real_name.eq(true))
        .execute(conn)?;
    Ok(())
}

/// The address of an account of a type for a sign-in name.
fn address(type_: i16, name: &str) -> String {
    match type_ {
        0 => format!("https://{name}.example/"),
        1 => format!("https://blog.example/{name}"),
        2 => format!("https://x.com/{name}"),
        5 => format!("https://github.com/{name}"),
        6 => format!("https://qiita.com/{name}"),
        7 => format!("https://zenn.dev/{name}"),
        8 => format!("https://atcoder.jp/users/{name}"),
        9 => format!("https://soundcloud.com/{name}"),
        12 => format!("https://bsky.app/profile/{name}.example"),
        _ => format!("https://mixi.social/@{name}_club"),
    }
}

/// Adds one to four accounts to two members in three.
fn create_accounts(conn: &mut AnyConnection, demo: &DemoClub) -> Result<(), Error> {
    const TYPES: [i16; 10] = [5, 2, 0, 8, 1, 7, 12, 6, 9, 13];
    let owners = demo.members.iter().enumerate().filter(|(index, _)| index % 3 != 2);
    let rows: Vec<_> = owners
        // Seven and ten have no common divisor, so the types of a member differ.
        .flat_map(|(index, member)| (0..=index % 4).map(move |nth| (TYPES[(index + 7 * nth) % TYPES.len()], member)))
        .map(|(type_, (name, id))| {
            (
                accounts::id.eq(DbUuid::new()),
                accounts::user_id.eq(*id),
                accounts::type_.eq(type_),
                accounts::display_name.eq(*name),
                accounts::url.eq(address(type_, name)),
                accounts::created_at.eq(demo.now),
                accounts::updated_at.eq(demo.now),
            )
        })
        .collect();
    for rows in rows.chunks(ROWS_PER_STATEMENT) {
        with_connection!(conn, c => diesel::insert_into(accounts::table).values(rows).execute(c))?;
    }
    Ok(())
}

/// Replaces the memberships of the sync: members joined in different semesters, some were away for a time, and some
/// have left.
fn create_memberships(conn: &mut AnyConnection, demo: &DemoClub) -> Result<(), Error> {
    let half = |count: usize| Half::from(semester_before(demo.present, count));
    let present: Vec<(DbUuid, DbUuid)> = group_memberships::table
        .filter(group_memberships::until.is_null())
        .select((group_memberships::group_id, group_memberships::user_id))
        .load(conn)?;
    let ids: Vec<DbUuid> = groups::table.select(groups::id).order((groups::name, groups::id)).load(conn)?;
    let joined = |user: &DbUuid| {
        let index = demo.members.iter().position(|(_, id)| id == user).unwrap_or(0);
        // The first members joined seven semesters ago, the last in this one.
        7 - index * 8 / demo.members.len()
    };
    let mut spans = Vec::new();
    for (index, (group, user)) in present.iter().enumerate() {
        let since = joined(user);
        if index % 5 == 0 && since >= 4 {
            spans.push((*group, *user, half(since), Some(half(since - 1))));
            spans.push((*group, *user, half(since - 3), None));
        } else {
            spans.push((*group, *user, half(since.saturating_sub(index % 3)), None));
        }
    }
    for (index, group) in ids.iter().enumerate() {
        // Up to three former members of each group.
        let others = demo.members.iter().skip(index).step_by(3).filter(|(_, id)| !present.contains(&(*group, *id)));
        for (_, user) in others.filter(|(_, id)| joined(id) >= 2).take(3) {
            spans.push((*group, *user, half(joined(user)), Some(half(1))));
        }
    }
    diesel::delete(group_memberships::table).execute(conn)?;
    let rows: Vec<_> = spans
        .into_iter()
        .map(|(group, user, since, until)| {
            (
                group_memberships::id.eq(DbUuid::new()),
                group_memberships::group_id.eq(group),
                group_memberships::user_id.eq(user),
                group_memberships::since.eq(since),
                group_memberships::until.eq(until),
            )
        })
        .collect();
    for rows in rows.chunks(ROWS_PER_STATEMENT) {
        with_connection!(conn, c => diesel::insert_into(group_memberships::table).values(rows).execute(c))?;
    }
    Ok(())
}
