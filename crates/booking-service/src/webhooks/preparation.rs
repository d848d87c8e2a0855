//! What a delivery sends.

use std::fmt::Write as _;

use diesel::{OptionalExtension, prelude::*};
use ring::hmac;
use serde_json::{Value, json};
use service_kit::{
    credentials::Keys,
    database::{
        AnyConnection,
        schema::history,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::Action,
    http::texts::Texts,
};

use super::{
    changes::SEALED,
    digest::digest,
    kinds::{Format, Mentions, Status, Type},
    markup::{Markup, is_discord_id},
    messages::Writer,
    outbox::MERGED,
    queries::{Delivery, Webhook},
    results::FORMER_SECRET,
    standard, timed,
};
use crate::{
    club::Club,
    schema::{deliveries, draft_events, events, webhooks},
};

/// A request to send.
pub struct Message {
    /// The delivery.
    pub delivery: DbUuid,
    /// Its webhook.
    pub webhook: DbUuid,
    /// How often it was sent.
    pub attempts: i16,
    /// Where to send. Secret.
    pub url: String,
    /// Its headers. Secret.
    pub headers: Vec<(&'static str, String)>,
    /// Its body.
    pub body: String,
}

/// Why nothing is sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    /// The delivery no longer waits.
    Done,
    /// It is too late for it, or there is nothing to say.
    Dropped,
    /// The key that encrypted the address has been removed from the service.
    Unreadable {
        /// The webhook.
        webhook: DbUuid,
        /// How often the delivery was sent.
        attempts: i16,
    },
}

/// Prepares the attempt to send a delivery: merges later changes into it, and writes its body.
pub fn prepare(
    conn: &mut AnyConnection,
    id: DbUuid,
    club: &Club,
    texts: &Texts,
    now: DbTimestamp,
) -> Result<Result<Message, Nothing>, Error> {
    let query = deliveries::table.inner_join(webhooks::table).filter(deliveries::id.eq(id)).filter(webhooks::is_on);
    let query = query.filter(deliveries::status.eq(Status::Waiting)).filter(deliveries::due_at.le(now));
    let found = query.select((Delivery::as_select(), Webhook::as_select())).first(conn).optional()?;
    let Some((delivery, webhook)): Option<(Delivery, Webhook)> = found else { return Ok(Err(Nothing::Done)) };
    let body = if let Some(body) = &delivery.body {
        body.clone()
    } else {
        let merged = merge(conn, &delivery)?;
        let body = match webhook.format {
            Format::Standard => Some(told(conn, &delivery, &merged, club)?),
            format => {
                let (markup, language) = (Markup(format), webhook.language.into());
                said(conn, &Writer { markup, webhook: &webhook, language, texts, club, now }, &delivery)?
            }
        };
        let Some(body) = body else { return drop_delivery(conn, id).map(Err) };
        diesel::update(deliveries::table.find(id)).set(deliveries::body.eq(&body)).execute(conn)?;
        body
    };
    if is_too_late(conn, &delivery, club, now)? {
        return drop_delivery(conn, id).map(Err);
    }
    let Some((url, secrets)) = open(&webhook, &club.keys, now) else {
        return Ok(Err(Nothing::Unreadable { webhook: webhook.id, attempts: delivery.attempts }));
    };
    let url = if webhook.format == Format::Traq { embedding(&url) } else { url };
    let headers = headers(&webhook, &secrets, id, &body, now);
    Ok(Ok(Message { delivery: id, webhook: webhook.id, attempts: delivery.attempts, url, headers, body }))
}

/// Notes that a delivery is not sent.
fn drop_delivery(conn: &mut AnyConnection, id: DbUuid) -> Result<Nothing, Error> {
    diesel::update(deliveries::table.find(id)).set(deliveries::status.eq(Status::Dropped)).execute(conn)?;
    Ok(Nothing::Dropped)
}

/// The address of a webhook and the secrets that sign, the present one first.
fn open(webhook: &Webhook, keys: &Keys, now: DbTimestamp) -> Option<(String, Vec<String>)> {
    let url = keys.open(SEALED, &webhook.url)?;
    let present = webhook.secret.as_deref().map(|secret| keys.open(SEALED, secret));
    if present == Some(None) {
        return None;
    }
    let is_valid = webhook.secret_changed_at.is_some_and(|at| at.plus(FORMER_SECRET) > *now);
    let former = webhook.former_secret.as_deref().filter(|_| is_valid).and_then(|secret| keys.open(SEALED, secret));
    Some((url, present.flatten().into_iter().chain(former).collect()))
}

fn headers(
    webhook: &Webhook,
    secrets: &[String],
    id: DbUuid,
    body: &str,
    now: DbTimestamp,
) -> Vec<(&'static str, String)> {
    match webhook.format {
        Format::Standard => {
            let (id, timestamp) = (id.to_string(), now.utc().timestamp());
            let signature = standard::signature(secrets, &id, timestamp, body);
            vec![
                ("content-type", "application/json".to_owned()),
                ("webhook-id", id),
                ("webhook-timestamp", timestamp.to_string()),
                ("webhook-signature", signature),
            ]
        }
        Format::Traq => {
            let key = hmac::Key::new(
                hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
                secrets.first().map(String::as_bytes).unwrap_or_default(),
            );
            let tag = hmac::sign(&key, body.as_bytes());
            let signature = tag.as_ref().iter().fold(String::new(), |mut text, byte| {
                // Writing to a String cannot fail.
                let _ = write!(text, "{byte:02x}");
                text
            });
            let channel = webhook.channel_id.map(|channel| channel.to_string()).unwrap_or_default();
            vec![
                ("content-type", "text/plain; charset=utf-8".to_owned()),
                ("x-traq-signature", signature),
                ("x-traq-channel-id", channel),
            ]
        }
        Format::Slack | Format::Discord => vec![("content-type", "application/json".to_owned())],
    }
}

/// Marks the later changes of an event within a minute as sent with this delivery, and returns their rows of the
/// history.
fn merge(conn: &mut AnyConnection, delivery: &Delivery) -> Result<Vec<i64>, Error> {
    if !delivery.kind.is_of_event() {
        return Ok(Vec::new());
    }
    let later: Vec<Delivery> = deliveries::table
        .filter(deliveries::status.eq(Status::Waiting))
        .filter(deliveries::webhook_id.eq(delivery.webhook_id))
        .filter(deliveries::object_id.eq(delivery.object_id))
        .filter(deliveries::id.gt(delivery.id))
        .filter(deliveries::at.le(DbTimestamp(delivery.at.plus(MERGED))))
        .filter(deliveries::body.is_null())
        .order(deliveries::id)
        .select(Delivery::as_select())
        .load(conn)?;
    // A message says how things are now: nothing, if an event was deleted before anybody heard of it.
    let says_all = delivery.kind == Type::Announcement
        && (action(conn, delivery)? == Some(Action::Created) || !is_deleted(conn, delivery.object_id)?);
    let is_merged = |later: &Delivery| (says_all && later.kind.is_of_event()) || delivery.kind.merges(later.kind);
    let later: Vec<_> = later.into_iter().take_while(is_merged).collect();
    let ids: Vec<DbUuid> = later.iter().map(|later| later.id).collect();
    if !ids.is_empty() {
        let merged = deliveries::table.filter(deliveries::id.eq_any(ids));
        diesel::update(merged).set(deliveries::status.eq(Status::Merged)).execute(conn)?;
    }
    Ok(later.into_iter().filter_map(|later| later.history_id).collect())
}

/// What the row of the history says that a delivery is about.
fn action(conn: &mut AnyConnection, delivery: &Delivery) -> Result<Option<Action>, Error> {
    let Some(row) = delivery.history_id else { return Ok(None) };
    Ok(history::table.find(row).select(history::action).first(conn).optional()?)
}

fn is_deleted(conn: &mut AnyConnection, event: DbUuid) -> Result<bool, Error> {
    let query = events::table.find(event).filter(events::deleted_at.is_null()).select(events::id);
    Ok(query.first::<DbUuid>(conn).optional()?.is_none())
}

/// The address of traQ's webhooks, with the parameter that makes mentions of names.
fn embedding(url: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}embed=1")
}

/// What a program is told.
fn told(conn: &mut AnyConnection, delivery: &Delivery, merged: &[i64], club: &Club) -> Result<String, Error> {
    let rows: Vec<i64> = delivery.history_id.into_iter().chain(merged.iter().copied()).collect();
    let query = history::table.filter(history::id.eq_any(rows)).order(history::id).select(history::changes);
    let mut changes = None;
    for text in query.load::<String>(conn)? {
        let later: Value = serde_json::from_str(&text).unwrap_or_default();
        match &mut changes {
            None => changes = Some(later),
            Some(all) => standard::add_changes(all, later),
        }
    }
    Ok(standard::body(delivery.kind, delivery.at, club.zone, delivery.object_id, &club.origin, changes))
}

/// What a message says, in the form of the webhook's format; `None` if it says nothing.
fn said(conn: &mut AnyConnection, writer: &Writer<'_>, delivery: &Delivery) -> Result<Option<String>, Error> {
    let id = delivery.object_id;
    let text = match delivery.kind {
        Type::Announcement => {
            let key = match action(conn, delivery)? {
                Some(Action::Created) => "message-created",
                Some(Action::Restored) => "message-restored",
                _ => "message-changed",
            };
            writer.announcement(conn, id, key)?
        }
        Type::Cancellation => writer.cancellation(conn, id)?,
        Type::Reminder => writer.reminder(conn, id)?,
        Type::Digest => {
            let day = delivery.at.utc().with_timezone(&writer.club.zone).date_naive();
            Some(digest(writer, conn, day, &writer.club.messages.digest_periods)?)
        }
        _ => Some(writer.text("message-test", &[])),
    };
    Ok(text.map(|text| match writer.markup.0 {
        Format::Slack => json!({ "text": text }).to_string(),
        Format::Discord => {
            let groups = writer.webhook.mention_groups();
            let is_on = writer.webhook.mentions == Mentions::On;
            let roles: Vec<_> = groups.into_iter().filter(|name| is_on && is_discord_id(name)).collect();
            json!({ "content": text, "allowed_mentions": { "parse": [], "roles": roles } }).to_string()
        }
        _ => text,
    }))
}

/// Whether a message would come too late to help.
fn is_too_late(conn: &mut AnyConnection, delivery: &Delivery, club: &Club, now: DbTimestamp) -> Result<bool, Error> {
    let (event, poll) = (events::table.find(delivery.object_id), draft_events::table.find(delivery.object_id));
    let end: Option<DbTimestamp> = match delivery.kind {
        Type::Announcement | Type::Cancellation => event.select(events::ends_at).first(conn).optional()?,
        Type::Reminder => match event.select(events::starts_at).first(conn).optional()? {
            None => poll.select(draft_events::deadline).first(conn).optional()?,
            start => start,
        },
        Type::Digest => Some(timed::digest_ends(club, delivery.at)),
        _ => None,
    };
    Ok(end.is_some_and(|end| end <= now))
}
