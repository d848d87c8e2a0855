//! Tags and groups.

use std::collections::{HashMap, HashSet};

use diesel::prelude::*;
use import::{
    CHUNK, Import,
    merge::Imported,
    row::{SourceRow, SourceTable},
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

pub const TAGS: SourceTable = SourceTable::new("tags", &["id", "name", "created_at", "updated_at", "deleted_at"]);
pub const GROUPS: SourceTable = SourceTable::new(
    "groups",
    &["id", "name", "description", "join_freely", "created_by_refer", "created_at", "updated_at", "deleted_at"],
);
pub const MEMBERS: SourceTable = SourceTable::new("group_members", &["user_id", "group_id", "deleted_at"]);
pub const ADMINS: SourceTable = SourceTable::new("group_admins", &["user_id", "group_id", "deleted_at"]);

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
        for (source_id, row) in page {
            if row.is_deleted() {
                import.report.left_out(TAGS.name, &row.label(), "is deleted there, and tags are not deleted here");
                continue;
            }
            let mut columns = import.columns(&row);
            let (name, (created_at, updated_at)) = (columns.text("name"), columns.created_and_updated());
            if let Some(other) = by_name.get(&key(&name)) {
                import.report.count(TAGS.name).same += 1;
                targets.insert(source_id, *other);
                continue;
            }
            let id = if ids.insert(source_id) {
                source_id
            } else {
                // Such as a tag that has been renamed since an earlier import.
                let new = DbUuid::new();
                import.columns(&row).changed("id", &format!("{new}, because another tag here has its id"));
                new
            };
            import.report.count(TAGS.name).added += 1;
            import.report.check_limits(TAGS.name, id, &[("name", &name, 1..=16)]);
            by_name.insert(key(&name), id);
            targets.insert(source_id, id);
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
            if others.contains(&id) {
                import.report.left_out(GROUPS.name, &row.label(), "a group of the directory has its id");
            } else {
                incoming.push((id, read(import, id, &row, users, people)));
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
) -> Group {
    let mut columns = import.columns(row);
    let (created_at, updated_at) = columns.created_and_updated();
    let group = Group {
        name: columns.text("name"),
        description: columns.text("description"),
        open: columns.flag("join_freely"),
        created_by: columns.creator(&["created_by_refer"], users),
        created_at,
        updated_at,
        deleted_at: columns.time("deleted_at"),
        members,
        admins,
    };
    if group.admins.is_empty() && group.deleted_at.is_none() {
        import.report.note("groups without administrators", || id.to_string());
    }
    let texts = [("name", group.name.as_str(), 1..=32), ("description", &group.description, 0..=10_000)];
    import.report.check_limits(GROUPS.name, id, &texts);
    group
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
