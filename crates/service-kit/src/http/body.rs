//! Request bodies: media type, size and JSON checked, all violations at once.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use actix_web::{
    FromRequest, HttpMessage, HttpRequest,
    dev::Payload,
    http::{
        Method,
        header::{self, HeaderName},
    },
    web::{self, Bytes, BytesMut, Data},
};
use common::problem::{Problem, Violations, code};
use deserr::Deserr;
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    admission::Admission,
    body_budget::{BodyBudget, BodyBytes},
    notes::RequestNotes,
};
use crate::error::Failure;

/// The most bytes of a JSON body.
pub const LIMIT: usize = 1 << 20;

/// The limits of all bodies together, in the application's data.
pub struct Bodies {
    /// The longest time that a body may take to arrive.
    pub timeout: Duration,
    /// The bytes of bodies in memory.
    pub budget: Arc<BodyBudget>,
}

/// The request header with which a client repeats a `POST` safely. Only such a request needs the hash of its body.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A JSON body that has been parsed into `T`.
pub struct Body<T>(pub T);

/// A JSON body that may be missing altogether, or `null`.
pub struct OptionalBody<T>(pub Option<T>);

type Extracted<T> = Pin<Box<dyn Future<Output = Result<T, Failure>>>>;

impl<T: Deserr<Violations> + 'static> FromRequest for Body<T> {
    type Error = Failure;
    type Future = Extracted<Self>;

    fn from_request(req: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let bytes = read(req, payload, "application/json", LIMIT);
        let may_be_empty = req.method() == Method::PATCH;
        Box::pin(async move {
            let bytes = bytes.await?;
            // A `PATCH` without a body changes nothing (contract, "JSON").
            parse(if bytes.is_empty() && may_be_empty { b"{}" } else { &bytes }).map(Self)
        })
    }
}

impl<T: Deserr<Violations> + 'static> FromRequest for OptionalBody<T> {
    type Error = Failure;
    type Future = Extracted<Self>;

    fn from_request(req: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let bytes = read(req, payload, "application/json", LIMIT);
        Box::pin(async move {
            let bytes = bytes.await?;
            if bytes.is_empty() { Ok(Self(None)) } else { parse(&bytes).map(Self) }
        })
    }
}

/// Reads a body of one of these media types, separated by commas. A body without `Content-Type` counts as one of them;
/// an empty body may name any. What has not arrived together with the head of the request is read only if its caller may
/// do what they ask for.
///
/// # Errors
/// 415 for another media type, 413 above `limit` bytes, 408 when it takes too long to arrive, 400 when it breaks off;
/// those of [`Admission::wait`]; 429 or 503 for too many bytes under way.
pub fn read(
    req: &HttpRequest,
    payload: &mut Payload,
    media_types: &'static str,
    limit: usize,
) -> impl Future<Output = Result<Bytes, Failure>> + use<> {
    let body = web::Payload::from_request(req, payload).into_inner();
    let req = req.clone();
    async move {
        let content_length = req.headers().get(header::CONTENT_LENGTH);
        let declared = content_length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if declared.is_some_and(|length| length > limit) {
            return Err(too_large(limit).into());
        }
        let bodies =
            req.app_data::<Data<Bodies>>().cloned().ok_or_else(|| Problem::internal("the app has no Bodies"))?;
        let body = body.map_err(|_| broken())?;
        let read = read_all(&req, body, limit, &bodies.budget);
        let bytes = tokio::time::timeout(bodies.timeout, read).await;
        let bytes = bytes.map_err(|_| Problem::new(code::REQUEST_TIMEOUT))??;
        let content_type = req.content_type().trim().to_ascii_lowercase();
        let is_encoded = req.headers().get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
        let fault = match bytes.is_empty() {
            false if is_encoded => Some("The body must have no Content-Encoding.".to_owned()),
            false
                if !content_type.is_empty() && media_types.split(", ").all(|media_type| content_type != media_type) =>
            {
                Some(format!("The body must have the Content-Type {media_types}."))
            }
            _ => None,
        };
        if let Some(detail) = fault {
            return Err(Problem::new(code::UNSUPPORTED_MEDIA_TYPE).detail(detail).into());
        }
        if req.headers().contains_key(IDEMPOTENCY_KEY) {
            RequestNotes::change(&req, |notes| notes.body_hash = Some(Sha256::digest(&bytes).to_vec()));
        }
        Ok(bytes)
    }
}

/// Reads a body. Its bytes count until the request ends.
async fn read_all(
    req: &HttpRequest,
    mut body: web::Payload,
    limit: usize,
    budget: &Arc<BodyBudget>,
) -> Result<Bytes, Failure> {
    // The server delivers what arrived with the head after the first time that the request is polled.
    tokio::task::yield_now().await;
    let (mut bytes, mut reserved) = (BytesMut::new(), None);
    loop {
        let chunk = match (&reserved, body.next().now_or_never()) {
            (_, Some(chunk)) => chunk,
            (Some(_), None) => body.next().await,
            (None, None) => {
                reserved = Some(BodyBytes::new(budget, Some(Admission::wait(req).await?), bytes.len())?);
                continue;
            }
        };
        let Some(chunk) = chunk else { break };
        let chunk = chunk.map_err(|_| broken())?;
        if bytes.len() + chunk.len() > limit {
            return Err(too_large(limit).into());
        }
        if let Some(reserved) = &mut reserved {
            reserved.add(chunk.len())?;
        }
        // Copied, because a chunk holds the whole buffer of its connection.
        bytes.extend_from_slice(&chunk);
    }
    let reserved = reserved.map_or_else(|| BodyBytes::new(budget, None, bytes.len()), Ok)?;
    RequestNotes::change(req, |notes| notes.body_bytes = Some(reserved));
    Ok(bytes.freeze())
}

fn broken() -> Problem {
    Problem::new(code::BAD_REQUEST).detail("The body broke off.")
}

fn too_large(limit: usize) -> Problem {
    Problem::new(code::TOO_LARGE).detail(format!("The body may have {} MiB at most.", limit >> 20))
}

fn parse<T: Deserr<Violations>>(bytes: &[u8]) -> Result<T, Failure> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Problem::new(code::MALFORMED_JSON).detail(format!("The body is not JSON: line {line}, column {column}."))
    })?;
    from_value(value)
}

/// Reads `T` from the JSON of a body.
pub fn from_value<T: Deserr<Violations>>(mut value: Value) -> Result<T, Failure> {
    normalize(&mut value);
    Ok(deserr::deserialize::<T, _, Violations>(value)?)
}

/// Removes members that are `null`, which means the same as leaving them out, and converts numbers such as `2000.0` to
/// integers (contract, "JSON").
fn normalize(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(normalize);
        }
        Value::Array(elements) => elements.iter_mut().for_each(normalize),
        Value::Number(number) if !number.is_i64() && !number.is_u64() => {
            // Every integer up to 2^53 is exact in a float.
            let integer =
                number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0);
            if let Some(integer) = integer.and_then(|float| format!("{float:.0}").parse::<i64>().ok()) {
                *value = integer.into();
            }
        }
        _ => {}
    }
}
