//! The history as the outbox: each row of it that a webhook has not been told of becomes a delivery.
//!
//! On PostgreSQL a row with a smaller id and an earlier time may be committed after others. So each round looks back for
//! [`WINDOW`], and a row becomes a delivery of a webhook once, because `cause` is unique.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::TimeDelta;
use diesel::prelude::*;
use service_kit::{
    after,
    database::{
        AnyConnection, ROWS_PER_STATEMENT,
        schema::history,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{By, Row},
    with_connection,
};

use super::{
    kinds::{Format, Status, Type},
    queries::Webhook,
};
use crate::schema::{deliveries, events, webhooks};

/// How far back each round looks: longer than the transaction of a request takes, and than the clocks of replicas
/// differ.
pub const WINDOW: TimeDelta = TimeDelta::minutes(10);

/// The changes of an event during this time are sent together.
pub const MERGED: TimeDelta = TimeDelta::minutes(1);

/// The most rows of a round.
const BATCH: usize = 1000;

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
    #[must_use]
    pub fn now(webhook: DbUuid, cause: String, kind: Type, object: DbUuid, at: DbTimestamp) -> Self {
        Self { id: DbUuid::new(), webhook, cause, kind, history: None, object, at, due_at: at }
    }

    fn of_row(webhook: DbUuid, kind: Type, row: &Row) -> Self {
        let delay = if kind.is_of_event() && !kind.is_deletion() { MERGED } else { TimeDelta::zero() };
        let due_at = DbTimestamp(row.at.plus(delay));
        let cause = format!("history:{}", row.id);
        Self { history: Some(row.id), due_at, ..Self::now(webhook, cause, kind, row.object_id, row.at) }
    }
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

/// The rows of the history that this replica has handled.
#[derive(Debug, Clone, Default)]
pub struct Handled {
    /// Those of the last [`WINDOW`].
    rows: BTreeMap<i64, DbTimestamp>,
    /// Up to when all rows have been handled; `None` before the first round.
    until: Option<DbTimestamp>,
}

/// New rows of the history, and what to send for them.
#[derive(Debug)]
pub struct Round {
    rows: Vec<(i64, DbTimestamp)>,
    /// To be inserted.
    pub deliveries: Vec<NewDelivery>,
    /// Whether there are no more rows.
    pub is_complete: bool,
}

impl Handled {
    /// Reads what is new for these webhooks, which are on.
    pub fn read(&self, conn: &mut AnyConnection, webhooks: &[Webhook]) -> Result<Round, Error> {
        let until = self.until.or_else(|| webhooks.iter().map(|webhook| webhook.read_until).min());
        let Some(until) = until else {
            return Ok(Round { rows: Vec::new(), deliveries: Vec::new(), is_complete: true });
        };
        let (from, mut position) = (DbTimestamp(until.plus(-WINDOW)), None::<(DbTimestamp, i64)>);
        let mut new = Vec::new();
        let is_complete = loop {
            let mut query = history::table.filter(history::at.ge(from)).into_boxed();
            if let Some((at, id)) = position {
                query = after!(query, history::at; > at, history::id; > id);
            }
            let query = query.order((history::at, history::id)).limit(i64::try_from(BATCH).unwrap_or(i64::MAX));
            let page: Vec<(DbTimestamp, i64)> = query.select((history::at, history::id)).load(conn)?;
            let is_last = page.len() < BATCH;
            position = page.last().copied();
            new.extend(page.into_iter().filter(|(_, id)| !self.rows.contains_key(id)).map(|(at, id)| (id, at)));
            if is_last || new.len() >= BATCH {
                break is_last && new.len() <= BATCH;
            }
        };
        new.truncate(BATCH);
        let ids: Vec<i64> = new.iter().map(|(id, _)| *id).collect();
        let query = history::table.filter(history::id.eq_any(ids)).order(history::id).select(Row::as_select());
        let rows: Vec<Row> = if new.is_empty() { Vec::new() } else { query.load(conn)? };
        Ok(Round { deliveries: plan(conn, webhooks, &rows)?, rows: new, is_complete })
    }

    /// Notes that the deliveries of a round, which began at `now`, have been inserted.
    pub fn note(&mut self, round: &Round, now: DbTimestamp) {
        self.rows.extend(round.rows.iter().copied());
        if round.is_complete {
            self.until = Some(now);
            let oldest = DbTimestamp(now.plus(-WINDOW));
            self.rows.retain(|_, at| *at >= oldest);
        }
    }
}

/// Notes how far the history has been read, for the next start or another replica.
pub fn note_read_until(conn: &mut AnyConnection, until: DbTimestamp) -> Result<(), Error> {
    diesel::update(webhooks::table.filter(webhooks::is_on)).set(webhooks::read_until.eq(until)).execute(conn)?;
    Ok(())
}

/// The request that wrote a row. The rows of the events of a series are written with the row of the series.
fn request(row: &Row) -> Option<(String, DbTimestamp)> {
    Some((row.request_id.clone()?, row.at))
}

/// What to send for these rows, which are in the order of their ids.
fn plan(conn: &mut AnyConnection, webhooks: &[Webhook], rows: &[Row]) -> Result<Vec<NewDelivery>, Error> {
    let events = events_in(conn, rows)?;
    let series: HashSet<_> = rows.iter().filter(|row| row.object_type == "series").filter_map(request).collect();
    // People get a message about the first event of a series, programs one about the series.
    let mut first = HashMap::new();
    for row in rows.iter().filter(|row| row.object_type == "event") {
        let start = events.get(&row.object_id).map(|event| event.starts_at);
        if let (Some(request), Some(start)) = (request(row).filter(|request| series.contains(request)), start) {
            let known = first.entry(request).or_insert((start, row.id));
            *known = (*known).min((start, row.id));
        }
    }
    let mut new = Vec::new();
    // Nothing has happened to what was imported.
    for row in rows.iter().filter(|row| row.origin != By::Import) {
        let in_series = request(row).filter(|request| row.object_type == "event" && series.contains(request));
        let is_first = in_series.as_ref().and_then(|request| first.get(request)).is_some_and(|first| first.1 == row.id);
        let event = events.get(&row.object_id);
        let (told, said) = (Type::of_row(row), Type::message_of_row(row));
        for webhook in webhooks {
            let is_message = webhook.format != Format::Standard;
            let kind = if is_message {
                said.filter(|_| in_series.is_none() || is_first)
                    .filter(|_| event.is_some_and(|event| event.ends_at > row.at))
            } else {
                told.filter(|_| in_series.is_none())
            };
            let Some(kind) = kind.filter(|kind| webhook.takes(*kind, row.at)) else { continue };
            let is_of_group = match kind.collection() {
                "events" => event.is_none_or(|event| webhook.takes_group(event.group_id)),
                "groups" => webhook.takes_group(row.object_id),
                _ => true,
            };
            if is_of_group {
                new.push(NewDelivery::of_row(webhook.id, kind, row));
            }
        }
    }
    Ok(new)
}

#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = events)]
struct EventFacts {
    id: DbUuid,
    group_id: DbUuid,
    starts_at: DbTimestamp,
    ends_at: DbTimestamp,
}

/// The events in these rows.
fn events_in(conn: &mut AnyConnection, rows: &[Row]) -> Result<HashMap<DbUuid, EventFacts>, Error> {
    let ids: Vec<DbUuid> = rows.iter().filter(|row| row.object_type == "event").map(|row| row.object_id).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let query = events::table.filter(events::id.eq_any(ids)).select(EventFacts::as_select());
    Ok(query.load::<EventFacts>(conn)?.into_iter().map(|event| (event.id, event)).collect())
}
