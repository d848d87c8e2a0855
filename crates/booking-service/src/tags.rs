//! Tags: names for events. They are never changed and never deleted.
//!
//! Names are compared after normalization (NFC). Case matters.

use std::collections::BTreeMap;

use actix_web::{get, post};
use chrono_tz::Tz;
use common::{
    input::Text,
    problem::{Problem, Violations, code},
    time::Zoned,
};
use deserr::Deserr;
use diesel::prelude::*;
use serde::Serialize;
use serde_json::json;
use service_kit::{
    after,
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure, OnUnique},
    history::{self, Author},
    http::{Body, Page, Reply},
    state::Now,
    with_connection,
};
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;
use utoipa_actix_web::service_config::ServiceConfig;

use crate::{auth::SignedIn, club::Zone, objects::TAG, schema::tags};

/// Registers the operations below `/tags`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(list).service(create);
}

// On the wire

/// A name for events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "tagId": "0198c0de-0000-7000-8000-000000000021", "name": "workshop", "createdAt": "2026-04-01T18:00:00+09:00",
    "updatedAt": "2026-04-01T18:00:00+09:00"
}))]
struct ResponseTag {
    tag_id: DbUuid,
    name: String,
    created_at: Zoned,
    updated_at: Zoned,
}

impl ResponseTag {
    fn new(tag: Tag, zone: Tz) -> Self {
        let Tag { id, name, created_at, updated_at } = tag;
        Self { tag_id: id, name, created_at: created_at.in_zone(zone), updated_at: updated_at.in_zone(zone) }
    }
}

/// A new tag.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations)]
#[schema(example = json!({"name": "workshop"}))]
struct RequestTag {
    #[schema(inline)]
    name: Text<1, 16>,
}

// The operations

/// List tags
///
/// Ordered by name.
#[utoipa::path(
    tag = "tags",
    operation_id = "getTag",
    responses((status = 200, description = "Tags", body = [ResponseTag]))
)]
#[get("")]
async fn list(who: SignedIn, Zone(zone): Zone, page: Page) -> Result<Reply, Failure> {
    who.list(page, move |conn, _, page| {
        let tags = load(conn, &page.bounds()?)?;
        page.rows(tags, |tag| (tag.name.clone(), tag.id), |tag| Ok(ResponseTag::new(tag, zone)))
    })
    .await
}

/// Create a tag
#[utoipa::path(
    tag = "tags",
    operation_id = "postTag",
    request_body = RequestTag,
    responses(
        (status = 201, description = "The new tag", body = ResponseTag),
        (status = 409, description = "A tag with this name exists (`duplicate-name`)")
    )
)]
#[post("")]
async fn create(who: SignedIn, Zone(zone): Zone, now: Now, body: Body<RequestTag>) -> Result<Reply, Failure> {
    who.create(move |conn, me| {
        let tag = insert(conn, &body.0.name, DbTimestamp(now.0))?;
        history::created(conn, &me.author, &TAG, [(tag.id, json!({"name": tag.name}))])?;
        Reply::created(&ResponseTag::new(tag, zone))
    })
    .await
}

// In the database

/// A tag as listed.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = tags)]
pub struct Tag {
    pub id: DbUuid,
    pub name: String,
    pub created_at: DbTimestamp,
    pub updated_at: DbTimestamp,
}

/// One page of the tags, by name.
pub fn load(conn: &mut AnyConnection, bounds: &PageBounds<(String, DbUuid)>) -> Result<Vec<Tag>, Error> {
    let mut query = tags::table.select(Tag::as_select()).order((tags::name, tags::id)).into_boxed();
    if let Some((name, id)) = &bounds.after {
        query = after!(query, tags::name; > name, tags::id; > *id);
    }
    Ok(query.limit(bounds.rows).load(conn)?)
}

/// The key by which names are compared: the column `tags.name_key`.
pub fn key(name: &str) -> String {
    name.nfc().collect()
}

/// Inserts a tag. 409 if a tag with this name exists.
fn insert(conn: &mut AnyConnection, name: &str, now: DbTimestamp) -> Result<Tag, Error> {
    let tag = Tag { id: DbUuid::new(), name: name.to_owned(), created_at: now, updated_at: now };
    diesel::insert_into(tags::table)
        .values((
            tags::id.eq(tag.id),
            tags::name.eq(&tag.name),
            tags::name_key.eq(key(name)),
            tags::created_at.eq(now),
            tags::updated_at.eq(now),
        ))
        .execute(conn)
        .on_unique("tags.name_key", || Problem::new(code::DUPLICATE_NAME).detail("There is a tag of this name."))?;
    Ok(tag)
}

/// The id and name of the tag for each of `names`, in their order. Tags that do not exist are created and count for the
/// user; concurrent requests may create the same tags. Names with equal keys give the same tag.
pub fn get_or_create<N: AsRef<str>>(
    conn: &mut AnyConnection,
    names: &[N],
    by: &Author,
    now: DbTimestamp,
) -> Result<Vec<(DbUuid, String)>, Error> {
    let keys: Vec<_> = names.iter().map(|name| key(name.as_ref())).collect();
    let mut existing = find(conn, &keys)?;
    // Inserted in the order of keys, so that requests that create the same tags cannot deadlock. Collected in reverse,
    // so that the first of two spellings of a name stays in the map.
    let missing = keys.iter().zip(names).rev().filter(|(key, _)| !existing.contains_key(*key));
    let missing: BTreeMap<_, _> = missing.map(|(key, name)| (key, (DbUuid::new(), name))).collect();
    if !missing.is_empty() {
        let rows: Vec<_> = missing
            .iter()
            .map(|(key, (id, name))| {
                (
                    tags::id.eq(*id),
                    tags::name.eq(name.as_ref()),
                    tags::name_key.eq(*key),
                    tags::created_at.eq(now),
                    tags::updated_at.eq(now),
                )
            })
            .collect();
        for rows in rows.chunks(1000) {
            with_connection!(conn, c => diesel::insert_into(tags::table)
                .values(rows)
                .on_conflict_do_nothing()
                .execute(c))?;
        }
        // A tag that another request has created meanwhile has another id.
        existing = find(conn, &keys)?;
        let created = missing.iter().filter(|(key, (id, _))| existing.get(**key).is_some_and(|tag| tag.0 == *id));
        let created: Vec<_> = created.map(|(_, (id, name))| (*id, json!({"name": name.as_ref()}))).collect();
        history::created(conn, by, &TAG, created)?;
    }
    let tag = |key| {
        existing.get(key).cloned().ok_or_else(|| Problem::internal("a tag that was just created is missing").into())
    };
    keys.iter().map(tag).collect()
}

fn find(conn: &mut AnyConnection, keys: &[String]) -> Result<BTreeMap<String, (DbUuid, String)>, Error> {
    let mut by_key = BTreeMap::new();
    for keys in keys.chunks(1000) {
        let tags = tags::table.filter(tags::name_key.eq_any(keys));
        let tags: Vec<(String, (DbUuid, String))> = tags.select((tags::name_key, (tags::id, tags::name))).load(conn)?;
        by_key.extend(tags);
    }
    Ok(by_key)
}
