//! Imports contests and their teams.

use std::collections::{HashMap, HashSet};

use diesel::prelude::*;
use import::{
    CHUNK, Import,
    merge::Imported,
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

use super::{
    columns::{link, unique_name},
    targets::{CREATOR, Targets},
};
use crate::schema::{contest_team_members, contest_teams, contests};

pub const CONTESTS: SourceTable =
    SourceTable::new("contests", &["id", "name", "description", "link", "since", "until", "created_at", "updated_at"]);
pub const TEAMS: SourceTable =
    SourceTable::new("contest_teams", &["id", "contest_id", "name", "description", "result", "link"]);
pub const TEAM_MEMBERS: SourceTable = SourceTable::new("contest_team_user_belongings", &["team_id", "user_id"]);

#[derive(Serialize)]
struct Contest {
    name: String,
    link: String,
    description: String,
    since: DbTimestamp,
    until: Option<DbTimestamp>,
    created_at: DbTimestamp,
    updated_at: DbTimestamp,
}

impl Imported for Contest {
    const KIND: &'static str = CONTESTS.name;
}

#[derive(Serialize)]
struct Team {
    contest: DbUuid,
    name: String,
    link: String,
    description: String,
    result: String,
    members: Vec<DbUuid>,
}

impl Imported for Team {
    const KIND: &'static str = TEAMS.name;
}

/// Imports the contests.
pub fn import_contests(conn: &mut AnyConnection, import: &mut Import) -> Result<(), Error> {
    let taken = contests::table.select((contests::name, contests::id));
    let mut taken: HashMap<_, _> = taken.load::<(String, DbUuid)>(conn)?.into_iter().collect();
    import.each_page(conn, &CONTESTS, "id", |conn, import, page| {
        let ids: Vec<_> = page.iter().map(|(id, _)| *id).collect();
        let mut incoming = Vec::new();
        for (id, row) in page {
            let contest = read(import, id, &row, &mut taken);
            let texts = [("name", contest.name.as_str(), 1..=32), ("description", &contest.description, 1..=256)];
            import.report.check_limits(CONTESTS.name, id, &texts);
            incoming.push((id, contest));
        }
        let present = load(conn, &ids)?;
        let changes = import.merge(conn, incoming, &present)?;
        write(conn, &changes.added, &changes.updated)
    })?;
    for ids in import.removed_from_source::<Contest>(conn, load)?.chunks(CHUNK) {
        diesel::delete(contests::table.filter(contests::id.eq_any(ids))).execute(conn)?;
    }
    Ok(())
}

fn read(import: &mut Import, id: DbUuid, row: &SourceRow, taken: &mut HashMap<String, DbUuid>) -> Contest {
    let mut columns = import.columns(row);
    let (created_at, updated_at) = columns.created_and_updated();
    let until = columns.time("until");
    let since = columns.time_or("since", until.unwrap_or(created_at));
    let (since, until) = match until {
        Some(until) if until < since => {
            columns.changed("since", &until.to_string());
            columns.changed("until", &since.to_string());
            (until, Some(since))
        }
        until => (since, until),
    };
    Contest {
        name: unique_name(&mut columns, id, taken),
        link: link(&mut columns, "link"),
        description: columns.text("description"),
        since,
        until,
        created_at,
        updated_at,
    }
}

fn load(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<HashMap<DbUuid, Contest>, Error> {
    type Row = ((DbUuid, String, String, String), (DbTimestamp, Option<DbTimestamp>), (DbTimestamp, DbTimestamp));
    let rows = contests::table.filter(contests::id.eq_any(ids)).select((
        (contests::id, contests::name, contests::link, contests::description),
        (contests::since, contests::until),
        (contests::created_at, contests::updated_at),
    ));
    let contest = |((id, name, link, description), (since, until), (created_at, updated_at)): Row| {
        (id, Contest { name, link, description, since, until, created_at, updated_at })
    };
    Ok(rows.load::<Row>(conn)?.into_iter().map(contest).collect())
}

fn write(conn: &mut AnyConnection, added: &[(DbUuid, Contest)], updated: &[(DbUuid, Contest)]) -> Result<(), Error> {
    macro_rules! columns {
        ($contest:expr) => {
            (
                (contests::name.eq(&$contest.name), contests::link.eq(&$contest.link)),
                contests::description.eq(&$contest.description),
                (contests::since.eq($contest.since), contests::until.eq($contest.until)),
                (contests::created_at.eq($contest.created_at), contests::updated_at.eq($contest.updated_at)),
            )
        };
    }
    for (id, contest) in updated {
        diesel::update(contests::table.find(*id)).set(columns!(contest)).execute(conn)?;
    }
    let rows: Vec<_> = added
        .iter()
        .map(|(id, contest)| (contests::id.eq(*id), contests::created_by.eq(CREATOR), columns!(contest)))
        .collect();
    with_connection!(conn, c => diesel::insert_into(contests::table).values(&rows).execute(c))?;
    Ok(())
}

/// Imports the teams with their members.
pub fn import_teams(conn: &mut AnyConnection, import: &mut Import, targets: &Targets) -> Result<(), Error> {
    import.each_page(conn, &TEAMS, "id", |conn, import, page| {
        let ids: Vec<_> = page.iter().map(|(id, _)| *id).collect();
        let mut members = import.people(&TEAM_MEMBERS, "team_id", &ids, &targets.users)?;
        let contests: Vec<_> = page.iter().filter_map(|(_, row)| row.id("contest_id").ok()).collect();
        let contests = contests::table.filter(contests::id.eq_any(&contests)).select(contests::id);
        let contests: HashSet<_> = contests.load::<DbUuid>(conn)?.into_iter().collect();
        let mut incoming = Vec::new();
        for (id, row) in page {
            match read_team(import, &row, &contests, members.remove(&id).unwrap_or_default()) {
                Ok(team) => {
                    let texts = [
                        ("name", team.name.as_str(), 1..=32),
                        ("description", &team.description, 1..=256),
                        ("result", &team.result, 0..=32),
                    ];
                    import.report.check_limits(TEAMS.name, id, &texts);
                    incoming.push((id, team));
                }
                Err(fault) => import.report.left_out(TEAMS.name, &row.label(), &fault),
            }
        }
        let present = load_teams(conn, &ids)?;
        let changes = import.merge(conn, incoming, &present)?;
        write_teams(conn, &changes.added, &changes.updated, targets.now)
    })?;
    for ids in import.removed_from_source::<Team>(conn, load_teams)?.chunks(CHUNK) {
        diesel::delete(contest_teams::table.filter(contest_teams::id.eq_any(ids))).execute(conn)?;
    }
    Ok(())
}

fn read_team(
    import: &mut Import,
    row: &SourceRow,
    contests: &HashSet<DbUuid>,
    members: Vec<DbUuid>,
) -> Result<Team, Fault> {
    let contest = row.id("contest_id")?;
    if !contests.contains(&contest) {
        return Err(format!("its contest {contest} is not here"));
    }
    let mut columns = import.columns(row);
    Ok(Team {
        contest,
        name: columns.text("name"),
        link: link(&mut columns, "link"),
        description: columns.text("description"),
        result: columns.text("result"),
        members,
    })
}

fn load_teams(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<HashMap<DbUuid, Team>, Error> {
    let links = contest_team_members::table
        .filter(contest_team_members::team_id.eq_any(ids))
        .order((contest_team_members::team_id, contest_team_members::user_id))
        .select((contest_team_members::team_id, contest_team_members::user_id));
    let mut members = HashMap::<DbUuid, Vec<DbUuid>>::new();
    for (team, user) in links.load::<(DbUuid, DbUuid)>(conn)? {
        members.entry(team).or_default().push(user);
    }
    let rows = contest_teams::table.filter(contest_teams::id.eq_any(ids)).select((
        contest_teams::id,
        contest_teams::contest_id,
        contest_teams::name,
        contest_teams::link,
        contest_teams::description,
        contest_teams::result,
    ));
    let team = |(id, contest, name, link, description, result)| {
        let members = members.remove(&id).unwrap_or_default();
        (id, Team { contest, name, link, description, result, members })
    };
    Ok(rows.load::<(DbUuid, DbUuid, String, String, String, String)>(conn)?.into_iter().map(team).collect())
}

fn write_teams(
    conn: &mut AnyConnection,
    added: &[(DbUuid, Team)],
    updated: &[(DbUuid, Team)],
    now: DbTimestamp,
) -> Result<(), Error> {
    macro_rules! columns {
        ($team:expr) => {
            (
                (contest_teams::contest_id.eq($team.contest), contest_teams::name.eq(&$team.name)),
                (contest_teams::link.eq(&$team.link), contest_teams::description.eq(&$team.description)),
                (contest_teams::result.eq(&$team.result), contest_teams::updated_at.eq(now)),
            )
        };
    }
    for (id, team) in updated {
        diesel::update(contest_teams::table.find(*id)).set(columns!(team)).execute(conn)?;
        diesel::delete(contest_team_members::table.filter(contest_team_members::team_id.eq(*id))).execute(conn)?;
    }
    let rows: Vec<_> = added
        .iter()
        .map(|(id, team)| {
            let fixed = (contest_teams::id.eq(*id), contest_teams::created_by.eq(CREATOR));
            (fixed, contest_teams::created_at.eq(now), columns!(team))
        })
        .collect();
    with_connection!(conn, c => diesel::insert_into(contest_teams::table).values(&rows).execute(c))?;
    let links = added.iter().chain(updated).flat_map(|(id, team)| team.members.iter().map(|user| (*id, *user)));
    let links: Vec<_> = links
        .map(|(id, user)| (contest_team_members::team_id.eq(id), contest_team_members::user_id.eq(user)))
        .collect();
    for rows in links.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(contest_team_members::table).values(rows).execute(c))?;
    }
    Ok(())
}
