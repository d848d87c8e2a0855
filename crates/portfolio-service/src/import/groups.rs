//! Imports the links of groups and the spans of their members.

use std::collections::{HashMap, HashSet};

use club_directory::Snapshot;
use diesel::prelude::*;
use import::{CHUNK, Import, columns::Columns, merge::Imported, row::SourceTable};
use serde::Serialize;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    with_connection,
};

use super::{
    columns::{link, span},
    targets::Targets,
};
use crate::{
    schema::{group_memberships, groups},
    span::Half,
};

/// The first and the last semester.
type Span = (Half, Option<Half>);

pub const GROUPS: SourceTable = SourceTable::new("groups", &["group_id", "name", "link", "description"]);
pub const MEMBERS: SourceTable = SourceTable::new(
    "group_user_belongings",
    &["user_id", "group_id", "since_year", "since_semester", "until_year", "until_semester"],
);

/// The heading of the groups that the directory does not have, in the report.
const UNKNOWN: &str = "groups that the directory does not know; new ones have no administrators";

#[derive(Serialize)]
struct Link(String);

impl Imported for Link {
    const KIND: &'static str = GROUPS.name;

    fn is_blank(&self) -> bool {
        self.0.is_empty()
    }
}

/// Adds the groups that are missing, and imports the links of all groups and the spans of their members.
pub fn import_groups(
    conn: &mut AnyConnection,
    import: &mut Import,
    targets: &Targets,
    directory: &Snapshot,
) -> Result<(), Error> {
    let directory_ids: HashSet<_> = directory.groups.iter().map(|group| DbUuid(group.id)).collect();
    import.each_page(conn, &GROUPS, "group_id", |conn, import, page| {
        let ids: Vec<_> = page.iter().map(|(id, _)| *id).collect();
        let existing: Vec<DbUuid> = groups::table.filter(groups::id.eq_any(&ids)).select(groups::id).load(conn)?;
        let existing: HashSet<_> = existing.into_iter().collect();
        let (mut new, mut incoming) = (Vec::new(), Vec::new());
        for (id, row) in page {
            if !existing.contains(&id) {
                let mut columns = import.columns(&row);
                new.push((
                    (groups::id.eq(id), groups::name.eq(columns.text("name"))),
                    (groups::link.eq(""), groups::description.eq(columns.text("description"))),
                    (groups::created_at.eq(targets.now), groups::updated_at.eq(targets.now)),
                ));
            }
            if !directory_ids.contains(&id) {
                import.report.note(UNKNOWN, || id.to_string());
            }
            incoming.push((id, Link(link(&mut import.columns(&row), "link"))));
        }
        with_connection!(conn, c => diesel::insert_into(groups::table).values(&new).execute(c))?;
        let links = groups::table.filter(groups::id.eq_any(&ids)).select((groups::id, groups::link));
        let present = links.load::<(DbUuid, String)>(conn)?.into_iter().map(|(id, link)| (id, Link(link)));
        let changes = import.merge(conn, incoming, &present.collect())?;
        for (id, Link(link)) in changes.added.into_iter().filter(|(_, link)| !link.is_blank()).chain(changes.updated) {
            diesel::update(groups::table.find(id))
                .set((groups::link.eq(link), groups::updated_at.eq(targets.now)))
                .execute(conn)?;
        }
        import_spans(conn, import, targets, &ids)
    })
}

/// Adds the missing spans. The directory says who is in a group now, so an import extends open spans to an earlier
/// start and never ends one.
fn import_spans(conn: &mut AnyConnection, import: &mut Import, targets: &Targets, ids: &[DbUuid]) -> Result<(), Error> {
    let member = |columns: &mut Columns<'_>| Ok((columns.member(&targets.users)?, span(columns)));
    let spans = import.converted_children(&MEMBERS, "group_id", ids, member)?;
    let existing = group_memberships::table.filter(group_memberships::group_id.eq_any(ids)).select((
        group_memberships::group_id,
        group_memberships::user_id,
        group_memberships::since,
        group_memberships::until,
    ));
    let mut by_member: HashMap<(DbUuid, DbUuid), Vec<Span>> = HashMap::new();
    for (group, user, since, until) in existing.load::<(DbUuid, DbUuid, Half, Option<Half>)>(conn)? {
        by_member.entry((group, user)).or_default().push((since, until));
    }
    let mut rows = Vec::new();
    for (group, user, (since, until)) in
        spans.into_iter().flat_map(|(group, spans)| spans.into_iter().map(move |(user, span)| (group, user, span)))
    {
        let present = by_member.entry((group, user)).or_default();
        let open = present.iter_mut().find(|(_, until)| until.is_none()).filter(|_| until.is_none());
        if let Some((from, _)) = open {
            if since < *from {
                import.report.count(MEMBERS.name).updated += 1;
                *from = since;
                let open = group_memberships::table
                    .filter(group_memberships::group_id.eq(group))
                    .filter(group_memberships::user_id.eq(user))
                    .filter(group_memberships::until.is_null());
                diesel::update(open).set(group_memberships::since.eq(since)).execute(conn)?;
                continue;
            }
            import.report.count(MEMBERS.name).same += 1;
        } else if present.iter().any(|(from, _)| *from == since) {
            import.report.count(MEMBERS.name).same += 1;
        } else {
            import.report.count(MEMBERS.name).added += 1;
            present.push((since, until));
            rows.push((
                (group_memberships::id.eq(DbUuid::new()), group_memberships::group_id.eq(group)),
                (group_memberships::user_id.eq(user), group_memberships::since.eq(since)),
                group_memberships::until.eq(until),
            ));
        }
    }
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(group_memberships::table).values(rows).execute(c))?;
    }
    Ok(())
}
