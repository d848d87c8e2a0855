//! Answers to events. They are merged separately from the events, because a new answer in this database must not
//! prevent the update of its event.

use std::collections::{HashMap, HashSet};

use diesel::prelude::*;
use import::{CHUNK, Import, columns::Columns, merge::Imported, row::SourceTable};
use serde::Serialize;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    with_connection,
};

use super::targets::Targets;
use crate::{events::queries::Schedule, schema::attendees};

pub const ATTENDEES: SourceTable = SourceTable::new("event_attendees", &["user_id", "event_id", "schedule"]);

#[derive(Serialize)]
struct Answers(Vec<(DbUuid, Schedule)>);

impl Imported for Answers {
    const KIND: &'static str = "events with answers";

    fn is_blank(&self) -> bool {
        self.0.is_empty()
    }
}

/// Imports the answers to the events `ids` that are in this database (`existing`).
pub fn import_answers(
    conn: &mut AnyConnection,
    import: &mut Import,
    targets: &Targets,
    ids: &[DbUuid],
    existing: &HashSet<DbUuid>,
) -> Result<(), Error> {
    let answer = |columns: &mut Columns<'_>| {
        let user = columns.member(&targets.users)?;
        let schedule = match columns.row.number("schedule") {
            Some(2) => Schedule::Attendance,
            Some(3) => Schedule::Absent,
            number => {
                if number != Some(1) {
                    columns.changed("schedule", "1");
                }
                Schedule::Pending
            }
        };
        Ok((user, schedule))
    };
    let mut answers = import.converted_children(&ATTENDEES, "event_id", ids, answer)?;
    let mut incoming = Vec::new();
    for id in ids.iter().filter(|id| existing.contains(id)) {
        let mut answers = answers.remove(id).unwrap_or_default();
        answers.dedup_by_key(|(user, _)| *user);
        import.record_seen(Answers::KIND, *id);
        incoming.push((*id, Answers(answers)));
    }
    let links = attendees::table
        .filter(attendees::event_id.eq_any(ids))
        .order((attendees::event_id, attendees::user_id))
        .select((attendees::event_id, attendees::user_id, attendees::schedule));
    let mut present: HashMap<_, _> = existing.iter().map(|id| (*id, Answers(Vec::new()))).collect();
    for (event, user, schedule) in links.load::<(DbUuid, DbUuid, Schedule)>(conn)? {
        present.entry(event).or_insert(Answers(Vec::new())).0.push((user, schedule));
    }
    let changes = import.merge(conn, incoming, &present)?;
    let updated: Vec<_> = changes.updated.iter().map(|(id, _)| *id).collect();
    diesel::delete(attendees::table.filter(attendees::event_id.eq_any(&updated))).execute(conn)?;
    let written = changes.added.iter().chain(&changes.updated);
    let rows: Vec<_> = written
        .flat_map(|(id, Answers(answers))| answers.iter().map(|(user, schedule)| (*id, *user, *schedule)))
        .map(|(id, user, schedule)| {
            (
                attendees::event_id.eq(id),
                attendees::user_id.eq(user),
                attendees::schedule.eq(schedule),
                attendees::changed_at.eq(targets.now),
            )
        })
        .collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(attendees::table).values(rows).execute(c))?;
    }
    Ok(())
}
