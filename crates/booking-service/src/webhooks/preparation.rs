//! What a delivery sends.

use std::fmt::Write as _;

use chrono::TimeDelta;
use diesel::{OptionalExtension, dsl::max, prelude::*};
use ring::hmac;
use serde_json::json;
use service_kit::{
    credentials::Keys,
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::Action,
    http::texts::Texts,
};

use super::{
    changes::SEALED,
    digest::digest,
    happened::{Happened, collect},
    kinds::{Format, Mentions, Type},
    markup::{Markup, is_discord_id},
    messages::Writer,
    outbox::NewDelivery,
    queries::{Delivery, Webhook, earlier_due, next_due},
    standard, timed,
};
use crate::{
    club::Club,
    schema::{draft_events, events},
};

/// How long a former secret signs as well.
const FORMER_SECRET: TimeDelta = TimeDelta::hours(24);

/// A request to send.
pub struct Message {
    /// Where to send. Secret.
    pub url: String,
    /// Its headers. Secret.
    pub headers: Vec<(&'static str, String)>,
    /// Its body.
    pub body: String,
}

/// What to do with a delivery that is due.
pub enum Task {
    /// Send it.
    Send(Message),
    /// Send it later, after an earlier one about the same object.
    Wait(DbTimestamp),
    /// It is too late for it, or there is nothing to say.
    Drop,
    /// The key that encrypted the address has been removed from the service.
    Unreadable,
}

/// A delivery that is due, and what to do with it.
pub struct Prepared {
    /// Its id.
    pub id: DbUuid,
    /// Its webhook.
    pub webhook: DbUuid,
    /// What it is about.
    pub object: DbUuid,
    /// What it says in the end.
    pub kind: Type,
    /// How often it was sent.
    pub attempts: i16,
    /// Later ones that would say the same.
    pub merged: Vec<NewDelivery>,
    /// What to do.
    pub task: Task,
}

/// Prepares the next delivery of a webhook, if one is due.
pub fn next(
    conn: &mut AnyConnection,
    webhook: DbUuid,
    club: &Club,
    texts: &Texts,
    now: DbTimestamp,
) -> Result<Option<Prepared>, Error> {
    let Some((mut delivery, webhook)) = next_due(conn, webhook, now)? else { return Ok(None) };
    let mut merged = Vec::new();
    let task = if let Some(due_at) = earlier_due(conn, &delivery)? {
        Task::Wait(due_at)
    } else {
        let body = match delivery.body.take() {
            Some(body) => Some(body),
            None => write(conn, &mut delivery, &webhook, &mut merged, (club, texts, now))?,
        };
        let body = if is_too_late(conn, &delivery, club, now)? { None } else { body };
        body.map_or(Task::Drop, |body| request(&webhook, delivery.id, body, &club.keys, now))
    };
    let Delivery { id, object_id: object, kind, attempts, .. } = delivery;
    Ok(Some(Prepared { id, webhook: webhook.id, object, kind, attempts, merged, task }))
}

/// Writes the body of a delivery, if there is something to say. Notes what it says in the end, and later ones that
/// would say the same.
fn write(
    conn: &mut AnyConnection,
    delivery: &mut Delivery,
    webhook: &Webhook,
    merged: &mut Vec<NewDelivery>,
    (club, texts, now): (&Club, &Texts, DbTimestamp),
) -> Result<Option<String>, Error> {
    let mut happened = None;
    if delivery.history_id.is_some() {
        (happened, *merged) = collect(conn, delivery, webhook)?;
        let Some(happened) = &happened else { return Ok(None) };
        let kind = webhook.format.kind_of(&happened.object_type, happened.action);
        let Some(kind) = kind.filter(|kind| webhook.takes(*kind, delivery.at)) else { return Ok(None) };
        if kind == Type::Announcement && !happened.is_announced() {
            return Ok(None);
        }
        delivery.kind = kind;
    }
    if webhook.format == Format::Standard {
        let changes = happened.as_ref().map(|happened| &happened.changes);
        let (kind, at, object) = (delivery.kind, delivery.at, delivery.object_id);
        return Ok(Some(standard::body(kind, at, club.zone, object, &club.origin, changes)));
    }
    let (markup, language) = (Markup(webhook.format), webhook.language.into());
    said(conn, &Writer { markup, webhook, language, texts, club, now }, delivery, happened)
}

/// The request that sends this body.
fn request(webhook: &Webhook, delivery: DbUuid, body: String, keys: &Keys, now: DbTimestamp) -> Task {
    let Some((url, secrets)) = open(webhook, keys, now) else { return Task::Unreadable };
    let url = if webhook.format == Format::Traq { embedding(&url) } else { url };
    let headers = headers(webhook, &secrets, delivery, &body, now);
    Task::Send(Message { url, headers, body })
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

/// The address of traQ's webhooks, with the parameter that makes mentions of names.
fn embedding(url: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}embed=1")
}

/// What a message says, in the form of the webhook's format; `None` if it says nothing.
fn said(
    conn: &mut AnyConnection,
    writer: &Writer<'_>,
    delivery: &Delivery,
    happened: Option<Happened>,
) -> Result<Option<String>, Error> {
    let id = delivery.object_id;
    let (action, removed) = happened.map_or((Action::Changed, Vec::new()), |it| (it.action, it.removed));
    let text = match delivery.kind {
        Type::Announcement => writer.announcement(conn, id, action)?,
        Type::Cancellation => writer.cancellation(conn, id, &removed)?,
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
    let id = delivery.object_id;
    let (event, poll) = (events::table.find(id), draft_events::table.find(id));
    let end: Option<DbTimestamp> = match delivery.kind {
        Type::Announcement | Type::Cancellation => {
            let of_it = events::table.filter(events::id.eq(id).or(events::series_id.eq(id)));
            of_it.select(max(events::ends_at)).first(conn)?
        }
        Type::Reminder => match event.select(events::starts_at).first(conn).optional()? {
            None => poll.select(draft_events::deadline).first(conn).optional()?,
            start => start,
        },
        Type::Digest => Some(timed::digest_ends(club, delivery.at)),
        _ => None,
    };
    Ok(end.is_some_and(|end| end <= now))
}
