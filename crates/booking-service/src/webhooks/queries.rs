//! Webhooks and their deliveries in the database.

use common::problem::Problem;
use diesel::{
    OptionalExtension,
    dsl::{exists, max},
    prelude::*,
};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use super::kinds::{Format, Mentions, MessageLanguage, Status, Type, WhyOff};
use crate::schema::{deliveries, webhooks};

/// A webhook.
#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = webhooks)]
pub struct Webhook {
    pub id: DbUuid,
    pub name: String,
    pub url: String,
    pub shown_url: String,
    pub format: Format,
    pub types: String,
    pub group_ids: String,
    pub language: MessageLanguage,
    pub mentions: Mentions,
    pub mention_groups: String,
    pub channel_id: Option<DbUuid>,
    pub is_on: bool,
    pub why_off: Option<WhyOff>,
    pub secret: Option<String>,
    pub former_secret: Option<String>,
    pub secret_changed_at: Option<DbTimestamp>,
    pub since: DbTimestamp,
    pub read_until: DbTimestamp,
    pub failing_since: Option<DbTimestamp>,
    pub created_by: DbUuid,
    pub created_at: DbTimestamp,
    pub updated_at: DbTimestamp,
    pub url_changed_at: Option<DbTimestamp>,
}

impl Webhook {
    /// What it is told of.
    pub fn types(&self) -> Vec<Type> {
        self.types.split(' ').filter_map(|word| word.parse().ok()).collect()
    }

    /// The groups whose events it is told of; all if there are none.
    pub fn groups(&self) -> Vec<DbUuid> {
        self.group_ids.split(' ').filter_map(|id| id.parse().ok().map(DbUuid)).collect()
    }

    /// Whom messages mention instead of the everyone group.
    pub fn mention_groups(&self) -> Vec<String> {
        serde_json::from_str(&self.mention_groups).unwrap_or_default()
    }

    /// Whether it is told of something of this type that happened at this time.
    pub fn takes(&self, kind: Type, at: DbTimestamp) -> bool {
        at >= self.since && self.types.split(' ').any(|word| word == kind.word())
    }

    /// Whether it is told of events of this group.
    pub fn takes_group(&self, group: DbUuid) -> bool {
        self.group_ids.is_empty() || self.groups().contains(&group)
    }
}

/// A delivery.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = deliveries)]
pub struct Delivery {
    pub id: DbUuid,
    pub webhook_id: DbUuid,
    pub kind: Type,
    pub history_id: Option<i64>,
    pub object_id: DbUuid,
    pub at: DbTimestamp,
    pub status: Status,
    pub due_at: DbTimestamp,
    pub attempts: i16,
    pub tried_at: Option<DbTimestamp>,
    pub body: Option<String>,
    pub answer_status: Option<i16>,
    pub answer: Option<String>,
}

/// All webhooks, the oldest first; there are few.
pub fn list(conn: &mut AnyConnection) -> Result<Vec<Webhook>, Error> {
    let query = webhooks::table.order((webhooks::created_at, webhooks::id));
    Ok(query.select(Webhook::as_select()).load(conn)?)
}

/// Whether anything is to be sent.
pub fn any_is_on(conn: &mut AnyConnection) -> Result<bool, Error> {
    Ok(list(conn)?.iter().any(|webhook| webhook.is_on))
}

/// One webhook.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<Webhook, Error> {
    let row = webhooks::table.find(id).select(Webhook::as_select()).first(conn).optional()?;
    Ok(row.ok_or_else(|| Problem::not_found("webhook"))?)
}

/// One page of the deliveries of a webhook, the newest first.
///
/// # Errors
/// 404 if there is no such webhook.
pub fn deliveries_of(
    conn: &mut AnyConnection,
    webhook: DbUuid,
    bounds: &PageBounds<DbUuid>,
) -> Result<Vec<Delivery>, Error> {
    get(conn, webhook)?;
    let mut query = deliveries::table.filter(deliveries::webhook_id.eq(webhook)).into_boxed();
    if let Some(id) = bounds.after {
        query = query.filter(deliveries::id.lt(id));
    }
    Ok(query.order(deliveries::id.desc()).limit(bounds.rows).select(Delivery::as_select()).load(conn)?)
}

/// One delivery of a webhook.
pub fn delivery(conn: &mut AnyConnection, webhook: DbUuid, id: DbUuid) -> Result<Delivery, Error> {
    let row = deliveries::table.find(id).filter(deliveries::webhook_id.eq(webhook)).select(Delivery::as_select());
    Ok(row.first(conn).optional()?.ok_or_else(|| Problem::not_found("delivery"))?)
}

/// The webhooks that are on and to which something is to be sent now.
pub fn with_due(conn: &mut AnyConnection, now: DbTimestamp) -> Result<Vec<DbUuid>, Error> {
    let due = deliveries::table
        .filter(deliveries::webhook_id.eq(webhooks::id))
        .filter(deliveries::status.eq(Status::Waiting))
        .filter(deliveries::due_at.le(now));
    Ok(webhooks::table.filter(webhooks::is_on).filter(exists(due)).select(webhooks::id).load(conn)?)
}

/// What is to be sent to a webhook next, if something is due.
pub fn next_due(
    conn: &mut AnyConnection,
    webhook: DbUuid,
    now: DbTimestamp,
) -> Result<Option<(Delivery, Webhook)>, Error> {
    let due = deliveries::table
        .inner_join(webhooks::table)
        .filter(webhooks::is_on)
        .filter(deliveries::webhook_id.eq(webhook))
        .filter(deliveries::status.eq(Status::Waiting))
        .filter(deliveries::due_at.le(now))
        .order((deliveries::due_at, deliveries::id));
    Ok(due.select((Delivery::as_select(), Webhook::as_select())).first(conn).optional()?)
}

/// When the earlier deliveries about the object of this one are due. They are sent first.
pub fn earlier_due(conn: &mut AnyConnection, delivery: &Delivery) -> Result<Option<DbTimestamp>, Error> {
    let earlier = deliveries::table
        .filter(deliveries::webhook_id.eq(delivery.webhook_id))
        .filter(deliveries::object_id.eq(delivery.object_id))
        .filter(deliveries::status.eq(Status::Waiting))
        .filter(deliveries::id.lt(delivery.id));
    Ok(earlier.select(max(deliveries::due_at)).first(conn)?)
}
