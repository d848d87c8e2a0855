//! Tags and groups.

use std::collections::{HashMap, HashSet};

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

use crate::{
    groups::queries::MADE_HERE,
    schema::{group_admins, group_members, groups, tags},
    tags::key,
};

pub const TAGS: SourceTable =
    SourceTable { name: "tags", columns: &["id", "name", "created_at", "updated_at", "deleted_at"] };
pub const GROUPS: SourceTable = SourceTable {
    name: "groups",
    columns: &[
        "id",
        "name",
        "description",
        "join_freely",
        "created_by_refer",
        "created_at",
        "updated_at",
        "deleted_at",
    ],
};
pub const MEMBERS: SourceTable = SourceTable { name: "group_members", columns: &["user_id", "group_id", "deleted_at"] };
pub const ADMINS: SourceTable = SourceTable { name: "group_admins", columns: &["user_id", "group_id", "deleted_at"] };

#[derive(Serialize)]
struct Group {
    name: String,
    description: String,
    open: bool,
    created_by: Option<DbUuid>,
    created_at: DbTimestamp,
    updated_at: DbTimestamp,
    deleted_at: Option<DbTimestamp>,
    members: Vec<DbUuid>,
    admins: Vec<DbUuid>,
}

impl Imported for Group {
    const KIND: &'static str = GROUPS.name;
}

/// Creates the tags that do not exist, and returns the id in this database of each tag of the source. Tags are equal if
/// their names are equal; their ids may differ.
pub fn import_tags(conn: &mut AnyConnection, import: &mut Import) -> Result<HashMap<DbUuid, DbUuid>, Error> {
    let existing: Vec<(String, DbUuid)> = tags::table.select((tags::name_key, tags::id)).load(conn)?;
    let mut ids: HashSet<_> = existing.iter().map(|(_, id)| *id).collect();
    let mut by_name: HashMap<_, _> = existing.into_iter().collect();
    let mut targets = HashMap::new();
    import.each_page(conn, &TAGS, "id", |conn, import, page| {
        let mut rows = Vec::new();
        for (id, row) in page {
            let tag = match read_tag(import, id, &row) {
                Ok(tag) => tag,
                Err(fault) => {
                    import.report.left_out(TAGS.name, &id.to_string(), &fault);
                    continue;
                }
            };
            let (name, created_at, updated_at) = tag;
            if let Some(other) = by_name.get(&key(&name)) {
                import.report.count(TAGS.name).same += 1;
                targets.insert(id, *other);
                continue;
            }
            if !ids.insert(id) {
                import.report.left_out(TAGS.name, &id.to_string(), "another tag here has its id");
                continue;
            }
            import.report.count(TAGS.name).added += 1;
            import.report.check_limits(TAGS.name, id, &[("name", &name, 1..=16)]);
            by_name.insert(key(&name), id);
            targets.insert(id, id);
            rows.push((
                tags::id.eq(id),
                tags::name_key.eq(key(&name)),
                tags::name.eq(name),
                tags::created_at.eq(created_at),
                tags::updated_at.eq(updated_at),
            ));
        }
        with_connection!(conn, c => diesel::insert_into(tags::table).values(&rows).execute(c))?;
        Ok(())
    })?;
    Ok(targets)
}

fn read_tag(import: &mut Import, id: DbUuid, row: &SourceRow) -> Result<(String, DbTimestamp, DbTimestamp), Fault> {
    if row.time("deleted_at")?.is_some() {
        return Err("is deleted there, and tags are not deleted here".to_owned());
    }
    let name = row.text("name")?;
    if name.trim().is_empty() {
        return Err("has no name".to_owned());
    }
    Ok((name, import.time(row, TAGS.name, id, "created_at")?, import.time(row, TAGS.name, id, "updated_at")?))
}

/// Imports the groups that were made in the source, and returns the ids of all groups in this database.
pub fn import_groups(
    conn: &mut AnyConnection,
    import: &mut Import,
    users: &HashSet<DbUuid>,
    now: DbTimestamp,
) -> Result<HashSet<DbUuid>, Error> {
    let others = groups::table.filter(groups::kind.ne(MADE_HERE)).select(groups::id);
    let others: HashSet<DbUuid> = others.load(conn)?.into_iter().collect();
    import.each_page(conn, &GROUPS, "id", |conn, import, page| {
        let ids: Vec<_> = page.iter().map(|(id, _)| *id).collect();
        let mut members = import.people(&MEMBERS, "group_id", &ids, users)?;
        let mut admins = import.people(&ADMINS, "group_id", &ids, users)?;
        let mut incoming = Vec::new();
        for (id, row) in page {
            let people = (members.remove(&id).unwrap_or_default(), admins.remove(&id).unwrap_or_default());
            let group = if others.contains(&id) {
                Err("a group of the directory has its id".to_owned())
            } else {
                read(import, id, &row, users, people)
            };
            match group {
                Ok(group) => incoming.push((id, group)),
                Err(fault) => import.report.left_out(GROUPS.name, &id.to_string(), &fault),
            }
        }
        let present = load(conn, &ids)?;
        let changes = import.merge(conn, incoming, &present)?;
        insert(conn, &changes.added)?;
        for (id, group) in changes.updated {
            update(conn, id, &group)?;
            diesel::delete(group_members::table.filter(group_members::group_id.eq(id))).execute(conn)?;
            diesel::delete(group_admins::table.filter(group_admins::group_id.eq(id))).execute(conn)?;
            insert_people(conn, &[(id, group)])?;
        }
        Ok(())
    })?;
    for ids in import.removed_from_source::<Group>(conn, load)?.chunks(CHUNK) {
        diesel::update(groups::table.filter(groups::id.eq_any(ids)))
            .set((groups::deleted_at.eq(now), groups::updated_at.eq(now)))
            .execute(conn)?;
    }
    Ok(groups::table.select(groups::id).load(conn)?.into_iter().collect())
}

fn read(
    import: &mut Import,
    id: DbUuid,
    row: &SourceRow,
    users: &HashSet<DbUuid>,
    (members, admins): (Vec<DbUuid>, Vec<DbUuid>),
) -> Result<Group, Fault> {
    let group = Group {
        name: row.text("name")?,
        description: row.text("description")?,
        open: row.flag("join_freely")?,
        created_by: existing_user(row, "created_by_refer", users).ok(),
        created_at: import.time(row, GROUPS.name, id, "created_at")?,
        updated_at: import.time(row, GROUPS.name, id, "updated_at")?,
        deleted_at: import.optional_time(row, GROUPS.name, id, "deleted_at")?,
        members,
        admins,
    };
    if group.admins.is_empty() && group.deleted_at.is_none() {
        import.report.note("groups without administrators", || id.to_string());
    }
    let texts = [("name", group.name.as_str(), 1..=32), ("description", &group.description, 0..=10_000)];
    import.report.check_limits(GROUPS.name, id, &texts);
    Ok(group)
}

fn load(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<HashMap<DbUuid, Group>, Error> {
    type Row = ((DbUuid, String, String, bool, Option<DbUuid>), (DbTimestamp, DbTimestamp, Option<DbTimestamp>));
    macro_rules! people {
        ($table:ident) => {{
            let links = $table::table
                .filter($table::group_id.eq_any(ids))
                .order(($table::group_id, $table::user_id))
                .select(($table::group_id, $table::user_id));
            let mut people = HashMap::<DbUuid, Vec<DbUuid>>::new();
            for (group, user) in links.load::<(DbUuid, DbUuid)>(conn)? {
                people.entry(group).or_default().push(user);
            }
            people
        }};
    }
    let (mut members, mut admins) = (people!(group_members), people!(group_admins));
    let rows = groups::table.filter(groups::id.eq_any(ids)).select((
        (groups::id, groups::name, groups::description, groups::open, groups::created_by),
        (groups::created_at, groups::updated_at, groups::deleted_at),
    ));
    let group = |((id, name, description, open, created_by), (created_at, updated_at, deleted_at)): Row| {
        let (members, admins) = (members.remove(&id).unwrap_or_default(), admins.remove(&id).unwrap_or_default());
        (id, Group { name, description, open, created_by, created_at, updated_at, deleted_at, members, admins })
    };
    Ok(rows.load::<Row>(conn)?.into_iter().map(group).collect())
}

fn insert(conn: &mut AnyConnection, new: &[(DbUuid, Group)]) -> Result<(), Error> {
    let rows: Vec<_> = new
        .iter()
        .map(|(id, group)| {
            (
                (groups::id.eq(*id), groups::kind.eq(MADE_HERE), groups::name.eq(&group.name)),
                (groups::description.eq(&group.description), groups::open.eq(group.open)),
                (groups::created_by.eq(group.created_by), groups::created_at.eq(group.created_at)),
                (groups::updated_at.eq(group.updated_at), groups::deleted_at.eq(group.deleted_at)),
            )
        })
        .collect();
    with_connection!(conn, c => diesel::insert_into(groups::table).values(&rows).execute(c))?;
    insert_people(conn, new)
}

fn update(conn: &mut AnyConnection, id: DbUuid, group: &Group) -> Result<(), Error> {
    diesel::update(groups::table.find(id))
        .set((
            (groups::name.eq(&group.name), groups::description.eq(&group.description), groups::open.eq(group.open)),
            (groups::created_by.eq(group.created_by), groups::created_at.eq(group.created_at)),
            (groups::updated_at.eq(group.updated_at), groups::deleted_at.eq(group.deleted_at)),
        ))
        .execute(conn)?;
    Ok(())
}

fn insert_people(conn: &mut AnyConnection, new: &[(DbUuid, Group)]) -> Result<(), Error> {
    macro_rules! insert_links {
        ($table:ident, $people:ident) => {
            let links = new.iter().flat_map(|(id, group)| group.$people.iter().map(|user| (*id, *user)));
            let rows: Vec<_> =
                links.map(|(id, user)| ($table::group_id.eq(id), $table::user_id.eq(user))).collect();
            for rows in rows.chunks(CHUNK) {
                with_connection!(conn, c => diesel::insert_into($table::table).values(rows).execute(c))?;
            }
        };
    }
    insert_links!(group_members, members);
    insert_links!(group_admins, admins);
    Ok(())
}
