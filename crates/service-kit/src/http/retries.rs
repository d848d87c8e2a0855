//! Safe retries (contract, "Conditional requests and retries"): what a `POST` with an `Idempotency-Key` was answered is
//! kept for 24 hours, in the transaction of its effect, and answered again to the same request.

use actix_web::{
    HttpMessage, HttpRequest,
    http::{
        StatusCode,
        header::{HeaderName, HeaderValue},
    },
};
use chrono::TimeDelta;
use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use diesel::{OptionalExtension, prelude::*};
use sha2::{Digest, Sha256};

use super::Reply;
use crate::{
    credentials::Keys,
    database::{AnyConnection, schema::idempotency_keys, types::DbTimestamp},
    error::Error,
    with_connection,
};

/// How long an answer is kept.
const KEPT: TimeDelta = TimeDelta::hours(24);

/// The longest key, in characters.
const LONGEST: usize = 255;

/// The use for which the keys of the installation seal an answer that holds a secret.
const SEAL: &str = "idempotency";

/// The request header.
pub const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The header of an answer that was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Hash of the body, in the extensions of a request whose body has been read.
pub(super) struct BodyHash(pub Vec<u8>);

/// The key that a request came with, and what tells the request apart from others with the same key.
#[derive(Clone)]
pub struct Retry {
    key: String,
    path: String,
    request: Vec<u8>,
}

impl Retry {
    /// Of a `POST` whose body has been read.
    ///
    /// # Errors
    /// 400 for a key that is empty, too long, sent twice or no text.
    pub fn of(req: &HttpRequest) -> Result<Option<Self>, Problem> {
        let mut sent = req.headers().get_all(KEY);
        let (Some(key), others) = (sent.next(), sent.count()) else { return Ok(None) };
        let key = key.to_str().ok().filter(|key| others == 0 && (1..=LONGEST).contains(&key.len()));
        let key = key.ok_or_else(|| {
            Problem::parameter("Idempotency-Key", "length", "must be one header of 1 to 255 visible characters")
        })?;
        let mut request = Sha256::new();
        request.update((req.query_string().len() as u64).to_be_bytes());
        request.update(req.query_string());
        if let Some(BodyHash(body)) = req.extensions().get::<BodyHash>() {
            request.update(body);
        }
        Ok(Some(Self { key: key.to_owned(), path: req.path().to_owned(), request: request.finalize().to_vec() }))
    }

    /// The row of this caller, path and key. None of them stands in the database in the clear.
    fn id(&self, caller: &str) -> Vec<u8> {
        let mut id = Sha256::new();
        for part in [caller, &self.path, &self.key] {
            id.update((part.len() as u64).to_be_bytes());
            id.update(part);
        }
        id.finalize().to_vec()
    }

    /// The answer that was given to this request, or `None` when it is the first with its key: then the answer is to be
    /// [kept](Self::keep) before the transaction ends, and until then another one with the key waits.
    ///
    /// # Errors
    /// 422 when the key belongs to another request.
    pub(super) fn answered(
        &self,
        conn: &mut AnyConnection,
        caller: &str,
        keys: Option<&Keys>,
        now: Timestamp,
    ) -> Result<Option<Reply>, Error> {
        let (id, now) = (self.id(caller), DbTimestamp(now));
        let expires = DbTimestamp(now.plus(KEPT));
        let row = (
            idempotency_keys::id.eq(&id),
            idempotency_keys::request_hash.eq(&self.request),
            idempotency_keys::expires_at.eq(expires),
        );
        let claimed = with_connection!(&mut *conn, c => {
            diesel::insert_into(idempotency_keys::table).values(row).on_conflict_do_nothing().execute(c)
        })?;
        if claimed == 1 {
            return Ok(None);
        }
        let kept: Option<Kept> = idempotency_keys::table.find(&id).select(Kept::as_select()).first(conn).optional()?;
        // Deleted in between.
        let kept = kept.ok_or(Error::Stale)?;
        if kept.expires_at <= now {
            let old = idempotency_keys::table.find(&id).filter(idempotency_keys::expires_at.le(now));
            let again = (idempotency_keys::request_hash.eq(&self.request), idempotency_keys::expires_at.eq(expires));
            return match diesel::update(old).set(again).execute(conn)? {
                0 => Err(Error::Stale),
                _ => Ok(None),
            };
        }
        if kept.request_hash != self.request {
            return Err(Problem::new(code::KEY_REUSED).into());
        }
        kept.into_reply(keys).map(Some)
    }

    /// Keeps the answer to be given again.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) fn keep(
        &self,
        conn: &mut AnyConnection,
        caller: &str,
        keys: Option<&Keys>,
        reply: &Reply,
    ) -> Result<(), Error> {
        let headers: Vec<_> = reply.headers().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let headers = serde_json::to_string(&headers).map_err(Problem::internal)?;
        let body = if reply.is_secret() {
            let text = String::from_utf8(reply.body().to_vec()).map_err(Problem::internal)?;
            let keys = keys.ok_or_else(|| Problem::internal("an answer with a secret, and no key to seal it with"))?;
            keys.seal(SEAL, text).into_bytes()
        } else {
            reply.body().to_vec()
        };
        let status = i16::try_from(reply.status().as_u16()).map_err(Problem::internal)?;
        diesel::update(idempotency_keys::table.find(self.id(caller)))
            .set((
                idempotency_keys::status.eq(status),
                idempotency_keys::headers.eq(headers),
                idempotency_keys::body.eq(body),
                idempotency_keys::sealed.eq(reply.is_secret()),
            ))
            .execute(conn)?;
        Ok(())
    }
}

/// An answer as the database keeps it.
#[derive(Queryable, Selectable)]
#[diesel(table_name = idempotency_keys)]
struct Kept {
    request_hash: Vec<u8>,
    status: Option<i16>,
    headers: Option<String>,
    body: Option<Vec<u8>>,
    sealed: bool,
    expires_at: DbTimestamp,
}

impl Kept {
    fn into_reply(self, keys: Option<&Keys>) -> Result<Reply, Error> {
        let (Some(status), Some(headers), Some(body)) = (self.status, self.headers, self.body) else {
            return Err(Problem::internal("an idempotency key without its answer").into());
        };
        let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.ok_or_else(|| Problem::internal("the status of a kept answer"))?;
        let body = if self.sealed {
            let sealed = String::from_utf8(body).map_err(Problem::internal)?;
            // The key of the installation has been replaced since, and is not among the former ones any more.
            let opened = keys.and_then(|keys| keys.open(SEAL, &sealed));
            opened.ok_or_else(|| Problem::new(code::KEY_REUSED).detail("The answer can no longer be shown."))?.into()
        } else {
            body
        };
        let headers: Vec<(String, String)> = serde_json::from_str(&headers).map_err(Problem::internal)?;
        let mut reply = Reply::raw(status, body).with(REPLAYED, "true");
        for (name, value) in headers {
            if let (Ok(name), Ok(_)) = (HeaderName::try_from(name), HeaderValue::from_str(&value)) {
                reply = reply.with(name, value);
            }
        }
        Ok(if self.sealed { reply.secret() } else { reply })
    }
}

/// Deletes answers that are kept no longer, `most` of them, the oldest first, and says how many there were.
///
/// # Errors
/// When the database fails.
pub fn forget_expired(conn: &mut AnyConnection, now: Timestamp, most: i64) -> Result<usize, Error> {
    let old: Vec<Vec<u8>> = idempotency_keys::table
        .filter(idempotency_keys::expires_at.le(DbTimestamp(now)))
        .order(idempotency_keys::expires_at)
        .select(idempotency_keys::id)
        .limit(most)
        .load(conn)?;
    if old.is_empty() {
        return Ok(0);
    }
    // One of them may have been used again while this waited for it.
    let still = idempotency_keys::id.eq_any(old).and(idempotency_keys::expires_at.le(DbTimestamp(now)));
    Ok(diesel::delete(idempotency_keys::table.filter(still)).execute(conn)?)
}
