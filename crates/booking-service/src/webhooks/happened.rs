//! What has become of an object within a minute: nothing is sent when nothing happened.

use diesel::{dsl::max, prelude::*};
use serde_json::{Map, Value};
use service_kit::{
    database::{AnyConnection, schema::history, types::DbTimestamp},
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
use crate::schema::deliveries;

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
}

impl Happened {
    /// What rows of an object, in their order, come to; `None` if the object is as it was.
    fn of(conn: &mut AnyConnection, rows: &[Fact]) -> Result<Option<Self>, Error> {
        let Some(first) = rows.first() else { return Ok(None) };
        let mut changes = Map::new();
        for rows in rows.chunks(AT_ONCE) {
            let ids = rows.iter().map(|row| row.id);
            let query = history::table.filter(history::id.eq_any(ids.collect::<Vec<_>>())).order(history::id);
            for text in query.select(history::changes).load::<String>(conn)? {
                standard::add_changes(&mut changes, serde_json::from_str(&text).unwrap_or_default());
            }
        }
        if rows.len() > 1 {
            changes.retain(|_, change| standard::is_change(change));
        }
        let was_there = !matches!(first.action, Action::Created | Action::Restored);
        let is_existence = |action: &Action| matches!(action, Action::Created | Action::Restored | Action::Deleted);
        let actions = || rows.iter().rev().map(|row| row.action);
        let last = actions().find(is_existence);
        let action = match (was_there, last.map_or(was_there, |action| action != Action::Deleted)) {
            (false, false) => return Ok(None),
            (true, true) if rows.len() > 1 && changes.is_empty() => return Ok(None),
            (true, true) => actions().find(|action| !is_existence(action)).unwrap_or(first.action),
            (true, false) => Action::Deleted,
            (false, true) => first.action,
        };
        Ok(Some(Self { object_type: first.object_type.clone(), action, changes }))
    }

    /// Whether people want to know of it.
    #[must_use]
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
        return Ok((Happened::of(conn, &[own])?, Vec::new()));
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
    let of_series = told_by_series(conn, &rows)?;
    rows.retain(|row| {
        let is_said = row.at <= from || said_until.is_some_and(|until| *row.at <= until);
        row.id == id || (!is_said && row.is_news() && !of_series.contains(&row.id))
    });
    // Those that have not become deliveries yet are not to become any.
    let later = rows.iter().filter(|row| row.id > id);
    let merged = later.filter_map(|row| NewDelivery::of_row(webhook, row)).collect();
    Ok((Happened::of(conn, &rows)?, merged))
}
