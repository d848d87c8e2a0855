//! Safe retries (contract, "Conditional requests and retries"): the answer to a `POST` with an `Idempotency-Key` is
//! stored for 24 hours, in the transaction of its effect, and sent again to the same request.

use std::{
    io::{Read, Write},
    time::Duration,
};

use actix_web::{
    HttpRequest,
    http::{
        StatusCode,
        header::{CACHE_CONTROL, HeaderName, HeaderValue},
    },
    web::Data,
};
use chrono::TimeDelta;
use common::{
    problem::{Legacy, Problem, Rule, code},
    time::Timestamp,
};
use diesel::{
    Connection, OptionalExtension,
    dsl::{count_star, sum},
    prelude::*,
};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use sha2::{Digest, Sha256};

use crate::{
    credentials::Keys,
    database::JobOwner,
    database::{AnyConnection, schema::idempotency_keys, types::DbTimestamp},
    error::Error,
    http::{PROBLEM_MEDIA_TYPE, Reply, body::IDEMPOTENCY_KEY, notes::RequestNotes},
    state::AppState,
    with_connection,
};

/// How long an answer is stored.
const LIFETIME: TimeDelta = TimeDelta::hours(24);

/// The most characters of a key.
const MAX_LENGTH: usize = 255;

/// The most keys of one caller that have not expired.
const MAX_KEYS: i64 = 1000;

/// The most bytes of one caller's stored answers.
const MAX_BYTES: i64 = 4 << 20;

/// The use for which the keys of the service encrypt stored secrets ([`Keys::seal`]).
const PURPOSE: &str = "idempotency";

/// The header of a repeated answer.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The key of a request, and what distinguishes the request from others with the same key.
pub struct IdempotencyKey {
    key: String,
    path: String,
    request_hash: Vec<u8>,
    request_id: String,
    now: Timestamp,
    /// Whether it is of a form, which is shown again after a refusal, to be sent with other values.
    is_of_form: bool,
}

impl IdempotencyKey {
    /// The key of a `POST`, after its body has been read. Other methods need none.
    pub fn from_request(req: &HttpRequest) -> Result<Option<Self>, Problem> {
        let mut values = req.headers().get_all(IDEMPOTENCY_KEY);
        let of_form = RequestNotes::read(req, |notes| notes.form_key.clone());
        let (first, others) = (values.next(), values.count());
        let is_of_form = first.is_none();
        let key = match first {
            _ if req.method() != "POST" => return Ok(None),
            Some(key) => key.to_str().ok().filter(|_| others == 0).map(str::to_owned),
            None if of_form.is_none() => return Ok(None),
            None => of_form,
        };
        let key = key.filter(|key| (1..=MAX_LENGTH).contains(&key.len())).ok_or_else(|| {
            Problem::parameter("Idempotency-Key", Rule::Length, "must be one header of 1 to 255 visible characters")
        })?;
        let mut request = Sha256::new();
        request.update((req.query_string().len() as u64).to_be_bytes());
        request.update(req.query_string());
        let (request_id, body) =
            RequestNotes::read(req, |notes| (notes.request_id.to_string(), notes.body_hash.clone()));
        request.update(body.unwrap_or_default());
        Ok(Some(Self {
            key,
            path: req.path().to_owned(),
            request_hash: request.finalize().to_vec(),
            request_id,
            now: AppState::from_request(req)?.clock.now(),
            is_of_form,
        }))
    }

    /// Sends the stored answer again, or runs the operation and stores its answer. A refusal is stored as well, without
    /// its effects; that of a form, and an answer of 429, 500 or above, is not.
    ///
    /// # Errors
    /// 422 for the key of another request; 429 and 5xx of the operation.
    pub(super) fn run(
        &self,
        conn: &mut AnyConnection,
        scope: &str,
        state: &AppState,
        operation: &mut dyn FnMut(&mut AnyConnection) -> Result<Reply, Error>,
    ) -> Result<Reply, Error> {
        let keys = state.answer_options.keys.as_ref();
        if let Some(reply) = self.stored_reply(conn, scope, keys)? {
            return Ok(reply);
        }
        // A savepoint, so that a refusal can be stored without its effects.
        let reply = match conn.transaction(operation) {
            Err(Error::Problem(problem)) if problem.status() < 500 && problem.status() != 429 && !self.is_of_form => {
                self.refusal(&problem, state.info.legacy)?
            }
            other => other?,
        };
        self.store(conn, scope, keys, &reply)?;
        Ok(reply)
    }

    /// A refusal as it is sent, so that its first and its later answers are the same.
    fn refusal(&self, problem: &Problem, legacy: Legacy) -> Result<Reply, Problem> {
        let status = StatusCode::from_u16(problem.status()).map_err(Problem::internal)?;
        let body = problem.body(&self.request_id, legacy).to_string();
        let mut reply = Reply::new(status, PROBLEM_MEDIA_TYPE, body.into_bytes()).with(CACHE_CONTROL, "no-store");
        for (name, value) in problem.headers() {
            reply = reply.with(HeaderName::try_from(*name).map_err(Problem::internal)?, value);
        }
        Ok(reply)
    }

    /// The id of the row for this scope, path and key: a hash, as each of them may be a secret.
    fn row_id(&self, scope: &str) -> Vec<u8> {
        let mut id = Sha256::new();
        for part in [scope, &self.path, &self.key] {
            id.update((part.len() as u64).to_be_bytes());
            id.update(part);
        }
        id.finalize().to_vec()
    }

    /// Refuses a caller who has too many keys, the key of this request included.
    fn check_limits(&self, conn: &mut AnyConnection, caller_hash: &[u8]) -> Result<(), Error> {
        let live = idempotency_keys::table
            .filter(idempotency_keys::caller_hash.eq(caller_hash))
            .filter(idempotency_keys::expires_at.gt(DbTimestamp(self.now)));
        let (keys, bytes): (i64, Option<i64>) = live.select((count_star(), sum(idempotency_keys::size))).first(conn)?;
        if keys <= MAX_KEYS && bytes.unwrap_or_default() < MAX_BYTES {
            return Ok(());
        }
        let oldest = live.select(idempotency_keys::expires_at).order(idempotency_keys::expires_at);
        let oldest = oldest.first::<DbTimestamp>(conn).optional()?;
        let wait = oldest.map_or(0, |at| (*at - self.now).num_seconds());
        Err(Problem::new(code::TOO_MANY_KEYS).retry_after(wait.max(1).unsigned_abs()).into())
    }

    /// The stored answer, or `None` for the first request with this key. Then the key is reserved until the end of the
    /// transaction: other requests with it wait.
    fn stored_reply(&self, conn: &mut AnyConnection, scope: &str, keys: Option<&Keys>) -> Result<Option<Reply>, Error> {
        let (id, now, caller_hash) = (self.row_id(scope), DbTimestamp(self.now), Sha256::digest(scope).to_vec());
        let expires = DbTimestamp(now.plus(LIFETIME));
        let row = (
            idempotency_keys::id.eq(&id),
            idempotency_keys::request_hash.eq(&self.request_hash),
            idempotency_keys::expires_at.eq(expires),
            idempotency_keys::caller_hash.eq(&caller_hash),
        );
        let inserted = with_connection!(&mut *conn, c => {
            diesel::insert_into(idempotency_keys::table).values(row).on_conflict_do_nothing().execute(c)
        })?;
        if inserted == 1 {
            return self.check_limits(conn, &caller_hash).map(|()| None);
        }
        let stored: Option<StoredReply> =
            idempotency_keys::table.find(&id).select(StoredReply::as_select()).first(conn).optional()?;
        // Deleted between the two statements.
        let stored = stored.ok_or(Error::Stale)?;
        if stored.expires_at <= now {
            let old = idempotency_keys::table.find(&id).filter(idempotency_keys::expires_at.le(now));
            let again = (
                idempotency_keys::request_hash.eq(&self.request_hash),
                idempotency_keys::expires_at.eq(expires),
                idempotency_keys::caller_hash.eq(&caller_hash),
                idempotency_keys::size.eq(0),
            );
            return match diesel::update(old).set(again).execute(conn)? {
                0 => Err(Error::Stale),
                _ => self.check_limits(conn, &caller_hash).map(|()| None),
            };
        }
        if stored.request_hash != self.request_hash {
            return Err(Problem::new(code::KEY_REUSED).into());
        }
        stored.into_reply(keys).map(Some)
    }

    fn store(&self, conn: &mut AnyConnection, scope: &str, keys: Option<&Keys>, reply: &Reply) -> Result<(), Error> {
        let headers: Vec<_> = reply.headers().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let headers = serde_json::to_string(&headers).map_err(Problem::internal)?;
        let body = if reply.is_secret() {
            let text = String::from_utf8(reply.body().to_vec()).map_err(Problem::internal)?;
            let keys = keys.ok_or_else(|| Problem::internal("an answer with a secret, and no key to seal it with"))?;
            keys.seal(PURPOSE, text).into_bytes()
        } else {
            compress(reply.body())?
        };
        let size = i32::try_from(body.len()).map_err(Problem::internal)?;
        let status = i16::try_from(reply.status().as_u16()).map_err(Problem::internal)?;
        diesel::update(idempotency_keys::table.find(self.row_id(scope)))
            .set((
                idempotency_keys::status.eq(status),
                idempotency_keys::headers.eq(headers),
                idempotency_keys::body.eq(body),
                idempotency_keys::size.eq(size),
                idempotency_keys::compressed.eq(!reply.is_secret()),
                idempotency_keys::sealed.eq(reply.is_secret()),
            ))
            .execute(conn)?;
        Ok(())
    }
}

/// An answer as the database stores it.
#[derive(Queryable, Selectable)]
#[diesel(table_name = idempotency_keys)]
struct StoredReply {
    request_hash: Vec<u8>,
    status: Option<i16>,
    headers: Option<String>,
    body: Option<Vec<u8>>,
    sealed: bool,
    expires_at: DbTimestamp,
    compressed: bool,
}

impl StoredReply {
    fn into_reply(self, keys: Option<&Keys>) -> Result<Reply, Error> {
        let (Some(status), Some(headers), Some(body)) = (self.status, self.headers, self.body) else {
            return Err(Problem::internal("an idempotency key without its answer").into());
        };
        let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.ok_or_else(|| Problem::internal("the status of a stored answer"))?;
        let body = if self.sealed {
            let sealed = String::from_utf8(body).map_err(Problem::internal)?;
            // The key that encrypted it has been removed from the service.
            let text = keys.and_then(|keys| keys.open(PURPOSE, &sealed));
            text.ok_or_else(|| Problem::new(code::KEY_REUSED).detail("The answer can no longer be shown."))?.into()
        } else if self.compressed {
            let mut bytes = Vec::new();
            GzDecoder::new(body.as_slice()).read_to_end(&mut bytes).map_err(Problem::internal)?;
            bytes
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

fn compress(body: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).map_err(Problem::internal)?;
    encoder.finish().map_err(Problem::internal)
}

/// The time between two runs of [`delete_expired_keys`].
const CLEANUP_INTERVAL: Duration = Duration::from_mins(1);

/// The most rows that one transaction of [`delete_expired_keys`] deletes, so that no request waits long for it.
const BATCH: usize = 200;

/// Deletes expired rows in small transactions, until the service ends.
pub(crate) async fn delete_expired_keys(state: Data<AppState>) {
    loop {
        tokio::time::sleep(CLEANUP_INTERVAL).await;
        let mut may_have_more = true;
        while may_have_more {
            let now = state.clock.now();
            let deleted = state.database.write(JobOwner::Internal, move |conn| delete_expired(conn, now, BATCH)).await;
            may_have_more = deleted.unwrap_or_else(|error| {
                state.database.log_failure("expired idempotency keys could not be deleted", error);
                0
            }) == BATCH;
        }
    }
}

/// Deletes the oldest expired rows, `limit` at most, and returns how many.
pub fn delete_expired(conn: &mut AnyConnection, now: Timestamp, limit: usize) -> Result<usize, Error> {
    let old: Vec<Vec<u8>> = idempotency_keys::table
        .filter(idempotency_keys::expires_at.le(DbTimestamp(now)))
        .order(idempotency_keys::expires_at)
        .select(idempotency_keys::id)
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .load(conn)?;
    if old.is_empty() {
        return Ok(0);
    }
    // A row may have been reserved again meanwhile.
    let expired = idempotency_keys::id.eq_any(old).and(idempotency_keys::expires_at.le(DbTimestamp(now)));
    Ok(diesel::delete(idempotency_keys::table.filter(expired)).execute(conn)?)
}
