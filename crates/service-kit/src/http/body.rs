//! Request bodies: media type, size and JSON checked, all violations at once.

use std::{future::Future, pin::Pin, time::Duration};

use actix_web::{
    FromRequest, HttpMessage, HttpRequest,
    dev::Payload,
    http::{
        Method,
        header::{self, HeaderName},
    },
    web::{self, Bytes, Data},
};
use common::problem::{Problem, Violations, code};
use deserr::Deserr;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::Failure;

/// The most bytes of a JSON body.
pub const LIMIT: usize = 1 << 20;

/// The longest time that a body may take to arrive. The application has it as data.
#[derive(Debug, Clone, Copy)]
pub struct BodyTimeout(pub Duration);

/// The request header with which a client repeats a `POST` safely. Only such a request needs the hash of its body.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// SHA-256 of the body, in the extensions of a request with an [`IDEMPOTENCY_KEY`].
pub struct BodyHash(pub Vec<u8>);

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

/// Reads a body of one media type. A body without `Content-Type` counts as the expected type; an empty body may name
/// any.
///
/// # Errors
/// 415 for another media type, 413 above `limit` bytes, 408 when it takes too long to arrive, 400 when it breaks off.
pub fn read(
    req: &HttpRequest,
    payload: &mut Payload,
    media_type: &'static str,
    limit: usize,
) -> impl Future<Output = Result<Bytes, Failure>> + use<> {
    let content_type = req.content_type().trim().to_ascii_lowercase();
    let declared: Option<usize> = req
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse().ok());
    let is_encoded = req.headers().get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
    let timeout = req.app_data::<Data<BodyTimeout>>().map_or(Duration::from_secs(20), |timeout| timeout.0);
    let hash_for = req.headers().contains_key(IDEMPOTENCY_KEY).then(|| req.clone());
    let body = web::Payload::from_request(req, payload).into_inner();
    async move {
        if declared.is_some_and(|length| length > limit) {
            return Err(too_large(limit).into());
        }
        let broken = || Failure::from(Problem::new(code::BAD_REQUEST).detail("The body broke off."));
        let body = body.map_err(|_| broken())?;
        let bytes = match tokio::time::timeout(timeout, body.to_bytes_limited(limit)).await {
            Err(_) => return Err(Problem::new(code::REQUEST_TIMEOUT).into()),
            Ok(Err(_)) => return Err(too_large(limit).into()),
            Ok(Ok(bytes)) => bytes.map_err(|_| broken())?,
        };
        let fault = match bytes.is_empty() {
            false if is_encoded => Some("The body must have no Content-Encoding.".to_owned()),
            false if !content_type.is_empty() && content_type != media_type => {
                Some(format!("The body must have the Content-Type {media_type}."))
            }
            _ => None,
        };
        if let Some(detail) = fault {
            return Err(Problem::new(code::UNSUPPORTED_MEDIA_TYPE).detail(detail).into());
        }
        if let Some(req) = hash_for {
            req.extensions_mut().insert(BodyHash(Sha256::digest(&bytes).to_vec()));
        }
        Ok(bytes)
    }
}

fn too_large(limit: usize) -> Problem {
    Problem::new(code::TOO_LARGE).detail(format!("The body may have {} MiB at most.", limit >> 20))
}

fn parse<T: Deserr<Violations>>(bytes: &[u8]) -> Result<T, Failure> {
    let mut value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Problem::new(code::MALFORMED_JSON).detail(format!("The body is not JSON: line {line}, column {column}."))
    })?;
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
