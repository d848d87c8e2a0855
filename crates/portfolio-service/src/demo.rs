//! `--demo`: what the members of the made-up club did, the same for everybody in the same semester.
//!
//! Members and groups come from the made-up directory by the ordinary sync, with the same ids as in the
//! booking-service's demo. Here is one function for each slice, for what the directory does not know.

mod scene;
mod works;

use common::time::Timestamp;
use diesel::{OptionalExtension, prelude::*, sql_query};
use service_kit::{
    database::{
        AnyConnection, Database, JobOwner, ROWS_PER_STATEMENT,
        types::{DbTimestamp, DbUuid},
    },
    directory::demo::{member_id, members},
    error::Error,
    with_connection,
};

use self::scene::Scene;
pub use self::scene::before;
use crate::{
    club::Club,
    schema::{accounts, group_memberships, groups, projects, users},
    span::Half,
};

/// Fills a database that has the made-up club's members, but no account and no project. Replicas that start together
/// fill it once.
///
/// # Errors
/// When the database fails.
pub async fn fill(db: &Database, club: &Club, now: Timestamp) -> Result<(), Error> {
    let present = club.semester(now);
    let made = db.write(JobOwner::Internal, move |conn| {
        if let AnyConnection::Postgresql(pg) = conn {
            sql_query("LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE").execute(pg)?;
        }
        if !is_ours_to_fill(conn)? {
            return Ok(false);
        }
        let members = members().map(|name| (name, DbUuid(member_id(name)))).collect();
        let scene = Scene { members, present, now: DbTimestamp(now) };
        introduce(conn, &scene)?;
        make_accounts(conn, &scene)?;
        make_history(conn, &scene)?;
        works::make_projects(conn, &scene)?;
        works::make_contests(conn, &scene)?;
        Ok(true)
    });
    if made.await? {
        log::info!("filled the database with a made-up club");
    }
    Ok(())
}

fn is_ours_to_fill(conn: &mut AnyConnection) -> Result<bool, Error> {
    let known = members().map(|name| DbUuid(member_id(name)));
    let known: i64 = users::table.filter(users::id.eq_any(known)).count().get_result(conn)?;
    let account: Option<DbUuid> = accounts::table.select(accounts::id).first(conn).optional()?;
    let project: Option<DbUuid> = projects::table.select(projects::id).first(conn).optional()?;
    Ok(usize::try_from(known) == Ok(members().count()) && account.is_none() && project.is_none())
}

const BIOS: [&str; 6] = [
    "I make games and break servers.",
    "絵を描きます。リクエスト歓迎です。",
    "Rust, synthesizers, and long walks.",
    "競プロと音楽が好きです。\n普段は部室にいます。",
    "First year. Ask me anything about coffee.",
    "CTF player by night, student by day.",
];

/// What members say of themselves; every third publishes the real name.
fn introduce(conn: &mut AnyConnection, scene: &Scene) -> Result<(), Error> {
    for (index, bio) in BIOS.iter().enumerate() {
        let theirs = scene.members.iter().skip(index).step_by(BIOS.len() + 2).map(|(_, id)| *id);
        let change = (users::bio.eq(*bio), users::updated_at.eq(scene.now));
        diesel::update(users::table.filter(users::id.eq_any(theirs))).set(change).execute(conn)?;
    }
    let open = scene.members.iter().step_by(3).map(|(_, id)| *id);
    diesel::update(users::table.filter(users::id.eq_any(open)))
        .set(users::publishes_real_name.eq(true))
        .execute(conn)?;
    Ok(())
}

/// The address of an account by type, for a sign-in name.
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

/// Two members in three have accounts; each a handful of others.
fn make_accounts(conn: &mut AnyConnection, scene: &Scene) -> Result<(), Error> {
    const TYPES: [i16; 10] = [5, 2, 0, 8, 1, 7, 12, 6, 9, 13];
    let with_some = scene.members.iter().enumerate().filter(|(index, _)| index % 3 != 2);
    let rows: Vec<_> = with_some
        // Seven and ten have no divisor in common, so that these are different types.
        .flat_map(|(index, member)| (0..=index % 4).map(move |nth| (TYPES[(index + 7 * nth) % TYPES.len()], member)))
        .map(|(type_, (name, id))| {
            (
                accounts::id.eq(DbUuid::new()),
                accounts::user_id.eq(*id),
                accounts::type_.eq(type_),
                accounts::display_name.eq(*name),
                accounts::url.eq(address(type_, name)),
                accounts::created_at.eq(scene.now),
                accounts::updated_at.eq(scene.now),
            )
        })
        .collect();
    for rows in rows.chunks(ROWS_PER_STATEMENT) {
        with_connection!(conn, c => diesel::insert_into(accounts::table).values(rows).execute(c))?;
    }
    Ok(())
}

/// When the members of groups came, and that some had been away or have left.
fn make_history(conn: &mut AnyConnection, scene: &Scene) -> Result<(), Error> {
    let half = |count: usize| Half::from(before(scene.present, count));
    let present: Vec<(DbUuid, DbUuid)> = group_memberships::table
        .filter(group_memberships::until.is_null())
        .select((group_memberships::group_id, group_memberships::user_id))
        .load(conn)?;
    let ids: Vec<DbUuid> = groups::table.select(groups::id).order((groups::name, groups::id)).load(conn)?;
    let joined = |user: &DbUuid| {
        let place = scene.members.iter().position(|(_, id)| id == user).unwrap_or(0);
        // The first members joined seven semesters ago, the last in this one.
        7 - place * 8 / scene.members.len()
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
        // Three of each group have left it.
        let others = scene.members.iter().skip(index).step_by(3).filter(|(_, id)| !present.contains(&(*group, *id)));
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
