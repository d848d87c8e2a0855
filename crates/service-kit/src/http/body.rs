//! Request bodies: media type, size and JSON checked, all violations at once.

use std::{future::Future, pin::Pin, time::Duration};

use actix_web::{
    FromRequest, HttpMessage, HttpRequest,
    dev::Payload,
    http::header,
    web::{self, Bytes, Data},
};
use common::problem::{Problem, Violations, code};
use deserr::Deserr;
use sha2::{Digest, Sha256};

use super::retries::{self, BodyHash};
use crate::{error::Failure, server::AppState};

/// The most bytes of a JSON body.
pub const LIMIT: usize = 1 << 20;

/// How long a body may take to arrive: less than the whole request may take, so that a slow client learns that it was
/// slow and not that the service is unavailable.
fn patience(req: &HttpRequest) -> Duration {
    req.app_data::<Data<AppState>>().map_or(Duration::from_secs(30), |service| service.request_timeout()).mul_f32(0.7)
}

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
        Box::pin(async move { parse(&bytes.await?).map(Self) })
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

/// Reads a whole body of one media type. A body without any `Content-Type` is taken for the expected one; an empty
/// body may name any.
///
/// # Errors
/// 415 for another media type, 413 above `limit` bytes, 408 when it takes too long to arrive, 400 when it breaks off.
pub fn read(
    req: &HttpRequest,
    payload: &mut Payload,
    media_type: &'static str,
    limit: usize,
) -> impl Future<Output = Result<Bytes, Failure>> + use<> {
    let sent = req.content_type().trim().to_ascii_lowercase();
    let declared: Option<usize> = req
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse().ok());
    let packed = req.headers().get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
    let patience = patience(req);
    // Only a retry is told apart by its body.
    let hash_for = req.headers().contains_key(retries::KEY).then(|| req.clone());
    let body = web::Payload::from_request(req, payload).into_inner();
    async move {
        if declared.is_some_and(|length| length > limit) {
            return Err(too_large(limit).into());
        }
        let broken = || Failure::from(Problem::new(code::BAD_REQUEST).detail("The body broke off."));
        let body = body.map_err(|_| broken())?;
        let bytes = match tokio::time::timeout(patience, body.to_bytes_limited(limit)).await {
            Err(_) => return Err(Problem::new(code::REQUEST_TIMEOUT).into()),
            Ok(Err(_)) => return Err(too_large(limit).into()),
            Ok(Ok(bytes)) => bytes.map_err(|_| broken())?,
        };
        if !bytes.is_empty() && (packed || !sent.is_empty() && sent != media_type) {
            let detail = format!("Send {media_type} without a Content-Encoding.");
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
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Problem::new(code::MALFORMED_JSON).detail(format!("The body is not JSON: line {line}, column {column}."))
    })?;
    Ok(deserr::deserialize::<T, _, Violations>(value)?)
}
