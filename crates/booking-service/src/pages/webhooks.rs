//! The page of webhooks, for privileged users: what was sent lately, test and retry.

use actix_web::web::Path;
use common::input::Id;
use maud::{Markup, html};
use service_kit::{
    database::{AnyConnection, PageBounds, types::DbUuid},
    error::{Error, Failure},
    http::{Form, Reply},
    page::{button, see_other},
    state::TimeDependent,
};

use super::{visit::Visit, webhook_form};
use crate::{
    auth::Privileged,
    webhooks::{
        self, Wake, changes,
        kinds::Status,
        queries::{self, Delivery, Webhook},
    },
};

/// The deliveries of a webhook that are shown.
const SHOWN: i64 = 10;

pub async fn show(visit: Visit, who: Privileged, _now: TimeDependent) -> Result<Reply, Failure> {
    who.read(move |conn, _| {
        let webhooks = queries::list(conn)?;
        let mut sections = Vec::with_capacity(webhooks.len());
        for webhook in &webhooks {
            sections.push(section(conn, webhook, &visit)?);
        }
        let body = html! {
            p { (visit.text("webhooks-about")) }
            h2 { (visit.text("make-webhook")) }
            div.actions { (webhook_form::links(&visit)) }
            @for section in &sections { (section) }
        };
        Ok(visit.reply(&visit.text("webhooks"), body))
    })
    .await
}

fn section(conn: &mut AnyConnection, webhook: &Webhook, visit: &Visit) -> Result<Markup, Error> {
    let here = format!("/webhooks/{}", webhook.id);
    let deliveries = queries::deliveries_of(conn, webhook.id, &PageBounds { after: None, rows: SHOWN })?;
    let state = match (webhook.is_on, webhook.why_off) {
        (true, _) => None,
        (false, None) => Some(visit.text("webhook-off")),
        (false, Some(why)) => Some(visit.text(&format!("webhook-{}", why.word()))),
    };
    Ok(html! {
        div.head {
            h2 {
                (webhook.name) " "
                @match &state {
                    Some(state) => span.badge.bad { (state) },
                    None if webhook.failing_since.is_some() => span.badge.warn { (visit.text("webhook-fails")) },
                    None => span.badge.good { (visit.text("webhook-works")) },
                }
            }
            div.actions {
                @if webhook.is_on { (button(&format!("{here}/test"), &[], &visit.text("webhook-test"), None)) }
                @else { (button(&format!("{here}/on"), &[], &visit.text("webhook-switch-on"), None)) }
                a.button href={ (here) "/edit" } aria-label={ (visit.text("edit")) " " (webhook.name) } { (visit.text("edit")) }
            }
        }
        p.mute {
            (visit.text(webhook_form::name_key(webhook.format))) " · " (webhook.shown_url)
            @if let Some(since) = webhook.failing_since {
                " · " (visit.format("webhook-failing-since", &[("at", visit.moment(since).into())]))
            }
        }
        @if !deliveries.is_empty() {
            div.card { ul.rows.named { @for delivery in &deliveries { li { (row(delivery, webhook, visit)) } } } }
        }
    })
}

fn row(delivery: &Delivery, webhook: &Webhook, visit: &Visit) -> Markup {
    let again = format!("/webhooks/{}/deliveries/{}/retry", webhook.id, delivery.id);
    let can_retry = webhook.is_on && delivery.status != Status::Merged;
    html! {
        div {
            (visit.moment(delivery.at)) " " b { (delivery.kind.word()) } " "
            (visit.text(&format!("delivery-{}", delivery.status.word())))
            @if delivery.status == Status::Waiting { " " (visit.moment(delivery.due_at)) }
            small {
                @if let Some(status) = delivery.answer_status { (status) " " }
                (delivery.answer.as_deref().unwrap_or_default())
            }
        }
        @if can_retry { (button(&again, &[], &visit.text("webhook-retry"), None)) } @else { i {} }
    }
}

/// Sends something that says nothing.
pub async fn test(visit: Visit, who: Privileged, wake: Wake, id: Path<Id>, _form: Form) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    let reply = who.update(webhooks::target(id, visit.zone), move |conn, _| {
        changes::test(conn, id, visit.now)?;
        Ok(see_other("/webhooks"))
    });
    let reply = reply.await?;
    wake.up();
    Ok(reply)
}

/// Sends a delivery again.
pub async fn retry(
    visit: Visit,
    who: Privileged,
    wake: Wake,
    ids: Path<(Id, Id)>,
    _form: Form,
) -> Result<Reply, Failure> {
    let (webhook, delivery) = (DbUuid::from(ids.0), DbUuid::from(ids.1));
    let reply = who.update(webhooks::target(webhook, visit.zone), move |conn, _| {
        changes::retry(conn, webhook, delivery, visit.now)?;
        Ok(see_other("/webhooks"))
    });
    let reply = reply.await?;
    wake.up();
    Ok(reply)
}

/// Switches a webhook on again.
pub async fn switch_on(visit: Visit, who: Privileged, wake: Wake, id: Path<Id>, _form: Form) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    let reply = who.update(webhooks::recorded(id, visit.zone), move |conn, _| {
        changes::switch_on(conn, id, visit.now)?;
        Ok(see_other("/webhooks"))
    });
    let reply = reply.await?;
    wake.up();
    Ok(reply)
}
