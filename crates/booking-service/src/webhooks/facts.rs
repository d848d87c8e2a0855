//! The rows of the history as webhooks read them.

use std::collections::{HashMap, HashSet};

use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection,
        schema::history,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{Action, By},
};

use crate::schema::events;

/// A row of the history without what has changed, which may be long.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = history)]
pub struct Fact {
    pub id: i64,
    pub at: DbTimestamp,
    pub origin: By,
    pub request_id: Option<String>,
    pub object_type: String,
    pub object_id: DbUuid,
    pub action: Action,
}

impl Fact {
    /// Whether something happened. An import writes what was there before.
    pub fn is_news(&self) -> bool {
        self.origin != By::Import
    }

    /// Whether the object exists after it; `None` if that is as before.
    pub fn exists(&self) -> Option<bool> {
        match self.action {
            Action::Created | Action::Restored => Some(true),
            Action::Deleted => Some(false),
            _ => None,
        }
    }
}

/// Whether changes of objects of this kind are collected for a minute.
pub fn is_collected(object_type: &str) -> bool {
    matches!(object_type, "event" | "series" | "group")
}

/// The rows of events that changed in an operation on their series: the row of the series tells of them. No operation
/// on a series restores an event.
pub fn told_by_series(conn: &mut AnyConnection, rows: &[Fact]) -> Result<HashSet<i64>, Error> {
    let ids: HashSet<_> = rows.iter().filter(|row| row.object_type == "event").map(|row| row.object_id).collect();
    let query = events::table.filter(events::id.eq_any(ids)).filter(events::series_id.is_not_null());
    let series: Vec<(DbUuid, Option<DbUuid>)> = query.select((events::id, events::series_id)).load(conn)?;
    if series.is_empty() {
        return Ok(HashSet::new());
    }
    let ids: HashSet<_> = series.iter().filter_map(|(_, series)| *series).collect();
    let rows_of_series = history::table.filter(history::object_id.eq_any(ids)).select(Fact::as_select());
    let rows_of_series: Vec<Fact> = rows_of_series.load(conn)?;
    let restorations = rows.iter().filter(|row| row.action == Action::Restored);
    let restorations: HashSet<_> = restorations.map(|row| (row.object_id, row.at, &row.request_id)).collect();
    let operations: HashSet<_> = rows_of_series.iter().map(|row| (row.object_id, row.at, &row.request_id)).collect();
    let series: HashMap<_, _> = series.into_iter().collect();
    let is_told = |row: &&Fact| {
        let series = series.get(&row.object_id).copied().flatten();
        series.is_some_and(|series| operations.contains(&(series, row.at, &row.request_id)))
            && !restorations.contains(&(row.object_id, row.at, &row.request_id))
    };
    Ok(rows.iter().filter(is_told).map(|row| row.id).collect())
}
