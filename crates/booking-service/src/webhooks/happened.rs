//! What has become of an object within a minute: nothing is sent when nothing happened.
//!
//! An operation on a series has rows of its events, of which the row of the series tells. It also counts what operations
//! on the events alone undo of it until the end of its minute, and only what comes after that is said of an event.

use std::collections::{BTreeMap, HashSet};

use diesel::{
    dsl::{max, min},
    prelude::*,
};
use serde_json::{Map, Value, json};
use service_kit::{
    database::{
        AnyConnection,
        schema::history,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::Action,
};

use super::{
    facts::{Fact, is_collected, told_by_series},
    kinds::Status,
    outbox::{MERGED, NewDelivery, cause},
    queries::{Delivery, Webhook},
    standard,
};
use crate::schema::{deliveries, events};

/// The most changes of an object that become one.
const MOST: i64 = 1000;

/// The most earlier rows of an object that are looked at.
const MOST_EARLIER: i64 = 100;

/// The rows whose changes are in memory at once.
const AT_ONCE: usize = 50;

/// The fields of an event or a series whose changes are announced: when and where it is, what it is called and for whom.
const ANNOUNCED: [&str; 9] =
    ["name", "timeStart", "timeEnd", "place", "groupId", "startTime", "endTime", "rrule", "events"];

/// What was done to an object in the end.
#[derive(Debug)]
pub struct Happened {
    /// The kind of the object.
    pub object_type: String,
    /// What was done.
    pub action: Action,
    /// The fields that have changed.
    pub changes: Map<String, Value>,
    /// The events that a series has no longer.
    pub removed: Vec<DbUuid>,
}

/// Whether an object existed before rows of it and whether it exists after them; `None` if none of them says so.
fn existence<'a>(rows: impl IntoIterator<Item = &'a Fact>) -> Option<(bool, bool)> {
    let mut exists = rows.into_iter().filter_map(Fact::exists);
    let first = exists.next()?;
    Some((!first, exists.last().unwrap_or(first)))
}

/// The fields that rows of an object, in their order, have changed.
fn changes_of(conn: &mut AnyConnection, rows: &[&Fact]) -> Result<Map<String, Value>, Error> {
    let mut changes = Map::new();
    for rows in rows.chunks(AT_ONCE) {
        let ids = rows.iter().map(|row| row.id);
        let query = history::table.filter(history::id.eq_any(ids.collect::<Vec<_>>())).order(history::id);
        for text in query.select(history::changes).load::<String>(conn)? {
            standard::add_changes(&mut changes, serde_json::from_str(&text).unwrap_or_default());
        }
    }
    Ok(changes)
}

/// What operations on the series of an event have done to it.
#[derive(Debug, Default)]
struct BySeries {
    /// Their rows of the event.
    rows: HashSet<i64>,
    /// Until when the series says whether the event exists.
    until: Option<DbTimestamp>,
}

impl BySeries {
    /// What a webhook hears by the series of an event.
    fn of(conn: &mut AnyConnection, webhook: &Webhook, rows: &[Fact]) -> Result<Self, Error> {
        let told = told_by_series(conn, rows)?;
        let existence = rows.iter().filter(|row| told.contains(&row.id) && row.exists().is_some());
        let mut until = None;
        for row in existence {
            let series = events::table.filter(events::id.eq(row.object_id)).select(events::series_id.assume_not_null());
            // The first one that can say it. Without one, the webhook takes no interest in the series.
            let first = deliveries::table
                .filter(deliveries::webhook_id.eq(webhook.id))
                .filter(deliveries::object_id.eq_any(series))
                .filter(deliveries::at.ge(DbTimestamp(row.at.plus(-MERGED))))
                .filter(deliveries::at.le(DbTimestamp(row.at.plus(MERGED))))
                .filter(deliveries::status.ne(Status::Merged))
                .select(min(deliveries::at));
            let end = first.first::<Option<DbTimestamp>>(conn)?.map_or(row.at.plus(MERGED * 2), |at| at.plus(MERGED));
            until = until.max(Some(DbTimestamp(end)));
        }
        Ok(Self { rows: told, until })
    }
}

impl Happened {
    /// What rows of an object, in their order, come to; `None` if there is nothing to say.
    fn of(conn: &mut AnyConnection, rows: &[Fact], by_series: &BySeries) -> Result<Option<Self>, Error> {
        let Some(first) = rows.first() else { return Ok(None) };
        let (before, after) = existence(rows).unwrap_or((true, true));
        let said = existence(rows.iter().filter(|row| Some(row.at) <= by_series.until));
        let before = said.map_or(before, |(_, said)| said);
        let is_new = !before && rows.iter().any(|row| row.action == Action::Created);
        let own: Vec<_> = rows.iter().filter(|row| is_new || !by_series.rows.contains(&row.id)).collect();
        let mut changes = changes_of(conn, &own)?;
        if rows.len() > 1 {
            changes.retain(|_, change| standard::is_change(change));
        }
        if before == after {
            changes.remove("deleted");
        }
        let action = match (before, after) {
            (false, false) => return Ok(None),
            (true, true) if rows.len() > 1 && changes.is_empty() => return Ok(None),
            (true, true) => {
                let change = own.iter().rev().find(|row| row.exists().is_none());
                change.map_or(first.action, |row| row.action)
            }
            (true, false) => Action::Deleted,
            (false, true) if is_new => Action::Created,
            (false, true) => Action::Restored,
        };
        Ok(Some(Self { object_type: first.object_type.clone(), action, changes, removed: Vec::new() }))
    }

    /// What rows of a series, in their order, come to at a time; `None` if there is nothing to say. The rows of its
    /// events say which ones it has more and which ones less.
    fn of_series(conn: &mut AnyConnection, rows: &[Fact], until: DbTimestamp) -> Result<Option<Self>, Error> {
        let Some(first) = rows.first() else { return Ok(None) };
        let of_series = events::table.filter(events::series_id.eq(first.object_id)).select(events::id);
        let ids: Vec<DbUuid> = of_series.load(conn)?;
        let of_events = history::table.filter(history::object_id.eq_any(ids)).filter(history::at.ge(first.at));
        let of_events = of_events.filter(history::at.le(until)).order(history::id).select(Fact::as_select());
        let of_events: Vec<Fact> = of_events.load(conn)?;
        let told = told_by_series(conn, &of_events)?;
        let mut by_event = BTreeMap::<DbUuid, Vec<&Fact>>::new();
        for row in &of_events {
            by_event.entry(row.object_id).or_default().push(row);
        }
        by_event.retain(|_, rows| rows.iter().any(|row| told.contains(&row.id) && row.exists().is_some()));
        let ids = |change: (bool, bool)| -> Vec<_> {
            let changed = by_event.iter().filter(|(_, rows)| existence(rows.iter().copied()) == Some(change));
            changed.map(|(id, _)| *id).collect()
        };
        let (added, removed) = (ids((false, true)), ids((true, false)));

        let mut changes = changes_of(conn, &rows.iter().collect::<Vec<_>>())?;
        changes.insert("events".to_owned(), json!({"added": added, "removed": removed}));
        changes.retain(|_, change| standard::is_change(change));
        let has = |action: Action| rows.iter().any(|row| row.action == action);
        let action = match has(Action::Created) {
            true if added.is_empty() => return Ok(None),
            true => Action::Created,
            false if changes.is_empty() => return Ok(None),
            false if has(Action::Deleted) && !removed.is_empty() => Action::Deleted,
            false => Action::Changed,
        };
        Ok(Some(Self { object_type: first.object_type.clone(), action, changes, removed }))
    }

    /// Whether people want to know of it.
    pub fn is_announced(&self) -> bool {
        !matches!(self.action, Action::Changed | Action::Reverted)
            || ANNOUNCED.iter().any(|field| self.changes.contains_key(*field))
    }
}

/// What has happened to the object of a delivery until a minute after it, and the later deliveries that would say the
/// same. What happened in the minute before counts too, if no earlier delivery has said it, and rows that the webhook
/// takes no interest in: whoever hears only of deletions hears of none that undoes a creation.
pub fn collect(
    conn: &mut AnyConnection,
    delivery: &Delivery,
    webhook: &Webhook,
) -> Result<(Option<Happened>, Vec<NewDelivery>), Error> {
    let Some(id) = delivery.history_id else { return Ok((None, Vec::new())) };
    let of_object = || history::table.filter(history::object_id.eq(delivery.object_id)).select(Fact::as_select());
    let later: Vec<Fact> = of_object().filter(history::id.ge(id)).order(history::id).limit(MOST).load(conn)?;
    let Some(own) = later.first().filter(|row| row.id == id).cloned() else { return Ok((None, Vec::new())) };
    if !is_collected(&own.object_type) {
        return Ok((Happened::of(conn, &[own], &BySeries::default())?, Vec::new()));
    }
    let earlier = of_object().filter(history::id.lt(id)).order(history::id.desc()).limit(MOST_EARLIER);
    let (from, until) = (DbTimestamp(own.at.plus(-MERGED * 2)), DbTimestamp(own.at.plus(MERGED)));
    let mut rows: Vec<Fact> = earlier.load(conn)?.into_iter().take_while(|row: &Fact| row.at > from).collect();
    rows.reverse();
    rows.extend(later.into_iter().take_while(|row| row.at <= until));

    let others = deliveries::table
        .filter(deliveries::webhook_id.eq(delivery.webhook_id))
        .filter(deliveries::cause.eq_any(rows.iter().map(|row| cause(row.id)).collect::<Vec<_>>()))
        .filter(deliveries::id.lt(delivery.id))
        .filter(deliveries::status.ne(Status::Merged))
        .select(max(deliveries::at));
    let said_until = others.first::<Option<DbTimestamp>>(conn)?.map(|at| at.plus(MERGED));
    let from = DbTimestamp(own.at.plus(-MERGED));
    rows.retain(|row| {
        let is_said = row.at < from || said_until.is_some_and(|until| *row.at <= until);
        row.id == id || (!is_said && row.is_news())
    });
    let by_series = BySeries::of(conn, webhook, &rows)?;
    // Those that have not become deliveries yet are not to become any.
    let later = rows.iter().filter(|row| row.id > id && !by_series.rows.contains(&row.id));
    let merged = later.filter_map(|row| NewDelivery::of_row(webhook, row)).collect();
    let happened = match own.object_type.as_str() {
        "series" => Happened::of_series(conn, &rows, until)?,
        _ => Happened::of(conn, &rows, &by_series)?,
    };
    Ok((happened, merged))
}
