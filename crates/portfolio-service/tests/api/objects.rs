//! Objects of every kind, for the tests of all operations.

use std::collections::BTreeMap;

use diesel::prelude::*;
use portfolio_service::{
    account_type::TABLE,
    schema::{
        accounts, contest_team_members, contest_teams, contests, event_hosts, event_levels, events, group_memberships,
        groups, pictures, project_members, projects, users,
    },
};
use service_kit::database::{
    AnyConnection,
    schema::history,
    types::{DbTimestamp, DbUuid},
};

use crate::harness::{ALICE, BOB, CAROL, Club, DAVE, DORA, SUSAN, id, real_name};
use crate::matrix::PICTURE;

/// Who may read a `GET` operation: Bob, but all changes only admins.
pub fn reader(template: &str) -> &'static str {
    if template.ends_with("/audit") { ALICE } else { BOB }
}

/// The ids of the existing objects, by the name of their path parameter.
#[derive(Default)]
pub struct Objects(BTreeMap<&'static str, Vec<DbUuid>>);

impl Objects {
    /// The members of every club.
    pub fn new() -> Self {
        let members = [BOB, ALICE, CAROL, DAVE, SUSAN, DORA].map(id).to_vec();
        Self(BTreeMap::from([("userId", members)]))
    }

    pub fn add(&mut self, parameter: &'static str, id: DbUuid) -> DbUuid {
        self.0.entry(parameter).or_default().push(id);
        id
    }

    /// Inserts a group and returns the path of its page.
    pub fn with_group(mut self, club: &Club) -> String {
        let rows = Rows { now: DbTimestamp(club.clock.now()), bob: id(BOB) };
        let group = self.add("groupId", DbUuid::new());
        rows.group(&mut club.connect(), group);
        format!("/groups/{group}")
    }

    /// Inserts a user.
    pub fn add_user(&mut self, club: &Club, id: DbUuid, name: &str) {
        let rows = Rows { now: DbTimestamp(club.clock.now()), bob: crate::harness::id(BOB) };
        rows.user(&mut club.connect(), self.add("userId", id), name);
    }

    /// Inserts `count` users and `count` objects of every other kind. All users become members of the first objects.
    pub fn grow(&mut self, club: &Club, count: usize) {
        let conn = &mut club.connect();
        let rows = Rows { now: DbTimestamp(club.clock.now()), bob: id(BOB) };
        for _ in 0..count {
            let user = DbUuid::new();
            rows.user(conn, self.add("userId", user), &format!("m{}", &user.0.simple().to_string()[7..]));
            rows.group(conn, self.add("groupId", DbUuid::new()));
            rows.event(conn, self.add("eventId", DbUuid::new()));
            rows.project(conn, self.add("projectId", DbUuid::new()));
            let contest = self.add("contestId", DbUuid::new());
            rows.contest(conn, contest);
            rows.team(conn, self.add("teamId", DbUuid::new()), contest);
            rows.team(conn, DbUuid::new(), self.0["contestId"][0]);
            let type_ = self.0.get("accountId").map_or(0, Vec::len);
            if type_ < TABLE.len() {
                rows.account(conn, self.add("accountId", DbUuid::new()), type_);
            }
        }
        let first = |parameter: &str| self.0[parameter][0];
        for _ in 0..count {
            rows.change(conn, "project", first("projectId"));
            rows.change(conn, "contest", first("contestId"));
        }
        for (parameter, table) in [("projectId", "projects"), ("userId", "users")] {
            let id = first(parameter);
            let row = (
                pictures::object_id.eq(id),
                pictures::media_type.eq("image/png"),
                (pictures::large.eq(PICTURE), pictures::small.eq(PICTURE)),
            );
            diesel::delete(pictures::table.find(id)).execute(conn).unwrap();
            diesel::insert_into(pictures::table).values(row).execute(conn).unwrap();
            let id = Rows::literal(club, id);
            let sql = format!("UPDATE {table} SET picture = 'aHash' WHERE id = {id}");
            diesel::sql_query(sql).execute(conn).unwrap();
        }
        for user in &self.0["userId"] {
            let mut put = |sql: &str, owner: DbUuid| {
                let [owner, user] = [owner, *user].map(|id| Rows::literal(club, id));
                // Earlier users are members already.
                let sql = format!("{sql} ON CONFLICT DO NOTHING").replace("OWNER", &owner).replace("USER", &user);
                diesel::sql_query(sql).execute(conn).unwrap();
            };
            put("INSERT INTO group_admins VALUES (OWNER, USER)", first("groupId"));
            put(
                "INSERT INTO group_memberships (id, group_id, user_id, since) VALUES (USER, OWNER, USER, 4050)",
                first("groupId"),
            );
            put("INSERT INTO event_hosts VALUES (OWNER, USER)", first("eventId"));
            put(
                "INSERT INTO project_members (project_id, user_id, since) VALUES (OWNER, USER, 4050)",
                first("projectId"),
            );
            put("INSERT INTO contest_team_members VALUES (OWNER, USER)", first("teamId"));
        }
    }

    /// The first object of a kind.
    pub fn first(&self, parameter: &str) -> DbUuid {
        self.0[parameter][0]
    }

    /// The paths of a template with every object of each parameter, or only with the first one.
    pub fn paths(&self, template: &str, only_first: bool) -> Vec<String> {
        let mut paths = vec![template.to_owned()];
        while let Some((_, parameter)) = paths[0].split_once('{') {
            let parameter = parameter.split('}').next().unwrap();
            let ids = self.0.get(parameter).unwrap_or_else(|| panic!("there is no object for {parameter}"));
            let ids = &ids[..if only_first { 1 } else { ids.len() }];
            let hole = format!("{{{parameter}}}");
            paths = paths
                .iter()
                .flat_map(|path| ids.iter().map(|id| path.replacen(&hole, &id.to_string(), 1)).collect::<Vec<_>>())
                .collect();
        }
        paths
    }
}

/// Inserts rows of every kind, which all refer to Bob.
struct Rows {
    now: DbTimestamp,
    bob: DbUuid,
}

impl Rows {
    /// An id in SQL.
    fn literal(club: &Club, id: DbUuid) -> String {
        if club.is_postgres() { format!("'{id}'") } else { format!("x'{}'", id.0.simple()) }
    }

    fn user(&self, conn: &mut AnyConnection, id: DbUuid, name: &str) {
        let row = (
            users::id.eq(id),
            users::name.eq(name),
            users::real_name.eq(real_name(name)),
            users::state.eq(1_i16),
            users::created_at.eq(self.now),
            users::updated_at.eq(self.now),
        );
        diesel::insert_into(users::table).values(row).execute(conn).unwrap();
    }

    fn account(&self, conn: &mut AnyConnection, id: DbUuid, type_: usize) {
        let row = (
            accounts::id.eq(id),
            accounts::user_id.eq(self.bob),
            accounts::type_.eq(i16::try_from(type_).unwrap()),
            accounts::display_name.eq("Bob"),
            accounts::url.eq("https://bob.example"),
            accounts::created_at.eq(self.now),
            accounts::updated_at.eq(self.now),
        );
        diesel::insert_into(accounts::table).values(row).execute(conn).unwrap();
    }

    fn group(&self, conn: &mut AnyConnection, id: DbUuid) {
        let row = (
            groups::id.eq(id),
            groups::name.eq("graphics"),
            groups::description.eq("We draw."),
            groups::created_at.eq(self.now),
            groups::updated_at.eq(self.now),
        );
        diesel::insert_into(groups::table).values(row).execute(conn).unwrap();
        let span = (
            group_memberships::id.eq(DbUuid::new()),
            group_memberships::group_id.eq(id),
            group_memberships::user_id.eq(self.bob),
            group_memberships::since.eq(4050),
        );
        diesel::insert_into(group_memberships::table).values(span).execute(conn).unwrap();
    }

    fn event(&self, conn: &mut AnyConnection, id: DbUuid) {
        let row = (
            events::id.eq(id),
            events::name.eq("open day"),
            events::description.eq("Come."),
            events::place.eq("S516"),
            events::since.eq(self.now),
            events::until.eq(self.now),
            events::updated_at.eq(self.now),
        );
        diesel::insert_into(events::table).values(row).execute(conn).unwrap();
        let host = (event_hosts::event_id.eq(id), event_hosts::user_id.eq(self.bob));
        diesel::insert_into(event_hosts::table).values(host).execute(conn).unwrap();
        let level = (event_levels::event_id.eq(id), event_levels::level.eq(1_i16));
        diesel::insert_into(event_levels::table).values(level).execute(conn).unwrap();
    }

    fn project(&self, conn: &mut AnyConnection, id: DbUuid) {
        let row = (
            projects::id.eq(id),
            projects::name.eq(id.to_string()),
            projects::link.eq(""),
            projects::description.eq("A game."),
            projects::since.eq(4050),
            projects::created_by.eq(self.bob),
            projects::created_at.eq(self.now),
            projects::updated_at.eq(self.now),
        );
        diesel::insert_into(projects::table).values(row).execute(conn).unwrap();
        let member = (
            project_members::project_id.eq(id),
            project_members::user_id.eq(self.bob),
            project_members::since.eq(4050),
        );
        diesel::insert_into(project_members::table).values(member).execute(conn).unwrap();
    }

    fn contest(&self, conn: &mut AnyConnection, id: DbUuid) {
        let row = (
            contests::id.eq(id),
            contests::name.eq(id.to_string()),
            contests::link.eq(""),
            contests::description.eq("Every year."),
            contests::since.eq(self.now),
            contests::created_by.eq(self.bob),
            contests::created_at.eq(self.now),
            contests::updated_at.eq(self.now),
        );
        diesel::insert_into(contests::table).values(row).execute(conn).unwrap();
    }

    fn change(&self, conn: &mut AnyConnection, kind: &str, object: DbUuid) {
        let row = (
            history::at.eq(self.now),
            history::actor.eq(self.bob),
            history::origin.eq("proxy"),
            history::object_type.eq(kind),
            history::object_id.eq(object),
            history::action.eq("changed"),
            history::changes.eq(r#"{"name":["a","b"]}"#),
        );
        diesel::insert_into(history::table).values(row).execute(conn).unwrap();
    }

    fn team(&self, conn: &mut AnyConnection, id: DbUuid, contest: DbUuid) {
        let row = (
            contest_teams::id.eq(id),
            contest_teams::contest_id.eq(contest),
            contest_teams::name.eq("the team"),
            contest_teams::link.eq(""),
            contest_teams::description.eq("We came."),
            contest_teams::result.eq("3rd"),
            contest_teams::created_by.eq(self.bob),
            contest_teams::created_at.eq(self.now),
            contest_teams::updated_at.eq(self.now),
        );
        diesel::insert_into(contest_teams::table).values(row).execute(conn).unwrap();
        let member = (contest_team_members::team_id.eq(id), contest_team_members::user_id.eq(self.bob));
        diesel::insert_into(contest_team_members::table).values(member).execute(conn).unwrap();
    }
}
