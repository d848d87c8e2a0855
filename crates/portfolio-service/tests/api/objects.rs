//! Objects of every kind, for the tests that walk all operations. A new slice adds its own to [`Objects::grow`].

mod works;

use std::collections::BTreeMap;

use diesel::prelude::*;
use portfolio_service::{
    account_type::TABLE,
    schema::{accounts, group_admins, group_memberships, groups, users},
};
use service_kit::db::sql::{Moment, Uid};

use crate::harness::{ALICE, BOB, CAROL, Club, DAVE, DORA, SUSAN, id, real_name};

/// The objects that there are, by the name of the path parameter that takes their ids.
#[derive(Default)]
pub struct Objects(BTreeMap<&'static str, Vec<Uid>>);

impl Objects {
    /// Those that every club has: its members.
    pub fn new() -> Self {
        let members = [BOB, ALICE, CAROL, DAVE, SUSAN, DORA].map(id).to_vec();
        Self(BTreeMap::from([("userId", members)]))
    }

    pub fn add(&mut self, parameter: &'static str, id: Uid) -> Uid {
        self.0.entry(parameter).or_default().push(id);
        id
    }

    /// Makes so many users, groups with all of them in each, and accounts of bob; what there is grows with it.
    pub fn grow(&mut self, club: &Club, count: usize) {
        let (conn, now) = (&mut club.connect(), Moment(club.clock.now()));
        for _ in 0..count {
            let id = Uid::new();
            let name = format!("m{}", &id.0.simple().to_string()[7..]);
            diesel::insert_into(users::table)
                .values((
                    users::id.eq(self.add("userId", id)),
                    users::name.eq(&name),
                    users::real_name.eq(real_name(&name)),
                    users::state.eq(1_i16),
                    users::created_at.eq(now),
                    users::updated_at.eq(now),
                ))
                .execute(conn)
                .unwrap();
        }
        let taken = self.0.get("accountId").map_or(0, Vec::len);
        for type_ in taken..TABLE.len().min(taken + count) {
            let id = self.add("accountId", Uid::new());
            diesel::insert_into(accounts::table)
                .values((
                    accounts::id.eq(id),
                    accounts::user_id.eq(crate::harness::id(BOB)),
                    accounts::type_.eq(i16::try_from(type_).unwrap()),
                    accounts::display_name.eq("Bob"),
                    accounts::url.eq("https://bob.example"),
                    accounts::created_at.eq(now),
                    accounts::updated_at.eq(now),
                ))
                .execute(conn)
                .unwrap();
        }
        for number in 0..count {
            let id = self.add("groupId", Uid::new());
            diesel::insert_into(groups::table)
                .values((
                    groups::id.eq(id),
                    groups::name.eq(format!("group {number}")),
                    groups::description.eq("We draw."),
                    groups::created_at.eq(now),
                    groups::updated_at.eq(now),
                ))
                .execute(conn)
                .unwrap();
        }
        let missing: Vec<_> = self.0["groupId"]
            .iter()
            .flat_map(|group| self.0["userId"].iter().map(move |user| (*group, *user)))
            .collect();
        for (group, user) in missing {
            let there: Option<Uid> =
                group_admins::table.find((group, user)).select(group_admins::user_id).first(conn).optional().unwrap();
            if there.is_some() {
                continue;
            }
            let admin = (group_admins::group_id.eq(group), group_admins::user_id.eq(user));
            diesel::insert_into(group_admins::table).values(admin).execute(conn).unwrap();
            diesel::insert_into(group_memberships::table)
                .values((
                    group_memberships::id.eq(Uid::new()),
                    group_memberships::group_id.eq(group),
                    group_memberships::user_id.eq(user),
                    group_memberships::since.eq(4050),
                ))
                .execute(conn)
                .unwrap();
        }
        works::grow(self, conn, count, now);
    }

    /// The ids of one kind.
    pub fn ids(&self, parameter: &str) -> &[Uid] {
        self.0.get(parameter).map_or(&[], Vec::as_slice)
    }

    /// The paths of a template with each of the objects, or with the first of each.
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
