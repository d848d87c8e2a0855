//! What webhooks look like on the wire.

use std::collections::BTreeSet;

use chrono_tz::Tz;
use common::{
    input::{Id, IdSet, Text, bounded_list},
    problem::{Rule, Violations},
    time::Zoned,
};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde::Serialize;
use service_kit::database::types::DbUuid;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ArrayBuilder, RefOr, schema::Schema},
};

use super::{
    kinds::{Format, Mentions, MessageLanguage, Status, Type, WhyOff},
    queries::{Delivery, Webhook},
};

/// The most elements of a list in a request.
const MAX_LIST: usize = 100;

/// What a webhook is told of: at least one, each once.
#[derive(Debug, Clone)]
pub struct TypeSet(pub BTreeSet<Type>);

impl Deserr<Violations> for TypeSet {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let types = bounded_list::<Type, _>(value, at, MAX_LIST)?;
        if types.is_empty() {
            return Err(Violations::one(at, Rule::Length, "must have at least one element"));
        }
        Ok(Self(types.into_iter().collect()))
    }
}

impl PartialSchema for TypeSet {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(Type::schema()).min_items(Some(1)).max_items(Some(MAX_LIST)).into()
    }
}

impl ToSchema for TypeSet {}

/// Names of groups of a chat, at most [`MAX_LIST`].
#[derive(Debug, Clone)]
pub struct NameList(pub Vec<String>);

impl Deserr<Violations> for NameList {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let names = bounded_list::<Text<1, 64>, _>(value, at, MAX_LIST)?;
        Ok(Self(names.into_iter().map(Text::into_inner).collect()))
    }
}

impl PartialSchema for NameList {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(Text::<1, 64>::schema()).max_items(Some(MAX_LIST)).into()
    }
}

impl ToSchema for NameList {}

/// A new webhook.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({
    "name": "sign on the door", "url": "https://door.club.example/hook", "format": "standard",
    "types": ["event.created", "event.changed", "event.deleted"]
}))]
pub struct RequestWebhook {
    /// What it is for.
    #[schema(inline)]
    pub name: Text<1, 64>,
    /// Where to send: an https address, in development mode also an http address of this machine.
    #[schema(inline)]
    pub url: Text<1, 2000>,
    /// `standard`: JSON of [Standard Webhooks](https://www.standardwebhooks.com), signed. `traq`, `slack` (also Mattermost
    /// and Rocket.Chat), `discord`: messages.
    #[schema(inline)]
    pub format: Format,
    /// What to send.
    #[schema(inline)]
    pub types: TypeSet,
    /// Only events of these groups; without any, all events.
    #[deserr(default)]
    #[schema(inline)]
    pub groups: Option<IdSet<0>>,
    /// The language of messages. Default `en`.
    #[deserr(default)]
    #[schema(inline)]
    pub language: Option<MessageLanguage>,
    /// Whether messages mention people: `on` notifies them, `silent` only names them, `off` does neither. Default `on`.
    #[deserr(default)]
    #[schema(inline)]
    pub mentions: Option<Mentions>,
    /// Whom to mention instead of the everyone group: names of groups of the chat, on Discord the ids of roles.
    #[deserr(default)]
    #[schema(inline)]
    pub mention_groups: Option<NameList>,
    /// The channel of traQ. Only `traq` needs it.
    #[deserr(default)]
    #[schema(inline)]
    pub channel_id: Option<Id>,
    /// The secret, if the receiver has one already: for `standard` as `whsec_…`.
    #[deserr(default)]
    #[schema(inline)]
    pub secret: Option<Text<16, 200>>,
    /// Whether anything is sent. Default true.
    #[deserr(default)]
    pub is_on: Option<bool>,
}

/// New fields of a webhook. Those that are left out stay.
#[derive(Debug, Clone, Default, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({"types": ["event.created"], "isOn": true}))]
pub struct RequestWebhookChange {
    /// What it is for.
    #[deserr(default)]
    #[schema(inline)]
    pub name: Option<Text<1, 64>>,
    /// Where to send. The shown address stands for the one that the webhook has.
    #[deserr(default)]
    #[schema(inline)]
    pub url: Option<Text<1, 2000>>,
    /// What to send.
    #[deserr(default)]
    #[schema(inline)]
    pub types: Option<TypeSet>,
    /// Only events of these groups; `[]` means all events.
    #[deserr(default)]
    #[schema(inline)]
    pub groups: Option<IdSet<0>>,
    /// The language of messages.
    #[deserr(default)]
    #[schema(inline)]
    pub language: Option<MessageLanguage>,
    /// Whether messages mention people.
    #[deserr(default)]
    #[schema(inline)]
    pub mentions: Option<Mentions>,
    /// Whom to mention instead of the everyone group.
    #[deserr(default)]
    #[schema(inline)]
    pub mention_groups: Option<NameList>,
    /// The channel of traQ.
    #[deserr(default)]
    #[schema(inline)]
    pub channel_id: Option<Id>,
    /// Whether anything is sent. What happens while it is off is never sent.
    #[deserr(default)]
    pub is_on: Option<bool>,
}

/// A new secret.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({}))]
pub struct RequestSecret {
    /// The secret, if the receiver has it already; without this a random one.
    #[deserr(default)]
    #[schema(inline)]
    pub secret: Option<Text<16, 200>>,
}

/// A webhook.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "webhookId": "0198c0de-0000-7000-8000-000000000060", "name": "sign on the door",
    "url": "https://door.club.example/hook", "format": "standard", "types": ["event.created", "event.changed"],
    "groups": [], "language": "en", "mentions": "on", "mentionGroups": [], "isOn": true,
    "createdBy": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "createdAt": "2026-04-01T18:00:00+09:00",
    "updatedAt": "2026-04-01T18:00:00+09:00"
}))]
pub struct ResponseWebhook {
    webhook_id: DbUuid,
    name: String,
    /// Without its query; of Slack and Discord only the host.
    url: String,
    #[schema(inline)]
    format: Format,
    #[schema(inline)]
    types: Vec<Type>,
    /// Only events of these groups; all if there are none.
    groups: Vec<DbUuid>,
    #[schema(inline)]
    language: MessageLanguage,
    #[schema(inline)]
    mentions: Mentions,
    mention_groups: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    channel_id: Option<DbUuid>,
    is_on: bool,
    /// Why the service has switched it off: the receiver answered 410 (`gone`), or nothing has arrived for two weeks
    /// (`failing`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, nullable = false)]
    why_off: Option<WhyOff>,
    /// Since when attempts have failed, if the last one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    failing_since: Option<Zoned>,
    /// When it got another address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    url_changed_at: Option<Zoned>,
    /// When it got another secret. The former one signs as well for 24 hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    secret_changed_at: Option<Zoned>,
    created_by: DbUuid,
    created_at: Zoned,
    updated_at: Zoned,
}

impl ResponseWebhook {
    /// A webhook with times in `zone`.
    pub fn new(webhook: Webhook, zone: Tz) -> Self {
        Self {
            webhook_id: webhook.id,
            format: webhook.format,
            types: webhook.types(),
            groups: webhook.groups(),
            mention_groups: webhook.mention_groups(),
            channel_id: webhook.channel_id,
            name: webhook.name,
            url: webhook.shown_url,
            language: webhook.language,
            mentions: webhook.mentions,
            is_on: webhook.is_on,
            why_off: webhook.why_off,
            failing_since: webhook.failing_since.map(|at| at.in_zone(zone)),
            url_changed_at: webhook.url_changed_at.map(|at| at.in_zone(zone)),
            secret_changed_at: webhook.secret_changed_at.map(|at| at.in_zone(zone)),
            created_by: webhook.created_by,
            created_at: webhook.created_at.in_zone(zone),
            updated_at: webhook.updated_at.in_zone(zone),
        }
    }
}

/// A webhook with its new secret.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "webhookId": "0198c0de-0000-7000-8000-000000000060", "name": "sign on the door",
    "url": "https://door.club.example/hook", "format": "standard", "types": ["event.created", "event.changed"],
    "groups": [], "language": "en", "mentions": "on", "mentionGroups": [], "isOn": true,
    "createdBy": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "createdAt": "2026-04-01T18:00:00+09:00",
    "updatedAt": "2026-04-01T18:00:00+09:00", "secret": "whsec_…"
}))]
pub struct WebhookWithSecret {
    /// The webhook.
    #[serde(flatten)]
    pub webhook: ResponseWebhook,
    /// It is not shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub secret: Option<String>,
}

/// What was sent, or will be.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "deliveryId": "0198c0de-0000-7000-8000-000000000061", "type": "event.created",
    "objectId": "0198c0de-0000-7000-8000-000000000020", "at": "2026-04-01T18:00:00+09:00", "status": "waiting",
    "attempts": 1, "lastTry": "2026-04-01T18:01:00+09:00", "nextTry": "2026-04-01T18:01:05+09:00",
    "answerStatus": 500, "answer": "Internal Server Error"
}))]
pub struct ResponseDelivery {
    /// The `webhook-id` of the requests.
    delivery_id: DbUuid,
    #[schema(inline)]
    r#type: Type,
    /// What it is about.
    object_id: DbUuid,
    /// When it happened.
    at: Zoned,
    /// `waiting`, `delivered`, `merged` (sent together with an earlier one), `dropped` (too late, or nothing to say) or
    /// `failed`.
    #[schema(inline)]
    status: Status,
    /// How often it was sent.
    attempts: i16,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_try: Option<Zoned>,
    /// While it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_try: Option<Zoned>,
    /// The status of the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    answer_status: Option<i16>,
    /// Its first kilobyte, or why there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    answer: Option<String>,
}

impl ResponseDelivery {
    /// A delivery with times in `zone`.
    pub fn new(delivery: Delivery, zone: Tz) -> Self {
        let next_try = Some(delivery.due_at).filter(|_| delivery.status == Status::Waiting);
        Self {
            delivery_id: delivery.id,
            r#type: delivery.kind,
            object_id: delivery.object_id,
            at: delivery.at.in_zone(zone),
            status: delivery.status,
            attempts: delivery.attempts,
            last_try: delivery.tried_at.map(|at| at.in_zone(zone)),
            next_try: next_try.map(|at| at.in_zone(zone)),
            answer_status: delivery.answer_status,
            answer: delivery.answer,
        }
    }
}

/// The ids of a request.
pub fn ids(set: Option<IdSet<0>>) -> Option<Vec<DbUuid>> {
    set.map(|set| set.iter().map(|(_, id)| DbUuid::from(Id(id))).collect())
}
