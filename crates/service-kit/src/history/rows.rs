//! The rows of the history in the database.

use diesel::{dsl::IntoBoxed, prelude::*};
use serde_json::{Value, json};

use super::{
    author::{Author, By},
    difference::{Changes, difference},
    kind::{Action, Kind},
};
use crate::{
    database::{
        AnyConnection, MultiBackend, PageBounds, ROWS_PER_STATEMENT,
        schema::history,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

/// What was done to an object.
#[derive(Debug)]
pub struct Entry {
    /// The kind of the object.
    pub kind: &'static Kind,
    /// Its id.
    pub object: DbUuid,
    /// What was done.
    pub action: Action,
    /// The fields that have changed.
    pub changes: Changes,
}

/// Writes rows, and counts them for the daily limit: but for deletions, and for polls whose events count.
pub fn record(conn: &mut AnyConnection, author: &Author, entries: &[Entry]) -> Result<(), Error> {
    let is_counted = |entry: &&Entry| !matches!(entry.action, Action::Deleted | Action::Confirmed);
    author.count(entries.iter().filter(is_counted).count());
    let row = |entry: &Entry| {
        (
            history::at.eq(author.at),
            history::actor.eq(author.actor),
            history::origin.eq(author.by),
            history::token.eq(author.token.as_deref().map(str::to_owned)),
            history::request_id.eq(author.request_id.as_deref().map(str::to_owned)),
            history::object_type.eq(entry.kind.name),
            history::object_id.eq(entry.object),
            history::action.eq(entry.action),
            history::changes.eq(Value::Object(entry.changes.clone()).to_string()),
        )
    };
    if let [entry] = entries {
        // Stays prepared.
        with_connection!(conn, c => diesel::insert_into(history::table).values(row(entry)).execute(c)?);
        return Ok(());
    }
    for entries in entries.chunks(ROWS_PER_STATEMENT) {
        let rows: Vec<_> = entries.iter().map(row).collect();
        with_connection!(conn, c => diesel::insert_into(history::table).values(rows).execute(c)?);
    }
    Ok(())
}

/// Writes the row of an object if it had other fields before.
pub fn changed(
    conn: &mut AnyConnection,
    author: &Author,
    (kind, object, action): (&'static Kind, DbUuid, Action),
    before: &Value,
    after: &Value,
) -> Result<(), Error> {
    let changes = difference(kind, before, after);
    if changes.is_empty() { Ok(()) } else { record(conn, author, &[Entry { kind, object, action, changes }]) }
}

/// Writes the row of an object that has none: that it was created with these fields. It was imported, or is older than the
/// history.
pub fn began(
    conn: &mut AnyConnection,
    at: DbTimestamp,
    (kind, object): (&'static Kind, DbUuid),
    fields: &Value,
) -> Result<(), Error> {
    let rows = history::table.filter(history::object_id.eq(object)).select(history::id);
    match rows.first::<i64>(conn).optional()? {
        Some(_) => Ok(()),
        None => created(conn, &Author::new(By::Import, at), kind, [(object, fields.clone())]),
    }
}

/// Writes the rows of new objects with these fields.
pub fn created(
    conn: &mut AnyConnection,
    author: &Author,
    kind: &'static Kind,
    objects: impl IntoIterator<Item = (DbUuid, Value)>,
) -> Result<(), Error> {
    let entry = |(object, fields)| {
        let changes = difference(kind, &Value::Null, &fields);
        Entry { kind, object, action: Action::Created, changes }
    };
    record(conn, author, &objects.into_iter().map(entry).collect::<Vec<_>>())
}

/// Writes the rows of objects that have been deleted. Their fields stay as they were.
pub fn deleted(
    conn: &mut AnyConnection,
    author: &Author,
    kind: &'static Kind,
    objects: &[DbUuid],
) -> Result<(), Error> {
    let changes = Changes::from_iter([("deleted".to_owned(), json!([false, true]))]);
    let entry = |object: &DbUuid| Entry { kind, object: *object, action: Action::Deleted, changes: changes.clone() };
    record(conn, author, &objects.iter().map(entry).collect::<Vec<_>>())
}

/// Writes the row of an object whose deletion is taken back.
pub fn restored(conn: &mut AnyConnection, author: &Author, kind: &'static Kind, object: DbUuid) -> Result<(), Error> {
    let changes = Changes::from_iter([("deleted".to_owned(), json!([true, false]))]);
    record(conn, author, &[Entry { kind, object, action: Action::Restored, changes }])
}

/// A row.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = history)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct Row {
    pub id: i64,
    pub at: DbTimestamp,
    pub actor: Option<DbUuid>,
    pub origin: By,
    pub token: Option<String>,
    pub request_id: Option<String>,
    pub object_type: String,
    pub object_id: DbUuid,
    pub action: Action,
    pub changes: String,
}

/// One page of the rows of an object, the newest first.
pub fn load(conn: &mut AnyConnection, object: DbUuid, bounds: &PageBounds<i64>) -> Result<Vec<Row>, Error> {
    let mut query = history::table.filter(history::object_id.eq(object)).into_boxed();
    if let Some(id) = bounds.after {
        query = query.filter(history::id.lt(id));
    }
    Ok(query.order(history::id.desc()).limit(bounds.rows).select(Row::as_select()).load(conn)?)
}

/// The rows of an object from this one on, the newest first; `None` if the object has no such row.
pub fn since(conn: &mut AnyConnection, object: DbUuid, row: i64) -> Result<Option<Vec<Row>>, Error> {
    let rows = history::table.filter(history::object_id.eq(object)).filter(history::id.ge(row));
    let rows: Vec<Row> = rows.order(history::id.desc()).select(Row::as_select()).load(conn)?;
    Ok(if rows.last().is_some_and(|last| last.id == row) { Some(rows) } else { None })
}

/// Which rows to list.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only changes by this user.
    pub actor: Option<DbUuid>,
    /// Only changes of this object.
    pub object: Option<DbUuid>,
    /// Only these changes.
    pub action: Option<Action>,
    /// Only changes at this time or later.
    pub from: Option<DbTimestamp>,
    /// Only changes before this time.
    pub to: Option<DbTimestamp>,
}

impl Selection {
    fn query(&self) -> IntoBoxed<'static, history::table, MultiBackend> {
        let mut query = history::table.into_boxed();
        if let Some(object) = self.object {
            query = query.filter(history::object_id.eq(object));
        }
        if let Some(actor) = self.actor {
            query = query.filter(history::actor.eq(actor));
        }
        if let Some(action) = self.action {
            query = query.filter(history::action.eq(action));
        }
        if let Some(from) = self.from {
            query = query.filter(history::at.ge(from));
        }
        if let Some(to) = self.to {
            query = query.filter(history::at.lt(to));
        }
        query
    }
}

/// One page of the selected rows of all objects, the newest first.
pub fn load_selected(
    conn: &mut AnyConnection,
    selection: &Selection,
    bounds: &PageBounds<(DbTimestamp, i64)>,
) -> Result<Vec<Row>, Error> {
    let mut query = selection.query();
    if let Some((at, id)) = bounds.after {
        query = query.filter(history::at.le(at)).filter(history::at.lt(at).or(history::id.lt(id)));
    }
    let query = query.order((history::at.desc(), history::id.desc())).limit(bounds.rows);
    Ok(query.select(Row::as_select()).load(conn)?)
}

/// Removes the oldest rows before a time, at most `limit`, and returns how many.
pub fn remove_before(conn: &mut AnyConnection, oldest: DbTimestamp, limit: usize) -> Result<usize, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let old = history::table.filter(history::at.lt(oldest)).order((history::at, history::id)).limit(limit);
    let old: Vec<i64> = old.select(history::id).load(conn)?;
    Ok(diesel::delete(history::table.filter(history::id.eq_any(old))).execute(conn)?)
}
