//! The operations on webhooks.

use actix_web::{delete, get, http::header, patch, post, web::Path};
use chrono_tz::Tz;
use common::input::Id;
use serde_json::Value;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    guard::Target,
    history::{self, Action, Author},
    http::{Body, Page, Reply, body::OptionalBody},
    state::{Now, TimeDependent},
};

use super::{
    changes::{self, Context},
    queries::{self, Webhook},
    wire::{RequestSecret, RequestWebhook, RequestWebhookChange, ResponseDelivery, ResponseWebhook, WebhookWithSecret},
    worker::Wake,
};
use crate::{
    auth::{Caller, Privileged},
    club::{Club, Zone},
    objects::WEBHOOK,
};

fn show(conn: &mut AnyConnection, id: DbUuid, zone: Tz) -> Result<Reply, Error> {
    Reply::json(&ResponseWebhook::new(queries::get(conn, id)?, zone))
}

/// The webhook that an operation changes.
pub fn target(id: DbUuid, zone: Tz) -> Target<Caller> {
    Target::new(format!("webhook {id}"), move |conn, _| show(conn, id, zone))
        .of_forms(&WEBHOOK, move |conn| fields(conn, id, zone))
}

/// The same, for an operation whose change the history records.
pub fn recorded(id: DbUuid, zone: Tz) -> Target<Caller> {
    target(id, zone).recorded(&WEBHOOK, id, Action::Changed, move |conn| fields(conn, id, zone))
}

fn fields(conn: &mut AnyConnection, id: DbUuid, zone: Tz) -> Result<Value, Error> {
    history::fields_of(&ResponseWebhook::new(queries::get(conn, id)?, zone))
}

/// A new secret, which is shown once.
fn with_secret(webhook: Webhook, secret: Option<String>, zone: Tz) -> WebhookWithSecret {
    WebhookWithSecret { webhook: ResponseWebhook::new(webhook, zone), secret }
}

/// Creates a webhook, and records that in the history.
pub fn create_recorded(
    conn: &mut AnyConnection,
    context: &Context,
    request: &RequestWebhook,
    (creator, by): (DbUuid, &Author),
    now: DbTimestamp,
    zone: Tz,
) -> Result<(DbUuid, WebhookWithSecret), Error> {
    let (webhook, secret) = changes::create(conn, context, request, creator, now)?;
    let id = webhook.id;
    let made = with_secret(webhook, secret, zone);
    history::created(conn, by, &WEBHOOK, [(id, history::fields_of(&made.webhook)?)])?;
    Ok((id, made))
}

/// Deletes a webhook, and records that in the history.
pub fn delete_recorded(conn: &mut AnyConnection, id: DbUuid, by: &Author) -> Result<(), Error> {
    changes::delete(conn, id)?;
    history::deleted(conn, by, &WEBHOOK, &[id])
}

/// List webhooks
///
/// Needs a privileged user. The oldest first.
#[utoipa::path(
    tags = ["webhooks", "additions"],
    operation_id = "getWebhooks",
    responses((status = 200, description = "Webhooks", body = [ResponseWebhook]))
)]
#[get("")]
pub async fn list(who: Privileged, Zone(zone): Zone, _now: TimeDependent, page: Page) -> Result<Reply, Failure> {
    // Here and below `TimeDependent`, because what is sent is no change of the database's version.
    who.list(page, move |conn, _, page| {
        let position = |webhook: &Webhook| (webhook.created_at, webhook.id);
        page.rows_of_all(queries::list(conn)?, position, |webhook| Ok(ResponseWebhook::new(webhook, zone)))
    })
    .await
}

/// Create a webhook
///
/// Needs a privileged user. The secret is shown in this answer only.
#[utoipa::path(
    tags = ["webhooks", "additions"],
    operation_id = "createWebhook",
    request_body = RequestWebhook,
    responses(
        (status = 201, description = "The webhook", body = WebhookWithSecret,
            headers(("Location" = String, description = "Its address"))),
        (status = 409, description = "There are 100 already (`too-many-webhooks`)")
    )
)]
#[post("")]
pub async fn create(
    who: Privileged,
    club: Club,
    now: Now,
    wake: Wake,
    body: Body<RequestWebhook>,
) -> Result<Reply, Failure> {
    let (context, zone) = (Context::of(&club), club.zone);
    let reply = who.create(move |conn, me| {
        let (id, answer) = create_recorded(conn, &context, &body.0, (me.id, &me.author), DbTimestamp(now.0), zone)?;
        Ok(Reply::created(&answer)?.with(header::LOCATION, format!("/api/webhooks/{id}")).secret())
    });
    let reply = reply.await?;
    wake.up();
    Ok(reply)
}

/// One webhook
///
/// Needs a privileged user.
#[utoipa::path(
    tags = ["webhooks", "additions"],
    operation_id = "getWebhook",
    params(("webhookID" = uuid::Uuid, Path)),
    responses((status = 200, description = "The webhook", body = ResponseWebhook))
)]
#[get("/{webhookID}")]
pub async fn get(who: Privileged, Zone(zone): Zone, _now: TimeDependent, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, _| show(conn, (*id).into(), zone)).await
}

/// Change a webhook
///
/// Needs a privileged user. Fields that are left out stay. If it is switched on, what happened before is not sent.
#[utoipa::path(
    tags = ["webhooks", "additions"],
    operation_id = "updateWebhook",
    params(("webhookID" = uuid::Uuid, Path)),
    request_body = RequestWebhookChange,
    responses((status = 200, description = "The changed webhook", body = ResponseWebhook))
)]
#[patch("/{webhookID}")]
pub async fn update(
    who: Privileged,
    club: Club,
    now: Now,
    wake: Wake,
    id: Path<Id>,
    body: Body<RequestWebhookChange>,
) -> Result<Reply, Failure> {
    let (id, context, zone) = (DbUuid::from(*id), Context::of(&club), club.zone);
    let reply = who.update(recorded(id, zone), move |conn, _| {
        changes::update(conn, &context, id, &body.0, DbTimestamp(now.0))?;
        show(conn, id, zone)
    });
    let reply = reply.await?;
    wake.up();
    Ok(reply)
}

/// Delete a webhook
///
/// Needs a privileged user. Its deliveries go with it.
#[utoipa::path(
    tags = ["webhooks", "additions"],
    operation_id = "deleteWebhook",
    params(("webhookID" = uuid::Uuid, Path)),
    responses((status = 204, description = "Deleted"))
)]
#[delete("/{webhookID}")]
pub async fn delete(who: Privileged, Zone(zone): Zone, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(target(id, zone), move |conn, me| {
        delete_recorded(conn, id, &me.author)?;
        Ok(Reply::no_content())
    })
    .await
}

/// Try a webhook
///
/// Needs a privileged user. Sends something that says nothing, as a delivery of the type `test`.
#[utoipa::path(
    tags = ["webhooks", "additions"],
    operation_id = "testWebhook",
    params(("webhookID" = uuid::Uuid, Path)),
    responses(
        (status = 201, description = "The delivery, which waits", body = ResponseDelivery),
        (status = 409, description = "The webhook is off (`webhook-off`)")
    )
)]
#[post("/{webhookID}/test")]
pub async fn test(who: Privileged, Zone(zone): Zone, now: Now, wake: Wake, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    let reply = who.update(target(id, zone), move |conn, _| {
        let delivery = changes::test(conn, id, DbTimestamp(now.0))?;
        Reply::created(&ResponseDelivery::new(delivery, zone))
    });
    let reply = reply.await?;
    wake.up();
    Ok(reply)
}

/// Give a webhook another secret
///
/// Needs a privileged user. The secret is shown in this answer only. For 24 hours the former one signs as well.
#[utoipa::path(
    tags = ["webhooks", "additions"],
    operation_id = "rotateWebhookSecret",
    params(("webhookID" = uuid::Uuid, Path)),
    request_body(content = Option<RequestSecret>),
    responses(
        (status = 200, description = "The webhook with its new secret", body = WebhookWithSecret),
        (status = 409, description = "It has none, as its messages are not signed (`no-secret`)")
    )
)]
#[post("/{webhookID}/secret")]
pub async fn rotate(
    who: Privileged,
    club: Club,
    now: Now,
    wake: Wake,
    id: Path<Id>,
    body: OptionalBody<RequestSecret>,
) -> Result<Reply, Failure> {
    let (id, zone) = (DbUuid::from(*id), club.zone);
    let given = body.0.and_then(|body| body.secret);
    let reply = who.update(recorded(id, zone), move |conn, _| {
        let secret = changes::rotate(conn, &club.keys, id, given.as_deref(), DbTimestamp(now.0))?;
        Ok(Reply::json(&with_secret(queries::get(conn, id)?, Some(secret), zone))?.secret())
    });
    let reply = reply.await?;
    wake.up();
    Ok(reply)
}

/// What was sent by a webhook
///
/// Needs a privileged user. The newest first; kept for 30 days.
#[utoipa::path(
    tags = ["webhooks", "additions"],
    operation_id = "getWebhookDeliveries",
    params(("webhookID" = uuid::Uuid, Path)),
    responses((status = 200, description = "Deliveries", body = [ResponseDelivery]))
)]
#[get("/{webhookID}/deliveries")]
pub async fn deliveries(
    who: Privileged,
    Zone(zone): Zone,
    _now: TimeDependent,
    page: Page,
    id: Path<Id>,
) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.list(page, move |conn, _, page| {
        let rows = queries::deliveries_of(conn, id, &page.bounds()?)?;
        page.rows(rows, |row| row.id, |row| Ok(ResponseDelivery::new(row, zone)))
    })
    .await
}

/// Send a delivery again
///
/// Needs a privileged user.
#[utoipa::path(
    tags = ["webhooks", "additions"],
    operation_id = "retryWebhookDelivery",
    params(("webhookID" = uuid::Uuid, Path), ("deliveryID" = uuid::Uuid, Path)),
    responses(
        (status = 200, description = "The delivery, which waits", body = ResponseDelivery),
        (status = 409, description = "The webhook is off (`webhook-off`)")
    )
)]
#[post("/{webhookID}/deliveries/{deliveryID}/retry")]
pub async fn retry(
    who: Privileged,
    Zone(zone): Zone,
    now: Now,
    wake: Wake,
    ids: Path<(Id, Id)>,
) -> Result<Reply, Failure> {
    let (webhook, delivery) = (DbUuid::from(ids.0), DbUuid::from(ids.1));
    let reply = who.update(target(webhook, zone), move |conn, _| {
        let delivery = changes::retry(conn, webhook, delivery, DbTimestamp(now.0))?;
        Reply::json(&ResponseDelivery::new(delivery, zone))
    });
    let reply = reply.await?;
    wake.up();
    Ok(reply)
}
