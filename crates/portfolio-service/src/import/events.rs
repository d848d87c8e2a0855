//! Imports levels of events. The events come from the booking-service.

use std::collections::HashMap;

use diesel::prelude::*;
use import::{CHUNK, Import, merge::Imported, row::SourceTable};
use serde::Serialize;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    with_connection,
};

use crate::schema::event_levels;

pub const LEVELS: SourceTable = SourceTable::new("event_level_relations", &["id", "level"]);

/// The level instead of one that does not exist, so that nobody sees more than was meant.
const PRIVATE: i16 = 2;

#[derive(Serialize)]
struct Level(i16);

impl Imported for Level {
    const KIND: &'static str = LEVELS.name;
}

/// Imports the levels.
pub fn import_levels(conn: &mut AnyConnection, import: &mut Import) -> Result<(), Error> {
    import.each_page(conn, &LEVELS, "id", |conn, import, page| {
        let ids: Vec<_> = page.iter().map(|(id, _)| *id).collect();
        let mut incoming = Vec::new();
        for (id, row) in page {
            let level =
                row.number("level").and_then(|level| i16::try_from(level).ok()).filter(|level| (0..=2).contains(level));
            let level = level.unwrap_or_else(|| {
                import.report.changed(&row, "level", PRIVATE);
                PRIVATE
            });
            incoming.push((id, Level(level)));
        }
        let present = load(conn, &ids)?;
        let changes = import.merge(conn, incoming, &present)?;
        for (id, Level(level)) in changes.updated {
            diesel::update(event_levels::table.find(id)).set(event_levels::level.eq(level)).execute(conn)?;
        }
        let row = |(id, Level(level)): (DbUuid, Level)| (event_levels::event_id.eq(id), event_levels::level.eq(level));
        let rows: Vec<_> = changes.added.into_iter().map(row).collect();
        with_connection!(conn, c => diesel::insert_into(event_levels::table).values(&rows).execute(c))?;
        Ok(())
    })?;
    for ids in import.removed_from_source::<Level>(conn, load)?.chunks(CHUNK) {
        diesel::delete(event_levels::table.filter(event_levels::event_id.eq_any(ids))).execute(conn)?;
    }
    Ok(())
}

fn load(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<HashMap<DbUuid, Level>, Error> {
    let levels = event_levels::table.filter(event_levels::event_id.eq_any(ids));
    let levels: Vec<(DbUuid, i16)> = levels.select((event_levels::event_id, event_levels::level)).load(conn)?;
    Ok(levels.into_iter().map(|(id, level)| (id, Level(level))).collect())
}
