//! Rows of a list as JSON, or their ids.

use std::hash::{Hash, Hasher};

use actix_web::http::{StatusCode, header};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use super::reply::Reply;
use crate::database::types::DbUuid;

/// Rows of a list.
#[derive(Default)]
pub struct ListPage {
    /// The rows as JSON, each after a comma or a line feed.
    pub(super) json: Vec<u8>,
    /// The number of rows.
    pub(super) count: usize,
    /// The address of the next page, if the request has a limit.
    pub(super) link: Option<String>,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// Instead of rows, their ids.
    pub ids: Option<Ids>,
    /// Whether the body has a line for each row instead of an array of them.
    pub(super) as_lines: bool,
}

/// The ids of rows, and their versions.
pub struct Ids {
    /// The ids in the order of the list.
    pub ids: Vec<DbUuid>,
    /// A digest of everything that the answer shows of these rows.
    pub digest: Option<String>,
}

impl ListPage {
    /// The ids of rows.
    pub fn ids(ids: Vec<DbUuid>) -> Self {
        Self { ids: Some(Ids { ids, digest: None }), ..Self::default() }
    }

    /// The ids of rows, each with a version that changes with anything that the answer shows of the row.
    pub fn versions(rows: Vec<(DbUuid, impl Hash)>) -> Self {
        let mut digest = RowDigest(Sha256::new());
        rows.hash(&mut digest);
        let digest = Some(BASE64_URL_SAFE_NO_PAD.encode(digest.0.finalize()));
        Self { ids: Some(Ids { ids: rows.into_iter().map(|(id, _)| id).collect(), digest }), ..Self::default() }
    }

    /// The rows as JSON, each after a comma or a line feed.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// The beginning of a body with these rows.
    pub fn first(self) -> Vec<u8> {
        let mut json = self.json;
        match json.first_mut() {
            Some(_) if self.as_lines => drop(json.remove(0)),
            None if self.as_lines => {}
            Some(first) => *first = b'[',
            None => json.push(b'['),
        }
        json
    }

    /// What ends a body with rows.
    fn end(&self) -> u8 {
        if self.as_lines { b'\n' } else { b']' }
    }

    /// The media type of a body.
    pub fn media_type(&self) -> &'static str {
        if self.as_lines { "application/x-ndjson" } else { "application/json" }
    }

    /// A further chunk of a body with these rows.
    pub fn chunk(self, is_last: bool) -> Vec<u8> {
        let end = is_last.then_some(self.end());
        let mut json = self.json;
        json.extend(end);
        json
    }

    /// An answer with these rows.
    pub fn into_reply(mut self) -> Reply {
        let (link, media_type) = (self.link.take(), self.media_type());
        // Without rows there are no lines either.
        let end = (!self.as_lines || self.count > 0).then_some(self.end());
        let mut body = self.first();
        body.extend(end);
        let reply = Reply::new(StatusCode::OK, media_type, body);
        match link {
            Some(link) => reply.with(header::LINK, format!("<{link}>; rel=\"next\"")),
            None => reply,
        }
    }
}

/// SHA-256 of values that can be hashed. It is the same in every process of a build.
struct RowDigest(Sha256);

impl Hasher for RowDigest {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        u64::from_be_bytes(std::array::from_fn(|n| digest[n]))
    }
}
