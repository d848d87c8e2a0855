//! Changes of webhooks by privileged users.

use base64::{Engine, prelude::BASE64_STANDARD};
use common::problem::{Problem, Rule, Violations};
use diesel::prelude::*;
use service_kit::{
    credentials::{KeyIndex, Keys, random_secret},
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{self, Action, Author, Changes, Entry},
};
use url::Url;

use super::{
    kinds::{Format, Status, Type, WhyOff},
    networks::Networks,
    outbox::{MERGED, NewDelivery, insert},
    queries::{Delivery, Webhook, delivery, get, list},
    wire::{NameList, RequestWebhook, RequestWebhookChange, ids},
};
use crate::{
    club::Club,
    codes,
    groups::queries::unknown_indexes,
    objects::WEBHOOK,
    schema::{deliveries, webhooks},
};

/// The use for which the keys of the service encrypt addresses and secrets of webhooks ([`Keys::seal`]).
pub const SEALED: &str = "webhook";

/// The most webhooks.
pub const MAX_WEBHOOKS: u32 = 100;

/// What secrets of Standard Webhooks begin with.
pub const SECRET_PREFIX: &str = "whsec_";

/// What a webhook needs to be checked and stored.
#[derive(Debug, Clone)]
pub struct Context {
    /// The keys of the service.
    pub keys: Keys,
    /// The networks that webhooks may reach.
    pub networks: Networks,
}

impl Context {
    /// What the webhooks of the club need.
    pub fn of(club: &Club) -> Self {
        let networks = Networks { listed: club.messages.webhook_networks.clone(), is_development: club.is_development };
        Self { keys: club.keys.clone(), networks }
    }
}

/// What is shown of an address: its path and its query may be secret.
fn shown(url: &Url) -> String {
    format!("{}/…", url.origin().ascii_serialization())
}

fn check_types(format: Format, types: impl IntoIterator<Item = Type>, violations: &mut Violations) {
    for kind in types {
        if !format.takes(kind) {
            let message = format!("webhooks of the format `{}` are not told of `{}`", format.word(), kind.word());
            violations.push("/types", Rule::NotAllowed, message);
        }
    }
}

/// Checks new groups of a webhook. Those that it has may have been deleted since.
fn check_groups(
    conn: &mut AnyConnection,
    groups: &[DbUuid],
    present: &[DbUuid],
    violations: &mut Violations,
) -> Result<(), Error> {
    let unknown = unknown_indexes(conn, groups)?;
    for index in unknown.into_iter().filter(|index| !present.contains(&groups[*index])) {
        violations.push(format!("/groups/{index}"), Rule::UnknownGroup, "names no group");
    }
    Ok(())
}

/// The secret to store: the given one, or a random one.
fn secret_of(format: Format, given: Option<&str>, violations: &mut Violations) -> Result<Option<String>, Error> {
    match (format, given) {
        (Format::Standard, None) => {
            // 256 bits in the alphabet of the specification.
            let random = random_secret()?.replace('-', "+").replace('_', "/");
            Ok(Some(format!("{SECRET_PREFIX}{random}=")))
        }
        (Format::Standard, Some(text)) => {
            let key = text.strip_prefix(SECRET_PREFIX).and_then(|text| BASE64_STANDARD.decode(text).ok());
            if key.is_none_or(|key| !(24..=64).contains(&key.len())) {
                let message = "must be `whsec_` and 24 to 64 bytes in base64";
                violations.push("/secret", Rule::Invalid, message);
            }
            Ok(Some(text.to_owned()))
        }
        (Format::Traq, None) => Ok(Some(random_secret()?)),
        (Format::Traq, Some(text)) => Ok(Some(text.to_owned())),
        (Format::Slack | Format::Discord, Some(_)) => {
            violations.push(
                "/secret",
                Rule::NotAllowed,
                "must be left out: messages to Slack and Discord are not signed",
            );
            Ok(None)
        }
        (Format::Slack | Format::Discord, None) => Ok(None),
    }
}

fn join<T>(list: impl IntoIterator<Item = T>, word: impl Fn(T) -> String) -> String {
    list.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

fn words(types: impl IntoIterator<Item = Type>) -> String {
    join(types, |kind| kind.word().to_owned())
}

fn names(list: &NameList) -> String {
    serde_json::json!(list.0).to_string()
}

fn id_words(ids: &[DbUuid]) -> String {
    join(ids, ToString::to_string)
}

/// Creates a webhook. Returns it and its secret.
///
/// # Errors
/// 400; 409 if there are too many.
pub fn create(
    conn: &mut AnyConnection,
    context: &Context,
    request: &RequestWebhook,
    creator: DbUuid,
    now: DbTimestamp,
) -> Result<(Webhook, Option<String>), Error> {
    let mut violations = Violations::default();
    let url = context.networks.check(&request.url);
    if let Err(message) = &url {
        violations.push("/url", Rule::NotAWebAddress, message.clone());
    }
    check_types(request.format, request.types.0.iter().copied(), &mut violations);
    let channel = request.channel_id.map(DbUuid::from);
    if channel.is_none() && request.format == Format::Traq {
        violations.push("/channelId", Rule::Required, "is required for traQ");
    }
    let groups = ids(request.groups.clone()).unwrap_or_default();
    check_groups(conn, &groups, &[], &mut violations)?;
    let secret = secret_of(request.format, request.secret.as_deref(), &mut violations)?;
    violations.into_result()?;
    let Ok(url) = url else { return Err(Problem::internal("the address was checked").into()) };
    if webhooks::table.count().get_result::<i64>(conn)? >= i64::from(MAX_WEBHOOKS) {
        return Err(Problem::new(codes::TOO_MANY_WEBHOOKS).into());
    }
    let id = DbUuid::new();
    let seal = |text: &str| context.keys.seal(SEALED, text.to_owned());
    diesel::insert_into(webhooks::table)
        .values((
            webhooks::id.eq(id),
            webhooks::name.eq(&*request.name),
            webhooks::url.eq(seal(url.as_str())),
            webhooks::shown_url.eq(shown(&url)),
            webhooks::format.eq(request.format),
            webhooks::types.eq(words(request.types.0.iter().copied())),
            webhooks::group_ids.eq(id_words(&groups)),
            webhooks::language.eq(request.language.unwrap_or(super::kinds::MessageLanguage::English)),
            webhooks::mentions.eq(request.mentions.unwrap_or(super::kinds::Mentions::On)),
            webhooks::mention_groups.eq(names(request.mention_groups.as_ref().unwrap_or(&NameList(Vec::new())))),
            webhooks::channel_id.eq(channel),
            webhooks::is_on.eq(request.is_on.unwrap_or(true)),
            webhooks::secret.eq(secret.as_deref().map(seal)),
            webhooks::since.eq(now),
            webhooks::read_until.eq(now),
            webhooks::created_by.eq(creator),
            webhooks::created_at.eq(now),
            webhooks::updated_at.eq(now),
        ))
        .execute(conn)?;
    Ok((get(conn, id)?, secret))
}

/// Changes the fields that a request has.
///
/// # Errors
/// 404, 400.
pub fn update(
    conn: &mut AnyConnection,
    context: &Context,
    id: DbUuid,
    request: &RequestWebhookChange,
    now: DbTimestamp,
) -> Result<(), Error> {
    let before = get(conn, id)?;
    let mut violations = Violations::default();
    let url = request.url.as_deref().filter(|url| *url != before.shown_url).map(|url| context.networks.check(url));
    if let Some(Err(message)) = &url {
        violations.push("/url", Rule::NotAWebAddress, message.clone());
    }
    check_types(before.format, request.types.iter().flat_map(|types| types.0.iter().copied()), &mut violations);
    let groups = ids(request.groups.clone());
    check_groups(conn, groups.as_deref().unwrap_or_default(), &before.groups(), &mut violations)?;
    violations.into_result()?;
    let is_other = |url: &Url| context.keys.open(SEALED, &before.url).as_deref() != Some(url.as_str());
    let url = url.and_then(Result::ok).filter(is_other);
    diesel::update(webhooks::table.find(id))
        .set((
            request.name.as_deref().map(|name| webhooks::name.eq(name)),
            url.as_ref().map(|url| webhooks::url.eq(context.keys.seal(SEALED, url.to_string()))),
            url.as_ref().map(|url| webhooks::shown_url.eq(shown(url))),
            url.as_ref().map(|_| webhooks::url_changed_at.eq(now)),
            request.types.as_ref().map(|types| webhooks::types.eq(words(types.0.iter().copied()))),
            groups.as_deref().map(|groups| webhooks::group_ids.eq(id_words(groups))),
            request.language.map(|language| webhooks::language.eq(language)),
            request.mentions.map(|mentions| webhooks::mentions.eq(mentions)),
            request.mention_groups.as_ref().map(|list| webhooks::mention_groups.eq(names(list))),
            request.channel_id.map(|channel| webhooks::channel_id.eq(DbUuid::from(channel))),
            webhooks::updated_at.eq(now),
        ))
        .execute(conn)?;
    match request.is_on {
        Some(true) if !before.is_on => switch_on(conn, id, now),
        Some(false) if before.is_on => switch_off(conn, id, None),
        is_on if is_on == Some(true) || url.is_some() => send_waiting(conn, id, now),
        _ => Ok(()),
    }
}

/// Makes due what waits after a failure: the cause may have been mended. What waits for its minute still does.
fn send_waiting(conn: &mut AnyConnection, id: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    let collected = DbTimestamp(now.plus(-MERGED));
    let waiting = deliveries::table
        .filter(deliveries::webhook_id.eq(id))
        .filter(deliveries::status.eq(Status::Waiting))
        .filter(deliveries::due_at.gt(now))
        .filter(deliveries::attempts.gt(0).or(deliveries::at.le(collected)));
    diesel::update(waiting).set(deliveries::due_at.eq(now)).execute(conn)?;
    Ok(())
}

/// Switches a webhook on. It is not told of what happened before.
pub fn switch_on(conn: &mut AnyConnection, id: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    // An operator may have switched it off by SQL, in a restored database.
    drop_waiting(conn, id)?;
    diesel::update(webhooks::table.find(id))
        .set((
            webhooks::is_on.eq(true),
            webhooks::why_off.eq(None::<WhyOff>),
            webhooks::failing_since.eq(None::<DbTimestamp>),
            webhooks::since.eq(now),
            webhooks::read_until.eq(now),
        ))
        .execute(conn)?;
    Ok(())
}

/// Switches a webhook off, and drops what waits.
pub fn switch_off(conn: &mut AnyConnection, id: DbUuid, why: Option<WhyOff>) -> Result<(), Error> {
    diesel::update(webhooks::table.find(id))
        .set((webhooks::is_on.eq(false), webhooks::why_off.eq(why)))
        .execute(conn)?;
    drop_waiting(conn, id)
}

fn drop_waiting(conn: &mut AnyConnection, id: DbUuid) -> Result<(), Error> {
    let waiting =
        deliveries::table.filter(deliveries::webhook_id.eq(id)).filter(deliveries::status.eq(Status::Waiting));
    diesel::update(waiting).set(deliveries::status.eq(Status::Dropped)).execute(conn)?;
    Ok(())
}

/// Switches all webhooks off, and returns how many were on.
pub fn switch_all_off(conn: &mut AnyConnection, by: &Author) -> Result<usize, Error> {
    let on: Vec<DbUuid> = webhooks::table.filter(webhooks::is_on).select(webhooks::id).load(conn)?;
    let mut entries = Vec::new();
    for id in on {
        switch_off(conn, id, None)?;
        let changes = Changes::from_iter([("isOn".to_owned(), serde_json::json!([true, false]))]);
        entries.push(Entry { kind: &WEBHOOK, object: id, action: Action::Changed, changes });
    }
    history::record(conn, by, &entries)?;
    Ok(entries.len())
}

/// Deletes a webhook with its deliveries.
pub fn delete(conn: &mut AnyConnection, id: DbUuid) -> Result<(), Error> {
    get(conn, id)?;
    diesel::delete(webhooks::table.find(id)).execute(conn)?;
    Ok(())
}

/// Gives a webhook another secret, and returns it. The former one signs as well for a time.
///
/// # Errors
/// 404; 400; 409 for a webhook that has none.
pub fn rotate(
    conn: &mut AnyConnection,
    keys: &Keys,
    id: DbUuid,
    given: Option<&str>,
    now: DbTimestamp,
) -> Result<String, Error> {
    let before = get(conn, id)?;
    if !before.format.is_signed() {
        return Err(Problem::new(codes::NO_SECRET).into());
    }
    let mut violations = Violations::default();
    let secret = secret_of(before.format, given, &mut violations)?.unwrap_or_default();
    violations.into_result()?;
    diesel::update(webhooks::table.find(id))
        .set((
            webhooks::secret.eq(keys.seal(SEALED, secret.clone())),
            webhooks::former_secret.eq(before.secret),
            webhooks::secret_changed_at.eq(now),
            webhooks::updated_at.eq(now),
        ))
        .execute(conn)?;
    send_waiting(conn, id, now)?;
    Ok(secret)
}

/// Encrypts with the present key what was encrypted with a former one, so that the former one can be removed.
pub fn seal_again(conn: &mut AnyConnection, keys: &Keys) -> Result<(), Error> {
    let again = |sealed: &str| {
        let (key, value) = keys.open_by(SEALED, sealed)?;
        (key != KeyIndex::default()).then(|| keys.seal(SEALED, value))
    };
    for webhook in list(conn)? {
        let (url, secret) = (again(&webhook.url), webhook.secret.as_deref().and_then(again));
        let former = webhook.former_secret.as_deref().and_then(again);
        if url.is_some() || secret.is_some() || former.is_some() {
            diesel::update(webhooks::table.find(webhook.id))
                .set((
                    url.map(|url| webhooks::url.eq(url)),
                    secret.map(|secret| webhooks::secret.eq(secret)),
                    former.map(|secret| webhooks::former_secret.eq(secret)),
                ))
                .execute(conn)?;
        }
    }
    Ok(())
}

fn check_is_on(webhook: &Webhook) -> Result<(), Error> {
    if webhook.is_on { Ok(()) } else { Err(Problem::new(codes::WEBHOOK_OFF).into()) }
}

/// Adds a delivery that says nothing.
///
/// # Errors
/// 404; 409 if the webhook is off.
pub fn test(conn: &mut AnyConnection, id: DbUuid, now: DbTimestamp) -> Result<Delivery, Error> {
    check_is_on(&get(conn, id)?)?;
    let new = NewDelivery::now(id, format!("test:{}", DbUuid::new()), Type::Test, id, now);
    insert(conn, std::slice::from_ref(&new))?;
    delivery(conn, id, new.id)
}

/// Sends a delivery again, at once.
///
/// # Errors
/// 404; 409 if the webhook is off.
pub fn retry(conn: &mut AnyConnection, webhook: DbUuid, id: DbUuid, now: DbTimestamp) -> Result<Delivery, Error> {
    check_is_on(&get(conn, webhook)?)?;
    delivery(conn, webhook, id)?;
    diesel::update(deliveries::table.find(id))
        .set((deliveries::status.eq(Status::Waiting), deliveries::due_at.eq(now), deliveries::attempts.eq(0)))
        .execute(conn)?;
    delivery(conn, webhook, id)
}
