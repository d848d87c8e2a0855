//! The history as the outbox: each row of it that a webhook has not been told of becomes a delivery.
//!
//! Rows are read once, by their ids. On PostgreSQL a row may be committed after others with greater ids: ids without a
//! row are looked for again for [`WINDOW`]. A replica that begins to send reads the last [`WINDOW`] again. So a row
//! becomes a delivery of a webhook once, because `cause` is unique.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::TimeDelta;
use diesel::{OptionalExtension, dsl::max, prelude::*};
use service_kit::{
    database::{
        AnyConnection, ROWS_PER_STATEMENT,
        schema::history,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use super::{
    facts::{Fact, is_collected, told_by_series},
    kinds::{Format, Status, Type},
    queries::Webhook,
};
use crate::schema::{deliveries, events, webhooks};

/// Longer than the transaction of a request takes, and than the clocks of replicas differ.
const WINDOW: TimeDelta = TimeDelta::minutes(10);

/// The changes of an object during this time are sent together.
pub const MERGED: TimeDelta = TimeDelta::minutes(1);

/// The most rows of a round.
const BATCH: i64 = 1000;

/// The most ids between two rows that are looked for again.
const MOST_MISSING: usize = 1000;

/// A delivery to insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// Later ones have greater ids.
    pub id: DbUuid,
    /// Where to send.
    pub webhook: DbUuid,
    /// What is sent once.
    pub cause: String,
    /// What happened.
    pub kind: Type,
    /// The row of the history that says so.
    pub history: Option<i64>,
    /// What it is about.
    pub object: DbUuid,
    /// When it happened.
    pub at: DbTimestamp,
    /// When to send.
    pub due_at: DbTimestamp,
}

impl NewDelivery {
    /// A delivery of something that no row of the history says.
    pub fn now(webhook: DbUuid, cause: String, kind: Type, object: DbUuid, at: DbTimestamp) -> Self {
        Self { id: DbUuid::new(), webhook, cause, kind, history: None, object, at, due_at: at }
    }

    /// A delivery of a row of the history, if the webhook takes it.
    pub fn of_row(webhook: &Webhook, row: &Fact) -> Option<Self> {
        let kind = webhook.format.kind_of(&row.object_type, row.action);
        let kind = kind.filter(|kind| webhook.takes(*kind, row.at))?;
        let delay = if is_collected(&row.object_type) { MERGED } else { TimeDelta::zero() };
        let due_at = DbTimestamp(row.at.plus(delay));
        let new = Self::now(webhook.id, cause(row.id), kind, row.object_id, row.at);
        Some(Self { history: Some(row.id), due_at, ..new })
    }
}

/// The cause of a delivery that a row of the history says.
pub fn cause(row: i64) -> String {
    format!("history:{row}")
}

/// Inserts deliveries, but each of a webhook and a cause once.
pub fn insert(conn: &mut AnyConnection, new: &[NewDelivery]) -> Result<(), Error> {
    for new in new.chunks(ROWS_PER_STATEMENT) {
        let row = |new: &NewDelivery| {
            (
                deliveries::id.eq(new.id),
                deliveries::webhook_id.eq(new.webhook),
                deliveries::cause.eq(new.cause.clone()),
                deliveries::kind.eq(new.kind),
                deliveries::history_id.eq(new.history),
                deliveries::object_id.eq(new.object),
                deliveries::at.eq(new.at),
                deliveries::status.eq(Status::Waiting),
                deliveries::due_at.eq(new.due_at),
                deliveries::attempts.eq(0_i16),
            )
        };
        let rows: Vec<_> = new.iter().map(row).collect();
        with_connection!(conn, c => diesel::insert_into(deliveries::table)
            .values(rows)
            .on_conflict_do_nothing()
            .execute(c)?);
    }
    Ok(())
}

/// How far this replica has read the history.
#[derive(Debug, Clone, Default)]
pub struct Position {
    /// The last row; `None` before the first round.
    last: Option<i64>,
    /// Smaller ids that had no row, and when that was noticed.
    missing: BTreeMap<i64, DbTimestamp>,
}

/// What to send for new rows of the history.
#[derive(Debug)]
pub struct Round {
    /// To be inserted.
    pub deliveries: Vec<NewDelivery>,
    /// The position after that.
    pub position: Position,
    /// Whether there are no more rows.
    pub is_complete: bool,
}

impl Position {
    /// Reads what is new for these webhooks, which are on.
    pub fn read(&self, conn: &mut AnyConnection, webhooks: &[Webhook], now: DbTimestamp) -> Result<Round, Error> {
        let greatest = history::table.select(max(history::id)).first::<Option<i64>>(conn)?.unwrap_or_default();
        let last = match self.last {
            Some(last) if last <= greatest => last,
            // At the start, or SQLite gives ids again because all rows were removed.
            _ => start(conn, webhooks)?,
        };
        let by_id = || history::table.select(Fact::as_select()).order(history::id);
        let late: Vec<i64> = self.missing.keys().copied().collect();
        let mut rows: Vec<Fact> = Vec::new();
        if !late.is_empty() {
            rows = by_id().filter(history::id.eq_any(late)).load(conn)?;
        }
        let number_late = rows.len();
        rows.extend(by_id().filter(history::id.gt(last)).limit(BATCH).load::<Fact>(conn)?);
        let is_complete = i64::try_from(rows.len() - number_late) != Ok(BATCH);

        let mut position = Self { last: Some(last), missing: self.missing.clone() };
        position.missing.retain(|_, noticed_at| noticed_at.plus(WINDOW) > *now);
        for row in &rows[..number_late] {
            position.missing.remove(&row.id);
        }
        for row in &rows[number_late..] {
            let between = position.last.map_or(row.id, |last| last + 1)..row.id;
            position.missing.extend(between.rev().take(MOST_MISSING).map(|id| (id, now)));
            position.last = Some(row.id);
        }
        Ok(Round { deliveries: plan(conn, webhooks, &rows)?, position, is_complete })
    }
}

/// The last row that has certainly been handled.
fn start(conn: &mut AnyConnection, webhooks: &[Webhook]) -> Result<i64, Error> {
    let Some(until) = webhooks.iter().map(|webhook| webhook.read_until).min() else { return Ok(0) };
    let handled = history::table.filter(history::at.lt(DbTimestamp(until.plus(-WINDOW))));
    let handled = handled.order((history::at.desc(), history::id.desc())).select(history::id);
    Ok(handled.first(conn).optional()?.unwrap_or_default())
}

/// Notes how far the history has been read, for the next start or another replica.
pub fn note_read_until(conn: &mut AnyConnection, until: DbTimestamp) -> Result<(), Error> {
    diesel::update(webhooks::table.filter(webhooks::is_on)).set(webhooks::read_until.eq(until)).execute(conn)?;
    Ok(())
}

/// What to send for these rows.
fn plan(conn: &mut AnyConnection, webhooks: &[Webhook], rows: &[Fact]) -> Result<Vec<NewDelivery>, Error> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let events = events_of(conn, rows)?;
    let of_series = told_by_series(conn, rows)?;
    let mut new = Vec::new();
    for row in rows.iter().filter(|row| row.is_news() && !of_series.contains(&row.id)) {
        let events = events.get(&row.object_id).map_or(&[][..], Vec::as_slice);
        for webhook in webhooks {
            let Some(delivery) = NewDelivery::of_row(webhook, row) else { continue };
            let is_of_group = match row.object_type.as_str() {
                "event" | "series" => events.is_empty() || events.iter().any(|event| webhook.takes_group(event.0)),
                "group" => webhook.takes_group(row.object_id),
                _ => true,
            };
            let is_over = webhook.format != Format::Standard && !events.iter().any(|(_, end)| *end > row.at);
            if is_of_group && !is_over {
                new.push(delivery);
            }
        }
    }
    Ok(new)
}

/// An event, its series, its group and its end.
type Columns = (DbUuid, Option<DbUuid>, DbUuid, DbTimestamp);

/// The group and the end of an event.
type GroupAndEnd = (DbUuid, DbTimestamp);

/// The events in these rows, and those of the series in them, by the ids of the rows.
fn events_of(conn: &mut AnyConnection, rows: &[Fact]) -> Result<HashMap<DbUuid, Vec<GroupAndEnd>>, Error> {
    let ids = |object_type| {
        let of_type = rows.iter().filter(move |row| row.object_type == object_type);
        of_type.map(|row| row.object_id).collect::<HashSet<_>>()
    };
    let columns = (events::id, events::series_id, events::group_id, events::ends_at);
    let (events, series) = (ids("event"), ids("series"));
    let mut found: HashMap<DbUuid, Vec<GroupAndEnd>> = HashMap::new();
    for (id, _, group, end) in events::table.filter(events::id.eq_any(events)).select(columns).load::<Columns>(conn)? {
        found.entry(id).or_default().push((group, end));
    }
    if !series.is_empty() {
        let query = events::table.filter(events::series_id.eq_any(series)).select(columns);
        for (_, series, group, end) in query.load::<Columns>(conn)? {
            if let Some(series) = series {
                found.entry(series).or_default().push((group, end));
            }
        }
    }
    Ok(found)
}
